/**
 * SipHash-2-4: names of slots to 64 bits, while a multi-probe placement is built.
 *
 * On BigInts; no lookup comes here.
 *
 * @see Aumasson & Bernstein: SipHash: a fast short-input PRF
 */
import { rotate64, u64 } from "./u64.ts";

const WORD_BYTES = 8;

type State = readonly [bigint, bigint, bigint, bigint];

/**
 * @param key lower half of the 128-bit key, 0 to 2^64 - 1; its upper half is 0
 * @returns an unsigned 64-bit integer
 */
export function siphash24(bytes: Buffer, key: bigint): bigint {
  let state: State = [
    key ^ 0x736f6d6570736575n,
    0x646f72616e646f6dn,
    key ^ 0x6c7967656e657261n,
    0x7465646279746573n,
  ];
  const whole = bytes.length - (bytes.length % WORD_BYTES);
  for (let at = 0; at < whole; at += WORD_BYTES) state = absorb(state, bytes.readBigUInt64LE(at));
  // The last word holds what is left over, and the length in its top byte.
  const last = Buffer.alloc(WORD_BYTES);
  bytes.copy(last, 0, whole);
  last.writeUInt8(bytes.length % 256, WORD_BYTES - 1);
  state = absorb(state, last.readBigUInt64LE());
  const [a, b, c, d] = rounds([state[0], state[1], state[2] ^ 0xffn, state[3]], 4);
  return a ^ b ^ c ^ d;
}

function absorb([a, b, c, d]: State, word: bigint): State {
  const mixed = rounds([a, b, c, d ^ word], 2);
  return [mixed[0] ^ word, mixed[1], mixed[2], mixed[3]];
}

function rounds(state: State, count: number): State {
  let [a, b, c, d] = state;
  for (let round = 0; round < count; round++) {
    a = u64(a + b);
    c = u64(c + d);
    b = rotate64(b, 13n) ^ a;
    d = rotate64(d, 16n) ^ c;
    a = u64(rotate64(a, 32n) + d);
    c = u64(c + b);
    b = rotate64(b, 17n) ^ c;
    d = rotate64(d, 21n) ^ a;
    c = rotate64(c, 32n);
  }
  return [a, b, c, d];
}
