import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jump, jump64 } from "../../src/hash/jump.ts";
import { buildPlacement } from "../../src/hash/placement.ts";

/** The paper's algorithm, word for word on 64-bit integers. */
function jumpReference(key: bigint, buckets: number): number {
  let state = key;
  let bucket = -1n;
  let next = 0n;
  while (next < BigInt(buckets)) {
    bucket = next;
    state = BigInt.asUintN(64, state * 2862933555777941757n + 1n);
    next = BigInt(Math.floor(Number(bucket + 1n) * (2 ** 31 / Number((state >> 33n) + 1n))));
  }
  return Number(bucket);
}

/** Keys that look like hashes, the same in every run (the finaliser of MurmurHash3 over a counter). */
function* fixedKeys(count: number): Generator<number> {
  for (let i = 1; i <= count; i++) {
    let key = Math.imul(i ^ (i >>> 16), 0x85ebca6b);
    key = Math.imul(key ^ (key >>> 13), 0xc2b2ae35);
    yield (key ^ (key >>> 16)) >>> 0;
  }
}

describe("jump hash on 32-bit limbs", () => {
  it("is the 64-bit algorithm for every key and count", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 64n - 1n), fc.integer({ min: 1, max: 2 ** 31 - 1 }), (key, buckets) => {
        const got = jump64(Number(key >> 32n), Number(key & 0xffffffffn), buckets);
        expect(got).toBe(jumpReference(key, buckets));
      }),
      { seed: 1, numRuns: 20_000 },
    );
  });

  it("refuses a bucket count that is no count", () => {
    for (const buckets of [0, -1, 1.5, 2 ** 31, Number.NaN])
      expect(() => jump(1, buckets)).toThrow(/buckets/);
  });
});

describe("jump hash from 1 to 200 buckets, over fixed keys", () => {
  const keys = [...fixedKeys(20_000)];
  const placed = Array.from({ length: 202 }, (_, buckets) =>
    buckets === 0 ? [] : keys.map((key) => jump(key, buckets)),
  );
  /** Five standard deviations of the count of keys that land where each lands with probability p. */
  const tolerance = (p: number): number => 5 * Math.sqrt(keys.length * p * (1 - p));

  it("moves keys only to the bucket that was added, and as many as that bucket's share", () => {
    for (let buckets = 1; buckets <= 200; buckets++) {
      let moved = 0;
      placed[buckets]?.forEach((before, index) => {
        const after = placed[buckets + 1]?.[index];
        if (after === before) return;
        expect(after).toBe(buckets);
        moved += 1;
      });
      const share = 1 / (buckets + 1);
      expect(Math.abs(moved - keys.length * share), `${buckets} → ${buckets + 1}`).toBeLessThan(
        tolerance(share),
      );
    }
  });

  it.each([
    { name: "3 → 4 moves 25 %", from: 3, share: 0.25 },
    { name: "10 → 11 moves 9.1 %", from: 10, share: 0.0909 },
    { name: "100 → 101 moves 0.99 %", from: 100, share: 0.0099 },
  ])("$name", ({ from, share }) => {
    const moved = keys.filter((key) => jump(key, from) !== jump(key, from + 1)).length;
    expect(Math.abs(moved - keys.length * share)).toBeLessThan(tolerance(share));
  });

  it("fills every bucket with its share", () => {
    for (let buckets = 1; buckets <= 200; buckets++) {
      const counts = new Array<number>(buckets).fill(0);
      for (const bucket of placed[buckets] ?? []) counts[bucket] = (counts[bucket] ?? 0) + 1;
      for (const count of counts) {
        expect(Math.abs(count - keys.length / buckets), `of ${buckets}`).toBeLessThanOrEqual(
          tolerance(1 / buckets),
        );
      }
    }
  });
});

describe("a placement", () => {
  it.each(["jump", "hashmod"] as const)("by %s gives one slot every key, and stays in range", (algorithm) => {
    const one = buildPlacement(algorithm, 1);
    const seven = buildPlacement(algorithm, 7);
    for (const key of [0, 1, 2 ** 31, 2 ** 32 - 1]) {
      expect(one.place(key)).toBe(0);
      expect(seven.place(key)).toBeGreaterThanOrEqual(0);
      expect(seven.place(key)).toBeLessThan(7);
    }
  });

  it.each(["jump", "hashmod"] as const)("by %s is not built over zero or negative slots", (algorithm) => {
    expect(() => buildPlacement(algorithm, 0)).toThrow(/0 slots/);
    expect(() => buildPlacement(algorithm, -3)).toThrow(/-3 slots/);
  });

  it("places the empty key as task 94 of 128", () => {
    expect(buildPlacement("jump", 128).place(2166136261)).toBe(94);
  });
});
