/**
 * Labels that rules have changed, as bytes again.
 *
 * A label that no rule changed keeps the bytes that it came with, fields that this version does not know included.
 */
import { type LabelSpans, SPAN_STRIDE } from "../hash/labelOrder.ts";
import type { Label } from "../relabel/rules.ts";
import { labelFieldBytes, writeLabelField } from "../wire/labelField.ts";
import { type Splice, spliced } from "../wire/splice.ts";
import { Chunks } from "./chunks.ts";

export const FIELD_STRIDE = 2;

const numbers = new Chunks((length) => new Int32Array(length));
const memory = new Chunks((length) => new Uint8Array(length));

/** The labels of a series and where their fields are. */
export interface LabelFields extends LabelSpans {
  /** Where the message starts in `bytes`. */
  readonly start: number;
  /** For label i, from i * FIELD_STRIDE: start of its field, tag included, and the field's end. */
  readonly fields: Int32Array;
}

/** Label fields, one behind another, in memory of their own. */
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
    this.spans = numbers.take(now.length * SPAN_STRIDE);
    this.fields = numbers.take(now.length * FIELD_STRIDE);
    this.sources = sourcesOf(came, now);
    this.bytes = memory.take(bytesOf(series, this.sources, now));
    let done = 0;
    let end = 0;
    now.forEach((label, index) => {
      if (index < done) return;
      const run = runFrom(index, this.sources, series);
      end = run === 0 ? this.#encode(index, label, end) : this.#keep(index, run, series, end);
      done = index + Math.max(1, run);
    });
  }

  /** Copies the fields of so many labels, which came one behind another, and answers where the copy ends. */
  #keep(first: number, count: number, { bytes, spans, fields }: LabelFields, at: number): number {
    const source = this.sources[first] ?? 0;
    const start = fields[source * FIELD_STRIDE] ?? 0;
    const end = fields[(source + count) * FIELD_STRIDE - 1] ?? 0;
    const shift = at - start;
    for (let i = 0; i < count * SPAN_STRIDE; i++) {
      this.spans[first * SPAN_STRIDE + i] = (spans[source * SPAN_STRIDE + i] ?? 0) + shift;
    }
    for (let i = 0; i < count * FIELD_STRIDE; i++) {
      this.fields[first * FIELD_STRIDE + i] = (fields[source * FIELD_STRIDE + i] ?? 0) + shift;
    }
    this.bytes.set(bytes.subarray(start, end), at);
    return end + shift;
  }

  /** Writes a field, and answers where it ends. */
  #encode(label: number, [name, value]: Label, at: number): number {
    const { nameStart, nameEnd, valueStart, end } = writeLabelField(this.bytes, at, name, value);
    const span = label * SPAN_STRIDE;
    this.spans[span] = nameStart;
    this.spans[span + 1] = nameEnd;
    this.spans[span + 2] = valueStart;
    this.spans[span + 3] = end;
    this.fields[label * FIELD_STRIDE] = at;
    this.fields[label * FIELD_STRIDE + 1] = end;
    return end;
  }
}

/** How many labels, from one on, came as they are and one behind another: they can be copied in one go. */
function runFrom(label: number, sources: readonly number[], { fields }: LabelFields): number {
  const first = sources[label] ?? -1;
  if (first < 0) return 0;
  let run = 1;
  while (
    sources[label + run] === first + run &&
    fields[(first + run) * FIELD_STRIDE] === fields[(first + run) * FIELD_STRIDE - 1]
  ) {
    run += 1;
  }
  return run;
}

/** For each label, its place among those that came in; -1 for one that did not come. */
function sourcesOf(came: readonly Label[], now: readonly Label[]): number[] {
  let next = 0;
  return now.map((label) => {
    // Both are mostly in the order of their names, and rules have put in or taken out a few: a map would cost more.
    const source = placeOf(label, came, next);
    if (source < 0) return -1;
    next = source + 1;
    return came[source]?.[1] === label[1] ? source : -1;
  });
}

/** The place of the label with this one's name, looked for from a likely one on; -1 when there is none. */
function placeOf(label: Label, labels: readonly Label[], likely: number): number {
  // What rules leave as it is stays the same object.
  if (labels[likely] === label) return likely;
  const [name] = label;
  for (let place = likely; place < labels.length; place++) if (labels[place]?.[0] === name) return place;
  for (let place = 0; place < likely; place++) if (labels[place]?.[0] === name) return place;
  return -1;
}

