/**
 * Walks protobuf bytes.
 *
 * Reading past the end of the bytes throws; running past the end of a message inside them is found by its caller, who
 * compares `pos` with the end once per message, not once per byte.
 */
import { WireError } from "./errors.ts";

/** Wire types of protobuf. Groups (3 and 4) are refused: no field of remote write uses them. */
export const VARINT = 0;
export const FIXED64 = 1;
export const LENGTH_DELIMITED = 2;
export const FIXED32 = 5;

const MAX_VARINT_BYTES = 10;
/** Tags and lengths are of 32 bits: many receivers, protobufjs among them, refuse longer varints there, padded ones too. */
const MAX_PREFIX_BYTES = 5;
const MAX_TAG = 0xffffffff;

export class Cursor {
  readonly bytes: Uint8Array;
  pos = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** Reads a tag: field number times 8 plus wire type. */
  readTag(): number {
    const start = this.pos;
    const first = this.bytes[start] ?? 0;
    // All fields of remote write but a histogram's last have one-byte tags.
    if (first >= 8 && first < 0x80) {
      this.pos = start + 1;
      return first;
    }
    const tag = this.#readPrefix("tag");
    if (tag < 8 || tag > MAX_TAG) {
      throw new WireError(
        "WIRE_TAG",
        start,
        `field number ${Math.floor(tag / 8)} at byte ${start}, want 1 to 536870911`,
      );
    }
    return tag;
  }

  /** Reads the length of a length-delimited field and answers where the field ends. */
  readEnd(): number {
    const start = this.pos;
    const first = this.bytes[start] ?? 0x80;
    // Nearly all are short: of one byte.
    if (first < 0x80) this.pos = start + 1;
    const end = (first < 0x80 ? first : this.#readPrefix("length")) + this.pos;
    if (end > this.bytes.length) {
      throw new WireError(
        "WIRE_TRUNCATED",
        start,
        `length at byte ${start} reaches byte ${end}, the request ends at byte ${this.bytes.length}`,
      );
    }
    return end;
  }

  /** Passes over the value of a field whose tag was just read. */
  skipValue(tag: number): void {
    const start = this.pos;
    switch (tag & 7) {
      case VARINT:
        this.skipVarint();
        return;
      case FIXED64:
        this.pos += 8;
        break;
      case LENGTH_DELIMITED:
        this.pos = this.readEnd();
        return;
      case FIXED32:
        this.pos += 4;
        break;
      default:
        throw new WireError(
          "WIRE_TAG",
          start,
          `wire type ${tag & 7} before byte ${start}, want 0, 1, 2 or 5`,
        );
    }
    if (this.pos > this.bytes.length) throw truncated(start, "a fixed-size field");
  }

  /** Passes over a varint of up to 64 bits; such values are never read into numbers. */
  skipVarint(): void {
    const start = this.pos;
    for (let i = 0; i < MAX_VARINT_BYTES; i++) {
      const byte = this.bytes[start + i];
      if (byte === undefined) throw truncated(start, "a varint");
      if (i === MAX_VARINT_BYTES - 1 && byte > 1) break;
      if (byte < 0x80) {
        this.pos = start + i + 1;
        return;
      }
    }
    throw new WireError("WIRE_VARINT", start, `varint at byte ${start} has more than 64 bits`);
  }

  /** Throws unless a message was read exactly to its end. */
  expectEnd(end: number, what: string): void {
    if (this.pos !== end) {
      throw new WireError("WIRE_OVERRUN", end, `a field of ${what} runs past its end at byte ${end}`);
    }
  }

  #readPrefix(what: "tag" | "length"): number {
    const start = this.pos;
    let value = 0;
    let scale = 1;
    for (let i = 0; i < MAX_PREFIX_BYTES; i++) {
      const byte = this.bytes[start + i];
      if (byte === undefined) throw truncated(start, `a ${what}`);
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        this.pos = start + i + 1;
        return value;
      }
      scale *= 128;
    }
    throw new WireError(
      "WIRE_VARINT",
      start,
      `${what} at byte ${start} is a varint of more than ${MAX_PREFIX_BYTES} bytes`,
    );
  }
}

function truncated(at: number, what: string): WireError {
  return new WireError("WIRE_TRUNCATED", at, `the request ends inside ${what} that starts at byte ${at}`);
}
