import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { compressSync, uncompressSync } from "snappy";
import * as snappyjs from "snappyjs";
import { describe, expect, it } from "vitest";
import { WireError } from "../../src/wire/errors.ts";
import { uncompressBlock } from "../../src/wire/snappy.ts";
import { damageBytes } from "../fuzz/mutate.ts";
import { Random } from "../fuzz/random.ts";
import { strictUncompress } from "../fuzz/strictSnappy.ts";
import { varint } from "../wire/handmade.ts";
import { cutToFields, plainRequests } from "../wire/plainRequests.ts";
import { decode, encode } from "./codecUnderTest.ts";

const FRAGMENT = 64 * 1024;

function block(plainBytes: number, ...elements: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(Buffer.concat([varint(plainBytes), ...elements]));
}

/** What is behind the length that a block begins with. */
function elementsOf(body: Uint8Array): Uint8Array {
  return body.subarray(body.findIndex((byte) => byte < 0x80) + 1);
}

const nativeCompress = (plain: Uint8Array): Uint8Array => compressSync(plain, { copyOutputData: true });
const nativeUncompress = (body: Uint8Array): Uint8Array =>
  Buffer.from(uncompressSync(body, { copyOutputData: true }));
const snappyjsCompress = (plain: Uint8Array): Uint8Array => snappyjs.compress(Uint8Array.from(plain));

const same = (a: Uint8Array | null, b: Uint8Array | null): boolean =>
  a === null || b === null ? a === b : Buffer.compare(a, b) === 0;

/** Encodes, and decodes what three encoders made of it; says what went wrong first. */
function roundTripFault(plain: Uint8Array): string | null {
  const elements = encode(plain);
  const body = block(plain.length, elements);
  if (!same(encode(plain, 0xff), elements))
    return "what is behind it, or was in the table, shows when encoded";
  if (!same(nativeUncompress(body), plain)) return "the native library decodes it to something else";
  if (!same(snappyjs.uncompress(body), plain)) return "snappyjs decodes it to something else";
  if (!same(decode(elements, plain.length), plain)) return "it does not come back";
  if (!same(decode(elementsOf(nativeCompress(plain)), plain.length), plain)) return "not from native";
  if (!same(decode(elementsOf(snappyjsCompress(plain)), plain.length), plain)) return "not from snappyjs";
  return null;
}

const RW2 = new URL("../fixtures/rw2_requests/", import.meta.url);
const RW1_REQUESTS = plainRequests();
const RW2_REQUESTS = readdirSync(RW2)
  .filter((file) => file.endsWith(".bin"))
  .map((file) => ({
    name: `rw2_requests/${file}`,
    plain: nativeUncompress(readFileSync(new URL(file, RW2))),
  }));

describe("recorded requests", () => {
  const requests = [...RW1_REQUESTS, ...RW2_REQUESTS];
  it.each(requests)("go both ways, as with two other libraries: $name", ({ plain }) => {
    expect(roundTripFault(plain)).toBeNull();
  });

  it("are compressed within two in a hundred as well as by the native library", () => {
    const lengthOf = (compress: (plain: Uint8Array) => Uint8Array): number =>
      requests.reduce((sum, { plain }) => sum + compress(plain).length, 0);
    expect(lengthOf(encode)).toBeLessThan(1.02 * lengthOf(nativeCompress));
  });
});

describe.each([
  { name: "incompressible", bytes: (length: number, random: Random) => random.bytes(length) },
  {
    name: "of two letters",
    bytes: (length: number, random: Random) => Uint8Array.from({ length }, () => random.pick([97, 98])),
  },
  ...[1, 2, 3, 7, 15, 16, 17, 64, 1000].map((period) => ({
    name: `with a period of ${period}`,
    bytes: (length: number, random: Random) => Buffer.alloc(length, random.bytes(period)),
  })),
])("bytes $name", ({ bytes }) => {
  it("go both ways at every length up to 300", () => {
    const random = new Random(1);
    const faults = Array.from({ length: 301 }, (_, length) => roundTripFault(bytes(length, random)));
    expect(faults.filter((fault) => fault !== null)).toEqual([]);
  });

  it.each([FRAGMENT, 2 * FRAGMENT])("go both ways at lengths around %i", (border) => {
    const random = new Random(2);
    const lengths = [-17, -5, -4, -1, 0, 1, 4, 5, 17].map((difference) => border + difference);
    expect(lengths.map((length) => roundTripFault(bytes(length, random)))).toEqual(lengths.map(() => null));
  });
});

