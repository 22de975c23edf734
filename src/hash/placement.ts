/**
 * The placement family: from a key to one of `slots` numbered slots.
 *
 * One contract for every algorithm: frozen after building, no clock, no I/O, no allocation in `place`.
 */
import { invariant } from "./invariant.ts";
import { jump } from "./jump.ts";

/** Algorithms by their names in the configuration. */
export type PlacementAlgorithm = "jump" | "hashmod";

/** Picks a slot for a key. */
export interface Placement {
  readonly algorithm: PlacementAlgorithm;
  /** How many slots there are; `place` answers 0 <= slot < slots. */
  readonly slots: number;
  /** @param key unsigned 32-bit integer */
  place(key: number): number;
}

/**
 * Builds the placement of an algorithm over slots 0 to slots - 1.
 *
 * @param slots 1 to 2^31 - 1
 */
export function buildPlacement(algorithm: PlacementAlgorithm, slots: number): Placement {
  invariant(Number.isInteger(slots) && slots >= 1 && slots < 2 ** 31, `placement over ${slots} slots`);
  const place = {
    jump: (key: number) => jump(key, slots),
    // The modulus of the old Go gateway: nearly every key moves when the count changes.
    hashmod: (key: number) => (key >>> 0) % slots,
  }[algorithm];
  return Object.freeze({ algorithm, slots, place });
}
