/**
 * Jump consistent hash, exact for all 64-bit keys, on 32-bit limbs: BigInt would allocate at every step.
 *
 * The limbs are signed integers, which the compiler keeps in registers; only what the paper computes in doubles is one.
 * The quotient 2^31 / (r + 1) is rounded to a double before it is multiplied, as in the paper's code; doing it in another
 * order gives other buckets for some keys.
 *
 * @see Lamping & Veach: A Fast, Minimal Memory, Consistent Hash Algorithm, arXiv:1406.2294
 */
import { invariant } from "./invariant.ts";

// The linear congruential step: key = key * 2862933555777941757 + 1 (mod 2^64).
const MULTIPLIER_HIGH = 0x27bb2ee6;
const MULTIPLIER_LOW = 0x87b0b0fd;
/** The halves of MULTIPLIER_LOW. */
const LOW_UPPER = 0x87b0;
const LOW_LOWER = 0xb0fd;
const TWO_31 = 2147483648;

/**
 * Gives a 64-bit key one of `buckets` buckets; from n to n + 1 buckets a key moves to the new one or stays.
 *
 * @param high    upper 32 bits of the key
 * @param low     lower 32 bits of the key
 * @param buckets 1 to 2^31 - 1
 * @returns 0 <= bucket < buckets
 */
export function jump64(high: number, low: number, buckets: number): number {
  invariant((buckets | 0) === buckets && buckets >= 1, "jump hash into buckets that are not 1 to 2^31 - 1");
  let keyHigh = high | 0;
  let keyLow = low | 0;
  let bucket = 0;
  for (;;) {
    keyHigh =
      (Math.imul(keyLow, MULTIPLIER_HIGH) + Math.imul(keyHigh, MULTIPLIER_LOW) + highOfProduct(keyLow)) | 0;
    keyLow = (Math.imul(keyLow, MULTIPLIER_LOW) + 1) | 0;
    // + 1 carries into the upper half only if the lower half became 0.
    if (keyLow === 0) keyHigh = (keyHigh + 1) | 0;
    const next = (bucket + 1) * (TWO_31 / ((keyHigh >>> 1) + 1));
    if (next >= buckets) return bucket;
    bucket = next | 0;
  }
}

/** jump64 of a 32-bit key, taken as an unsigned 64-bit integer. */
export function jump(key: number, buckets: number): number {
  return jump64(0, key, buckets);
}

/** Upper 32 bits of the 64-bit product of MULTIPLIER_LOW and an unsigned 32-bit integer. */
function highOfProduct(factor: number): number {
  const lower = factor & 0xffff;
  const upper = factor >>> 16;
  const crossed = Math.imul(lower, LOW_UPPER);
  const crossedToo = Math.imul(upper, LOW_LOWER);
  const middle = (Math.imul(lower, LOW_LOWER) >>> 16) + (crossed & 0xffff) + (crossedToo & 0xffff);
  return Math.imul(upper, LOW_UPPER) + (crossed >>> 16) + (crossedToo >>> 16) + (middle >>> 16);
}
