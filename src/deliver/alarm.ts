/**
 * One timer for whatever happens next.
 *
 * It is set forward when something earlier comes up and never back: rung too early, its owner looks at the clock and sets
 * it anew. So what comes and goes within milliseconds, as nearly all waits of a lane, costs no timer of its own.
 */

/** setTimeout takes no more, and fires at once if it gets more. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class Alarm {
  readonly #now: () => number;
  readonly #onRing: () => void;
  #ringsAt = Infinity;
  #timer: NodeJS.Timeout | undefined;

  constructor(now: () => number, onRing: () => void) {
    this.#now = now;
    this.#onRing = onRing;
  }

  /** Rings at that time or earlier, once. @param at on the clock of now(); Infinity for never */
  ringBy(at: number): void {
    if (at >= this.#ringsAt) return;
    this.cancel();
    this.#ringsAt = at;
    // Rounded up: it would ring a fraction of a millisecond early, for nothing.
    const waitMs = Math.min(Math.max(0, Math.ceil(at - this.#now())), LONGEST_TIMER_MS);
    this.#timer = setTimeout(() => {
      this.#ringsAt = Infinity;
      this.#onRing();
    }, waitMs);
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#ringsAt = Infinity;
  }
}
