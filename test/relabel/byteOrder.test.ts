import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareBytewise } from "../../src/relabel/byteOrder.ts";

describe("the order of strings by their bytes", () => {
  it("is that of their UTF-8 encodings", () => {
    const text = fc.string({ unit: "binary", maxLength: 6 });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareBytewise(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
    );
  });

  it("puts characters beyond U+FFFF last, which JavaScript's own order does not", () => {
    expect(["😀", "\uff5e", "\ud7ff", "a", "ab"].sort(compareBytewise)).toEqual([
      "a",
      "ab",
      "\ud7ff",
      "\uff5e",
      "😀",
    ]);
  });
});
