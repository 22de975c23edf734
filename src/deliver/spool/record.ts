/**
 * A record: one parcel in a segment, with all that is known of it. Little endian, no padding; a segment is records one after
 * another and nothing else. One that is full ends with a record of another kind, its summary.
 *
 * ```
 *   0  4  magic "SpoR"
 *   4  8  nonce, which the segment's file name has as well
 *  12  4  bytes of the header, from the magic to the end of the names
 *  16  4  bytes of the payload
 *  20  4  crc32c of the header, taken with this field 0
 *  24  4  crc32c of the payload
 *  28  1  version of this layout: 1
 *  29  1  message: 1 is remote write 1.0
 *  30  1  codec of the payload: 1 is snappy elements without a length in front; 2 is a summary, see summary.ts
 *  31  1  0
 *  32  4  replica
 *  36  4  series           40  4  samples
 *  44  4  histograms       48  4  exemplars
 *  52  4  bytes of the payload when decompressed
 *  56  8  newest timestamp, milliseconds since the epoch, float64
 *  64  8  time of the append, likewise
 *  72  4  lane
 *  76  4  bytes of the route's name
 *  80  4  bytes of the upstream's name
 *  84  4  bytes of the tenant's name; 0xffffffff: it has none
 *  88     the three names, UTF-8
 *         payload
 * ```
 *
 * Senders choose payloads, and a reader that looks for the next record behind damage meets payloads: without the nonce, a
 * sender could have written records into them.
 */
import type { ItemCounts } from "../../wire/parcel.ts";
import type { LaneId } from "../lane.ts";
import { crc32c } from "./crc32c.ts";

const MAGIC = Buffer.from("SpoR", "latin1");
export const NONCE_BYTES = 8;

const HEADER_LENGTH = 12;
const PAYLOAD_LENGTH = 16;
const HEADER_SUM = 20;
const PAYLOAD_SUM = 24;
const VERSION = 28;
const MESSAGE = 29;
const CODEC = 30;
const REPLICA = 32;
const SERIES = 36;
const SAMPLES = 40;
const HISTOGRAMS = 44;
const EXEMPLARS = 48;
const PLAIN_LENGTH = 52;
const NEWEST = 56;
const APPENDED = 64;
const OWNER = 72; // lane, lengths of names, names
const NAMES = 88;

const LAYOUT_1 = 1;
const REMOTE_WRITE_1 = 1;
const SNAPPY_ELEMENTS = 1;
export const SUMMARY = 2;
const NO_TENANT = 0xffff_ffff;

export const MIN_HEADER_BYTES = NAMES;
/** Names come from the configuration and from a request header; all of them are far shorter. */
const MAX_HEADER_BYTES = 1024 * 1024;

/** Whose records a stream has. */
export interface Owner {
  readonly route: string;
  readonly upstream: string;
  readonly lane: LaneId;
}

/** What a header says of the parcel that follows it. */
export interface RecordFacts {
  readonly replica: number;
  readonly series: number;
  readonly items: ItemCounts;
  readonly plainBytes: number;
  readonly newestTimestampMs: number;
  /** Milliseconds since the epoch. */
  readonly appendedAt: number;
}

export type Codec = typeof SNAPPY_ELEMENTS | typeof SUMMARY;

export interface RecordHeader extends RecordFacts {
  readonly codec: Codec;
  readonly headerBytes: number;
  readonly payloadBytes: number;
  readonly payloadSum: number;
  /** See encodeOwner(). */
  readonly owner: Buffer;
}

/** What every record in a segment begins with, and nothing else that a sender could write. */
export function recordStart(nonce: Buffer): Buffer {
  return Buffer.concat([MAGIC, nonce]);
}

/** The part of a header that all records of a stream have in common. */
export function encodeOwner({ route, upstream, lane }: Owner): Buffer {
  const names = [route, upstream, lane.tenant ?? ""].map((name) => Buffer.from(name, "utf8"));
  const fields = Buffer.alloc(NAMES - OWNER);
  fields.writeUInt32LE(lane.number, 0);
  names.forEach((name, index) => fields.writeUInt32LE(name.length, 4 + 4 * index));
  if (lane.tenant === null) fields.writeUInt32LE(NO_TENANT, 12);
  return Buffer.concat([fields, ...names]);
}

