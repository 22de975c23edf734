/** How fast something grows, as seen by those who look at it now and then. */

/** Looks at less than this distance say little: what is written in bursts seems to grow without end. */
const MIN_APART_MS = 5_000;

interface Look {
  readonly at: number;
  readonly value: number;
}

export class Growth {
  readonly #overMs: number;
  /** Oldest first; at most one of them is from before the time that counts. */
  #looks: readonly Look[] = [];

  /** @param overMs of which time the rate is: back to the last look that is as long ago, if there is one */
  constructor(overMs: number) {
    this.#overMs = overMs;
  }

  /**
   * Takes note of a value.
   *
   * @param at in milliseconds, not before that of the last look
   * @returns how much it grows a second, less than nothing if it shrinks; null while that cannot be told
   */
  look(at: number, value: number): number | null {
    const borders = this.#looks.filter((look) => at - look.at >= this.#overMs);
    this.#looks = this.#looks.slice(Math.max(0, borders.length - 1));
    const [oldest] = this.#looks;
    const last = this.#looks.at(-1);
    if (last === undefined || at - last.at >= MIN_APART_MS) this.#looks = [...this.#looks, { at, value }];
    if (oldest === undefined || at - oldest.at < MIN_APART_MS) return null;
    return ((value - oldest.value) * 1000) / (at - oldest.at);
  }
}
