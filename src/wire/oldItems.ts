/**
 * Leaves the items out of a plain remote write 1.0 request that are older than a given time. What stays, stays bit for bit.
 *
 * The request has been checked before: it is walked here, not judged.
 *
 * @see proto/remote_write_v1.proto
 */
import { Cursor, LENGTH_DELIMITED, VARINT } from "./cursor.ts";
import { seriesRequest } from "./labelField.ts";
import type { ItemCounts } from "./parcel.ts";

// message WriteRequest { repeated TimeSeries timeseries = 1; ... }
const TIMESERIES = (1 << 3) | LENGTH_DELIMITED;
// message TimeSeries { repeated Label labels = 1; Sample samples = 2; Exemplar exemplars = 3; Histogram histograms = 4; }
const SAMPLES = (2 << 3) | LENGTH_DELIMITED;
const EXEMPLARS = (3 << 3) | LENGTH_DELIMITED;
const HISTOGRAMS = (4 << 3) | LENGTH_DELIMITED;
// message Sample { ...; int64 timestamp = 2; }, message Exemplar { ...; int64 timestamp = 3; }, message Histogram { ...; int64 timestamp = 15; }
const TIMESTAMP_OF_SAMPLE = (2 << 3) | VARINT;
const TIMESTAMP_OF_EXEMPLAR = (3 << 3) | VARINT;
const TIMESTAMP_OF_HISTOGRAM = (15 << 3) | VARINT;
/** The tenth byte of a varint holds the sign of an int64, the only bit that is left for it. */
const SIGN_BYTE = 9;

/** What is left of a request, and what that holds. */
export interface YoungRequest {
  readonly plain: Uint8Array;
  readonly series: number;
  readonly items: ItemCounts;
}

/**
 * Leaves out all items older than `oldestMs`, and series of which no item is left then.
 *
 * @param plain not changed
 * @returns null if no item is older
 */
export function withoutOldItems(plain: Uint8Array, oldestMs: number): YoungRequest | null {
  const cursor = new Cursor(plain);
  const walk = new SeriesWalk(cursor, oldestMs);
  const kept: Uint8Array[] = [];
  let series = 0;
  while (cursor.pos < plain.length) {
    const start = cursor.pos;
    if (cursor.readTag() !== TIMESERIES) throw new Error(`bug: no series at byte ${start} of a parcel`);
    const young = walk.series(start, cursor.readEnd());
    if (young === null) continue;
    kept.push(young);
    series += 1;
  }
  if (walk.old === 0) return null;
  const { samples, histograms, exemplars } = walk;
  return { plain: Buffer.concat(kept), series, items: { samples, histograms, exemplars } };
}

class SeriesWalk {
  readonly #cursor: Cursor;
  readonly #oldestMs: number;
  old = 0;
  /** Those that are left. */
  samples = 0;
  histograms = 0;
  exemplars = 0;

  constructor(cursor: Cursor, oldestMs: number) {
    this.#cursor = cursor;
    this.#oldestMs = oldestMs;
  }

  /** The field of a series, [start, end), without its old items; null if no other items are in it. */
  series(start: number, end: number): Uint8Array | null {
    const cursor = this.#cursor;
    const oldBefore = this.old;
    const pieces: Uint8Array[] = [];
    let young = 0;
    let keptFrom = cursor.pos;
    while (cursor.pos < end) {
      const fieldAt = cursor.pos;
      const what = this.#skipField();
      if (what === "young") young += 1;
      if (what !== "old") continue;
      pieces.push(cursor.bytes.subarray(keptFrom, fieldAt));
      keptFrom = cursor.pos;
    }
    if (this.old === oldBefore) return cursor.bytes.subarray(start, end);
    if (young === 0) return null;
    pieces.push(cursor.bytes.subarray(keptFrom, end));
    return seriesRequest(Buffer.concat(pieces));
  }

  /** Passes over a field of a series, and counts the item in it. */
  #skipField(): "young" | "old" | "no_item" {
    const tag = this.#cursor.readTag();
    switch (tag) {
      case SAMPLES:
        if (!this.#isYoung(TIMESTAMP_OF_SAMPLE)) return "old";
        this.samples += 1;
        return "young";
      case EXEMPLARS:
        if (!this.#isYoung(TIMESTAMP_OF_EXEMPLAR)) return "old";
        this.exemplars += 1;
        return "young";
      case HISTOGRAMS:
        if (!this.#isYoung(TIMESTAMP_OF_HISTOGRAM)) return "old";
        this.histograms += 1;
        return "young";
      default:
        this.#cursor.skipValue(tag);
        return "no_item";
    }
  }

  /** Passes over an item's message; counts it if it is old. The last of several timestamps is valid, none is 0. */
  #isYoung(timestampTag: number): boolean {
    const cursor = this.#cursor;
    const end = cursor.readEnd();
    let timestampMs = 0;
    while (cursor.pos < end) {
      const tag = cursor.readTag();
      const start = cursor.pos;
      cursor.skipValue(tag);
      if (tag === timestampTag) timestampMs = int64In(cursor.bytes, start, cursor.pos);
    }
    if (timestampMs >= this.#oldestMs) return true;
    this.old += 1;
    return false;
  }
}

/** The value of a varint, exact up to 2^53; any negative one is -1. */
function int64In(bytes: Uint8Array, start: number, end: number): number {
  if (end - start > SIGN_BYTE && bytes[start + SIGN_BYTE] === 1) return -1;
  let value = 0;
  let scale = 1;
  for (let at = start; at < end; at++) {
    value += ((bytes[at] ?? 0) & 0x7f) * scale;
    scale *= 128;
  }
  return value;
}
