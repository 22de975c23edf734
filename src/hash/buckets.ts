/**
 * From a key to one of so many numbered buckets, where buckets have no names: the tasks of a route.
 *
 * Like every placement: frozen after building, no clock, no I/O, no allocation in `place`.
 */
import { invariant } from "./invariant.ts";
import { jump } from "./jump.ts";
import type { PlaceKey } from "./slots.ts";

/** Algorithms that need to know nothing but how many buckets there are, by their names in the configuration. */
export type BucketAlgorithm = "jump" | "hashmod";

/**
 * Builds the function that gives a key its bucket, 0 <= bucket < count.
 *
 * @param count 1 to 2^31 - 1
 */
export function buildBuckets(algorithm: BucketAlgorithm, count: number): PlaceKey {
  invariant(Number.isInteger(count) && count >= 1 && count < 2 ** 31, `placement over ${count} buckets`);
  switch (algorithm) {
    case "jump":
      return (key) => jump(key, count);
    case "hashmod":
      // The modulus of the old Go gateway: nearly every key moves when the count changes.
      return (key) => (key >>> 0) % count;
  }
}
