/**
 * HighwayHash-128 by the book, on integers without a size: what the engine's hash is held to.
 *
 * Nothing is fast here. A variable of the state is four numbers, a round gives a new state, and widths are cut off where the
 * definition says so.
 *
 * @see Alakuijala, Cox, Wassenberg: Fast keyed hash/pseudo-random function using SIMD multiply and permute,
 *      arXiv:1612.06257
 */

/** Four unsigned numbers of 64 bits. */
type Lanes = readonly [bigint, bigint, bigint, bigint];

interface State {
  readonly v0: Lanes;
  readonly v1: Lanes;
  readonly mul0: Lanes;
  readonly mul1: Lanes;
}

const MUL0: Lanes = [0xdbe6d5d5fe4cce2fn, 0xa4093822299f31d0n, 0x13198a2e03707344n, 0x243f6a8885a308d3n];
const MUL1: Lanes = [0x3bd39e10cb0ef593n, 0xc0acf169b5f18a8cn, 0xbe5466cf34e90c6cn, 0x452821e638d01377n];
const PACKET_BYTES = 32;
const FINAL_ROUNDS = 6;

/**
 * Hashes a message of any length.
 *
 * @param key 32 bytes
 * @returns 128 bits, the hash's first 64-bit number being the lower half
 */
export function highwayHash128(message: Uint8Array, key: Uint8Array): bigint {
  let state = initial(lanesOf(key));
  let at = 0;
  for (; at + PACKET_BYTES <= message.length; at += PACKET_BYTES) {
    state = update(state, lanesOf(message.subarray(at, at + PACKET_BYTES)));
  }
  const rest = message.subarray(at);
  if (rest.length > 0) state = update(marked(state, rest.length), lanesOf(padded(rest)));
  for (let round = 0; round < FINAL_ROUNDS; round++) state = update(state, permuted(state.v0));
  const { v0, v1, mul0, mul1 } = state;
  return word(v0[0] + mul0[0] + v1[2] + mul1[2]) | (word(v0[1] + mul0[1] + v1[3] + mul1[3]) << 64n);
}

function initial(key: Lanes): State {
  return { v0: xor(MUL0, key), v1: xor(MUL1, each(key, swapHalves)), mul0: MUL0, mul1: MUL1 };
}

function update(state: State, packet: Lanes): State {
  let { v0, v1, mul0, mul1 } = state;
  v1 = add(add(v1, packet), mul0);
  mul0 = xor(mul0, product(v1, v0));
  v0 = add(v0, mul1);
  mul1 = xor(mul1, product(v0, v1));
  v0 = add(v0, zipperMerged(v1));
  v1 = add(v1, zipperMerged(v0));
  return { v0, v1, mul0, mul1 };
}

/** Puts into the state how many bytes, 1 to 31, are left for the last packet. */
function marked(state: State, bytes: number): State {
  const length = BigInt(bytes);
  const mark = (length << 32n) | length;
  return { ...state, v0: add(state.v0, [mark, mark, mark, mark]), v1: each(state.v1, rotateHalves(length)) };
}

function padded(rest: Uint8Array): Uint8Array {
  const packet = new Uint8Array(PACKET_BYTES);
  const whole = rest.length - (rest.length % 4);
  packet.set(rest.subarray(0, whole));
  if (rest.length >= 16) {
    packet.set(rest.subarray(-4), 28);
  } else {
    const odd = rest.subarray(whole);
    const middle = odd.length >> 1;
    packet.set(odd.subarray(0, 1), 16);
    packet.set(odd.subarray(middle, middle + 1), 17);
    packet.set(odd.subarray(-1), 18);
  }
  return packet;
}

/** Halves of the state change places, and halves of the lanes. */
function permuted(lanes: Lanes): Lanes {
  return each([lanes[2], lanes[3], lanes[0], lanes[1]], swapHalves);
}

/** In each pair of lanes, the bytes that the new lanes take from the two, counted through both. */
function zipperMerged([a, b, c, d]: Lanes): Lanes {
  const even = [3, 12, 2, 5, 14, 1, 15, 0];
  const odd = [11, 4, 10, 13, 9, 6, 8, 7];
  const low = (b << 64n) | a;
  const high = (d << 64n) | c;
  return [deal(low, even), deal(low, odd), deal(high, even), deal(high, odd)];
}

function deal(pair: bigint, bytes: readonly number[]): bigint {
  return bytes.reduceRight((lane, byte) => (lane << 8n) | ((pair >> BigInt(8 * byte)) & 0xffn), 0n);
}

function product(a: Lanes, b: Lanes): Lanes {
  return both(a, b, (x, y) => half(x) * (y >> 32n));
}

function add(a: Lanes, b: Lanes): Lanes {
  return both(a, b, (x, y) => word(x + y));
}

function xor(a: Lanes, b: Lanes): Lanes {
  return both(a, b, (x, y) => x ^ y);
}

function swapHalves(lane: bigint): bigint {
  return (half(lane) << 32n) | (lane >> 32n);
}

function rotateHalves(bits: bigint): (lane: bigint) => bigint {
  const rotate = (x: bigint): bigint => half(x << bits) | (x >> (32n - bits));
  return (lane) => (rotate(lane >> 32n) << 32n) | rotate(half(lane));
}

function half(x: bigint): bigint {
  return BigInt.asUintN(32, x);
}

function word(x: bigint): bigint {
  return BigInt.asUintN(64, x);
}

function each(a: Lanes, change: (lane: bigint) => bigint): Lanes {
  return [change(a[0]), change(a[1]), change(a[2]), change(a[3])];
}

function both(a: Lanes, b: Lanes, join: (x: bigint, y: bigint) => bigint): Lanes {
  return [join(a[0], b[0]), join(a[1], b[1]), join(a[2], b[2]), join(a[3], b[3])];
}

/** 32 bytes as four little-endian numbers. */
function lanesOf(bytes: Uint8Array): Lanes {
  const view = new DataView(bytes.buffer, bytes.byteOffset, PACKET_BYTES);
  const lane = (index: number): bigint => view.getBigUint64(8 * index, true);
  return [lane(0), lane(1), lane(2), lane(3)];
}
