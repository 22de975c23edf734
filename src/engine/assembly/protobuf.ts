/**
 * Walks protobuf messages to see whether they are well-formed, down to their last field.
 *
 * The verdict is that of src/wire (cursor.ts and shapes.ts), which says to a person what is wrong when this says no; tests
 * hold the two to each other. Here nothing is described and nothing kept.
 */

export const VARINT: u32 = 0;
export const FIXED64: u32 = 1;
export const LENGTH_DELIMITED: u32 = 2;
export const FIXED32: u32 = 5;

const MAX_VARINT_BYTES = 10;
/** Tags and lengths are of 32 bits, in up to five bytes. */
const MAX_PREFIX_BYTES = 5;
/** The smallest tag: field number 1, wire type 0. */
const MIN_TAG: u32 = 8;

// What a known field may hold. Repeated scalars come packed or one by one.
const UNKNOWN: u8 = 0;
const A_VARINT: u8 = 1;
const A_DOUBLE: u8 = 2;
const VARINTS: u8 = 3;
const DOUBLES: u8 = 4;
// 5: text, which is what no other kind is.
const LABELS: u8 = 6;
const SPANS: u8 = 7;
const TIMESTAMP: u8 = 8;

// Per message the kinds of its fields by number, from 0 on. Field numbers as in proto/remote_write_v1.proto.
const SHAPE_FIELDS: u32 = 17;
const LABEL: usize = memory.data<u8>([0, 5, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
const BUCKET_SPAN: usize = memory.data<u8>([0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
export const SAMPLE: usize = memory.data<u8>([0, 2, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
export const EXEMPLAR: usize = memory.data<u8>([0, 6, 2, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
export const HISTOGRAM: usize = memory.data<u8>([0, 1, 2, 2, 1, 2, 1, 2, 7, 3, 4, 7, 3, 4, 1, 8, 4]);

/** Where the last read or skip ended, when it answered true. */
export let position: usize = 0;
/** The tag or length that was read last. */
export let prefix: u32 = 0;
/** Whether a text of other than ASCII was passed over; the caller resets it. */
export let sawOtherThanAscii: bool = false;

/** The newest and the oldest timestamp that were passed over; the caller resets them. */
export let newestTimestamp: i64 = i64.MIN_VALUE;
export let oldestTimestamp: i64 = i64.MAX_VALUE;
/** Whether an item's message that was passed over had a timestamp; the caller resets it. */
export let sawTimestamp: bool = false;

export function resetTimestamps(): void {
  newestTimestamp = i64.MIN_VALUE;
  oldestTimestamp = i64.MAX_VALUE;
}

export function noteTimestamp(timestamp: i64): void {
  if (timestamp > newestTimestamp) newestTimestamp = timestamp;
  if (timestamp < oldestTimestamp) oldestTimestamp = timestamp;
}

export function resetSawTimestamp(): void {
  sawTimestamp = false;
}

export function setPosition(at: usize): void {
  position = at;
}

export function resetText(): void {
  sawOtherThanAscii = false;
}

/** Reads a tag or length at `position`, before `end`. */
export function readPrefix(end: usize): bool {
  let value: u64 = 0;
  for (let i = 0; i < MAX_PREFIX_BYTES; i++) {
    const at = position + i;
    if (at >= end) return false;
    const byte = load<u8>(at);
    value |= (<u64>(byte & 0x7f)) << (7 * i);
    if (byte < 0x80) {
      if (value > <u64>u32.MAX_VALUE) return false;
      prefix = <u32>value;
      position = at + 1;
      return true;
    }
  }
  return false;
}

export function readTag(end: usize): bool {
  return readPrefix(end) && prefix >= MIN_TAG;
}

/** Reads a length; `prefix` bytes from `position` on are before `end` then. */
export function readLength(end: usize): bool {
  return readPrefix(end) && <usize>prefix <= end - position;
}

/** Passes over the value of a field. */
export function skipValue(wireType: u32, end: usize): bool {
  if (wireType === VARINT) return skipVarint(end);
  if (wireType === FIXED64) return skipBytes(8, end);
  if (wireType === FIXED32) return skipBytes(4, end);
  if (wireType !== LENGTH_DELIMITED) return false; // groups, and types that do not exist
  return readLength(end) && skipBytes(prefix, end);
}

function skipBytes(length: usize, end: usize): bool {
  if (length > end - position) return false;
  position += length;
  return true;
}

/** Passes over a varint of up to 64 bits. */
function skipVarint(end: usize): bool {
  for (let i = 0; i < MAX_VARINT_BYTES; i++) {
    const at = position + i;
    if (at >= end) return false;
    const byte = load<u8>(at);
    if (i === MAX_VARINT_BYTES - 1 && byte > 1) return false;
    if (byte < 0x80) {
      position = at + 1;
      return true;
    }
  }
  return false;
}

/** Passes over a varint that is a timestamp. */
function passTimestamp(end: usize): bool {
  const start = position;
  if (!skipVarint(end)) return false;
  noteTimestamp(timestampAt(start, position));
  sawTimestamp = true;
  return true;
}

/** The number that the varint [start, end) means. */
export function timestampAt(start: usize, end: usize): i64 {
  let timestamp: u64 = 0;
  for (let at = start; at < end; at++) {
    const sevens = (<u64>load<u8>(at)) & 0x7f;
    timestamp |= sevens << (7 * (at - start));
  }
  return <i64>timestamp;
}

/** Passes over the message at [position, end). */
export function checkMessage(end: usize, shape: usize): bool {
  while (position < end) {
    if (!readTag(end)) return false;
    const field = prefix >> 3;
    const kind = field < SHAPE_FIELDS ? load<u8>(shape + field) : UNKNOWN;
    if (!checkField(kind, prefix & 7, end)) return false;
  }
  return true;
}

function checkField(kind: u8, wireType: u32, end: usize): bool {
  if (kind === UNKNOWN) return skipValue(wireType, end);
  if (kind === TIMESTAMP) return wireType === VARINT && passTimestamp(end);
  if (kind === A_VARINT || kind === VARINTS) {
    if (wireType === VARINT) return skipVarint(end);
    return kind === VARINTS && wireType === LENGTH_DELIMITED && checkPacked(VARINT, end);
  }
  if (kind === A_DOUBLE || kind === DOUBLES) {
    if (wireType === FIXED64) return skipBytes(8, end);
    return kind === DOUBLES && wireType === LENGTH_DELIMITED && checkPacked(FIXED64, end);
  }
  if (wireType !== LENGTH_DELIMITED || !readLength(end)) return false;
  const fieldEnd = position + prefix;
  if (kind === LABELS) return checkMessage(fieldEnd, LABEL);
  if (kind === SPANS) return checkMessage(fieldEnd, BUCKET_SPAN);
  passText(fieldEnd);
  return true;
}

function checkPacked(wireType: u32, end: usize): bool {
  if (!readLength(end)) return false;
  const packedEnd = position + prefix;
  while (position < packedEnd) {
    if (!skipValue(wireType, packedEnd)) return false;
  }
  return true;
}

/** UTF-8 is looked at by TypeScript; here only whether there is anything to look at. */
function passText(end: usize): void {
  let bits: u8 = 0;
  for (let at = position; at < end; at++) bits |= load<u8>(at);
  if (bits >= 0x80) sawOtherThanAscii = true;
  position = end;
}
