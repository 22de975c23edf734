/** The hash of the hashmod action. */
import { createHash } from "node:crypto";

/** The last eight bytes of the MD5 of the text, as one big-endian number, modulo `modulus`: Prometheus' value in decimal. */
export function hashmod(text: string, modulus: bigint): string {
  const digest = createHash("md5").update(text, "utf8").digest();
  return (digest.readBigUInt64BE(8) % modulus).toString();
}
