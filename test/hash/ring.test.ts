import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { fnv1a32 } from "../../src/hash/fnv.ts";
import { mix32 } from "../../src/hash/mix.ts";
import { buildRing, type RingHash } from "../../src/hash/ring.ts";
import type { NamedSlot } from "../../src/hash/slots.ts";
import { hashedKeys } from "./methods.ts";

interface Point {
  readonly position: number;
  readonly slot: number;
}

/** The continuum of libketama: four points of each digest of name-0, name-1 and so on, `count` in all. */
function ketamaPoints(name: string, slot: number, count: number): Point[] {
  const digests = Array.from({ length: Math.ceil(count / 4) }, (_, index) =>
    createHash("md5").update(`${name}-${index}`).digest(),
  );
  const positions = digests.flatMap((digest) => [0, 4, 8, 12].map((at) => digest.readUInt32LE(at)));
  return positions.slice(0, count).map((position) => ({ position, slot }));
}

/** FNV-1a-32 of name:0, name:1 and so on, on BigInts. */
function fnvPoints(name: string, slot: number, count: number): Point[] {
  return Array.from({ length: count }, (_, index) => {
    let hash = 2166136261n;
    for (const byte of Buffer.from(`${name}:${index}`))
      hash = ((hash ^ BigInt(byte)) * 16777619n) % 2n ** 32n;
    return { position: Number(hash), slot };
  });
}

describe.each<{ name: string; hash: RingHash; pointsOf: typeof ketamaPoints }>([
  { name: "of md5 is Ketama's continuum", hash: "md5", pointsOf: ketamaPoints },
  { name: "of fnv1a is the textbook's", hash: "fnv1a", pointsOf: fnvPoints },
])("a ring $name", ({ hash, pointsOf }) => {
  it.each<{ name: string; slots: readonly NamedSlot[]; points: number; counts: readonly number[] }>([
    {
      name: "160 points of each slot",
      slots: [{ name: "10.0.1.1:11211" }, { name: "10.0.1.2:11211" }, { name: "10.0.1.3:11211" }],
      points: 160,
      counts: [160, 160, 160],
    },
    {
      name: "160 points for each unit of weight",
      slots: [
        { name: "a", weight: 1 },
        { name: "ü", weight: 3 },
        { name: "", weight: 0.5 },
      ],
      points: 160,
      counts: [160, 480, 80],
    },
    {
      name: "a count that is no multiple of a digest's four",
      slots: [{ name: "a" }, { name: "b", weight: 1.55 }],
      points: 10,
      counts: [10, 16],
    },
  ])("with $name", ({ slots, points, counts }) => {
    const place = buildRing(slots, hash, points);
    const ring = slots
      .flatMap(({ name }, slot) => pointsOf(name, slot, counts[slot] ?? 0))
      .sort((a, b) => a.position - b.position);
    const reference = (key: number): number | undefined => {
      const at = mix32(key) >>> 0;
      return (ring.find(({ position }) => position >= at) ?? ring[0])?.slot;
    };
    const keys = [...hashedKeys(1000), 0, 1, 2, 127];
    expect(keys.map(place)).toEqual(keys.map(reference));
  });
});

describe("100 slots with 160 points each on a circle", () => {
  /** Standard deviation of the slots' shares of the circle, the mean being 1. */
  function unevenness(points: number, position: (slot: number, point: number) => number): number {
    const circle = Array.from({ length: 100 * points }, (_, index) => ({
      slot: Math.floor(index / points),
      at: position(Math.floor(index / points), index % points),
    })).sort((a, b) => a.at - b.at);
    const shares = new Float64Array(100);
    circle.forEach(({ slot, at }, index) => {
      const before = circle[index - 1]?.at ?? (circle.at(-1)?.at ?? 0) - 2 ** 32;
      shares[slot] = (shares[slot] ?? 0) + (at - before) / (2 ** 32 / 100);
    });
    return Math.sqrt(shares.reduce((sum, share) => sum + (share - 1) ** 2, 0) / 100);
  }
  const fnv = (text: string): number => fnv1a32(Buffer.from(text), 0, Buffer.byteLength(text));
  const fnvPoint = (slot: number, point: number): number => fnv(`vmagent-${slot}:${point}`);
  const random = hashedKeys(16_000);

  it("are as uneven by fnv1a as with a tenth of the points at random places", () => {
    const tenth = unevenness(16, (slot, point) => random[slot * 16 + point] ?? 0);
    expect(unevenness(160, fnvPoint) / tenth).toBeGreaterThan(0.9);
  });

  it("are as even as at random places once every point's hash is mixed", () => {
    const all = unevenness(160, (slot, point) => random[slot * 160 + point] ?? 0);
    expect(unevenness(160, (slot, point) => mix32(fnvPoint(slot, point)) >>> 0) / all).toBeLessThan(1.1);
  });
});
