import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Random } from "../fuzz/random.ts";
import { compileAssembly } from "./compileAssembly.ts";
import { highwayHash128 } from "./highwayReference.ts";

interface HashProgram {
  readonly memory: WebAssembly.Memory;
  hash128(at: number, length: number, key: number, to: number): void;
}

// Addresses in the memory of the module, which holds nothing else.
const KEY = 1024;
const HASH = 2048;
const MESSAGE = 4096;
const MAX_MESSAGE = 1000;
/** Bytes behind a message that the hash may read. */
const OVERREAD = 16;

const program = compileAssembly(["highwayHash.ts"], ["--initialMemory", "1"]) as HashProgram;
const memory = new Uint8Array(program.memory.buffer);
const hashes = new BigUint64Array(program.memory.buffer, HASH, 2);

function useKey(key: Uint8Array): void {
  memory.set(key, KEY);
}

/** Hashes under the key in use, into `hashes`. */
function hash(message: Uint8Array, at = MESSAGE): void {
  memory.set(message, at);
  program.hash128(at, message.length, KEY, HASH);
}

function hashOf(message: Uint8Array, at = MESSAGE): bigint {
  hash(message, at);
  return lower() | (upper() << 64n);
}

function lower(): bigint {
  return hashes[0] ?? 0n;
}

function upper(): bigint {
  return hashes[1] ?? 0n;
}

function bytesFromZero(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => index);
}

interface Vector {
  readonly length: number;
  readonly hash: readonly [string, string];
}

describe("fixed vectors of HighwayHash-128", () => {
  const file = new URL("../fixtures/highwayhash128.json", import.meta.url);
  const { vectors } = JSON.parse(readFileSync(file, "utf8")) as { vectors: readonly Vector[] };
  const key = bytesFromZero(32);

  it("gives the published hash for every length from 0 to 64", () => {
    useKey(key);
    expect(vectors.map(({ length }) => length)).toEqual(Array.from({ length: 65 }, (_, length) => length));
    for (const { length, hash: expected } of vectors) {
      hash(bytesFromZero(length));
      expect([lower(), upper()], `${length} bytes`).toEqual(expected.map(BigInt));
    }
  });

  it("gives it in the reference of these tests as well", () => {
    for (const { length, hash: expected } of vectors) {
      const [low, high] = expected.map(BigInt);
      const reference = highwayHash128(bytesFromZero(length), key);
      expect([BigInt.asUintN(64, reference), reference >> 64n], `${length} bytes`).toEqual([low, high]);
    }
  });
});

describe("random messages under random keys", () => {
  it("hashes every length to 1000 as the reference does", () => {
    const random = new Random(1);
    for (let length = 0; length <= MAX_MESSAGE; length++) {
      const key = random.bytes(32);
      const message = random.bytes(length);
      useKey(key);
      expect(hashOf(message), `${length} bytes`).toBe(highwayHash128(message, key));
    }
  });

  it("does not depend on where a message begins", () => {
    const random = new Random(2);
    useKey(random.bytes(32));
    for (let count = 0; count < 200; count++) {
      const message = random.bytes(random.below(MAX_MESSAGE + 1));
      const expected = hashOf(message);
      for (let shift = 1; shift < 64; shift++) {
        expect(hashOf(message, MESSAGE + shift), `${message.length} bytes, ${shift} further`).toBe(expected);
      }
    }
  });

  it("does not depend on what is in front of a message and behind it", () => {
    const random = new Random(3);
    useKey(random.bytes(32));
    for (let length = 0; length <= 100; length++) {
      const message = random.bytes(length);
      const seen = [0x00, 0x01, 0x80, 0xff].map((poison) => {
        memory.fill(poison, MESSAGE - 64, MESSAGE + length + 64);
        return hashOf(message);
      });
      expect(new Set(seen).size, `${length} bytes`).toBe(1);
    }
  });

  it("reads no more than 16 bytes behind a message", () => {
    const random = new Random(4);
    for (let length = 0; length <= 100; length++) {
      // Memory ends there: to read on is a trap.
      const at = memory.length - OVERREAD - length;
      const message = random.bytes(length);
      expect(hashOf(message, at), `${length} bytes`).toBe(hashOf(message));
    }
  });

  it("writes the 16 bytes of the hash and nothing else", () => {
    const random = new Random(5);
    for (const length of [0, 1, 15, 16, 31, 32, 300]) {
      memory.set(random.bytes(MESSAGE + length));
      const before = memory.slice();
      program.hash128(MESSAGE, length, KEY, HASH);
      const written = memory.slice(HASH, HASH + 16);
      expect(written).not.toEqual(before.slice(HASH, HASH + 16));
      before.set(written, HASH);
      expect(Buffer.compare(memory, before), `${length} bytes`).toBe(0);
    }
  });
});

