/** What a sample says of all it was taken from, and how far off that may be. */

export interface Estimate {
  readonly value: number;
  /** Of the value; 0 where it is exact. Four of them hold what is true, but for one time in ten thousand. */
  readonly standardError: number;
}

/** @param fraction of all, above 0, that were to be in the sample: each with this probability; 1 when it is all of them */
export function estimateCount(sampled: number, fraction: number): Estimate {
  const value = sampled / fraction;
  return { value, standardError: (value * Math.sqrt(1 - fraction)) / Math.sqrt(Math.max(1, sampled - 2)) };
}

/**
 * The share that has some property.
 *
 * @param having  of the sampled ones, how many have it; may be a sum of parts of them, each from 0 to 1
 * @param sampled how many those are
 * @param fraction as in estimateCount()
 */
export function estimateShare(having: number, sampled: number, fraction: number): Estimate {
  if (sampled === 0) return { value: 0, standardError: fraction === 1 ? 0 : 1 };
  // One more on each side: that none of the sampled ones has it is no proof that none has.
  const near = (having + 1) / (sampled + 2);
  const standardError = Math.sqrt((near * (1 - near) * (1 - fraction)) / sampled);
  return { value: having / sampled, standardError };
}
