/**
 * Ring hashing: every slot has many points on a circle, and a key belongs to the slot whose point comes next.
 *
 * Taking a slot away moves only the keys it held, wherever it stands in the list, since points come from names.
 *
 * @see Karger et al.: Consistent Hashing and Random Trees, STOC 1997
 */
import { createHash } from "node:crypto";
import { Circle } from "./circle.ts";
import { PlacementError } from "./errors.ts";
import { fnv1a32 } from "./fnv.ts";
import { mix32 } from "./mix.ts";
import { type NamedSlot, type PlaceKey, weightOf } from "./slots.ts";

/**
 * Where points come from.
 *
 * - `md5`: Ketama's. Each MD5 digest of "name-0", "name-1" and so on gives four points, its four little-endian words.
 * - `fnv1a`: FNV-1a-32 of "name:0", "name:1" and so on, as textbooks have it. Poor: the last digit of such a text reaches
 *   only the upper byte of its hash and a few bits below, so the points of a slot come in regular patterns, not at random.
 */
export type RingHash = "md5" | "fnv1a";

/** All slots' points together. 100 slots have room for 20,000 each. */
const MAX_POINTS = 2 ** 21;
const POINTS_PER_DIGEST = 4;

/**
 * Builds the lookup of a ring. A slot has `points` points for each unit of its weight, rounded: 160 are 40 digests, as
 * libketama and nginx count.
 *
 * @param points 1 or more
 * @throws {PlacementError} PLACEMENT_POINTS
 * @see https://github.com/RJ/ketama, libketama/ketama.c
 */
export function buildRing(slots: readonly NamedSlot[], hash: RingHash, points: number): PlaceKey {
  // Made in a function of its own: what it works with there would be kept as long as this function's answer.
  const circle = circleOf(slots, hash, points);
  return (key) => circle.ownerAfter(mix32(key));
}

function circleOf(slots: readonly NamedSlot[], hash: RingHash, points: number): Circle {
  const counts = pointCounts(slots, points);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const positions = new Uint32Array(total);
  const owners = new Uint32Array(total);
  let at = 0;
  slots.forEach(({ name }, slot) => {
    const count = counts[slot] ?? 0;
    const own = positions.subarray(at, at + count);
    if (hash === "md5") fillWithDigests(own, name);
    else fillWithFnv(own, name);
    owners.fill(slot, at, at + count);
    at += count;
  });
  return new Circle(positions, owners);
}

function pointCounts(slots: readonly NamedSlot[], points: number): number[] {
  if (!(Number.isInteger(points) && points >= 1)) {
    throw new PlacementError("PLACEMENT_POINTS", null, `a ring of ${points} points: want 1 or more, 160 say`);
  }
  const counts = slots.map((slot) => Math.round(points * weightOf(slot)));
  const without = counts.indexOf(0);
  const bare = slots[without];
  if (bare !== undefined) {
    throw new PlacementError(
      "PLACEMENT_POINTS",
      without,
      `slot "${bare.name}" has no point on the ring (weight ${weightOf(bare)} of ${points} points): raise its weight or points`,
    );
  }
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total > MAX_POINTS) {
    throw new PlacementError(
      "PLACEMENT_POINTS",
      null,
      `a ring of ${total} points: want at most ${MAX_POINTS} for all slots together; lower points or the weights`,
    );
  }
  return counts;
}

function fillWithDigests(points: Uint32Array, name: string): void {
  for (let at = 0; at < points.length; at += POINTS_PER_DIGEST) {
    const digest = createHash("md5")
      .update(`${name}-${at / POINTS_PER_DIGEST}`)
      .digest();
    for (let word = 0; word < POINTS_PER_DIGEST && at + word < points.length; word++) {
      points[at + word] = digest.readUInt32LE(word * 4);
    }
  }
}

function fillWithFnv(points: Uint32Array, name: string): void {
  for (let at = 0; at < points.length; at++) {
    const text = Buffer.from(`${name}:${at}`);
    points[at] = fnv1a32(text, 0, text.length);
  }
}
