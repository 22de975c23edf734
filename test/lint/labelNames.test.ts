import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  allBut,
  difference,
  includes,
  intersection,
  isEmpty,
  isWithin,
  type LabelNames,
  namesText,
  only,
  union,
} from "../../src/lint/labelNames.ts";

/** The last one stands for all names that no set speaks of. */
const NAMES = ["a", "b", "c", "another"];

const sets: fc.Arbitrary<LabelNames> = fc
  .tuple(fc.constantFrom(only, allBut), fc.subarray(["a", "b", "c"]))
  .map(([make, names]) => make(names));

function members(set: LabelNames): string[] {
  return NAMES.filter((name) => includes(set, name));
}

describe("sets of label names", () => {
  it("are joined, cut and compared as their members are", () => {
    fc.assert(
      fc.property(sets, sets, (one, other) => {
        const [ones, others] = [members(one), members(other)];
        expect(members(union(one, other))).toEqual(
          NAMES.filter((name) => ones.includes(name) || others.includes(name)),
        );
        expect(members(intersection(one, other))).toEqual(ones.filter((name) => others.includes(name)));
        expect(members(difference(one, other))).toEqual(ones.filter((name) => !others.includes(name)));
        expect(isWithin(one, other)).toBe(ones.every((name) => others.includes(name)));
        expect(isEmpty(one)).toBe(ones.length === 0);
      }),
    );
  });

  it("are written as people say them", () => {
    const written = [only([]), only(["a", "b"]), allBut([]), allBut(["a"])].map(namesText);
    expect(written).toEqual(["no label", "a, b", "every label", "every label but a"]);
  });
});
