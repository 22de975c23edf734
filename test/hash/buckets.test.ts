import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildBuckets } from "../../src/hash/buckets.ts";
import { jump, jump64 } from "../../src/hash/jump.ts";
import { hashedKeys } from "./methods.ts";

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
  const keys = hashedKeys(20_000);
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

describe("numbered buckets", () => {
  it.each(["jump", "hashmod"] as const)("by %s give one bucket every key, and stay in range", (algorithm) => {
    const one = buildBuckets(algorithm, 1);
    const seven = buildBuckets(algorithm, 7);
    for (const key of [0, 1, 2 ** 31, 2 ** 32 - 1]) {
      expect(one(key)).toBe(0);
      expect(seven(key)).toBeGreaterThanOrEqual(0);
      expect(seven(key)).toBeLessThan(7);
    }
  });

  it.each(["jump", "hashmod"] as const)("by %s are not built for zero or negative counts", (algorithm) => {
    expect(() => buildBuckets(algorithm, 0)).toThrow(/0 buckets/);
    expect(() => buildBuckets(algorithm, -3)).toThrow(/-3 buckets/);
  });

  it("place the empty key as task 94 of 128", () => {
    expect(buildBuckets("jump", 128)(2166136261)).toBe(94);
  });
});