describe("a literal that says it has 2^32 bytes", () => {
  it("is refused, also where nothing is wrong but for it", () => {
    const elements = Buffer.from([63 << 2, 0xff, 0xff, 0xff, 0xff, 3 << 2, ...Buffer.from("abcd")]);
    expect(decode(elements, 4)).toBeNull();
    expect(decode(elements.subarray(5), 4)).toEqual(Uint8Array.from(Buffer.from("abcd")));
  });
});

describe("eight bytes that come again", () => {
  it.each([
    { offset: 2047, copyBytes: 2 },
    { offset: 2048, copyBytes: 3 },
    { offset: FRAGMENT - 8, copyBytes: 3 },
  ])("are copied from $offset bytes back, by $copyBytes bytes", ({ offset, copyBytes }) => {
    const eight = new Random(5).bytes(8);
    const once = Buffer.concat([eight, Buffer.alloc(offset - 8)]);
    const twice = Buffer.concat([once, eight]);
    expect(roundTripFault(twice)).toBeNull();
    expect(encode(twice).length).toBe(encode(once).length + copyBytes);
  });
});

describe("bytes that are hard to compress", () => {
  it("become longer by a few bytes for each fragment only", () => {
    const plain = new Random(3).bytes(3 * FRAGMENT);
    expect(encode(plain).length).toBeLessThanOrEqual(plain.length + 3 * 3);
  });

  it("become hardly longer where matches are as short and far away as they can be", () => {
    const random = new Random(4);
    const words = Array.from({ length: 2000 }, () => random.bytes(4));
    const plain = Buffer.concat([...words, ...words.flatMap((word) => [word, random.bytes(1)])]);
    expect(roundTripFault(plain)).toBeNull();
    expect(encode(plain).length).toBeLessThan(1.01 * plain.length);
  });
});

describe("one byte over and over", () => {
  it("becomes three bytes for every 64", () => {
    expect(encode(Buffer.alloc(FRAGMENT, 7)).length).toBeLessThan((3 / 64) * FRAGMENT + 10);
  });
});

/** Bytes with long and short repetitions, also beyond a fragment. */
const plains = fc
  .array(fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 90 }), fc.integer({ min: 1, max: 300 })), {
    maxLength: 12,
  })
  .map((runs) => Buffer.concat(runs.flatMap(([bytes, times]) => Array<Uint8Array>(times).fill(bytes))));

describe("any bytes", () => {
  it("go both ways, as with two other libraries", () => {
    const goBothWays = fc.property(plains, (plain) => {
      expect(roundTripFault(plain)).toBeNull();
    });
    fc.assert(goBothWays, { numRuns: 150 });
  });

  it("are read from streams of several calls, put one after another behind the sum of their lengths", () => {
    const areRead = fc.property(fc.array(plains, { minLength: 2, maxLength: 4 }), (parts) => {
      const plain = Buffer.concat(parts);
      const elements = Buffer.concat(parts.map((part) => encode(part)));
      const body = block(plain.length, elements);
      expect(same(nativeUncompress(body), plain)).toBe(true);
      expect(same(snappyjs.uncompress(body), plain)).toBe(true);
      expect(same(decode(elements, plain.length), plain)).toBe(true);
    });
    fc.assert(areRead, { numRuns: 50 });
  });
});

interface Stream {
  readonly elements: Uint8Array;
  /** What the elements give, or are said to give. */
  readonly plainBytes: number;
}

/** A literal in any of its forms, the needlessly long ones included. */
function randomLiteral(random: Random): Stream {
  const content = random.bytes(1 + random.below(random.pick([4, 20, 80])));
  const lengthBytes = content.length > 60 ? 1 + random.below(4) : random.below(5);
  const lessOne = Buffer.alloc(4);
  lessOne.writeUInt32LE(content.length - 1);
  const upper = lengthBytes === 0 ? content.length - 1 : 59 + lengthBytes;
  return {
    elements: Buffer.concat([Buffer.of(upper << 2), lessOne.subarray(0, lengthBytes), content]),
    plainBytes: content.length,
  };
}

