/** Unsigned 64-bit arithmetic on BigInts, for the hashes that are taken of names while a placement is built. */

/** What is left of an integer in 64 bits. */
export function u64(value: bigint): bigint {
  return BigInt.asUintN(64, value);
}

/** @param bits 1 to 63, to the left */
export function rotate64(value: bigint, bits: bigint): bigint {
  return u64((value << bits) | (value >> (64n - bits)));
}

/** @returns unsigned 32-bit integer */
export function upperHalf(value: bigint): number {
  return Number(value >> 32n);
}

/** @returns unsigned 32-bit integer */
export function lowerHalf(value: bigint): number {
  return Number(value & 0xffffffffn);
}
