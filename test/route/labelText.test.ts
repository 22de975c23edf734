import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { labelPairs, labelText, labelTextOf } from "../../src/route/labelText.ts";
import { spansOf } from "./exampleRoute.ts";

describe("a label set as text", () => {
  const rows = [
    { name: "a metric alone", pairs: [["__name__", "up"]], text: "up" },
    {
      name: "a metric and labels",
      pairs: [
        ["job", "a"],
        ["__name__", "up"],
        ["z", ""],
      ],
      text: 'up{job="a",z=""}',
    },
    { name: "no metric", pairs: [["job", "a"]], text: '{job="a"}' },
    { name: "nothing", pairs: [], text: "{}" },
    { name: "a metric that needs quotes", pairs: [["__name__", "a.b"]], text: '{__name__="a.b"}' },
    { name: "a label that needs quotes", pairs: [["my.label", "a"]], text: '{"my.label"="a"}' },
    { name: "a metric with a colon", pairs: [["__name__", "job:up"]], text: "job:up" },
    { name: "a label with a colon", pairs: [["a:b", "x"]], text: '{"a:b"="x"}' },
    { name: "quotes and backslashes", pairs: [["a", 'x"\\']], text: '{a="x\\"\\\\"}' },
    { name: "line ends", pairs: [["a", "x\r\n\u2028"]], text: '{a="x\\r\\n\\u2028"}' },
    {
      name: "characters that turn the writing's direction",
      pairs: [["a", "\u202e\u2066"]],
      text: '{a="\\u202e\\u2066"}',
    },
    { name: "characters that are not ASCII", pairs: [["a", "é😀"]], text: '{a="é😀"}' },
  ] satisfies { name: string; pairs: [string, string][]; text: string }[];
  it.each(rows)("writes $name", ({ pairs, text }) => {
    expect(labelText(pairs)).toBe(text);
    expect(labelTextOf(spansOf(pairs), 100)).toBe(text);
  });
});

describe("labels as strings", () => {
  it("keep a byte order mark, which is part of the name or value", () => {
    const pairs: [string, string][] = [["\ufeffa", "\ufeff"]];
    expect(labelPairs(spansOf(pairs))).toEqual(pairs);
  });

  it("are those of their bytes, whatever lies between them and however many they are", () => {
    const ranges = fc.array(fc.tuple(fc.nat(9), fc.nat(9), fc.nat(9)), { maxLength: 20 });
    const bytes = fc.oneof(
      fc.string({ unit: "grapheme", minLength: 600, maxLength: 700 }).map((text) => Buffer.from(text)),
      fc.string({ minLength: 600, maxLength: 700 }).map((text) => Buffer.from(text)),
      fc.uint8Array({ minLength: 600, maxLength: 700 }).map((array) => Buffer.from(array)),
      fc.constant(Buffer.alloc(9_000, "a")),
    );
    fc.assert(
      fc.property(bytes, ranges, fc.nat(400), (buffer, steps, jump) => {
        const spans: number[] = [];
        let at = 0;
        for (const [name, between, value] of steps) {
          const nameEnd = at + name;
          const valueStart = nameEnd + between;
          spans.push(at, nameEnd, valueStart, valueStart + value);
          at = valueStart + value + (spans.length === 4 && buffer.length > 1000 ? jump * 20 : 1);
        }
        const wanted = steps.map((_, label) => {
          const text = (part: number): string =>
            buffer.toString("utf8", spans[label * 4 + part], spans[label * 4 + part + 1]);
          return [text(0), text(2)];
        });
        expect(labelPairs({ bytes: buffer, count: steps.length, spans: Int32Array.from(spans) })).toEqual(
          wanted,
        );
      }),
      { seed: 1, numRuns: 500 },
    );
  });

  it("have U+FFFD for bytes that are no UTF-8", () => {
    expect(labelPairs(spansOf([["a\xff", "\xc3"]], "latin1"))).toEqual([["a\ufffd", "\ufffd"]]);
  });
});

describe("a label set that is too long for a message", () => {
  const rows = [
    { name: "a long value", labels: [["a", "x".repeat(70_000)]], text: `{a="${"x".repeat(15)}…` },
    {
      name: "a long value of two bytes a character",
      labels: [["a", "é".repeat(1000)]],
      text: `{a="${"é".repeat(15)}…`,
    },
    {
      name: "a long value of three bytes a character",
      labels: [["a", "語".repeat(1000)]],
      text: `{a="${"語".repeat(15)}…`,
    },
    { name: "a long metric", labels: [["__name__", "m".repeat(1000)]], text: `${"m".repeat(19)}…` },
    {
      name: "many labels",
      labels: Array.from({ length: 250 }, () => ["a", "1"] as const),
      text: '{a="1",a="1",a="1",…',
    },
    { name: "just as much as fits", labels: [["a", "x".repeat(14)]], text: `{a="${"x".repeat(14)}"}` },
  ] satisfies { name: string; labels: (readonly [string, string])[]; text: string }[];
  it.each(rows)("is cut and marked so: $name", ({ labels, text }) => {
    expect(labelTextOf(spansOf(labels), 20)).toBe(text);
  });
});
