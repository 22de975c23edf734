import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkAtDoor, REFUSAL_REASONS, type RefusalReason } from "../../src/route/door.ts";
import type { LabelLimits } from "../../src/route/options.ts";
import { exemplar, label, nested, sample, series } from "../wire/handmade.ts";
import { scanOfOne } from "../wire/scanned.ts";

const LIMITS: LabelLimits = { maxLabels: 4, maxLabelNameBytes: 8, maxLabelValueBytes: 6 };
const INVALID = Buffer.from([0x61, 0xc3]);

/** What the door says of a series with these fields and one sample. */
function check(fields: readonly Uint8Array[], limits = LIMITS): RefusalReason | null {
  return checkAtDoor(scanOfOne(series(...fields, sample(1)), limits.maxLabels), limits);
}

const named = (...names: readonly (string | Uint8Array)[]): Buffer[] => names.map((name) => label(name, "x"));

describe("a series at the door", () => {
  const taken = [
    { name: "no labels", fields: [] },
    { name: "as many labels as the limit", fields: named("a", "b", "c", "d") },
    { name: "a name as long as the limit", fields: named("a".repeat(8)) },
    { name: "a name that is long in bytes, not in characters", fields: named("éééé") },
    { name: "a value as long as the limit", fields: [label("a", "x".repeat(6))] },
    { name: "an empty value", fields: [label("a", "")] },
    { name: "no value", fields: [nested(1, nested(1, "a"))] },
    { name: "unsorted names", fields: named("d", "b", "c", "a") },
    { name: "names that begin alike", fields: named("aa", "a", "aaa") },
    { name: "UTF-8 in names and values", fields: [label("é～", "😀"), label("a", "\u{10ffff}")] },
    { name: "control characters and a NUL byte", fields: [label("a\n", "\0")] },
    { name: "no metric name", fields: named("job") },
    { name: "a name twice of which the last counts", fields: [nested(1, nested(1, ""), nested(1, "a"))] },
    { name: "good text in an exemplar", fields: [...named("a"), exemplar(label("é", "ü"), label("é", "ü"))] },
  ];
  it.each(taken)("is taken with $name", ({ fields }) => {
    expect(check(fields)).toBeNull();
  });

  const refused: readonly { name: string; fields: readonly Uint8Array[]; reason: RefusalReason }[] = [
    { name: "a label above the limit", fields: named("a", "b", "c", "d", "e"), reason: "too_many_labels" },
    { name: "two empty names", fields: named("", ""), reason: "empty_label_name" },
    { name: "an empty name behind others", fields: named("b", ""), reason: "empty_label_name" },
    { name: "no name", fields: [nested(1, nested(2, "x"))], reason: "empty_label_name" },
    {
      name: "a name that comes again empty",
      fields: [nested(1, nested(1, "a"), nested(1))],
      reason: "empty_label_name",
    },
    { name: "a name a byte too long", fields: named("a".repeat(9)), reason: "label_name_too_long" },
    { name: "a name too long in bytes", fields: named("éééé_"), reason: "label_name_too_long" },
    { name: "a value a byte too long", fields: [label("a", "x".repeat(7))], reason: "label_value_too_long" },
    { name: "an invalid name", fields: named(INVALID), reason: "invalid_utf8" },
    { name: "an invalid value", fields: [label("a", INVALID)], reason: "invalid_utf8" },
    {
      name: "a surrogate in UTF-8",
      fields: [label("a", Buffer.from([0xed, 0xa0, 0x80]))],
      reason: "invalid_utf8",
    },
    { name: "an overlong form", fields: [label("a", Buffer.from([0xc0, 0xaf]))], reason: "invalid_utf8" },
    {
      name: "a name in an exemplar",
      fields: [...named("a"), exemplar(label(INVALID, "x"))],
      reason: "invalid_utf8",
    },
    {
      name: "a value in an exemplar",
      fields: [...named("a"), exemplar(label("x", INVALID))],
      reason: "invalid_utf8",
    },
    {
      name: "an invalid name that a later one replaces",
      fields: [nested(1, nested(1, INVALID), nested(1, "a"))],
      reason: "invalid_utf8",
    },
    { name: "a name twice in a row", fields: named("a", "b", "b", "c"), reason: "duplicate_label_name" },
    { name: "a name twice, far apart", fields: named("c", "b", "a", "c"), reason: "duplicate_label_name" },
    {
      name: "a name twice behind greater ones",
      fields: named("b", "a", "a"),
      reason: "duplicate_label_name",
    },
    {
      name: "a name twice, once with an empty value",
      fields: [label("a", ""), label("a", "x")],
      reason: "duplicate_label_name",
    },
  ];
  it.each(refused)("is refused with $name as $reason", ({ fields, reason }) => {
    expect(check(fields)).toBe(reason);
  });

  it("is refused for every reason by one of these rows", () => {
    expect(new Set(refused.map(({ reason }) => reason))).toEqual(new Set(REFUSAL_REASONS));
  });
});

describe("names in any order", () => {
  it("are found twice exactly when they are there twice", () => {
    const limits = { maxLabels: 64, maxLabelNameBytes: 64, maxLabelValueBytes: 64 };
    const names = fc.array(
      fc.string({ minLength: 1, maxLength: 2, unit: fc.constantFrom("a", "b", "é", "～", "😀") }),
      {
        maxLength: 9,
      },
    );
    fc.assert(
      fc.property(names, (each) => {
        const isTwice = new Set(each).size < each.length;
        expect(check(named(...each), limits)).toBe(isTwice ? "duplicate_label_name" : null);
      }),
      { seed: 1, numRuns: 3000 },
    );
  });
});

describe("very many labels in the worst order", () => {
  it("cost a sort of comparisons, not one of each name with each", () => {
    const limits = { maxLabels: 4096, maxLabelNameBytes: 16, maxLabelValueBytes: 16 };
    const names = Array.from({ length: 4096 }, (_, index) => String(9999 - index));
    const scan = scanOfOne(series(...named(...names)), limits.maxLabels);
    let reads = 0;
    const bytes = new Proxy(scan.bytes, {
      get: (target, key) => {
        if (typeof key === "string") reads += 1;
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    const { count, labelsFound, restIsText, spans } = scan;
    expect(checkAtDoor({ bytes, count, labelsFound, restIsText, spans }, limits)).toBeNull();
    // A comparison reads up to 8 bytes here: 4096 * log2(4096) of them are 400,000 reads; each with each, 67 million.
    expect(reads).toBeLessThan(1_500_000);
  });
});
