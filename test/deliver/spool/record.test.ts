import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeHeader,
  decodeOwner,
  encodeHeader,
  encodeOwner,
  headerBytesOf,
  recordStart,
} from "../../../src/deliver/spool/record.ts";

const count = fc.nat({ max: 0xffff_ffff });
const text = fc.string({ unit: "grapheme", maxLength: 20 });
const owners = fc.record({
  route: text,
  upstream: text,
  lane: fc.record({ number: count, tenant: fc.option(text) }),
});
const facts = fc.record({
  replica: count,
  series: count,
  items: fc.record({ samples: count, histograms: count, exemplars: count }),
  plainBytes: count,
  newestTimestampMs: fc.oneof(fc.maxSafeInteger(), fc.constant(-Infinity)),
  appendedAt: fc.maxSafeNat(),
});
const nonce = fc.uint8Array({ minLength: 8, maxLength: 8 }).map((bytes) => Buffer.from(bytes));

describe("record", () => {
  it("tells everything that was put into its header", () => {
    fc.assert(
      fc.property(nonce, owners, facts, fc.uint8Array(), (salt, owner, known, payload) => {
        const start = recordStart(salt);
        const header = encodeHeader(start, encodeOwner(owner), known, payload);
        expect(headerBytesOf(header, start)).toBe(header.length);
        const {
          owner: ownerBytes,
          payloadSum,
          ...decoded
        } = decodeHeader(header) ?? { owner: Buffer.alloc(16) };
        expect(decoded).toEqual({
          ...known,
          codec: 1, // snappy elements
          headerBytes: header.length,
          payloadBytes: payload.length,
        });
        expect(payloadSum).toEqual(expect.any(Number));
        expect(decodeOwner(ownerBytes)).toEqual(owner);
      }),
    );
  });

  it("is none with any bit of its header changed", () => {
    fc.assert(
      fc.property(nonce, owners, facts, fc.nat(), (salt, owner, known, bit) => {
        const start = recordStart(salt);
        const header = encodeHeader(start, encodeOwner(owner), known, Buffer.from("payload"));
        const at = (bit >> 3) % header.length;
        header.writeUInt8(header.readUInt8(at) ^ (1 << (bit & 7)), at);
        const isWhole = headerBytesOf(header, start) === header.length;
        expect(isWhole && decodeHeader(header) !== null).toBe(false);
      }),
    );
  });
});
