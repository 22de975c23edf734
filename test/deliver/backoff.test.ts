import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { backoffMs } from "../../src/deliver/backoff.ts";

const OPTIONS = { minBackoffMs: 30, maxBackoffMs: 5_000 };
const ALMOST_ONE = 1 - Number.EPSILON;

describe("backoff", () => {
  it("doubles its bound from min to max", () => {
    const bounds = [0, 1, 2, 3, 7, 8, 9].map((round) => backoffMs(round, OPTIONS, ALMOST_ONE));
    expect(bounds).toEqual([30, 60, 120, 240, 3_840, 5_000, 5_000]);
  });

  it("draws from the whole range below the bound", () => {
    expect(backoffMs(3, OPTIONS, 0.5)).toBe(120);
    expect(backoffMs(3, OPTIONS, 0.01)).toBe(2);
  });

  it("is between 1 ms and the largest backoff, however long it has gone on", () => {
    fc.assert(
      fc.property(fc.nat(100_000), fc.double({ min: 0, max: ALMOST_ONE, noNaN: true }), (round, random) => {
        const waitMs = backoffMs(round, OPTIONS, random);
        expect(Number.isInteger(waitMs)).toBe(true);
        expect(waitMs).toBeGreaterThanOrEqual(1);
        expect(waitMs).toBeLessThanOrEqual(5_000);
      }),
    );
  });
});
