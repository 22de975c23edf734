/**
 * Writes remote write 1.0 requests by copying ranges of the one that came in.
 *
 * What is not edited is the sender's bytes: values, timestamps, histograms, exemplars and fields unknown to this version.
 */
import { LENGTH_DELIMITED } from "./cursor.ts";
import type { SeriesScan } from "./scan.ts";

const TIMESERIES = (1 << 3) | LENGTH_DELIMITED;
const LABELS = (1 << 3) | LENGTH_DELIMITED;
const NAME = (1 << 3) | LENGTH_DELIMITED;
const VALUE = (2 << 3) | LENGTH_DELIMITED;
const FIRST_CAPACITY = 4 * 1024;

/** How a series differs from the one that came in: one label field put in, and at most one taken out. */
export interface LabelEdit {
  /** The label field to put in, tag included, as encodeLabelField() makes it. */
  readonly label: Uint8Array;
  /** Where, in the request's bytes: the start or end of one of the series' fields. */
  readonly insertAt: number;
  /** The field to leave out is bytes[cutStart, cutEnd); both are insertAt when there is none. */
  readonly cutStart: number;
  readonly cutEnd: number;
}

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

/** Encodes one label as a field of a series, tag included. */
export function encodeLabelField(name: Uint8Array, value: Uint8Array): Uint8Array {
  const content = 1 + varintBytes(name.length) + name.length + 1 + varintBytes(value.length) + value.length;
  const field = new Uint8Array(1 + varintBytes(content) + content);
  field[0] = LABELS;
  let pos = writeVarint(field, 1, content);
  field[pos] = NAME;
  pos = writeVarint(field, pos + 1, name.length);
  field.set(name, pos);
  pos += name.length;
  field[pos] = VALUE;
  pos = writeVarint(field, pos + 1, value.length);
  field.set(value, pos);
  return field;
}

/** Encodes a request of one series that has labels and nothing else. */
export function encodeLabelSet(namesAndValues: readonly Uint8Array[]): Uint8Array {
  const fields: Uint8Array[] = [];
  for (let i = 0; i + 1 < namesAndValues.length; i += 2) {
    const [name, value] = namesAndValues.slice(i, i + 2);
    if (name !== undefined && value !== undefined) fields.push(encodeLabelField(name, value));
  }
  const content = Buffer.concat(fields);
  const request = new Uint8Array(1 + varintBytes(content.length) + content.length);
  request[0] = TIMESERIES;
  request.set(content, writeVarint(request, 1, content.length));
  return request;
}

/** Length of a series' message after an edit, without tag and length. */
export function editedBytes(series: SeriesScan, edit: LabelEdit | null): number {
  const length = series.end - series.start;
  return edit === null ? length : length + edit.label.length - (edit.cutEnd - edit.cutStart);
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

  /** Adds a series; `edit` null copies it as it is. */
  appendSeries(series: SeriesScan, edit: LabelEdit | null): void {
    const messageBytes = editedBytes(series, edit);
    this.#reserve(seriesFieldBytes(messageBytes));
    this.#bytes[this.#length] = TIMESERIES;
    this.#length = writeVarint(this.#bytes, this.#length + 1, messageBytes);
    if (edit === null) {
      this.#copy(series.bytes, series.start, series.end);
      return;
    }
    const cutFirst = edit.cutStart < edit.insertAt;
    this.#copy(series.bytes, series.start, cutFirst ? edit.cutStart : edit.insertAt);
    if (cutFirst) this.#copy(series.bytes, edit.cutEnd, edit.insertAt);
    this.#copy(edit.label, 0, edit.label.length);
    if (!cutFirst) this.#copy(series.bytes, edit.insertAt, edit.cutStart);
    this.#copy(series.bytes, cutFirst ? edit.insertAt : edit.cutEnd, series.end);
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
