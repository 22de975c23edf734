/** Doubles and 64-bit integers from their bits to text and JSON, without losing any of them on the way. */
import type { Bits64, RawText } from "./referenceDecoder.ts";

/** The NaN by which Prometheus says that a series has ended. */
export const STALE_MARKER = "7ff0000000000002";
/** What Prometheus writes for any other NaN. */
const ORDINARY_NAN = "7ff8000000000001";

const words = new DataView(new ArrayBuffer(8));
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The bits as 16 hex digits, the highest first. */
export function bitsHex({ high, low }: Bits64): string {
  return hexWord(high) + hexWord(low);
}

/** The double with these bits. A NaN's payload does not survive: compare bits where it matters. */
export function toDouble({ high, low }: Bits64): number {
  words.setInt32(0, high);
  words.setInt32(4, low);
  return words.getFloat64(0);
}

export function toUnsigned({ high, low }: Bits64): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

export function toSigned(bits: Bits64): bigint {
  return BigInt.asIntN(64, toUnsigned(bits));
}

/** For a person: as Prometheus' text format writes numbers, with the stale marker and strange NaNs named. */
export function doubleText(bits: Bits64): string {
  const value = toDouble(bits);
  if (Number.isNaN(value)) {
    const hex = bitsHex(bits);
    if (hex === STALE_MARKER) return "StaleNaN";
    return hex === ORDINARY_NAN ? "NaN" : `NaN (bits ${hex})`;
  }
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  return Object.is(value, -0) ? "-0" : String(value);
}

/** For JSON, which has no such numbers: "StaleNaN", "NaN:" and the bits, "Inf", "-Inf", "-0". */
export function doubleJson(bits: Bits64): number | string {
  const value = toDouble(bits);
  if (Number.isNaN(value)) {
    const hex = bitsHex(bits);
    return hex === STALE_MARKER ? "StaleNaN" : `NaN:${hex}`;
  }
  if (!Number.isFinite(value)) return value > 0 ? "Inf" : "-Inf";
  return Object.is(value, -0) ? "-0" : value;
}

/** For JSON: a number where it is exact, else decimal digits. */
export function integerJson(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/** Milliseconds since the epoch as a date and as they are; what no date can say stays a number. */
export function timestampText(bits: Bits64): string {
  const milliseconds = toSigned(bits);
  const date = new Date(Number(milliseconds));
  return Number.isNaN(date.getTime()) ? `${milliseconds} ms` : `${date.toISOString()} (${milliseconds} ms)`;
}

/** The text of a string field; invalid UTF-8 becomes U+FFFD. */
export function textOf(text: RawText): string {
  return text instanceof Uint8Array ? decoder.decode(text) : "";
}

/** The bytes of a string field. */
export function bytesOf(text: RawText): Uint8Array {
  return text instanceof Uint8Array ? text : new Uint8Array(0);
}

function hexWord(word: number): string {
  return (word >>> 0).toString(16).padStart(8, "0");
}