/** A copy in any of its forms; once in a while it goes back too far or not at all. */
function randomCopy(written: number, random: Random): Stream {
  const near = random.once(2) ? Math.min(written, 20) : written;
  const offset = random.once(40) ? random.pick([0, written + 1, 0x7ff, 0xffff]) : 1 + random.below(near);
  const bytes = Buffer.alloc(5);
  bytes.writeUInt32LE(offset, 1);
  const kind = 1 + random.below(3);
  if (kind === 1 && offset < 2048) {
    const length = 4 + random.below(8);
    bytes[0] = ((offset >>> 8) << 5) | ((length - 4) << 2) | 1;
    return { elements: bytes.subarray(0, 2), plainBytes: length };
  }
  const length = 1 + random.below(64);
  bytes[0] = ((length - 1) << 2) | (kind === 3 ? 3 : 2);
  return { elements: bytes.subarray(0, kind === 3 ? 5 : 3), plainBytes: length };
}

function randomStream(random: Random): Stream {
  const elements: Uint8Array[] = [];
  let plainBytes = 0;
  do {
    const element =
      plainBytes === 0 || random.once(3) ? randomLiteral(random) : randomCopy(plainBytes, random);
    elements.push(element.elements);
    plainBytes += element.plainBytes;
  } while (!random.once(8));
  return { elements: Buffer.concat(elements), plainBytes };
}

/** Recorded requests, cut short, as three encoders compress them. */
function recordedStreams(): Stream[] {
  return RW1_REQUESTS.flatMap(({ plain }) => {
    const short = cutToFields(plain, 300);
    const encoded = [encode(short), elementsOf(nativeCompress(short)), elementsOf(snappyjsCompress(short))];
    return encoded.map((elements) => ({ elements, plainBytes: short.length }));
  });
}

function makeMutant(recorded: readonly Stream[], random: Random): Stream {
  const stream = recorded[random.below(2 * recorded.length)] ?? randomStream(random);
  const elements = random.once(3) ? stream.elements : damageBytes(stream.elements, random);
  const lie = random.once(6) ? random.pick([-64, -16, -1, 1, 15, 16, 64]) : 0;
  return { elements, plainBytes: Math.max(0, stream.plainBytes + lie) };
}

function strictVerdict(body: Uint8Array): Uint8Array | null {
  try {
    return strictUncompress(body);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function nativeVerdict(body: Uint8Array): Uint8Array | null {
  try {
    return nativeUncompress(body);
  } catch {
    return null;
  }
}

/** What src/wire makes of it, or null, or what is expected where its own checks take what its library cannot read. */
function wireVerdict(body: Uint8Array, expected: Uint8Array | null): Uint8Array | null {
  try {
    return uncompressBlock(body, 2 ** 20);
  } catch (error) {
    if (error instanceof WireError) return error.cause === undefined ? null : expected;
    throw error;
  }
}

/** Says who sees something else in a mutant than the format's description. */
function mutantFault(mutant: Stream, body: Uint8Array, expected: Uint8Array | null): string | null {
  for (const behind of [0x00, 0xff]) {
    const decoded = decode(mutant.elements, mutant.plainBytes, behind);
    if (!same(decoded, expected)) return `the engine, with ${behind} behind`;
  }
  return same(wireVerdict(body, expected), expected) ? null : "src/wire/snappy.ts";
}

describe("100,000 mutated streams of elements", () => {
  it("are taken or refused, whatever is behind them, as the format's description says and others do", () => {
    const random = new Random(20260727);
    const recorded = recordedStreams();
    const faults: unknown[] = [];
    let taken = 0;
    for (let number = 0; number < 100_000; number++) {
      const mutant = makeMutant(recorded, random);
      const body = block(mutant.plainBytes, mutant.elements);
      const expected = strictVerdict(body);
      if (expected !== null) taken += 1;
      let fault = mutantFault(mutant, body, expected);
      // It takes most of the time, so not all are given to it.
      if (number % 4 === 0 && !same(nativeVerdict(body), expected)) fault ??= "the native library";
      if (fault !== null) faults.push({ number, fault, isTaken: expected !== null });
    }
    expect(faults).toEqual([]);
    expect(taken).toBeGreaterThan(30_000);
    expect(taken).toBeLessThan(70_000);
  }, 120_000);
});
