/**
 * Rendezvous hashing: every pair of a key and a slot has a score, and the live slot with the highest gets the key.
 *
 * Taking a slot away moves only the keys it held, whichever it is, and in whatever order slots go. So this also places what
 * a tombstone leaves behind, and ranks the slots for replicas, whatever the algorithm of the first pick.
 *
 * @see Thaler & Ravishankar: A Name-Based Mapping Scheme for Rendezvous, CSE-TR-316-96
 */
import { invariant } from "./invariant.ts";
import { mix32 } from "./mix.ts";
import { type NamedSlot, weightOf } from "./slots.ts";
import { lowerHalf, upperHalf } from "./u64.ts";
import { xxhash64 } from "./xxhash64.ts";

const NO_SLOT = -1;

export class Rendezvous {
  /** Numbers of the live slots, ascending. The arrays below go by the same index. */
  readonly #slots: Int32Array;
  /** Halves of XXH64 of the slot's name. */
  readonly #upperSeeds: Int32Array;
  readonly #lowerSeeds: Int32Array;
  /** null where all weights are equal: then the scores' hashes alone say which is highest. */
  readonly #inverseWeights: Float64Array | null;
  /** Scores of what fillNext has picked so far; it is done with them when it returns. */
  readonly #pickedScores: Float64Array;

  /** @param slots at least one of them live */
  constructor(slots: readonly NamedSlot[]) {
    const live = [...slots.keys()].filter((number) => slots[number]?.removed !== true);
    invariant(live.length > 0, "rendezvous hashing without a live slot");
    const seeds = live.map((number) => xxhash64(Buffer.from(slots[number]?.name ?? ""), 0n));
    const weights = slots.map(weightOf);
    this.#slots = Int32Array.from(live);
    this.#upperSeeds = Int32Array.from(seeds, upperHalf);
    this.#lowerSeeds = Int32Array.from(seeds, lowerHalf);
    this.#inverseWeights = weights.every((weight) => weight === weights[0])
      ? null
      : Float64Array.from(live, (number) => 1 / (weights[number] ?? 1));
    this.#pickedScores = new Float64Array(live.length);
  }

  /** The live slot with the highest score. @param key 32-bit integer, unsigned or signed */
  best(key: number): number {
    const mixed = mix32(key);
    return (
      this.#slots[this.#inverseWeights === null ? this.#highestHash(mixed) : this.#highestScore(mixed)] ?? 0
    );
  }

  /**
   * Fills picked[1] to picked[count - 1] with the live slots of the highest scores, best first, leaving out picked[0].
   *
   * @param count at most as many as there are live slots
   */
  fillNext(key: number, picked: Int32Array, count: number): void {
    const mixed = mix32(key);
    const first = picked[0] ?? NO_SLOT;
    let filled = 1;
    for (let index = 0; index < this.#slots.length; index++) {
      const slot = this.#slots[index] ?? 0;
      if (slot === first) continue;
      const score = this.#score(mixed, index);
      if (filled === count && score <= (this.#pickedScores[count - 1] ?? 0)) continue;
      // Into the free place, or that of the least, and from there up to where it belongs.
      let at = filled < count ? filled++ : count - 1;
      for (; at > 1 && (this.#pickedScores[at - 1] ?? 0) < score; at--) {
        picked[at] = picked[at - 1] ?? 0;
        this.#pickedScores[at] = this.#pickedScores[at - 1] ?? 0;
      }
      picked[at] = slot;
      this.#pickedScores[at] = score;
    }
  }

  #highestHash(mixed: number): number {
    const upperSeeds = this.#upperSeeds;
    const lowerSeeds = this.#lowerSeeds;
    let best = 0;
    let highest = pairHash(mixed, upperSeeds[0] ?? 0, lowerSeeds[0] ?? 0);
    for (let index = 1; index < upperSeeds.length; index++) {
      const hash = pairHash(mixed, upperSeeds[index] ?? 0, lowerSeeds[index] ?? 0);
      if (hash > highest) {
        highest = hash;
        best = index;
      }
    }
    return best;
  }

  #highestScore(mixed: number): number {
    let best = 0;
    let highest = this.#score(mixed, 0);
    for (let index = 1; index < this.#slots.length; index++) {
      const score = this.#score(mixed, index);
      if (score > highest) {
        highest = score;
        best = index;
      }
    }
    return best;
  }

  /**
   * log(h) / weight, for h the hash as a fraction between 0 and 1. -log(h) / weight is distributed exponentially with the
   * weight as its rate, so the chance to be the least of them is the weight's share.
   */
  #score(mixed: number, index: number): number {
    const hash = pairHash(mixed, this.#upperSeeds[index] ?? 0, this.#lowerSeeds[index] ?? 0);
    if (this.#inverseWeights === null) return hash;
    return Math.log((hash + 2147483648.5) / 4294967296) * (this.#inverseWeights[index] ?? 1);
  }
}

/** A hash of a mixed key and a slot's 64-bit seed, which enters at two places. @returns 32-bit integer, signed */
function pairHash(mixed: number, upperSeed: number, lowerSeed: number): number {
  let hash = mixed ^ upperSeed;
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d);
  hash = (hash ^ (hash >>> 15)) + lowerSeed;
  hash = Math.imul(hash, 0x846ca68b);
  return hash ^ (hash >>> 16);
}
