import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { labelSpans, SortedRanges } from "../../src/hash/labelOrder.ts";
import { compileKey, EMPTY_KEY, NO_KEY_LABEL } from "../../src/hash/labelSetKey.ts";
import type { KeyFormat } from "../../src/hash/keyRule.ts";

type Labels = readonly (readonly [string, string])[];

const spansOf = (labels: Labels): ReturnType<typeof labelSpans> =>
  labelSpans(labels.flat().map((text) => Buffer.from(text)));

/** FNV-1a-32 written with BigInt, sharing nothing with the product. */
const fnvReference = (bytes: Buffer): number => {
  let hash = 2166136261n;
  for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * 16777619n) % 2n ** 32n;
  return Number(hash);
};

/** A `pairs` key in a few lines. */
const pairsReference = (labels: Labels): number => {
  const separator = Buffer.from([0xff]);
  const pairs = labels
    .filter(([, value]) => value !== "")
    .map(([name, value]) => [Buffer.from(name), Buffer.from(value)] as const)
    .sort(([a], [b]) => Buffer.compare(a, b));
  return fnvReference(Buffer.concat(pairs.flatMap(([name, value]) => [name, separator, value, separator])));
};

const flatReference = (labels: Labels): number =>
  fnvReference(
    Buffer.concat(
      labels
        .flat()
        .map((text) => Buffer.from(text))
        .sort((a, b) => Buffer.compare(a, b)),
    ),
  );

// Astral and BMP characters order differently in UTF-16 and in UTF-8: U+FF5E comes before an emoji only by bytes.
const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.constantFrom("job", "instance", "～", "😀", "le", "a", "ab", ""),
);
const labelSets = fc.uniqueArray(fc.tuple(text, text), { selector: ([name]) => name, maxLength: 40 });

describe("the pairs key of a label set", () => {
  const key = compileKey({ kind: "all" }, "pairs", null);

  it("agrees with a reference that sorts, joins and hashes", () => {
    fc.assert(
      fc.property(labelSets, (labels) => {
        expect(key(spansOf(labels), null)).toBe(pairsReference(labels));
      }),
      { seed: 1, numRuns: 2000 },
    );
  });

  it("keeps apart what a plain concatenation would merge", () => {
    const differ = (a: Labels, b: Labels): void => {
      expect(key(spansOf(a), null)).not.toBe(key(spansOf(b), null));
    };
    differ([["a", "b"]], [["b", "a"]]);
    differ([["a", "bc"]], [["ab", "c"]]);
    differ(
      [
        ["a", "1"],
        ["b", "2"],
      ],
      [
        ["a", "2"],
        ["b", "1"],
      ],
    );
  });

  it("takes a label with an empty value as not there", () => {
    expect(key(spansOf([["a", ""]]), null)).toBe(EMPTY_KEY);
    expect(
      key(
        spansOf([
          ["a", "1"],
          ["b", ""],
        ]),
        null,
      ),
    ).toBe(key(spansOf([["a", "1"]]), null));
  });
});

describe("the flat key of a label set", () => {
  it("agrees with a reference that sorts names and values in one list", () => {
    const key = compileKey({ kind: "all" }, "flat", null);
    fc.assert(
      fc.property(labelSets, (labels) => {
        expect(key(spansOf(labels), null)).toBe(flatReference(labels));
      }),
      { seed: 2, numRuns: 2000 },
    );
  });

  it("by the task label hashes the task that stage 1 chose, not what came from outside", () => {
    const key = compileKey({ kind: "by", names: ["stream_task_id", "job"] }, "flat", "stream_task_id");
    const incoming: Labels = [
      ["job", "node"],
      ["stream_task_id", "7"],
      ["zone", "a"],
    ];
    const expected = flatReference([
      ["job", "node"],
      ["stream_task_id", "94"],
    ]);
    expect(key(spansOf(incoming), 94)).toBe(expected);
  });
});

describe.each<KeyFormat>(["pairs", "flat"])("a %s key", (format) => {
  it("does not depend on the order of the labels", () => {
    const key = compileKey({ kind: "all" }, format, null);
    const shuffled = labelSets.chain((labels) =>
      fc.tuple(fc.constant(labels), fc.shuffledSubarray(labels, { minLength: labels.length })),
    );
    fc.assert(
      fc.property(shuffled, ([labels, other]) => {
        expect(key(spansOf(labels), null)).toBe(key(spansOf(other), null));
      }),
      { seed: 3, numRuns: 1000 },
    );
  });

  it("never contains the task label, whatever the rule leaves in", () => {
    const without: Labels = [
      ["__name__", "up"],
      ["job", "node"],
    ];
    const withTask: Labels = [...without, ["stream_task_id", "3"]];
    for (const rule of [{ kind: "all" }, { kind: "without", names: ["pod"] }] as const) {
      const key = compileKey(rule, format, "stream_task_id");
      expect(key(spansOf(withTask), null)).toBe(key(spansOf(without), null));
    }
  });

  it("by some labels is the key of the set of those labels, and without some the key of the others", () => {
    fc.assert(
      fc.property(labelSets, fc.array(text), (labels, others) => {
        const names = [...labels.slice(0, 3).map(([name]) => name), ...others];
        const inside = labels.filter(([name]) => names.includes(name));
        const all = compileKey({ kind: "all" }, format, null);
        const by = compileKey({ kind: "by", names }, format, null)(spansOf(labels), null);
        const present = inside.filter(([, value]) => format === "flat" || value !== "");
        expect(by).toBe(present.length === 0 ? NO_KEY_LABEL : all(spansOf(inside), null));
        const outside = labels.filter(([name]) => !names.includes(name));
        expect(compileKey({ kind: "without", names }, format, null)(spansOf(labels), null)).toBe(
          all(spansOf(outside), null),
        );
      }),
      { seed: 4, numRuns: 1000 },
    );
  });
});

describe("a list of ranges kept sorted", () => {
  it("orders by bytes, keeps equal ranges in the order they came, and grows", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 3 }), { maxLength: 200 }), (parts) => {
        const bytes = Buffer.concat(parts);
        const ranges = new SortedRanges();
        let at = 0;
        parts.forEach((part, index) => {
          ranges.add(bytes, at, at + part.length, index);
          at += part.length;
        });
        const expected = parts
          .map((part, index) => ({ part, index }))
          .sort((a, b) => Buffer.compare(a.part, b.part) || a.index - b.index)
          .map(({ index }) => index);
        expect(Array.from({ length: ranges.length }, (_, index) => ranges.tag(index))).toEqual(expected);
      }),
      { seed: 5, numRuns: 500 },
    );
  });
});
