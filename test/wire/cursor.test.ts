import { describe, expect, it } from "vitest";
import { Cursor } from "../../src/wire/cursor.ts";
import { END_GROUP, FIXED32, FIXED64, START_GROUP, VARINT, varint } from "./handmade.ts";
import { wireErrorOf } from "./wireErrorOf.ts";

const MAX_FIELD = 2 ** 29 - 1;
const HEADER = Buffer.from([0x55, 0x55, 0x55]);

/** A cursor that stands at the first of `bytes`, three bytes into its buffer. */
function cursorAt(bytes: Uint8Array): Cursor {
  const cursor = new Cursor(Buffer.concat([HEADER, bytes]));
  cursor.pos = HEADER.length;
  return cursor;
}

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

describe("reading a tag", () => {
  const rows = [
    { name: "the lowest", bytes: "08", tag: 8 },
    { name: "one of a length-delimited field", bytes: "0a", tag: 10 },
    { name: "the highest of one byte", bytes: "7f", tag: 127 },
    { name: "the lowest of two bytes", bytes: "80 01", tag: 128 },
    { name: "the highest field number", bytes: "fa ff ff ff 0f", tag: MAX_FIELD * 8 + 2 },
    { name: "a short one padded to two bytes", bytes: "8a 00", tag: 10 },
    { name: "a short one padded to five bytes", bytes: "8a 80 80 80 00", tag: 10 },
  ];
  it.each(rows)("reads $name and stops behind it", ({ bytes, tag }) => {
    const cursor = cursorAt(Buffer.concat([hex(bytes), hex("ff")]));
    expect(cursor.readTag()).toBe(tag);
    expect(cursor.pos).toBe(HEADER.length + hex(bytes).length);
  });

  const refused = [
    { name: "field number 0", bytes: "02", code: "WIRE_TAG" },
    { name: "field number 0, padded", bytes: "82 00", code: "WIRE_TAG" },
    { name: "a field number above 2^29 - 1", bytes: "8a 80 80 80 10", code: "WIRE_TAG" },
    // The reference decoder and others read five bytes at most.
    { name: "a short one padded to six bytes", bytes: "8a 80 80 80 80 00", code: "WIRE_VARINT" },
    { name: "eleven bytes", bytes: "ff ff ff ff ff ff ff ff ff ff 01", code: "WIRE_VARINT" },
    { name: "one that the end cuts off", bytes: "8a 80", code: "WIRE_TRUNCATED" },
    { name: "the end itself", bytes: "", code: "WIRE_TRUNCATED" },
  ];
  it.each(refused)("refuses $name", ({ bytes, code }) => {
    const error = wireErrorOf(() => cursorAt(hex(bytes)).readTag());
    expect(error).toMatchObject({ code, offset: HEADER.length });
    expect(error.message).toContain(`byte ${HEADER.length}`);
  });
});

describe("reading a length", () => {
  const rows = [
    { name: "0", bytes: "00", length: 0 },
    { name: "one byte", bytes: "7f", length: 127 },
    { name: "two bytes", bytes: "80 01", length: 128 },
    { name: "three bytes", bytes: "80 80 01", length: 16384 },
    { name: "four bytes", bytes: "80 80 80 01", length: 2097152 },
    { name: "two bytes padded to five", bytes: "80 81 80 80 00", length: 128 },
  ];
  it.each(rows)("answers the field's end for a length of $name", ({ bytes, length }) => {
    const prefix = hex(bytes);
    const cursor = cursorAt(Buffer.concat([prefix, Buffer.alloc(length)]));
    expect(cursor.readEnd()).toBe(HEADER.length + prefix.length + length);
    expect(cursor.pos).toBe(HEADER.length + prefix.length);
  });

  const refused = [
    { name: "one byte too many", bytes: "02 00", code: "WIRE_TRUNCATED" },
    { name: "2^31", bytes: "80 80 80 80 08", code: "WIRE_TRUNCATED" },
    { name: "2^35 - 1", bytes: "ff ff ff ff 7f", code: "WIRE_TRUNCATED" },
    { name: "0 in six bytes", bytes: "80 80 80 80 80 00", code: "WIRE_VARINT" },
    { name: "2^64 - 1", bytes: "ff ff ff ff ff ff ff ff ff 01", code: "WIRE_VARINT" },
    { name: "eleven bytes", bytes: "80 80 80 80 80 80 80 80 80 80 00", code: "WIRE_VARINT" },
    { name: "a varint that the end cuts off", bytes: "80", code: "WIRE_TRUNCATED" },
    { name: "nothing", bytes: "", code: "WIRE_TRUNCATED" },
  ];
  it.each(refused)("refuses a length of $name", ({ bytes, code }) => {
    const error = wireErrorOf(() => cursorAt(hex(bytes)).readEnd());
    expect(error).toMatchObject({ code, offset: HEADER.length });
  });

  it("says how far it reaches and where the request ends", () => {
    const error = wireErrorOf(() => cursorAt(hex("05 00")).readEnd());
    expect(error.message).toBe("length at byte 3 reaches byte 9, the request ends at byte 5");
  });
});

