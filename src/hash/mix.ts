/**
 * Mixes a 32-bit key: every bit of the answer depends on every bit of the key, and no two keys give the same.
 *
 * Task numbers are consecutive, and the upper bits of an FNV key depend little on its last bytes; what takes a key's
 * upper bits, or its remainder, mixes it first.
 *
 * @returns 32-bit integer, signed: an unsigned one may be a number on the heap
 * @see Wellons: Prospecting for Hash Functions (the constants of lowbias32)
 */
export function mix32(key: number): number {
  let mixed = Math.imul(key ^ (key >>> 16), 0x7feb352d);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b);
  return mixed ^ (mixed >>> 16);
}
