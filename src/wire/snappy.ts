/**
 * The snappy block format, which bodies of remote write are compressed with: for commands, and to say what is wrong with a
 * block that the engine refused, which has a codec of its own.
 *
 * The codec here is snappyjs. It trusts its input in places (a block may come out shorter than it says, an offset may be
 * negative), so a block is first walked element by element, which also finds the byte to complain about.
 *
 * @see format_description.txt in the sources of snappy; the framing format is another one
 */
import { compress, uncompress } from "snappyjs";
import { WireError } from "./errors.ts";

const MAX_LENGTH_BYTES = 5;
// The lower two bits of an element's tag say what it is; a fourth kind is a copy with an offset of four bytes.
const LITERAL = 0;
const COPY_1 = 1; // offset of 11 bits: three in the tag, a byte behind it
const COPY_2 = 2; // offset of two bytes
/** Upper six bits of a literal's tag: up to here its length less one, above it how many bytes of length follow. */
const LAST_SHORT_LITERAL = 59;
const FRAMED_MAGIC = [0xff, 0x06, 0x00, 0x00, 0x73, 0x4e, 0x61, 0x50, 0x70, 0x59];

/**
 * Decompresses a block.
 *
 * @param maxPlainBytes limit on the plain length, compared before anything is allocated
 * @throws {WireError} WIRE_TOO_LARGE or WIRE_SNAPPY
 */
export function uncompressBlock(block: Uint8Array, maxPlainBytes: number): Uint8Array {
  const { plainBytes, elementsAt } = readPlainLength(block, maxPlainBytes);
  checkElements(block, elementsAt, plainBytes);
  // A view without Buffer's type, so that the answer is a plain Uint8Array too.
  const view = new Uint8Array(block.buffer, block.byteOffset, block.byteLength);
  try {
    // It wants four bytes behind a long literal's tag, so a needlessly long form at the very end is refused here.
    return uncompress(view, maxPlainBytes);
  } catch (cause) {
    const message = `the elements from byte ${elementsAt} on of the snappy block cannot be decompressed`;
    throw Object.assign(new WireError("WIRE_SNAPPY", elementsAt, message), { cause });
  }
}

/** Compresses into one block. */
export function compressBlock(plain: Uint8Array): Uint8Array {
  return compress(plain);
}

/**
 * Reads the length that a block begins with.
 *
 * @throws {WireError} WIRE_TOO_LARGE above the limit, or WIRE_SNAPPY
 */
export function readPlainLength(
  block: Uint8Array,
  maxPlainBytes: number,
): { readonly plainBytes: number; readonly elementsAt: number } {
  const length = parsePlainLength(block);
  if (length.plainBytes <= maxPlainBytes) return length;
  throw new WireError(
    "WIRE_TOO_LARGE",
    0,
    `the snappy block declares ${length.plainBytes} plain bytes, the limit is ${maxPlainBytes}`,
  );
}

function parsePlainLength(block: Uint8Array): { plainBytes: number; elementsAt: number } {
  if (FRAMED_MAGIC.every((byte, index) => block[index] === byte)) {
    throw new WireError(
      "WIRE_SNAPPY",
      0,
      "the body is in snappy's framed format from byte 0 on, want the block format",
    );
  }
  let plainBytes = 0;
  for (let i = 0; i < MAX_LENGTH_BYTES; i++) {
    const byte = block[i];
    if (byte === undefined)
      throw new WireError("WIRE_SNAPPY", i, `the snappy block ends at byte ${i}, inside its length`);
    plainBytes += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80 && plainBytes < 2 ** 32) return { plainBytes, elementsAt: i + 1 };
  }
  throw new WireError(
    "WIRE_SNAPPY",
    0,
    "the plain length at byte 0 of the snappy block has more than 32 bits",
  );
}

/** Throws unless every element reads and writes within bounds, and together they give exactly the plain length. */
function checkElements(block: Uint8Array, elementsAt: number, plainBytes: number): void {
  let pos = elementsAt;
  let written = 0;
  while (pos < block.length) {
    const at = pos;
    const tag = block[at] ?? 0;
    const isLiteral = (tag & 3) === LITERAL;
    const extraBytes = extraBytesOf(tag);
    const extra = littleEndian(block, at + 1, extraBytes);
    const length = lengthOf(tag, extra);
    pos = at + 1 + extraBytes + (isLiteral ? length : 0);
    if (pos > block.length) throw wrongElement(at, `runs past the end at byte ${block.length}`);
    const offset = isLiteral ? null : offsetOf(tag, extra);
    if (offset === 0 || (offset !== null && offset > written)) {
      throw wrongElement(at, `goes back ${offset} bytes, ${written} bytes are written`);
    }
    written += length;
    if (written > plainBytes) throw wrongElement(at, `writes past the declared ${plainBytes} bytes`);
  }
  if (written !== plainBytes) {
    throw new WireError(
      "WIRE_SNAPPY",
      block.length,
      `the snappy block ends at byte ${block.length} after ${written} of ${plainBytes} declared bytes`,
    );
  }
}

/** Bytes between an element's tag and its end or, of a literal, its content: a long literal's length, a copy's offset. */
function extraBytesOf(tag: number): number {
  const kind = tag & 3;
  if (kind === LITERAL) return Math.max(0, (tag >>> 2) - LAST_SHORT_LITERAL);
  return kind === COPY_1 ? 1 : kind === COPY_2 ? 2 : 4;
}

/** Plain bytes that an element gives. */
function lengthOf(tag: number, extra: number): number {
  const upper = tag >>> 2;
  if ((tag & 3) === COPY_1) return (upper & 7) + 4;
  return (tag & 3) === LITERAL && upper > LAST_SHORT_LITERAL ? extra + 1 : upper + 1;
}

function offsetOf(tag: number, extra: number): number {
  return (tag & 3) === COPY_1 ? ((tag >>> 5) << 8) | extra : extra;
}

function wrongElement(at: number, what: string): WireError {
  return new WireError("WIRE_SNAPPY", at, `snappy element at byte ${at} ${what}`);
}

/** Unsigned little-endian integer of 1 to 4 bytes; bytes behind the end count as 0, the caller checks the end. */
function littleEndian(bytes: Uint8Array, at: number, length: number): number {
  let value = 0;
  for (let i = 0; i < length; i++) value += (bytes[at + i] ?? 0) * 2 ** (8 * i);
  return value;
}
