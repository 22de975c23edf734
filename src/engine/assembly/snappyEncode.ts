/**
 * Compresses to elements of snappy, much as the format's own library does.
 *
 * A table tells, for a hash of four bytes, where bytes of that hash were last. When those are the same four, the bytes
 * there and here are compared on: what is equal becomes copies, what was passed over before becomes a literal. The first
 * match is taken. The longer there is none, the larger the steps: what cannot be compressed must not cost much time.
 *
 * Input is taken in fragments of 64 KiB that know nothing of each other, so that the table needs two bytes for a place.
 * No copy goes back beyond its fragment: streams of several calls, put one after another, are one stream.
 *
 * @see format_description.txt in the sources of snappy
 */
import { copyBlocks } from "./memory";

const FRAGMENT_BYTES: usize = 64 * 1024;
// The table has about as many entries as the fragment has bytes, within limits: clearing it must not cost a short one
// more than compressing does.
const MIN_TABLE_BITS: u32 = 8;
const MAX_TABLE_BITS: u32 = 13;
/** What snappy's own library multiplies by: all four bytes have a part in the upper bits of the product. */
const HASH_FACTOR: u32 = 0x1e35a7bd;
/** Bytes that are hashed, and must be equal for a match. */
const MATCH_BYTES: usize = 4;
/** A step is a byte long, and a byte longer after each 32 places without a match. */
const STEP_BITS: usize = 5;
const FIRST_STEP: usize = 1 << STEP_BITS;

// The lower two bits of an element's tag say what it is.
const LITERAL: u32 = 0;
const COPY_1: u32 = 1; // offset of 11 bits: three in the tag, a byte behind it
const COPY_2: u32 = 2; // offset of two bytes
/** Up to here a literal's tag says its length, less one. */
const MAX_SHORT_LITERAL: usize = 60;
/** Up to here a byte behind the tag says it, and two bytes beyond. */
const MAX_MEDIUM_LITERAL: usize = 256;
const MEDIUM_LITERAL: u32 = (60 << 2) | LITERAL;
const LONG_LITERAL: u32 = (61 << 2) | LITERAL;
const MAX_COPY_BYTES: usize = 64;
const COPY_1_MIN_BYTES: usize = 4;
const COPY_1_MAX_BYTES: usize = 11;
const COPY_1_MAX_OFFSET: usize = 2047;
/** What one load of a vector sees, and a bit for each of its bytes. */
const BLOCK: usize = 16;
const ALL_EQUAL: i32 = 0xffff;

/** What encodeElements() makes of `plainBytes` bytes at most: the bound of snappy's own library. */
export function maxEncodedBytes(plainBytes: usize): usize {
  return 32 + plainBytes + plainBytes / 6;
}

/**
 * Compresses [from, fromEnd) to elements at `to`, without the length that a block begins with. Reads and writes up to
 * 15 bytes behind, which do not matter to what comes out.
 *
 * @param table 16 KiB of scratch
 * @returns where the elements end
 */
export function encodeElements(from: usize, fromEnd: usize, to: usize, table: usize): usize {
  while (from < fromEnd) {
    const end = min(fromEnd, from + FRAGMENT_BYTES);
    to = encodeFragment(from, end, to, table);
    from = end;
  }
  return to;
}

function encodeFragment(from: usize, end: usize, to: usize, table: usize): usize {
  const bits = tableBits(end - from);
  memory.fill(table, 0, (<usize>2) << bits);
  const lastPos = end - MATCH_BYTES;
  let emitted = from;
  let pos = from + 1;
  let step = FIRST_STEP;
  // What is before `emitted` is done; what is from there on to `pos` had no match.
  while (pos <= lastPos) {
    const word = load<u32>(pos);
    const entry = entryOf(table, bits, word);
    // An entry not written yet is the fragment's beginning: as good as any other place before `pos`.
    const candidate = from + load<u16>(entry);
    store<u16>(entry, pos - from);
    if (load<u32>(candidate) !== word) {
      pos += step >> STEP_BITS;
      step += 1;
      continue;
    }
    if (emitted < pos) to = emitLiteral(emitted, pos, to);
    emitted = matchEnd(candidate + MATCH_BYTES, pos + MATCH_BYTES, end);
    to = emitCopies(pos - candidate, emitted - pos, to);
    store<u16>(entryOf(table, bits, load<u32>(emitted - 1)), emitted - 1 - from);
    pos = emitted;
    step = FIRST_STEP;
  }
  return emitted < end ? emitLiteral(emitted, end, to) : to;
}

