import { createHash } from "node:crypto";
import fc from "fast-check";
import { compress, uncompress } from "snappyjs";
import { describe, expect, it } from "vitest";
import { compressBlock, uncompressBlock } from "../../src/wire/snappy.ts";
import { readVectors } from "../reference/vectors.ts";
import { varint } from "./handmade.ts";
import { wireErrorOf } from "./wireErrorOf.ts";

const LIMIT = 32 * 1024 * 1024;
const VECTORS = [...readVectors("rw1_requests"), ...readVectors("vm_requests")].filter(
  ({ encoding }) => encoding === "snappy",
);

/** A block of a declared plain length and elements. */
function block(plainBytes: number, ...elements: readonly Uint8Array[]): Buffer {
  return Buffer.concat([varint(plainBytes), ...elements]);
}

function literal(text: string): Buffer {
  return Buffer.concat([Buffer.from([(text.length - 1) << 2]), Buffer.from(text)]);
}

/** A literal whose length takes 1 to 4 bytes behind the tag; `length` may be a lie. */
function longLiteral(lengthBytes: number, length: number, content: Uint8Array): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(length - 1);
  return Buffer.concat([Buffer.from([(59 + lengthBytes) << 2]), bytes.subarray(0, lengthBytes), content]);
}

/** Copies with an offset of 11 bits, 16 bits, 32 bits. */
function copy1(offset: number, length: number): Buffer {
  return Buffer.from([((offset >>> 8) << 5) | ((length - 4) << 2) | 1, offset & 0xff]);
}
function copy2(offset: number, length: number): Buffer {
  return Buffer.from([((length - 1) << 2) | 2, offset & 0xff, offset >>> 8]);
}
function copy4(offset: number, length: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(offset);
  return Buffer.concat([Buffer.from([((length - 1) << 2) | 3]), bytes]);
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

describe("decompressing a recorded body", () => {
  it.each(VECTORS)("gives the plain bytes of $name", ({ body, plainBytes, plainSha256 }) => {
    const plain = uncompressBlock(body, LIMIT);
    expect([plain.length, sha256(plain)]).toEqual([plainBytes, plainSha256]);
  });

  it.each(VECTORS)("takes $name at a limit of just its length", ({ body, plainBytes }) => {
    expect(uncompressBlock(body, plainBytes)).toHaveLength(plainBytes);
    const error = wireErrorOf(() => uncompressBlock(body, plainBytes - 1));
    expect(error.code).toBe("WIRE_TOO_LARGE");
    expect(error.message).toBe(
      `the snappy block declares ${plainBytes} plain bytes, the limit is ${plainBytes - 1}`,
    );
  });

  it.each(VECTORS)("refuses $name cut off anywhere", ({ body }) => {
    const wrong: unknown[] = [];
    for (let cut = 0; cut < Math.min(body.length, 5000); cut++) {
      const { code, offset } = wireErrorOf(() => uncompressBlock(body.subarray(0, cut), LIMIT));
      if (code !== "WIRE_SNAPPY" || offset < 0 || offset > cut) wrong.push({ cut, code, offset });
    }
    expect(wrong).toEqual([]);
  });

  it.each(VECTORS)("refuses $name with an element too many", ({ body }) => {
    const error = wireErrorOf(() => uncompressBlock(Buffer.concat([body, literal("x")]), LIMIT));
    expect(error).toMatchObject({ code: "WIRE_SNAPPY", offset: body.length });
  });
});

describe("decompressing blocks made by hand", () => {
  const rows = [
    { name: "nothing", body: block(0), plain: "" },
    { name: "a literal", body: block(3, literal("abc")), plain: "abc" },
    { name: "the longest short literal", body: block(60, literal("x".repeat(60))), plain: "x".repeat(60) },
    ...[1, 2, 3, 4].map((lengthBytes) => ({
      name: `a literal with ${lengthBytes} bytes of length`,
      body: block(61, longLiteral(lengthBytes, 61, Buffer.alloc(61, "y"))),
      plain: "y".repeat(61),
    })),
    { name: "a near copy", body: block(8, literal("abcd"), copy1(4, 4)), plain: "abcdabcd" },
    {
      name: "a near copy from as far as it reaches",
      body: block(2047 + 11, longLiteral(2, 2047, Buffer.alloc(2047, "z")), copy1(2047, 11)),
      plain: "z".repeat(2058),
    },
    { name: "a copy with two bytes of offset", body: block(5, literal("abc"), copy2(3, 2)), plain: "abcab" },
    { name: "a copy with four bytes of offset", body: block(4, literal("abc"), copy4(2, 1)), plain: "abcb" },
    { name: "a copy of what it writes", body: block(65, literal("a"), copy2(1, 64)), plain: "a".repeat(65) },
    {
      name: "a declared length padded to five bytes",
      body: Buffer.concat([varint(1, 5), literal("a")]),
      plain: "a",
    },
  ];
  it.each(rows)("gives what $name stands for", ({ body, plain }) => {
    expect(text(uncompressBlock(body, LIMIT))).toBe(plain);
  });

  const AT = 1 + 5; // the element behind a one-byte length and a literal of four bytes
  const FIRST = literal("abcd");
  const refused = [
    { name: "an empty body", body: Buffer.alloc(0), offset: 0 },
    { name: "a declared length cut off", body: Buffer.from([0x80, 0x80]), offset: 2 },
    { name: "a declared length of 2^32", body: Buffer.from([0x80, 0x80, 0x80, 0x80, 0x10]), offset: 0 },
    {
      name: "a declared length in six bytes",
      body: Buffer.from([0x80, 0x80, 0x80, 0x80, 0x80, 0x00]),
      offset: 0,
    },
    { name: "less than it declares", body: block(5, FIRST), offset: AT },
    { name: "more than it declares", body: block(3, FIRST), offset: 1 },
    { name: "a copy that gives more than it declares", body: block(8, FIRST, copy2(4, 5)), offset: AT },
    {
      name: "a literal that goes past the end",
      body: block(9, FIRST, Buffer.from([4 << 2, 1, 2])),
      offset: AT,
    },
    {
      name: "a long literal that goes past the end",
      body: block(100, FIRST, longLiteral(2, 100, Buffer.alloc(99))),
      offset: AT,
    },
    {
      name: "a literal of 2^32 bytes",
      body: block(100, FIRST, longLiteral(4, 2 ** 32, Buffer.alloc(99))),
      offset: AT,
    },
    { name: "a literal's length cut off", body: block(100, FIRST, Buffer.from([62 << 2, 1])), offset: AT },
    { name: "a near copy cut off", body: block(8, FIRST, copy1(4, 4).subarray(0, 1)), offset: AT },
    {
      name: "a copy cut off in two bytes of offset",
      body: block(8, FIRST, copy2(4, 4).subarray(0, 2)),
      offset: AT,
    },
    {
      name: "a copy cut off in four bytes of offset",
      body: block(8, FIRST, copy4(4, 4).subarray(0, 4)),
      offset: AT,
    },
    { name: "a copy before anything", body: block(4, copy1(1, 4)), offset: 1 },
    { name: "a near copy with offset 0", body: block(8, FIRST, copy1(0, 4)), offset: AT },
    { name: "a copy with offset 0 in two bytes", body: block(8, FIRST, copy2(0, 4)), offset: AT },
    { name: "a copy with offset 0 in four bytes", body: block(8, FIRST, copy4(0, 4)), offset: AT },
    { name: "a near copy from before the start", body: block(8, FIRST, copy1(5, 4)), offset: AT },
    { name: "a copy from before the start, two bytes", body: block(8, FIRST, copy2(5, 4)), offset: AT },
    { name: "a copy from before the start, four bytes", body: block(8, FIRST, copy4(5, 4)), offset: AT },
    { name: "an offset with the highest bit", body: block(8, FIRST, copy4(0x80000004, 4)), offset: AT },
    { name: "an offset of all ones", body: block(8, FIRST, copy4(0xffffffff, 4)), offset: AT },
  ];
  it.each(refused)("refuses $name", ({ body, offset }) => {
    const error = wireErrorOf(() => uncompressBlock(body, LIMIT));
    expect(error).toMatchObject({ code: "WIRE_SNAPPY", offset });
    expect(error.message).not.toBe("the snappy block cannot be decompressed");
  });

  it("says of what is cut off that it is cut off", () => {
    const error = wireErrorOf(() => uncompressBlock(block(8, FIRST, copy2(4, 4).subarray(0, 1)), LIMIT));
    expect(error.message).toBe("snappy element at byte 6 runs past the end at byte 7");
  });

  it("refuses a needlessly long form that its codec cannot read at the end of a block", () => {
    const error = wireErrorOf(() => uncompressBlock(block(1, longLiteral(1, 1, Buffer.from("a"))), LIMIT));
    expect(error.code).toBe("WIRE_SNAPPY");
  });

  it("refuses the framed format by its name", () => {
    const framed = Buffer.from([0xff, 6, 0, 0, ...Buffer.from("sNaPpY"), 1, 5, 0, 0, 1, 2, 3, 4, 0x61]);
    const error = wireErrorOf(() => uncompressBlock(framed, LIMIT));
    expect(error).toMatchObject({ code: "WIRE_SNAPPY", offset: 0 });
    expect(error.message).toContain("framed format");
  });
});

describe("a block that declares far more than it holds", () => {
  const rows = [
    { name: "above the limit", declared: 2 ** 32 - 1, limit: LIMIT, code: "WIRE_TOO_LARGE" },
    { name: "within the limit", declared: 2 ** 30, limit: 2 ** 30, code: "WIRE_SNAPPY" },
  ];
  it.each(rows)("is refused before memory is taken for it, $name", ({ declared, limit, code }) => {
    const body = block(declared, literal("abc"));
    const before = process.memoryUsage().arrayBuffers;
    const error = wireErrorOf(() => uncompressBlock(body, limit));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 ** 20);
    expect(error.code).toBe(code);
  });
});

