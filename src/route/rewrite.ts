/**
 * Labels that rules have changed, as bytes again.
 *
 * A label that no rule changed keeps the bytes that it came with, fields that this version does not know included.
 */
import { type LabelSpans, SPAN_STRIDE } from "../hash/labelOrder.ts";
import type { Label } from "../relabel/rules.ts";
import { mostLabelFieldBytes, writeLabelField } from "../wire/labelField.ts";
import { type Splice, spliced } from "../wire/splice.ts";

export const FIELD_STRIDE = 2;

/** What takeNumbers() hands out: memory of its own for each array would cost more than all that is done with it. */
let numbers = new Int32Array(16_384);
let numbersTaken = 0;

/** The labels of a series and where their fields are. */
export interface LabelFields extends LabelSpans {
  /** Where the message starts in `bytes`. */
  readonly start: number;
  /** For label i, from i * FIELD_STRIDE: start of its field, tag included, and the field's end. */
  readonly fields: Int32Array;
}

/** Label fields, one behind another, in a buffer of their own. */
export class RewrittenLabels implements LabelFields {
  readonly bytes: Uint8Array;
  readonly start = 0;
  readonly count: number;
  readonly labelsFound: number;
  readonly restIsText = true;
  readonly spans: Int32Array;
  readonly fields: Int32Array;
  /** By label: the place of the same label among those that came in; -1 for one that did not come. */
  readonly sources: readonly number[];

  /**
   * @param series as it came
   * @param came   its labels, in the order of their fields
   * @param now    the labels that it has now, in the order in which they are to be written
   */
  constructor(series: LabelFields, came: readonly Label[], now: readonly Label[]) {
    this.count = this.labelsFound = now.length;
    this.spans = takeNumbers(now.length * SPAN_STRIDE);
    this.fields = takeNumbers(now.length * FIELD_STRIDE);
    const sources = sourcesOf(came, now);
    this.sources = sources;
    // All is written to one buffer: an array for each label would cost several times more.
    const buffer = Buffer.allocUnsafe(mostBytes(series, sources, now));
    let end = 0;
    now.forEach((label, index) => {
      const source = sources[index] ?? -1;
      this.fields[index * FIELD_STRIDE] = end;
      end =
        source < 0 ? this.#encode(index, label, buffer, end) : this.#keep(index, series, source, buffer, end);
      this.fields[index * FIELD_STRIDE + 1] = end;
    });
    this.bytes = buffer.subarray(0, end);
  }

  /** Copies a field that came, and answers where the copy ends. */
  #keep(
    index: number,
    { bytes, spans, fields }: LabelFields,
    source: number,
    to: Buffer,
    at: number,
  ): number {
    const start = fields[source * FIELD_STRIDE] ?? 0;
    const end = fields[source * FIELD_STRIDE + 1] ?? 0;
    for (let part = 0; part < SPAN_STRIDE; part++) {
      this.spans[index * SPAN_STRIDE + part] = (spans[source * SPAN_STRIDE + part] ?? 0) - start + at;
    }
    // Fields are short: views for set() would cost more than this loop.
    for (let i = start; i < end; i++) to[at + i - start] = bytes[i] ?? 0;
    return at + end - start;
  }

  /** Writes a field, and answers where it ends. */
  #encode(index: number, [name, value]: Label, to: Buffer, at: number): number {
    const { nameStart, nameEnd, valueStart, end } = writeLabelField(to, at, name, value);
    const span = index * SPAN_STRIDE;
    this.spans[span] = nameStart;
    this.spans[span + 1] = nameEnd;
    this.spans[span + 2] = valueStart;
    this.spans[span + 3] = end;
    return end;
  }
}

/** For each label, its place among those that came in; -1 for one that did not come. */
function sourcesOf(came: readonly Label[], now: readonly Label[]): number[] {
  let next = 0;
  return now.map(([name, value]) => {
    // Both are mostly in the order of their names, and rules have put in or taken out a few: a map would cost more.
    const source = placeOf(name, came, next);
    if (source >= 0) next = source + 1;
    return source >= 0 && came[source]?.[1] === value ? source : -1;
  });
}

/** The place of the label with this name, looked for from a likely one on; -1 when there is none. */
function placeOf(name: string, labels: readonly Label[], likely: number): number {
  for (let place = likely; place < labels.length; place++) if (labels[place]?.[0] === name) return place;
  for (let place = 0; place < likely; place++) if (labels[place]?.[0] === name) return place;
  return -1;
}

/** An array of numbers that is in use nowhere else; not zeroed. */
function takeNumbers(length: number): Int32Array {
  if (numbersTaken + length > numbers.length) {
    numbers = new Int32Array(Math.max(numbers.length, length));
    numbersTaken = 0;
  }
  numbersTaken += length;
  return numbers.subarray(numbersTaken - length, numbersTaken);
}

/** Room for the fields that are kept and for those that are written. */
function mostBytes({ fields }: LabelFields, sources: readonly number[], now: readonly Label[]): number {
  return now.reduce((sum, label, index) => {
    const source = sources[index] ?? -1;
    if (source < 0) return sum + mostLabelFieldBytes(label[0], label[1]);
    return sum + (fields[source * FIELD_STRIDE + 1] ?? 0) - (fields[source * FIELD_STRIDE] ?? 0);
  }, 0);
}

