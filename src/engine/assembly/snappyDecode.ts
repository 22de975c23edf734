/**
 * Decompresses the elements of a snappy block.
 *
 * They come from outside, so each is checked in full before it is obeyed: it ends within the input, a copy goes back to
 * what was written, and no byte too many is written. Nothing else keeps the engine's other memory safe from a block.
 *
 * Label data turns into copies for the most part, half of them of 64 bytes. So a copy moves 64 bytes whatever its
 * length, and the elements that follow write over what was too much; only near the output's end it must not.
 *
 * @see format_description.txt in the sources of snappy
 */

// The lower two bits of an element's tag say what it is; a fourth kind is a copy with an offset of four bytes.
const KIND: u32 = 3;
const LITERAL: u32 = 0;
const COPY_1: u32 = 1; // offset of 11 bits: three in the tag, a byte behind it
const COPY_2: u32 = 2; // offset of two bytes
/** Up to here a literal's tag says its length; what it says beyond is how many bytes of length follow. */
const MAX_SHORT_LITERAL: usize = 60;
const COPY_1_MIN_BYTES: u32 = 4;
const MAX_COPY_BYTES: usize = 64;
/** What one load and one store of a vector move. */
const BLOCK: usize = 16;

/**
 * Decompresses the elements at [from, fromEnd), a block without the length that it begins with, to
 * [to, to + plainBytes). Reads and writes up to 15 bytes behind these ranges, which do not matter to what it answers.
 *
 * It is one long function because that is an eighth faster than finding offset, length and end of a copy in three.
 *
 * @returns whether the elements are valid and give `plainBytes` bytes; if not, the output may hold anything
 */
export function decodeElements(from: usize, fromEnd: usize, to: usize, plainBytes: usize): bool {
  const toEnd = to + plainBytes;
  let pos = from;
  let out = to;
  while (pos < fromEnd) {
    const tag: u32 = load<u8>(pos);
    const kind = tag & KIND;
    pos += 1;
    let length: usize = (tag >> 2) + 1;
    if (kind === LITERAL) {
      if (length > MAX_SHORT_LITERAL) {
        const lengthBytes = length - MAX_SHORT_LITERAL;
        length = longLiteralLength(pos, lengthBytes);
        pos += lengthBytes;
        if (pos > fromEnd || length === 0) return false; // 0 is what a length of 2^32 comes out as
      }
      if (length > fromEnd - pos || length > toEnd - out) return false;
      copyLiteral(out, pos, length);
      pos += length;
      out += length;
      continue;
    }
    let offset: usize;
    if (kind === COPY_2) {
      offset = load<u16>(pos);
      pos += 2;
    } else if (kind === COPY_1) {
      offset = ((tag >> 5) << 8) | load<u8>(pos);
      length = ((tag >> 2) & 7) + COPY_1_MIN_BYTES;
      pos += 1;
    } else {
      offset = load<u32>(pos);
      pos += 4;
    }
    // An offset of 0 less one is greater than all that can be written.
    if (pos > fromEnd || length > toEnd - out || offset - 1 >= out - to) return false;
    if (offset >= BLOCK && toEnd - out >= MAX_COPY_BYTES) copyMost(out, offset);
    else copyBack(out, offset, length);
    out += length;
  }
  return out === toEnd;
}

/** The length in 1 to 4 bytes behind a literal's tag. The input may end before them: the caller looks. */
function longLiteralLength(pos: usize, lengthBytes: usize): usize {
  const unusedBits = 32 - 8 * <u32>lengthBytes;
  return (load<u32>(pos) & (u32.MAX_VALUE >> unusedBits)) + 1;
}

/** Copies one or more bytes of the input, and up to 15 too many. */
function copyLiteral(to: usize, from: usize, length: usize): void {
  const end = to + length;
  do {
    v128.store(to, v128.load(from));
    from += BLOCK;
    to += BLOCK;
  } while (to < end);
}

/** Copies as many bytes as any copy may give, from BLOCK or more bytes back. */
function copyMost(to: usize, offset: usize): void {
  const from = to - offset;
  // In this order, as later blocks may be read from where earlier ones were written.
  v128.store(to, v128.load(from));
  v128.store(to, v128.load(from, 16), 16);
  v128.store(to, v128.load(from, 32), 32);
  v128.store(to, v128.load(from, 48), 48);
}

/** Copies `length` bytes from one or more bytes back, and up to 15 too many. */
function copyBack(to: usize, offset: usize, length: usize): void {
  const end = to + length;
  let from = to - offset;
  // What is too near to be copied in blocks repeats: every turn doubles how much of it there is.
  while (to < end && to - from < BLOCK) {
    v128.store(to, v128.load(from));
    to += to - from;
  }
  while (to < end) {
    v128.store(to, v128.load(from));
    from += BLOCK;
    to += BLOCK;
  }
}
