/** How long to wait before trying again. */

/** Bounds of the exponential backoff, both in milliseconds. */
export interface BackoffOptions {
  readonly minBackoffMs: number;
  readonly maxBackoffMs: number;
}

/** A wait of nothing at all, drawn again and again, would be a busy loop. */
const SHORTEST_WAIT_MS = 1;

/**
 * Draws a wait with full jitter: even between 0 and a bound that doubles with every round, so that many who wait
 * come back spread out instead of together.
 *
 * @param round  how often was waited before: 0 draws from [0, minBackoffMs]
 * @param random 0 <= random < 1
 * @returns whole milliseconds, at least 1
 * @see https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
 */
export function backoffMs(round: number, options: BackoffOptions, random: number): number {
  const bound = Math.min(options.maxBackoffMs, options.minBackoffMs * 2 ** round);
  return Math.max(SHORTEST_WAIT_MS, Math.round(random * bound));
}
