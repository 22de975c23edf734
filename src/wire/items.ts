/**
 * The fields of a plain remote write 1.0 series, one by one, with the timestamps of its items.
 *
 * The request has been checked before: it is walked here, not judged.
 *
 * @see proto/remote_write_v1.proto
 */
import { type Cursor, LENGTH_DELIMITED, VARINT } from "./cursor.ts";
import type { ItemCounts } from "./parcel.ts";

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

/** What a field holds. */
export type ItemKind = keyof ItemCounts;

export class SeriesFields {
  readonly #cursor: Cursor;
  /** Of the field that was passed over last; null for one that is no item. */
  kind: ItemKind | null = null;
  /** Of the item: exact up to 2^53; any negative one is -1. */
  timestampMs = 0;

  constructor(cursor: Cursor) {
    this.#cursor = cursor;
  }

  /** Passes over the field at the cursor, which is inside of a series. */
  next(): void {
    const tag = this.#cursor.readTag();
    switch (tag) {
      case SAMPLES:
        this.#passItem("samples", TIMESTAMP_OF_SAMPLE);
        return;
      case EXEMPLARS:
        this.#passItem("exemplars", TIMESTAMP_OF_EXEMPLAR);
        return;
      case HISTOGRAMS:
        this.#passItem("histograms", TIMESTAMP_OF_HISTOGRAM);
        return;
      default:
        this.kind = null;
        this.#cursor.skipValue(tag);
    }
  }

  /** The last of several timestamps is valid, none is 0. */
  #passItem(kind: ItemKind, timestampTag: number): void {
    const cursor = this.#cursor;
    const end = cursor.readEnd();
    this.kind = kind;
    this.timestampMs = 0;
    while (cursor.pos < end) {
      const tag = cursor.readTag();
      const start = cursor.pos;
      cursor.skipValue(tag);
      if (tag === timestampTag) this.timestampMs = int64In(cursor.bytes, start, cursor.pos);
    }
  }
}

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
