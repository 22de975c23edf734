/**
 * Jump consistent hash, exact for all 64-bit keys, on 32-bit limbs: BigInt would allocate at every step.
 *
 * The quotient 2^31 / (r + 1) is rounded to a double before it is multiplied, as in the paper's code; doing it in another
 * order gives other buckets for some keys.
 *
 * @see Lamping & Veach: A Fast, Minimal Memory, Consistent Hash Algorithm, arXiv:1406.2294
 */
import { invariant } from "./invariant.ts";

// The linear congruential step: key = key * 2862933555777941757 + 1 (mod 2^64).
const MULTIPLIER_HIGH = 0x27bb2ee6;
const MULTIPLIER_LOW = 0x87b0b0fd;
const TWO_32 = 4294967296;
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
  invariant(
    Number.isInteger(buckets) && buckets >= 1 && buckets < TWO_31,
    `jump hash into ${buckets} buckets`,
  );
  let keyHigh = high >>> 0;
  let keyLow = low >>> 0;
  let bucket = 0;
  let next = 0;
  while (next < buckets) {
    bucket = next;
    const carry = highOfProduct(keyLow, MULTIPLIER_LOW);
    keyHigh = (Math.imul(keyLow, MULTIPLIER_HIGH) + Math.imul(keyHigh, MULTIPLIER_LOW) + carry) >>> 0;
    keyLow = (Math.imul(keyLow, MULTIPLIER_LOW) + 1) >>> 0;
    // + 1 carries into the upper half only if the lower half became 0.
    if (keyLow === 0) keyHigh = (keyHigh + 1) >>> 0;
    next = Math.floor((bucket + 1) * (TWO_31 / ((keyHigh >>> 1) + 1)));
  }
  return bucket;
}

/** jump64 of a 32-bit key, taken as an unsigned 64-bit integer. */
export function jump(key: number, buckets: number): number {
  return jump64(0, key, buckets);
}

/** Upper 32 bits of the 64-bit product of two unsigned 32-bit integers. */
function highOfProduct(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const low = aLow * bLow;
  // Each sum stays below 2^53, so doubles are exact here.
  const middle = aHigh * bLow + aLow * bHigh + Math.floor(low / 65536);
  return (aHigh * bHigh + Math.floor(middle / 65536)) % TWO_32;
}
