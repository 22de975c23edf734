import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LabelReader } from "../../src/route/labelReader.ts";
import { labelPairs } from "../../src/route/labelText.ts";
import { spansOf } from "./exampleRoute.ts";

type Pair = [string, string];

/** Labels with these values, named by their places. */
function pairs(...values: readonly string[]): Pair[] {
  return values.map((value, place) => [`label${place}`, value]);
}

describe("label sets that are read one after another", () => {
  it("are each read as if it were the only one", () => {
    const text = fc.oneof(
      fc.constantFrom("", "a", "ab", "abcd", "abcde", "abcdf", "bbcde", "é", "😀", "v".repeat(300)),
      fc.string({ unit: "grapheme", maxLength: 9 }),
    );
    const set = fc.oneof(
      fc.array(fc.tuple(text, text), { maxLength: 6 }),
      fc.constant(pairs(...Array.from({ length: 65 }, () => "many"))),
      fc.constant(pairs("long".repeat(1025))),
    );
    fc.assert(
      fc.property(fc.array(set, { maxLength: 8 }), (sets) => {
        const reader = new LabelReader();
        for (const each of sets) {
          const spans = spansOf(each);
          expect(reader.read(spans)).toEqual(labelPairs(spans));
        }
      }),
      { seed: 1, numRuns: 1000 },
    );
  });

  it("have the labels of the one before where they are the same in the same place", () => {
    const reader = new LabelReader();
    const before = reader.read(spansOf(pairs("one", "two", "three")));
    const now = reader.read(spansOf(pairs("one", "ten", "three", "four")));
    expect(now.map((label, place) => label === before[place])).toEqual([true, false, true, false]);
  });

  it("keep their texts when the bytes are used again for others", () => {
    const reader = new LabelReader();
    const spans = spansOf([["job", "node"]]);
    const labels = reader.read(spans);
    spans.bytes.fill(0x78);
    expect(reader.read(spans)).toEqual([["xxx", "xxxx"]]);
    expect(labels).toEqual([["job", "node"]]);
  });
});
