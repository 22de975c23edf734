/**
 * FNV-1a, 32 bit: the hash under every label-set key.
 *
 * @see Fowler, Noll, Vo, Eastlake: The FNV Non-Cryptographic Hash Algorithm (IETF draft-eastlake-fnv)
 */

/** The hash of nothing, and the state to start from. */
export const FNV_OFFSET_BASIS = 2166136261;

const FNV_PRIME = 16777619;

/**
 * Goes on hashing from `state` over bytes[start, end).
 *
 * @param state FNV_OFFSET_BASIS, or what an earlier call returned
 * @returns unsigned 32-bit hash
 */
export function fnv1a32(bytes: Uint8Array, start: number, end: number, state = FNV_OFFSET_BASIS): number {
  // From here on 32 signed bits: as an unsigned number, `state` would make of the loop's first round one of doubles.
  let hash = state | 0;
  for (let i = start; i < end; i++) {
    hash = Math.imul(hash ^ (bytes[i] ?? 0), FNV_PRIME);
  }
  return hash >>> 0;
}

/** Goes on hashing from `state` over one byte. */
export function fnv1a32Byte(byte: number, state: number): number {
  return Math.imul(state ^ byte, FNV_PRIME) >>> 0;
}
