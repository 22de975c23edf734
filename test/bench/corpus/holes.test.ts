import fc from "fast-check";
import { uncompress } from "snappyjs";
import { describe, expect, it } from "vitest";
import { compressWithHoles, HOLE_BYTES } from "./holes.ts";

/** Parts of a text that repeats itself, with a hole behind each. */
const parts = fc.array(fc.stringMatching(/^(instance|pod|a|b|0|1){0,40}$/), { minLength: 1, maxLength: 60 });
const fillings = fc.infiniteStream(fc.stringMatching(/^[01ab]{16}$/));

function textWithHoles(texts: readonly string[]): { plain: Uint8Array; holes: number[] } {
  const holes: number[] = [];
  let text = "";
  for (const part of texts) {
    text += part;
    holes.push(text.length);
    text += "0".repeat(HOLE_BYTES);
  }
  return { plain: new Uint8Array(Buffer.from(text)), holes };
}

describe("a snappy block with holes", () => {
  it("decompresses to the text with whatever is written into its holes", () => {
    fc.assert(
      fc.property(parts, fillings, (texts, filling) => {
        const { plain, holes } = textWithHoles(texts);
        const compressed = compressWithHoles(plain, holes);
        expect(uncompress(compressed.block)).toEqual(plain);

        const expected = new Uint8Array(plain);
        expect(compressed.holes).toHaveLength(holes.length);
        holes.forEach((hole, index) => {
          const text = Buffer.from(filling.next().value);
          expected.set(text, hole);
          compressed.block.set(text, compressed.holes[index]);
        });
        expect(uncompress(compressed.block)).toEqual(expected);
      }),
      { numRuns: 100 },
    );
  });

  it("is small where the text between the holes repeats itself", () => {
    const { plain, holes } = textWithHoles(Array.from({ length: 100 }, () => "the same text ".repeat(20)));
    expect(compressWithHoles(plain, holes).block.length).toBeLessThan(plain.length / 7);
  });
});