describe("passing over a varint", () => {
  const lengths = Array.from({ length: 10 }, (_, index) => index + 1);

  it.each(lengths)("takes the greatest value that %i bytes can hold", (bytes) => {
    const value = bytes === 10 ? 2n ** 64n - 1n : 2n ** BigInt(7 * bytes) - 1n;
    const cursor = cursorAt(Buffer.concat([varint(value), hex("ff")]));
    cursor.skipValue(VARINT);
    expect(cursor.pos).toBe(HEADER.length + bytes);
  });

  it.each(lengths)("takes a 1 padded to %i bytes", (bytes) => {
    const cursor = cursorAt(Buffer.concat([varint(1, bytes), hex("ff")]));
    cursor.skipValue(VARINT);
    expect(cursor.pos).toBe(HEADER.length + bytes);
  });

  it.each(lengths)("refuses one that ends after %i bytes before its last one", (bytes) => {
    const error = wireErrorOf(() => {
      cursorAt(varint(1, 10).subarray(0, bytes - 1)).skipValue(VARINT);
    });
    expect(error).toMatchObject({ code: "WIRE_TRUNCATED", offset: HEADER.length });
  });

  const refused = [
    { name: "a tenth byte that goes beyond 64 bits", bytes: "ff ff ff ff ff ff ff ff ff 02" },
    { name: "a tenth byte that does not end it", bytes: "80 80 80 80 80 80 80 80 80 80" },
    { name: "eleven bytes", bytes: "80 80 80 80 80 80 80 80 80 80 00" },
  ];
  it.each(refused)("refuses $name", ({ bytes }) => {
    const error = wireErrorOf(() => {
      cursorAt(hex(bytes)).skipValue(VARINT);
    });
    expect(error).toMatchObject({ code: "WIRE_VARINT", offset: HEADER.length });
  });
});

describe("passing over fields of fixed size", () => {
  const rows = [
    { name: "64 bits", wireType: FIXED64, bytes: 8 },
    { name: "32 bits", wireType: FIXED32, bytes: 4 },
  ];
  it.each(rows)("takes $name that end with the request", ({ wireType, bytes }) => {
    const cursor = cursorAt(Buffer.alloc(bytes));
    cursor.skipValue(wireType);
    expect(cursor.pos).toBe(HEADER.length + bytes);
  });

  it.each(rows)("refuses $name of which the last byte is missing", ({ wireType, bytes }) => {
    const error = wireErrorOf(() => {
      cursorAt(Buffer.alloc(bytes - 1)).skipValue(wireType);
    });
    expect(error).toMatchObject({ code: "WIRE_TRUNCATED", offset: HEADER.length });
  });
});

describe("wire types that remote write has no use for", () => {
  it.each([START_GROUP, END_GROUP, 6, 7])("refuses %i", (wireType) => {
    const error = wireErrorOf(() => {
      cursorAt(Buffer.alloc(16)).skipValue((9 << 3) | wireType);
    });
    expect(error).toMatchObject({ code: "WIRE_TAG", offset: HEADER.length });
    expect(error.message).toBe("wire type " + String(wireType) + " before byte 3, want 0, 1, 2 or 5");
  });
});

describe("the end of a message", () => {
  it("is where reading must have come to, neither before nor behind it", () => {
    const cursor = cursorAt(Buffer.alloc(4));
    cursor.expectEnd(HEADER.length, "a label");
    for (const end of [HEADER.length - 1, HEADER.length + 1]) {
      const error = wireErrorOf(() => {
        cursor.expectEnd(end, "a label");
      });
      expect(error).toMatchObject({ code: "WIRE_OVERRUN", offset: end });
    }
  });
});
