/**
 * HighwayHash-128: a hash of 128 bits for a run of bytes, under a secret key of 256.
 *
 * Senders choose the labels that are hashed here, and the decision table takes equal hashes for equal labels. With a key
 * that is drawn at random for each process, nobody outside can look for label sets that meet, nor for many that crowd one
 * corner of the table.
 *
 * The state is four variables, v0, v1, mul0 and mul1, of four 64-bit lanes each. A round adds a packet of 32 bytes to it
 * and mixes it, by multiplying and by dealing bytes from lane to lane. There are three kinds of round:
 *
 *     message      | 32 bytes | 32 bytes | ... | rest: 1 to 31 bytes, if any |
 *     its packet     as it is   as it is         padded, its length put          then six rounds whose packet is v0,
 *                                                into the state first            permuted
 *
 * A vector of WebAssembly holds two lanes, so each variable is two locals: v0_01 holds lanes 0 and 1 of v0, v0_23 holds 2
 * and 3. One loop runs all rounds: a function returns one value here, so a round that was one would have to pass the state
 * through memory.
 *
 * @see Alakuijala, Cox, Wassenberg: Fast keyed hash/pseudo-random function using SIMD multiply and permute,
 *      arXiv:1612.06257; six final rounds, as in the reference code since its results are frozen (google/highwayhash)
 */
const PACKET_BITS: usize = 5;
const PACKET_BYTES: usize = 32;
const VECTOR_BYTES: usize = 16;
const WORD_BYTES: usize = 4;
const WORD_BITS: i32 = 32;
const FINAL_ROUNDS: usize = 6;

// What mul0 and mul1 begin with, most of it digits of pi. By words, lower first: a number of TypeScript has 53 bits.
const MUL0_01: v128 = i32x4(0xfe4cce2f, 0xdbe6d5d5, 0x299f31d0, 0xa4093822);
const MUL0_23: v128 = i32x4(0x03707344, 0x13198a2e, 0x85a308d3, 0x243f6a88);
const MUL1_01: v128 = i32x4(0xcb0ef593, 0x3bd39e10, 0xb5f18a8c, 0xc0acf169);
const MUL1_23: v128 = i32x4(0x34e90c6c, 0xbe5466cf, 0x38d01377, 0x452821e6);

const ZIPPER: v128 = i8x16(3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7);
const POSITIONS: v128 = i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

/**
 * Hashes the bytes [at, at + length). Up to 16 bytes behind them are read, but have no influence.
 *
 * @param key where the 32 bytes of the key are
 * @param to  where the 16 bytes of the hash go
 */
export function hash128(at: usize, length: usize, key: usize, to: usize): void {
  const key_01 = v128.load(key);
  const key_23 = v128.load(key, VECTOR_BYTES);
  let mul0_01 = MUL0_01;
  let mul0_23 = MUL0_23;
  let mul1_01 = MUL1_01;
  let mul1_23 = MUL1_23;
  let v0_01 = v128.xor(mul0_01, key_01);
  let v0_23 = v128.xor(mul0_23, key_23);
  let v1_01 = v128.xor(mul1_01, swapHalves(key_01));
  let v1_23 = v128.xor(mul1_23, swapHalves(key_23));

  let rest = length & (PACKET_BYTES - 1);
  const restAt = at + length - rest;
  let rounds = (length >> PACKET_BITS) + (rest > 0 ? 1 : 0) + FINAL_ROUNDS;
  do {
    let packet_01: v128;
    let packet_23: v128;
    if (at < restAt) {
      packet_01 = v128.load(at);
      packet_23 = v128.load(at, VECTOR_BYTES);
      at += PACKET_BYTES;
    } else if (rest > 0) {
      // Zeros at the end of a message look like padding: the length tells them apart.
      const mark = i32x4.splat(<i32>rest);
      v0_01 = i64x2.add(v0_01, mark);
      v0_23 = i64x2.add(v0_23, mark);
      v1_01 = rotateWords(v1_01, <i32>rest);
      v1_23 = rotateWords(v1_23, <i32>rest);
      packet_01 = paddedFront(at, rest);
      packet_23 = paddedBack(at, rest);
      rest = 0;
    } else {
      // This is how lanes 0 and 1 meet lanes 2 and 3.
      packet_01 = swapHalves(v0_23);
      packet_23 = swapHalves(v0_01);
    }

    v1_01 = i64x2.add(v1_01, i64x2.add(mul0_01, packet_01));
    v1_23 = i64x2.add(v1_23, i64x2.add(mul0_23, packet_23));
    mul0_01 = v128.xor(mul0_01, multiply(v1_01, v0_01));
    mul0_23 = v128.xor(mul0_23, multiply(v1_23, v0_23));
    v0_01 = i64x2.add(v0_01, mul1_01);
    v0_23 = i64x2.add(v0_23, mul1_23);
    mul1_01 = v128.xor(mul1_01, multiply(v0_01, v1_01));
    mul1_23 = v128.xor(mul1_23, multiply(v0_23, v1_23));
    v0_01 = i64x2.add(v0_01, zipperMerge(v1_01));
    v0_23 = i64x2.add(v0_23, zipperMerge(v1_23));
    v1_01 = i64x2.add(v1_01, zipperMerge(v0_01));
    v1_23 = i64x2.add(v1_23, zipperMerge(v0_23));
    rounds--;
  } while (rounds > 0);

  v128.store(to, i64x2.add(i64x2.add(v0_01, mul0_01), i64x2.add(v1_23, mul1_23)));
}

