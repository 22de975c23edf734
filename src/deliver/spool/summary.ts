/**
 * What is in a segment, written behind its last record when it is full: so a start need not look at each record of a long
 * backlog. It is a record itself, whose payload is JSON and, in the last four bytes, where in the file it begins.
 *
 * It is a hint, and not synced: without it, or with part of it, the records are looked at.
 */
import type { ReplicaCount } from "./counts.ts";
import { crc32c } from "./crc32c.ts";
import { encodeHeader, SUMMARY } from "./record.ts";
import type { RecordHeader } from "./record.ts";

export interface Summary {
  /** When the first record was appended, milliseconds since the epoch. */
  readonly firstAt: number;
  /** All records of the segment. */
  readonly replicas: readonly ReplicaCount[];
}

/** Bytes at the end of a segment that tell where its summary begins. */
export const SUMMARY_PLACE_BYTES = 4;

const NO_FACTS = {
  replica: 0,
  series: 0,
  items: { samples: 0, histograms: 0, exemplars: 0 },
  plainBytes: 0,
  newestTimestampMs: 0,
  appendedAt: 0,
};

/**
 * @param start of all records of the segment, see recordStart()
 * @param owner see encodeOwner()
 * @param at    where in the file it begins
 */
export function encodeSummary(start: Buffer, owner: Buffer, at: number, summary: Summary): Uint8Array[] {
  const place = Buffer.alloc(SUMMARY_PLACE_BYTES);
  place.writeUInt32LE(at);
  const payload = Buffer.concat([Buffer.from(JSON.stringify(summary)), place]);
  return [encodeHeader(start, owner, NO_FACTS, payload, SUMMARY), payload];
}

/** @returns null if the record is no summary, or damaged */
export function decodeSummary(header: RecordHeader, payload: Buffer): Summary | null {
  if (header.codec !== SUMMARY || crc32c(payload) !== header.payloadSum) return null;
  return JSON.parse(payload.toString("utf8", 0, payload.length - SUMMARY_PLACE_BYTES)) as Summary;
}