/** @returns null if the lengths do not add up */
export function decodeOwner(owner: Buffer): Owner | null {
  const routeBytes = owner.readUInt32LE(4);
  const upstreamBytes = owner.readUInt32LE(8);
  const tenantBytes = owner.readUInt32LE(12);
  const routeAt = NAMES - OWNER;
  const upstreamAt = routeAt + routeBytes;
  const tenantAt = upstreamAt + upstreamBytes;
  const hasTenant = tenantBytes !== NO_TENANT;
  if (tenantAt + (hasTenant ? tenantBytes : 0) !== owner.length) return null;
  return {
    route: owner.toString("utf8", routeAt, upstreamAt),
    upstream: owner.toString("utf8", upstreamAt, tenantAt),
    lane: { number: owner.readUInt32LE(0), tenant: hasTenant ? owner.toString("utf8", tenantAt) : null },
  };
}

/** How long the headers of a stream are. */
export function headerBytes(owner: Buffer): number {
  return OWNER + owner.length;
}

/**
 * @param start of all records of the segment, see recordStart()
 * @param owner see encodeOwner()
 */
export function encodeHeader(
  start: Buffer,
  owner: Buffer,
  facts: RecordFacts,
  payload: Uint8Array,
  codec: Codec = SNAPPY_ELEMENTS,
): Buffer {
  const header = Buffer.alloc(headerBytes(owner));
  start.copy(header);
  header.writeUInt32LE(header.length, HEADER_LENGTH);
  header.writeUInt32LE(payload.length, PAYLOAD_LENGTH);
  header.writeUInt32LE(crc32c(payload), PAYLOAD_SUM);
  header[VERSION] = LAYOUT_1;
  header[MESSAGE] = REMOTE_WRITE_1;
  header[CODEC] = codec;
  header.writeUInt32LE(facts.replica, REPLICA);
  header.writeUInt32LE(facts.series, SERIES);
  header.writeUInt32LE(facts.items.samples, SAMPLES);
  header.writeUInt32LE(facts.items.histograms, HISTOGRAMS);
  header.writeUInt32LE(facts.items.exemplars, EXEMPLARS);
  header.writeUInt32LE(facts.plainBytes, PLAIN_LENGTH);
  header.writeDoubleLE(facts.newestTimestampMs, NEWEST);
  header.writeDoubleLE(facts.appendedAt, APPENDED);
  owner.copy(header, OWNER);
  header.writeUInt32LE(crc32c(header), HEADER_SUM);
  return header;
}

/**
 * How long the header says it is.
 *
 * @param bytes at least MIN_HEADER_BYTES
 * @returns null if it is none of this segment
 */
export function headerBytesOf(bytes: Buffer, start: Buffer): number | null {
  if (start.compare(bytes, 0, start.length) !== 0) return null;
  const length = bytes.readUInt32LE(HEADER_LENGTH);
  return length >= MIN_HEADER_BYTES && length <= MAX_HEADER_BYTES ? length : null;
}

/**
 * @param header exactly as long as headerBytesOf() tells; what is returned refers to it
 * @returns null if it is damaged, or of a layout that this version does not know
 */
export function decodeHeader(header: Buffer): RecordHeader | null {
  if (sumOfHeader(header) !== header.readUInt32LE(HEADER_SUM)) return null;
  const codec = header[CODEC];
  if (header[VERSION] !== LAYOUT_1 || header[MESSAGE] !== REMOTE_WRITE_1) return null;
  if (codec !== SNAPPY_ELEMENTS && codec !== SUMMARY) return null;
  return {
    codec,
    headerBytes: header.length,
    payloadBytes: header.readUInt32LE(PAYLOAD_LENGTH),
    payloadSum: header.readUInt32LE(PAYLOAD_SUM),
    replica: header.readUInt32LE(REPLICA),
    series: header.readUInt32LE(SERIES),
    items: {
      samples: header.readUInt32LE(SAMPLES),
      histograms: header.readUInt32LE(HISTOGRAMS),
      exemplars: header.readUInt32LE(EXEMPLARS),
    },
    plainBytes: header.readUInt32LE(PLAIN_LENGTH),
    newestTimestampMs: header.readDoubleLE(NEWEST),
    appendedAt: header.readDoubleLE(APPENDED),
    owner: header.subarray(OWNER),
  };
}

/** Of a copy: the bytes may be shared with a reader's window, which is read again. */
function sumOfHeader(header: Buffer): number {
  const copy = Buffer.from(header);
  copy.writeUInt32LE(0, HEADER_SUM);
  return crc32c(copy);
}