/** Bytes with long and short repetitions, also beyond the 64 KiB that a compressor works on at a time. */
const plains = fc
  .array(fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 90 }), fc.integer({ min: 1, max: 400 })), {
    maxLength: 12,
  })
  .map((runs) => Buffer.concat(runs.flatMap(([bytes, times]) => Array<Uint8Array>(times).fill(bytes))));

describe("any bytes", () => {
  it("come back from compressing and decompressing, whichever of the two is snappyjs'", () => {
    fc.assert(
      fc.property(plains, (bytes) => {
        const plain = new Uint8Array(bytes);
        const body = compressBlock(plain);
        expect(Buffer.compare(uncompress(body), plain)).toBe(0);
        expect(Buffer.compare(uncompressBlock(body, plain.length), plain)).toBe(0);
        expect(Buffer.compare(uncompressBlock(compress(plain), plain.length), plain)).toBe(0);
      }),
      { seed: 1, numRuns: 150 },
    );
  });

  it("are decompressed as snappyjs does, or refused, when they are taken for a block", () => {
    const lengths = fc.integer({ min: 1, max: 64 });
    const offsets = fc.integer({ min: 0, max: 90 });
    const first = "How many bytes can a copy go back to in a block like this?";
    // Each element, and how many plain bytes it gives.
    type Element = readonly [Buffer, number];
    const elements = fc.oneof(
      fc
        .string({ minLength: 1, maxLength: 60, unit: "binary-ascii" })
        .map((ascii): Element => [literal(ascii), ascii.length]),
      fc
        .tuple(offsets, fc.integer({ min: 4, max: 11 }))
        .map(([offset, length]): Element => [copy1(offset, length), length]),
      fc.tuple(offsets, lengths).map(([offset, length]): Element => [copy2(offset, length), length]),
      fc.tuple(offsets, lengths).map(([offset, length]): Element => [copy4(offset, length), length]),
    );
    const lies = fc.constantFrom(0, 0, 0, 1, 64);
    let taken = 0;
    let refused = 0;
    fc.assert(
      fc.property(fc.array(elements, { minLength: 1, maxLength: 6 }), lies, (parts, lie) => {
        const plainBytes = parts.reduce((sum, [, length]) => sum + length, first.length + lie);
        const body = new Uint8Array(block(plainBytes, literal(first), ...parts.map(([bytes]) => bytes)));
        let plain: Uint8Array;
        try {
          plain = uncompressBlock(body, LIMIT);
        } catch (error) {
          expect(error).toMatchObject({ name: "WireError", code: "WIRE_SNAPPY" });
          refused += 1;
          return;
        }
        taken += 1;
        expect(plain).toHaveLength(plainBytes);
        expect(plain).toEqual(uncompress(body));
      }),
      { seed: 1, numRuns: 3000 },
    );
    expect(Math.min(taken, refused)).toBeGreaterThan(500);
  });
});
