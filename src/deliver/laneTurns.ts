/**
 * Lets lanes begin their attempts in turn: so many are under way at a time at most, and none while the breaker does not
 * admit it. A lane that may not begin waits, and those that wait begin in the order in which they asked.
 */
import type { Attempts } from "./attempts.ts";
import type { Batch } from "./batch.ts";
import type { AttemptEnd } from "./classify.ts";
import type { Lane } from "./lane.ts";
import type { Undelivered } from "./outcome.ts";

/** The attempts that turns are for. */
export type TurnAttempts = Pick<Attempts, "mayBegin" | "begin" | "obstacle" | "isClosing">;

type TurnTaker = Pick<Lane, "takeTurn">;

export class LaneTurns {
  readonly #attempts: TurnAttempts;
  #maxUnderWay: number;
  readonly #waiting = new Set<TurnTaker>();
  #underWay = 0;

  constructor(attempts: TurnAttempts, maxUnderWay: number) {
    this.#attempts = attempts;
    this.#maxUnderWay = maxUnderWay;
  }

  /** Changes how many may be under way at a time. Those that are too many go on. */
  limitTo(maxUnderWay: number): void {
    this.#maxUnderWay = maxUnderWay;
    this.handOn();
  }

  /** Gives a lane its turn: within this call if it may begin, else when it may. */
  request(lane: TurnTaker): void {
    if (this.#waiting.size === 0 && this.#mayBegin) lane.takeTurn();
    else this.#waiting.add(lane);
  }

  /** Forgets a lane that waits. */
  withdraw(lane: TurnTaker): void {
    this.#waiting.delete(lane);
  }

  /** See Attempts.isClosing. */
  get isClosing(): boolean {
    return this.#attempts.isClosing;
  }

  /** See Attempts.obstacle(). */
  obstacle(lastFailure?: string): Undelivered | null {
    return this.#attempts.obstacle(lastFailure);
  }

  /** Begins an attempt, within a turn. See Attempts.begin(). */
  begin(batch: Batch, onEnd: (end: AttemptEnd) => void): void {
    this.#underWay += 1;
    this.#attempts.begin(batch, (end) => {
      this.#underWay -= 1;
      onEnd(end);
      this.handOn();
    });
  }

  /** Gives turns to as many as may begin. To be called when the breaker has changed. */
  handOn(): void {
    for (const lane of this.#waiting) {
      if (!this.#mayBegin) return;
      this.#waiting.delete(lane);
      lane.takeTurn();
    }
  }

  get #mayBegin(): boolean {
    return this.#underWay < this.#maxUnderWay && this.#attempts.mayBegin;
  }
}
