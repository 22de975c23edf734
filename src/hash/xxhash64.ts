/**
 * XXH64: names of slots to 64 bits, while a placement is built.
 *
 * On BigInts, which is some ten microseconds for a name; no lookup comes here.
 *
 * @see https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
 */
import { rotate64, u64 } from "./u64.ts";

const PRIME_1 = 0x9e3779b185ebca87n;
const PRIME_2 = 0xc2b2ae3d27d4eb4fn;
const PRIME_3 = 0x165667b19e3779f9n;
const PRIME_4 = 0x85ebca77c2b2ae63n;
const PRIME_5 = 0x27d4eb2f165667c5n;

const LANE_BYTES = 8;
/** Four lanes, hashed side by side. */
const STRIPE_BYTES = 4 * LANE_BYTES;

/**
 * @param seed 0 to 2^64 - 1
 * @returns an unsigned 64-bit integer
 */
export function xxhash64(bytes: Buffer, seed: bigint): bigint {
  const inStripes = bytes.length - (bytes.length % STRIPE_BYTES);
  const start = inStripes === 0 ? seed + PRIME_5 : hashStripes(bytes, inStripes, seed);
  return avalanche(hashRest(bytes, inStripes, u64(start + BigInt(bytes.length))));
}

function hashStripes(bytes: Buffer, end: number, seed: bigint): bigint {
  const lanes = [seed + PRIME_1 + PRIME_2, seed + PRIME_2, seed, seed - PRIME_1].map(u64);
  for (let at = 0; at < end; at += LANE_BYTES) {
    const lane = (at / LANE_BYTES) % lanes.length;
    lanes[lane] = round(lanes[lane] ?? 0n, bytes.readBigUInt64LE(at));
  }
  const [first = 0n, second = 0n, third = 0n, fourth = 0n] = lanes;
  const sum = rotate64(first, 1n) + rotate64(second, 7n) + rotate64(third, 12n) + rotate64(fourth, 18n);
  return lanes.reduce((hash, lane) => u64((hash ^ round(0n, lane)) * PRIME_1 + PRIME_4), u64(sum));
}

/** What does not fill a stripe: by eight bytes, then by four, then singly. */
function hashRest(bytes: Buffer, start: number, state: bigint): bigint {
  let hash = state;
  let at = start;
  for (; at + LANE_BYTES <= bytes.length; at += LANE_BYTES) {
    hash = u64(rotate64(hash ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * PRIME_1 + PRIME_4);
  }
  if (at + 4 <= bytes.length) {
    hash = u64(rotate64(hash ^ u64(BigInt(bytes.readUInt32LE(at)) * PRIME_1), 23n) * PRIME_2 + PRIME_3);
    at += 4;
  }
  for (; at < bytes.length; at++) {
    hash = u64(rotate64(hash ^ u64(BigInt(bytes.readUInt8(at)) * PRIME_5), 11n) * PRIME_1);
  }
  return hash;
}

function round(accumulator: bigint, lane: bigint): bigint {
  return u64(rotate64(u64(accumulator + lane * PRIME_2), 31n) * PRIME_1);
}

function avalanche(hash: bigint): bigint {
  let mixed = u64((hash ^ (hash >> 33n)) * PRIME_2);
  mixed = u64((mixed ^ (mixed >> 29n)) * PRIME_3);
  return mixed ^ (mixed >> 32n);
}
