/** Log lines that could come with every request, let through now and then. */

/** What is told with a line that is let through: how many of its kind were held back since the last one. */
type Line = (heldBack: number) => void;

export class Rarely {
  readonly #now: () => number;
  readonly #everyMs: number;
  readonly #kinds = new Map<string, { next: number; heldBack: number }>();

  /** @param everyMs at most one line of a kind in this time */
  constructor(now: () => number, everyMs: number) {
    this.#now = now;
    this.#everyMs = everyMs;
  }

  /** Writes the line unless one of its kind was written lately. Kinds are few and fixed, not made from input. */
  say(kind: string, line: Line): void {
    const state = this.#kinds.get(kind) ?? { next: Number.NEGATIVE_INFINITY, heldBack: 0 };
    this.#kinds.set(kind, state);
    if (this.#now() < state.next) {
      state.heldBack += 1;
      return;
    }
    line(state.heldBack);
    state.heldBack = 0;
    state.next = this.#now() + this.#everyMs;
  }
}
