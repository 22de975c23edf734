/**
 * Multi-probe hashing: every slot has one point on a circle, a key has many probes, and the slot whose point follows a probe
 * most closely gets the key.
 *
 * No slot gets much more than its share, with one point each: what a ring pays in memory, this pays in every lookup. Some
 * get far less, those whose points follow another's closely. Taking a slot away moves only the keys it held. Weights have no
 * place in it.
 *
 * @see Appleton & O'Reilly: Multi-probe consistent hashing, arXiv:1505.00062
 */
import { Circle } from "./circle.ts";
import { PlacementError } from "./errors.ts";
import { mix32 } from "./mix.ts";
import { siphash24 } from "./siphash.ts";
import type { NamedSlot, PlaceKey } from "./slots.ts";
import { upperHalf } from "./u64.ts";

const MAX_PROBES = 1000;
/** 2^32 divided by the golden ratio: as a step, it brings up keys that lie far apart. */
const STEP = 0x9e3779b9;

/**
 * Builds the lookup.
 *
 * Each probe is a hash of its own. h1 + i * h2, which needs two hashes only, is less even: where h2 is close to a simple
 * fraction of the circle, probes fall together.
 *
 * @param probes of each key; more of them make it more even, and slower
 * @throws {PlacementError} PLACEMENT_PROBES
 */
export function buildMultiProbe(slots: readonly NamedSlot[], probes: number): PlaceKey {
  if (!(Number.isInteger(probes) && probes >= 1 && probes <= MAX_PROBES)) {
    throw new PlacementError(
      "PLACEMENT_PROBES",
      null,
      `${probes} probes of each key: want 1 to ${MAX_PROBES}, 21 say`,
    );
  }
  const circle = pointPerSlot(slots);
  /** Filled and read by one lookup at a time. */
  const positions = new Int32Array(probes);
  return (key) => {
    let state = mix32(key);
    for (let probe = 0; probe < probes; probe++) {
      positions[probe] = mix32(state);
      state = (state + STEP) | 0;
    }
    return circle.nearestOwner(positions);
  };
}

/**
 * The circle with one point for each slot: the upper half of SipHash-2-4 of its name, with the key 0.
 *
 * @see https://github.com/dgryski/go-mpchash, whose compat_test.go hashes names so
 */
export function pointPerSlot(slots: readonly NamedSlot[]): Circle {
  const points = Uint32Array.from(slots, ({ name }) => upperHalf(siphash24(Buffer.from(name), 0n)));
  return new Circle(points, Uint32Array.from(slots.keys()));
}
