/**
 * Remembers what the regex engine said of a text.
 *
 * The values of new series mostly repeat (job, namespace, path), and finding an answer again takes a fraction of what the
 * engine takes. Three things bound what is held: long texts are not remembered, for they rarely repeat; a memo is emptied
 * after some thousand texts, so that a label with ever new values does not push out what other patterns remember; and the
 * budget bounds all memos of the process together.
 *
 * A text that never comes again costs twice what the engine alone would. So a memo pauses where that is the rule.
 */
import { MemoBudget } from "./memoBudget.ts";
import type { Groups } from "./template.ts";

const MAX_TEXT_LENGTH = 256;
const MAX_TEXTS = 4_096;
/** Long beside MAX_TEXTS, so that trying again costs little. */
const PAUSE_TEXTS = 65_536;
const BUDGET = new MemoBudget(16 * 1024 * 1024);

// What an entry takes in the heap of V8, at most.
const ENTRY_BYTES = 160;
const BYTES_PER_CHARACTER = 2;
const GROUPS_BYTES = 64;
const GROUP_BYTES = 48;

/** Whether a text matches, or its groups. */
type Answer = boolean | Groups | null;

export class MatchMemo<A extends Answer> {
  readonly #ask: (text: string) => A;
  readonly #budget: MemoBudget;
  readonly #answers = new Map<string, A>();
  // Since it began anew.
  #learned = 0;
  #recalled = 0;
  /** How many texts it still lets pass. */
  #pause = 0;

  /** @param ask a pure function */
  constructor(ask: (text: string) => A, budget = BUDGET) {
    this.#ask = ask;
    this.#budget = budget;
  }

  /** What `ask` says of the text. */
  answer(text: string): A {
    if (text.length > MAX_TEXT_LENGTH) return this.#ask(text);
    if (this.#pause > 0) {
      this.#pause -= 1;
      return this.#ask(text);
    }
    const known = this.#answers.get(text);
    if (known === undefined) return this.#learn(copyOf(text));
    this.#recalled += 1;
    return known;
  }

  #learn(text: string): A {
    const answer = this.#ask(text);
    if (this.#learned === MAX_TEXTS) this.#beginAnew();
    this.#learned += 1;
    this.#budget.spend(bytesOf(text, answer), this.#answers);
    this.#answers.set(text, answer);
    return answer;
  }

  #beginAnew(): void {
    if (this.#recalled < this.#learned) this.#pause = PAUSE_TEXTS;
    this.#learned = 0;
    this.#recalled = 0;
    this.#answers.clear();
  }
}

/** Part of a text keeps all of it in memory: a value, the label set that it was cut from. This makes one of its own. */
function copyOf(text: string): string {
  return ` ${text}`.slice(1);
}

function bytesOf(text: string, answer: Answer): number {
  const groupsBytes =
    typeof answer === "object" && answer !== null ? GROUPS_BYTES + GROUP_BYTES * answer.length : 0;
  return ENTRY_BYTES + BYTES_PER_CHARACTER * text.length + groupsBytes;
}
