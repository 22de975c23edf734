import fc from "fast-check";
import { uncompressSync } from "snappy";
import { uncompress } from "snappyjs";
import { describe, expect, it } from "vitest";
import { joinParcels, type Parcel, withHeadroom } from "../../src/wire/parcel.ts";
import { compressBlock, readPlainLength, uncompressBlock } from "../../src/wire/snappy.ts";

function parcelOf(elements: Uint8Array, plainBytes: number): Parcel {
  return {
    elements: withHeadroom(elements),
    plainBytes,
    series: 1,
    replica: 0,
    newestTimestampMs: 0,
    items: { samples: 1, histograms: 0, exemplars: 0 },
  };
}

/** A parcel as a compressor makes it: literals and copies. */
function compressed(plain: Uint8Array): Parcel {
  const block = compressBlock(plain);
  return parcelOf(block.subarray(readPlainLength(block, plain.length).elementsAt), plain.length);
}

/** What a block holds by three decoders; the native one checks the whole format. */
function expectHolds(block: Uint8Array, plain: Uint8Array): void {
  const expected = Buffer.from(plain);
  expect(Buffer.from(uncompressSync(Buffer.from(block), { copyOutputData: true })).equals(expected)).toBe(
    true,
  );
  expect(Buffer.from(uncompress(new Uint8Array(block))).equals(expected)).toBe(true);
  expect(Buffer.from(uncompressBlock(block, plain.length)).equals(expected)).toBe(true);
}

describe("parcels joined into a block", () => {
  it("give what each of them gives, one after another, from elements written by hand", () => {
    // A literal of four bytes, and a copy of six from four back; then a literal of one, and a copy of four from one back.
    const first = parcelOf(Uint8Array.of(3 << 2, 0x61, 0x62, 0x63, 0x64, ((6 - 4) << 2) | 1, 4), 10);
    const second = parcelOf(Uint8Array.of(0, 0x7a, ((4 - 1) << 2) | 2, 1, 0), 5);
    const block = joinParcels([first, second, first]);
    expect(block[0]).toBe(25);
    expectHolds(block, Buffer.from("abcdabcdabzzzzzabcdabcdab"));
  });

  it("give what each of them gives, whatever that is", () => {
    const repetitive = fc.tuple(
      fc.uint8Array({ minLength: 1, maxLength: 40 }),
      fc.integer({ min: 1, max: 500 }),
    );
    const plain = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 300 }),
      repetitive.map(([bytes, times]) => new Uint8Array(Buffer.alloc(bytes.length * times, bytes))),
    );
    fc.assert(
      fc.property(fc.array(plain, { minLength: 1, maxLength: 8 }), (plains) => {
        expectHolds(joinParcels(plains.map(compressed)), Buffer.concat(plains));
      }),
      { numRuns: 200 },
    );
  });

  it.each([
    { name: "one byte", plainBytes: 127, head: [0x7f] },
    { name: "two bytes", plainBytes: 128, head: [0x80, 0x01] },
    { name: "two bytes, the most they hold", plainBytes: 16_383, head: [0xff, 0x7f] },
    { name: "three bytes", plainBytes: 16_384, head: [0x80, 0x80, 0x01] },
    { name: "four bytes", plainBytes: 8 * 1024 * 1024, head: [0x80, 0x80, 0x80, 0x04] },
    { name: "five bytes", plainBytes: 2 ** 32 - 1, head: [0xff, 0xff, 0xff, 0xff, 0x0f] },
  ])("begin with the sum of their lengths in $name", ({ plainBytes, head }) => {
    const half = Math.floor(plainBytes / 2);
    const block = joinParcels([
      parcelOf(Uint8Array.of(1, 2), half),
      parcelOf(Uint8Array.of(3), plainBytes - half),
    ]);
    expect([...block]).toEqual([...head, 1, 2, 3]);
  });

  it("leave the parcels as they are", () => {
    const parcel = compressed(Buffer.from("x".repeat(1_000)));
    const before = [...parcel.elements];
    joinParcels([parcel, parcel]).fill(0);
    expect([...parcel.elements]).toEqual(before);
  });
});