/** The table's size for a fragment, as a power of two. */
function tableBits(fragmentBytes: usize): u32 {
  const bits = 32 - clz<u32>(<u32>fragmentBytes - 1);
  return max(MIN_TABLE_BITS, min(MAX_TABLE_BITS, bits));
}

/** Where in the table it says, in two bytes, where bytes like these four were last. */
function entryOf(table: usize, bits: u32, word: u32): usize {
  return table + (((word * HASH_FACTOR) >> (32 - bits)) << 1);
}

/** Where bytes from `pos` on stop to be those from `candidate` on, at `end` at the latest. */
function matchEnd(candidate: usize, pos: usize, end: usize): usize {
  while (pos < end) {
    const equal = i8x16.bitmask(i8x16.eq(v128.load(candidate), v128.load(pos)));
    if (equal !== ALL_EQUAL) return min(end, pos + ctz(~equal));
    candidate += BLOCK;
    pos += BLOCK;
  }
  return end;
}

/** Emits [from, end) as a literal of 1 byte to a fragment, and answers where it ends. */
function emitLiteral(from: usize, end: usize, to: usize): usize {
  const length = end - from;
  const lessOne = <u32>length - 1;
  if (length <= BLOCK) {
    store<u8>(to, (lessOne << 2) | LITERAL);
    v128.store(to + 1, v128.load(from));
    return to + 1 + length;
  }
  if (length <= MAX_SHORT_LITERAL) {
    store<u8>(to, (lessOne << 2) | LITERAL);
    to += 1;
  } else if (length <= MAX_MEDIUM_LITERAL) {
    store<u16>(to, MEDIUM_LITERAL | (lessOne << 8));
    to += 2;
  } else {
    store<u32>(to, LONG_LITERAL | (lessOne << 8)); // and a byte more, which the content is written over
    to += 3;
  }
  copyBlocks(to, from, length);
  return to + length;
}

/** Emits copies of `length` bytes in all, 4 or more, from `offset` bytes back, and answers where they end. */
function emitCopies(offset: usize, length: usize, to: usize): usize {
  while (length >= MAX_COPY_BYTES + COPY_1_MIN_BYTES) {
    to = emitCopy2(offset, MAX_COPY_BYTES, to);
    length -= MAX_COPY_BYTES;
  }
  // Enough is left for a short copy, which may do with two bytes.
  if (length > MAX_COPY_BYTES) {
    to = emitCopy2(offset, MAX_COPY_BYTES - COPY_1_MIN_BYTES, to);
    length -= MAX_COPY_BYTES - COPY_1_MIN_BYTES;
  }
  if (length > COPY_1_MAX_BYTES || offset > COPY_1_MAX_OFFSET) return emitCopy2(offset, length, to);
  return emitCopy1(<u32>offset, <u32>(length - COPY_1_MIN_BYTES), to);
}

function emitCopy1(offset: u32, lengthLessMin: u32, to: usize): usize {
  store<u16>(to, ((offset & 0xff) << 8) | ((offset >> 8) << 5) | (lengthLessMin << 2) | COPY_1);
  return to + 2;
}

function emitCopy2(offset: usize, length: usize, to: usize): usize {
  // And a byte more, which the next element is written over.
  store<u32>(to, ((<u32>offset) << 8) | ((<u32>length - 1) << 2) | COPY_2);
  return to + 3;
}