describe("messages that are much alike", () => {
  const KEYS = 120;
  const random = new Random(6);
  const families = [
    {
      name: "zeros of every length to 600",
      messages: Array.from({ length: 601 }, (_, n) => new Uint8Array(n)),
    },
    { name: "300 bytes with one bit set", messages: sparse(300) },
    { name: "288 bytes with two blocks of 4 exchanged", messages: exchanged(random.bytes(288), 4) },
    { name: "288 bytes with two blocks of 8 exchanged", messages: exchanged(random.bytes(288), 8) },
    { name: "288 bytes with two blocks of 32 exchanged", messages: exchanged(random.bytes(288), 32) },
    { name: "beginnings of one message, filled up with zeros", messages: extended(random, 70, 40) },
  ];

  it.each(families)("$name: no two meet under any key, in either half of the hash", ({ messages }) => {
    for (let count = 0; count < KEYS; count++) {
      const key = random.bytes(32);
      useKey(key);
      const lowers = new Set<bigint>();
      const uppers = new Set<bigint>();
      for (const message of messages) {
        hash(message);
        lowers.add(lower());
        uppers.add(upper());
      }
      const under = `under key ${Buffer.from(key).toString("hex")}`;
      expect(lowers.size, under).toBe(messages.length);
      expect(uppers.size, under).toBe(messages.length);
    }
  });
});

/** All messages of so many bytes that have a single bit set. */
function sparse(length: number): Uint8Array[] {
  return Array.from({ length: 8 * length }, (_, bit) => withBitFlipped(new Uint8Array(length), bit));
}

/** A message, and what comes of it when two of its blocks change places, for every pair of blocks. */
function exchanged(message: Uint8Array, blockBytes: number): Uint8Array[] {
  const messages = [message];
  for (let a = 0; a < message.length; a += blockBytes) {
    for (let b = a + blockBytes; b < message.length; b += blockBytes) {
      const changed = message.slice();
      changed.set(message.subarray(b, b + blockBytes), a);
      changed.set(message.subarray(a, a + blockBytes), b);
      messages.push(changed);
    }
  }
  return messages;
}

/** Every beginning of a message without zero bytes, with 0 to `maxZeros` zeros behind it. */
function extended(random: Random, length: number, maxZeros: number): Uint8Array[] {
  const message = Uint8Array.from({ length }, () => 1 + random.below(255));
  const messages: Uint8Array[] = [];
  for (let kept = 0; kept <= length; kept++) {
    for (let zeros = 0; zeros <= maxZeros; zeros++) {
      const filled = new Uint8Array(kept + zeros);
      filled.set(message.subarray(0, kept));
      messages.push(filled);
    }
  }
  return messages;
}

function withBitFlipped(bytes: Uint8Array, bit: number): Uint8Array {
  const flipped = bytes.slice();
  flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return flipped;
}

describe("keys", () => {
  it.each([0, 1, 20, 32, 288])("give a message of %i bytes a different hash each", (length) => {
    const random = new Random(7);
    const message = random.bytes(length);
    const key = random.bytes(32);
    const near = Array.from({ length: 256 }, (_, bit) => withBitFlipped(key, bit));
    const keys = [key, ...near, ...Array.from({ length: 1000 }, () => random.bytes(32))];
    const lowers = keys.map((each) => {
      useKey(each);
      hash(message);
      return lower();
    });
    expect(new Set(lowers).size).toBe(keys.length);
  });
});

describe("a single bit flipped", () => {
  const rows = [
    { name: "in a message of 5 bytes", length: 5, ofKey: false },
    { name: "in a message of 20 bytes", length: 20, ofKey: false },
    { name: "in a message of 288 bytes", length: 288, ofKey: false },
    { name: "in the key", length: 40, ofKey: true },
  ];

  it.each(rows)("$name changes every bit of the hash about half of the time", ({ length, ofKey }) => {
    const TRIALS = 4000;
    const random = new Random(8);
    const flips = new Array<number>(128).fill(0);
    for (let trial = 0; trial < TRIALS; trial++) {
      const key = random.bytes(32);
      const message = random.bytes(length);
      useKey(key);
      const before = hashOf(message);
      if (ofKey) useKey(withBitFlipped(key, random.below(256)));
      const after = hashOf(ofKey ? message : withBitFlipped(message, random.below(8 * length)));
      const changed = flips.map((_, index) => Number(((before ^ after) >> BigInt(index)) & 1n));
      changed.forEach((bit, index) => (flips[index] = (flips[index] ?? 0) + bit));
      // 64 on average, with a standard deviation of 5.7.
      const count = changed.reduce((sum, bit) => sum + bit, 0);
      expect(Math.abs(count - 64), `trial ${trial}`).toBeLessThan(40);
    }
    // 2000 on average, with a standard deviation of 32.
    for (const [index, count] of flips.entries()) {
      expect(Math.abs(count - TRIALS / 2), `bit ${index}`).toBeLessThan(200);
    }
  });
});
