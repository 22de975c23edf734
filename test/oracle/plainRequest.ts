/** Writes plain remote write 1.0 requests by copying ranges of the one that came in. */
import { LENGTH_DELIMITED } from "../../src/wire/cursor.ts";
import type { SeriesScan } from "../../src/wire/scan.ts";
import type { Splice } from "../../src/wire/splice.ts";

const TIMESERIES = (1 << 3) | LENGTH_DELIMITED;
const FIRST_CAPACITY = 4 * 1024;

/** Bytes that a varint of `value` takes. */
function varintBytes(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 128)) length += 1;
  return length;
}

/** Writes a varint and answers where it ends. */
function writeVarint(target: Uint8Array, at: number, value: number): number {
  let pos = at;
  let rest = value;
  while (rest >= 0x80) {
    target[pos++] = (rest & 0x7f) | 0x80;
    rest = Math.floor(rest / 128);
  }
  target[pos++] = rest;
  return pos;
}

/** Length of a series' message with splices made, without tag and length. */
export function splicedBytes(series: SeriesScan, splices: readonly Splice[]): number {
  let bytes = series.end - series.start;
  for (const { keep, resume, inserted } of splices) bytes += inserted.length - (resume - keep);
  return bytes;
}

/** Length of a whole series field of a request, for a message of `messageBytes`. */
export function seriesFieldBytes(messageBytes: number): number {
  return 1 + varintBytes(messageBytes) + messageBytes;
}

/** A plain request under construction. */
export class PlainRequest {
  #bytes = new Uint8Array(FIRST_CAPACITY);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  clear(): void {
    this.#length = 0;
  }

  /** What was written since clear(); valid until the next change. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  appendSeries(series: SeriesScan, splices: readonly Splice[]): void {
    const messageBytes = splicedBytes(series, splices);
    this.#reserve(seriesFieldBytes(messageBytes));
    this.#bytes[this.#length] = TIMESERIES;
    this.#length = writeVarint(this.#bytes, this.#length + 1, messageBytes);
    let from = series.start;
    for (const { keep, resume, inserted } of splices) {
      this.#copy(series.bytes, from, series.start + keep);
      this.#copy(inserted, 0, inserted.length);
      from = series.start + resume;
    }
    this.#copy(series.bytes, from, series.end);
  }

  /** Adds a whole top-level field, tag included, e.g. a metadata entry. */
  appendField(bytes: Uint8Array, start: number, end: number): void {
    this.#reserve(end - start);
    this.#copy(bytes, start, end);
  }

  #copy(from: Uint8Array, start: number, end: number): void {
    this.#bytes.set(from.subarray(start, end), this.#length);
    this.#length += end - start;
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    grown.set(this.view());
    this.#bytes = grown;
  }
}
