/** How evenly tasks spread over the upstreams of a route. */
import { type BucketAlgorithm, buildBuckets } from "../hash/buckets.ts";

export interface TaskBalance {
  /** Tasks of the fullest slot over the mean of all slots; 1 is even. */
  readonly maxOverAverage: number;
  /** Slots that get no task, in ascending order. */
  readonly emptySlots: readonly number[];
}

/**
 * Places every task and counts; takes time and memory in proportion to both numbers.
 *
 * @param tasks how many tasks, 1 or more
 * @param slots how many upstreams, 1 or more
 */
export function taskBalance(tasks: number, algorithm: BucketAlgorithm, slots: number): TaskBalance {
  const place = buildBuckets(algorithm, slots);
  const counts = new Uint32Array(slots);
  for (let task = 0; task < tasks; task++) {
    const slot = place(task);
    counts[slot] = (counts[slot] ?? 0) + 1;
  }
  const fullest = counts.reduce((most, count) => Math.max(most, count), 0);
  const emptySlots = [...counts.keys()].filter((slot) => counts[slot] === 0);
  return { maxOverAverage: fullest / (tasks / slots), emptySlots };
}