/** What the fields take that are kept, and those that are written. */
function bytesOf({ fields }: LabelFields, sources: readonly number[], now: readonly Label[]): number {
  let sum = 0;
  now.forEach(([name, value], index) => {
    const at = (sources[index] ?? -1) * FIELD_STRIDE;
    sum += at < 0 ? labelFieldBytes(name, value) : (fields[at + 1] ?? 0) - (fields[at] ?? 0);
  });
  return sum;
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
  const script = new SpliceScript(series, labels.bytes.length + change.inserted.length);
  let isChanged = false;
  for (let label = 0; label < labels.count; label++) {
    const at = labels.fields[label * FIELD_STRIDE] ?? 0;
    if (!isChanged && at >= change.keep) {
      script.insert(change.inserted, 0, change.inserted.length);
      isChanged = true;
    }
    if (at >= change.keep && at < change.resume) continue;
    const source = labels.sources[label] ?? -1;
    if (source < 0 || !script.keep(source)) {
      script.insert(labels.bytes, at, labels.fields[label * FIELD_STRIDE + 1] ?? 0);
    }
  }
  if (!isChanged) script.insert(change.inserted, 0, change.inserted.length);
  return script.finish(labelsEnd);
}

/** A further splice costs the table as much as bytes that are inserted although they came. */
export const MERGED_GAP = 16;

/** Makes splices of what is kept and what is put in, told in the order of the new message. */
class SpliceScript {
  readonly #series: LabelFields;
  readonly #splices: Splice[] = [];
  /** What the splices insert, and from #splicedEnd to #end what is put in before the message goes on. */
  readonly #inserted: Uint8Array;
  #splicedEnd = 0;
  #end = 0;
  /** Up to where the message that came in is used up. */
  #passed: number;

  /** @param mostBytes of the new labels: nothing is inserted that is not theirs */
  constructor(series: LabelFields, mostBytes: number) {
    this.#series = series;
    this.#inserted = memory.take(mostBytes);
    this.#passed = series.start;
  }

  /** Puts in bytes[start, end). */
  insert(bytes: Uint8Array, start: number, end: number): void {
    this.#end = copyRange(bytes, start, end, this.#inserted, this.#end);
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

  /** Ends what is changed before `to`, where the message goes on as it came: with the least that makes the difference. */
  #close(to: number): void {
    const { bytes } = this.#series;
    const inserted = this.#inserted;
    let from = this.#passed;
    let resume = to;
    let at = this.#splicedEnd;
    let end = this.#end;
    if (from === resume && at === end) return;
    for (; from < resume && at < end && bytes[from] === inserted[at]; at++) from += 1;
    for (; from < resume && at < end && bytes[resume - 1] === inserted[end - 1]; end--) resume -= 1;
    this.#add(from, resume, at, end);
  }

  /** Bytes [from, resume) of the message that came in are replaced by [at, end) of what is put in. */
  #add(from: number, resume: number, at: number, end: number): void {
    const { bytes, start } = this.#series;
    const inserted = this.#inserted;
    const last = this.#splices.at(-1);
    const between = last === undefined ? MERGED_GAP : from - start - last.resume;
    if (last === undefined || between >= MERGED_GAP) {
      this.#splices.push({
        keep: from - start,
        resume: resume - start,
        inserted: inserted.subarray(at, end),
      });
      this.#splicedEnd = this.#end = end;
      return;
    }
    // The last splice inserts what lies between them as well, and then what this one does.
    const lastEnd = this.#splicedEnd;
    inserted.copyWithin(lastEnd + between, at, end);
    copyRange(bytes, from - between, from, inserted, lastEnd);
    this.#splicedEnd = this.#end = lastEnd + between + end - at;
    const whole = inserted.subarray(lastEnd - last.inserted.length, this.#end);
    this.#splices[this.#splices.length - 1] = { keep: last.keep, resume: resume - start, inserted: whole };
  }
}

/** Copies bytes[start, end) to a place, and answers where the copy ends. */
function copyRange(bytes: Uint8Array, start: number, end: number, target: Uint8Array, at: number): number {
  // Label fields are short: a view for set() would cost more than this loop.
  for (let i = start; i < end; i++) target[at + i - start] = bytes[i] ?? 0;
  return at + end - start;
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
