import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Circle } from "../../src/hash/circle.ts";

/** Positions near each other, near the ends, and anywhere. */
const position = fc.oneof(
  fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  fc.integer({ min: 0, max: 20 }),
  fc.integer({ min: 2 ** 31 - 10, max: 2 ** 31 + 10 }),
  fc.integer({ min: 2 ** 32 - 20, max: 2 ** 32 - 1 }),
);
const points = fc.array(fc.tuple(position, fc.nat(50)), { minLength: 1, maxLength: 300 });

/** The least point at or past the position, else the least of all; of equal ones that with the least owner. */
function followingPoint(all: readonly (readonly [number, number])[], at: number): readonly [number, number] {
  const sorted = [...all].sort(([a, ownerA], [b, ownerB]) => a - b || ownerA - ownerB);
  const found = sorted.find(([point]) => point >= at) ?? sorted[0];
  if (found === undefined) throw new Error("no points");
  return found;
}

const circleOf = (all: readonly (readonly [number, number])[]): Circle =>
  new Circle(
    Uint32Array.from(all, ([point]) => point),
    Uint32Array.from(all, ([, owner]) => owner),
  );

describe("a circle of points", () => {
  it("finds the owner of the point that follows any position", () => {
    fc.assert(
      fc.property(points, fc.array(position, { maxLength: 50 }), (all, positions) => {
        const circle = circleOf(all);
        const everywhere = [...positions, ...all.slice(0, 30).map(([point]) => point)];
        const expected = everywhere.map((at) => followingPoint(all, at)[1]);
        expect(everywhere.map((at) => circle.ownerAfter(at))).toEqual(expected);
        expect(everywhere.map((at) => circle.ownerAfter(at | 0))).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  it("finds the owner of the point that follows one of several positions most closely", () => {
    fc.assert(
      fc.property(points, fc.array(position, { minLength: 1, maxLength: 30 }), (all, positions) => {
        const candidates = positions.map((at) => {
          const [point, owner] = followingPoint(all, at);
          return { distance: (point - at + 2 ** 32) % 2 ** 32, owner };
        });
        const least = Math.min(...candidates.map(({ distance }) => distance));
        const nearest = candidates.find(({ distance }) => distance === least);
        expect(circleOf(all).nearestOwner(Int32Array.from(positions))).toBe(nearest?.owner);
      }),
      { numRuns: 300 },
    );
  });
});
