/** The hashes of the hashmod action. */
import { createHash } from "node:crypto";
import { xxhash64 } from "../hash/xxhash64.ts";

/** The last eight bytes of the MD5 of the text, as one big-endian number, modulo `modulus`: Prometheus' value in decimal. */
export function md5Hashmod(text: string, modulus: bigint): string {
  const digest = createHash("md5").update(text, "utf8").digest();
  return (digest.readBigUInt64BE(8) % modulus).toString();
}

/** xxHash64 of the text modulo `modulus`: vmagent's value in decimal, which is negative from 2^63 on. */
export function xxhashHashmod(text: string, modulus: bigint): string {
  return BigInt.asIntN(64, xxhash64(Buffer.from(text, "utf8"), 0n) % modulus).toString();
}