/** A series as it came: its message, or the part of it that begins with the labels and holds all of them. */
export interface IncomingSeries extends LabelFields {
  readonly end: number;
}

/**
 * What gives a series other labels in place of its own: as few bytes as labels allow, since it is kept for every series.
 *
 * @param change made in the new labels besides, at a border between their fields; a NO_SPLICE for none
 * @returns splices in order, with at least MERGED_GAP bytes between any two; they refer to the new labels' bytes
 */
export function replaceLabels(
  series: IncomingSeries,
  labels: RewrittenLabels,
  change: Splice,
): readonly Splice[] {
  const { start, end } = series;
  const labelsEnd = endOfRun(series);
  if (labelsEnd < 0) {
    const inserted = Buffer.concat([spliced(labels.bytes, change), ...besidesLabels(series)]);
    return [{ keep: 0, resume: end - start, inserted }];
  }
  const script = new SpliceScript(series);
  let isChanged = false;
  for (let label = 0; label < labels.count; label++) {
    const at = labels.fields[label * FIELD_STRIDE] ?? 0;
    if (!isChanged && at >= change.keep) {
      script.insert(change.inserted);
      isChanged = true;
    }
    if (at >= change.keep && at < change.resume) continue;
    const source = labels.sources[label] ?? -1;
    if (source < 0 || !script.keep(source)) {
      script.insert(labels.bytes.subarray(at, labels.fields[label * FIELD_STRIDE + 1]));
    }
  }
  if (!isChanged) script.insert(change.inserted);
  return script.finish(labelsEnd);
}

/** A further splice costs the table as much as bytes that are inserted although they came. */
export const MERGED_GAP = 16;

/** Makes splices of what is kept and what is put in, told in the order of the new message. */
class SpliceScript {
  readonly #series: LabelFields;
  readonly #splices: Splice[] = [];
  #pending: Uint8Array[] = [];
  /** Up to where the message that came in is used up. */
  #passed: number;

  constructor(series: LabelFields) {
    this.#series = series;
    this.#passed = series.start;
  }

  insert(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#pending.push(bytes);
  }

  /** Keeps a label where it is; false when the message is used up beyond it. */
  keep(label: number): boolean {
    const { fields } = this.#series;
    const at = fields[label * FIELD_STRIDE] ?? 0;
    if (at < this.#passed) return false;
    this.#close(at);
    this.#passed = fields[label * FIELD_STRIDE + 1] ?? 0;
    return true;
  }

  finish(end: number): readonly Splice[] {
    this.#close(end);
    return this.#splices;
  }

  /** Ends what is changed before `to`, where the message goes on as it came. */
  #close(to: number): void {
    if (this.#pending.length === 0 && to === this.#passed) return;
    const { bytes, start } = this.#series;
    const before = bytes.subarray(this.#passed, to);
    const [only] = this.#pending;
    const after = only !== undefined && this.#pending.length === 1 ? only : Buffer.concat(this.#pending);
    const { keep, resume, inserted } = difference(before, after);
    const shift = this.#passed - start;
    this.#pending = [];
    this.#add({ keep: keep + shift, resume: resume + shift, inserted });
  }

  #add(splice: Splice): void {
    const last = this.#splices.at(-1);
    if (last === undefined || splice.keep - last.resume >= MERGED_GAP) {
      this.#splices.push(splice);
      return;
    }
    const { bytes, start } = this.#series;
    const between = bytes.subarray(start + last.resume, start + splice.keep);
    const inserted = Buffer.concat([last.inserted, between, splice.inserted]);
    this.#splices[this.#splices.length - 1] = { keep: last.keep, resume: splice.resume, inserted };
  }
}

/** Where the labels end that the message begins with, -1 when they are not all of them. */
function endOfRun({ count, fields, start }: LabelFields): number {
  let end = start;
  for (let label = 0; label < count; label++) {
    if (fields[label * FIELD_STRIDE] !== end) return -1;
    end = fields[label * FIELD_STRIDE + 1] ?? 0;
  }
  return end;
}

function besidesLabels({ bytes, count, fields, start, end }: IncomingSeries): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let from = start;
  for (let label = 0; label < count; label++) {
    parts.push(bytes.subarray(from, fields[label * FIELD_STRIDE]));
    from = fields[label * FIELD_STRIDE + 1] ?? 0;
  }
  parts.push(bytes.subarray(from, end));
  return parts;
}

/** The least that makes `after` of `before`. */
function difference(before: Uint8Array, after: Uint8Array): Splice {
  const shorter = Math.min(before.length, after.length);
  let front = 0;
  while (front < shorter && before[front] === after[front]) front += 1;
  let back = 0;
  while (back < shorter - front && before[before.length - 1 - back] === after[after.length - 1 - back]) {
    back += 1;
  }
  return { keep: front, resume: before.length - back, inserted: after.subarray(front, after.length - back) };
}
