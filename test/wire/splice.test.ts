import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NO_SPLICE, spliced } from "../../src/wire/splice.ts";

describe("a splice", () => {
  it("replaces its range and leaves what is around it", () => {
    const bytes = fc.uint8Array({ maxLength: 20 });
    fc.assert(
      fc.property(bytes, bytes, bytes, bytes, (before, cut, after, inserted) => {
        const message = Buffer.concat([before, cut, after]);
        const splice = { keep: before.length, resume: before.length + cut.length, inserted };
        const wanted = Buffer.concat([before, inserted, after]);
        expect(Buffer.from(spliced(message, splice)).equals(wanted)).toBe(true);
      }),
    );
  });

  it("that changes nothing leaves all", () => {
    expect([...spliced(Uint8Array.of(1, 2, 3), NO_SPLICE)]).toEqual([1, 2, 3]);
  });
});
