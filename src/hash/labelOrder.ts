/**
 * Label sets as byte ranges, and their order by bytes.
 *
 * Labels are never turned into strings here: invalid UTF-8 would merge, and JavaScript's order of strings is that of
 * UTF-16, not of bytes.
 */

/** Numbers per label in LabelSpans.spans. */
export const SPAN_STRIDE = 4;

/** Labels as ranges of one buffer, in the order they came. */
export interface LabelSpans {
  readonly bytes: Uint8Array;
  readonly count: number;
  /** For label i, from i * SPAN_STRIDE: start and end of its name, start and end of its value. */
  readonly spans: Int32Array;
}

/** Label spans over a buffer of their own, from name, value, name, value and so on. */
export function labelSpans(namesAndValues: readonly Uint8Array[]): LabelSpans {
  const spans = new Int32Array(namesAndValues.length * 2);
  let length = 0;
  namesAndValues.forEach((part, index) => {
    spans[index * 2] = length;
    length += part.length;
    spans[index * 2 + 1] = length;
  });
  const bytes = new Uint8Array(length);
  namesAndValues.forEach((part, index) => {
    bytes.set(part, spans[index * 2]);
  });
  return { bytes, count: namesAndValues.length / 2, spans };
}

/** Where the first of the names and values begins and the last ends; `first` is above `last` when there are none. */
export function extentOf({ bytes, spans, count }: LabelSpans): {
  readonly first: number;
  readonly last: number;
} {
  let first = bytes.length;
  let last = 0;
  for (let at = 0; at < count * SPAN_STRIDE; at++) {
    const place = spans[at] ?? 0;
    if (place < first) first = place;
    if (place > last) last = place;
  }
  return { first, last };
}

/** Order of two ranges of the same buffer: negative, 0 or positive; a prefix comes first. */
export function compareRanges(
  bytes: Uint8Array,
  aStart: number,
  aEnd: number,
  bStart: number,
  bEnd: number,
): number {
  const aLength = aEnd - aStart;
  const bLength = bEnd - bStart;
  const shared = Math.min(aLength, bLength);
  for (let i = 0; i < shared; i++) {
    const difference = (bytes[aStart + i] ?? 0) - (bytes[bStart + i] ?? 0);
    if (difference !== 0) return difference;
  }
  return aLength - bLength;
}

/** Order of range [start, end) and a whole array, as compareRanges. */
export function compareRangeTo(bytes: Uint8Array, start: number, end: number, other: Uint8Array): number {
  const shared = Math.min(end - start, other.length);
  for (let i = 0; i < shared; i++) {
    const difference = (bytes[start + i] ?? 0) - (other[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return end - start - other.length;
}

/** Whether range [start, end) holds exactly the bytes of `other`. */
export function rangeEquals(bytes: Uint8Array, start: number, end: number, other: Uint8Array): boolean {
  return end - start === other.length && compareRangeTo(bytes, start, end, other) === 0;
}

/** Whether every name is greater than the one before it: sorted, and none occurs twice. Senders nearly always do this. */
export function namesIncrease(labels: LabelSpans): boolean {
  const { bytes, spans, count } = labels;
  for (let at = SPAN_STRIDE; at < count * SPAN_STRIDE; at += SPAN_STRIDE) {
    const previous = at - SPAN_STRIDE;
    const order = compareRanges(
      bytes,
      spans[previous] ?? 0,
      spans[previous + 1] ?? 0,
      spans[at] ?? 0,
      spans[at + 1] ?? 0,
    );
    if (order >= 0) return false;
  }
  return true;
}

/**
 * A reusable list of ranges that is kept in byte order as ranges are added: binary insertion, so that hostile input of
 * n ranges costs n log n comparisons, and sorted input one each. Equal ranges stay in the order they came.
 */
export class SortedRanges {
  #length = 0;
  #starts = new Int32Array(64);
  #ends = new Int32Array(64);
  /** What the caller wants to find again at a range, e.g. the index of its label. */
  #tags = new Int32Array(64);

  get length(): number {
    return this.#length;
  }

  clear(): void {
    this.#length = 0;
  }

  start(index: number): number {
    return this.#starts[index] ?? 0;
  }

  end(index: number): number {
    return this.#ends[index] ?? 0;
  }

  tag(index: number): number {
    return this.#tags[index] ?? 0;
  }

  /** Adds [start, end) of `bytes`; all ranges between two clear() calls are of the same buffer. */
  add(bytes: Uint8Array, start: number, end: number, tag: number): void {
    if (this.#length === this.#starts.length) this.#grow();
    const at = this.#placeFor(bytes, start, end);
    if (at < this.#length) {
      this.#starts.copyWithin(at + 1, at, this.#length);
      this.#ends.copyWithin(at + 1, at, this.#length);
      this.#tags.copyWithin(at + 1, at, this.#length);
    }
    this.#starts[at] = start;
    this.#ends[at] = end;
    this.#tags[at] = tag;
    this.#length += 1;
  }

  #placeFor(bytes: Uint8Array, start: number, end: number): number {
    const last = this.#length - 1;
    if (last < 0 || compareRanges(bytes, this.start(last), this.end(last), start, end) <= 0)
      return this.#length;
    let low = 0;
    let high = last;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareRanges(bytes, this.start(middle), this.end(middle), start, end) <= 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #grow(): void {
    const double = (old: Int32Array): Int32Array<ArrayBuffer> => {
      const grown = new Int32Array(old.length * 2);
      grown.set(old);
      return grown;
    };
    this.#starts = double(this.#starts);
    this.#ends = double(this.#ends);
    this.#tags = double(this.#tags);
  }
}