/** In each lane the product, of 64 bits, of the lower half of `a` and the upper half of `b`. */
function multiply(a: v128, b: v128): v128 {
  const lower = v128.shuffle<u32>(a, a, 0, 2, 0, 2);
  const upper = v128.shuffle<u32>(b, b, 1, 3, 1, 3);
  return i64x2.extmul_low_i32x4_u(lower, upper);
}

/**
 * Deals the bytes of two lanes anew. A product is mixed well in its middle bytes and badly in its outer ones, so each lane
 * gets some of both, from itself and from its neighbour, the bad ones in its upper half.
 */
function zipperMerge(lanes: v128): v128 {
  // A shuffle would do the same, but V8 makes its pattern anew each time: 95 ns for 288 bytes instead of 66.
  return i8x16.swizzle(lanes, ZIPPER);
}

/** In each lane the two halves exchanged. */
function swapHalves(lanes: v128): v128 {
  return v128.shuffle<u32>(lanes, lanes, 1, 0, 3, 2);
}

/** Each word rotated left by so many bits, 1 to 31. */
function rotateWords(words: v128, bits: i32): v128 {
  return v128.or(i32x4.shl(words, bits), i32x4.shr_u(words, WORD_BITS - bits));
}

/**
 * Words 0 to 3 of the packet that a rest is padded to. Whole words are in place; the last bytes are where no whole word can
 * be; the remainder is zero:
 *
 *     word              0     1     2     3     4     5     6     7
 *     1 to 15 bytes   | up to 3 words       | odd |
 *     16 to 31 bytes  | 4 to 7 words                            | last four bytes |
 */
function paddedFront(at: usize, rest: usize): v128 {
  const bytes = v128.load(at);
  return rest >= VECTOR_BYTES ? bytes : firstBytes(bytes, wholeWords(rest));
}

/** Words 4 to 7 of that packet. */
function paddedBack(at: usize, rest: usize): v128 {
  if (rest < VECTOR_BYTES) {
    const whole = wholeWords(rest);
    return i32x4.replace_lane(i32x4.splat(0), 0, spreadOddBytes(at + whole, rest - whole));
  }
  const words = firstBytes(v128.load(at, VECTOR_BYTES), wholeWords(rest) - VECTOR_BYTES);
  return i32x4.replace_lane(words, 3, load<i32>(at + rest - WORD_BYTES));
}

/** How many of so many bytes are in whole words. */
function wholeWords(bytes: usize): usize {
  return bytes & ~(WORD_BYTES - 1);
}

/** The first `count` bytes, 0 to 16, then zeros. */
function firstBytes(bytes: v128, count: usize): v128 {
  return v128.and(bytes, i8x16.lt_s(POSITIONS, i8x16.splat(<i8>count)));
}

/** First, middle and last of `count` bytes, 0 to 3, some of them more than once; then a zero. */
function spreadOddBytes(at: usize, count: usize): i32 {
  if (count === 0) return 0;
  return load<u8>(at) | ((<i32>load<u8>(at + (count >> 1))) << 8) | ((<i32>load<u8>(at + count - 1)) << 16);
}
