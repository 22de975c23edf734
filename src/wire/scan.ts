/**
 * Scans a plain remote write 1.0 request: finds the labels of every series, counts its items, and checks all of it.
 *
 * No objects are built and no value is read into a number: labels are ranges of the request's bytes, and what is behind
 * them is only walked over, so that it can be forwarded bit for bit.
 *
 * @see proto/remote_write_v1.proto
 */
import { Cursor, LENGTH_DELIMITED } from "./cursor.ts";
import { WireError } from "./errors.ts";
import {
  checkMessage,
  EXEMPLAR_SHAPE,
  HISTOGRAM_SHAPE,
  METADATA_SHAPE,
  SAMPLE_SHAPE,
  wrongType,
} from "./shapes.ts";
import { isUtf8Range } from "./utf8.ts";

// message WriteRequest { repeated TimeSeries timeseries = 1; repeated MetricMetadata metadata = 3; }
const TIMESERIES = (1 << 3) | LENGTH_DELIMITED;
const METADATA = (3 << 3) | LENGTH_DELIMITED;
// message TimeSeries { repeated Label labels = 1; Sample samples = 2; Exemplar exemplars = 3; Histogram histograms = 4; }
const LABELS = (1 << 3) | LENGTH_DELIMITED;
const SAMPLES = (2 << 3) | LENGTH_DELIMITED;
const EXEMPLARS = (3 << 3) | LENGTH_DELIMITED;
const HISTOGRAMS = (4 << 3) | LENGTH_DELIMITED;
const LAST_SERIES_FIELD = 4;
// message Label { string name = 1; string value = 2; }
const NAME = (1 << 3) | LENGTH_DELIMITED;
const VALUE = (2 << 3) | LENGTH_DELIMITED;
const LAST_LABEL_FIELD = 2;

// Fields of the 2.0 message, which has neither 1 nor 3: as 1.0 it would look like a request without series.
const V2_SYMBOLS = 4;
const V2_TIMESERIES = 5;

/** Numbers per label in SeriesScan.spans and SeriesScan.fields. */
const SPAN_STRIDE = 4;
const FIELD_STRIDE = 2;

/** What a scan finds of one series. The same object is used for every series: valid until the scan goes on. */
export class SeriesScan {
  /** The whole plain request. */
  readonly bytes: Uint8Array;
  /** The series' message is bytes[start, end), without the tag and length in front of it. */
  start = 0;
  end = 0;
  /** Labels that are in `spans` and `fields`: all of them, up to the limit that the scan was given. */
  count = 0;
  /** Labels that the series has. */
  labelsFound = 0;
  /** For label i, from i * 4: start and end of its name, start and end of its value; in the order they came. */
  readonly spans: Int32Array;
  /** For label i, from i * 2: start of its field, tag included, and the field's end. */
  readonly fields: Int32Array;
  samples = 0;
  histograms = 0;
  exemplars = 0;
  /** Whether all strings outside of `spans` are UTF-8: in exemplars, and names and values that a later one replaced. */
  restIsText = true;

  constructor(bytes: Uint8Array, maxLabels: number) {
    this.bytes = bytes;
    this.spans = new Int32Array(maxLabels * SPAN_STRIDE);
    this.fields = new Int32Array(maxLabels * FIELD_STRIDE);
  }

  /** Samples, histograms and exemplars together. */
  get items(): number {
    return this.samples + this.histograms + this.exemplars;
  }
}

/** What is told of a request while it is scanned. A WireError may still come: act only after scanRequest() returned. */
export interface RequestVisitor {
  series(series: SeriesScan): void;
  /** One metadata entry: its field, tag included, is bytes[start, end); `isText` false when a string in it is no UTF-8. */
  metadata(start: number, end: number, isText: boolean): void;
}

/**
 * Walks a whole request.
 *
 * @param bytes     plain request, decompressed
 * @param maxLabels labels of one series that are recorded; the rest are checked and counted
 * @returns how many top-level fields this version does not know; they belong to no series and are not forwarded
 * @throws {WireError} at the first byte that is wrong
 */
export function scanRequest(bytes: Uint8Array, maxLabels: number, visitor: RequestVisitor): number {
  const steps = scanInSteps(bytes, maxLabels, visitor, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/**
 * scanRequest() in steps, between which others can run: a request of millions of tiny series takes many seconds.
 *
 * @param fieldsPerStep series and metadata entries between two yields at most
 * @param bytesPerStep  bytes between two yields, unless one series is longer
 */
export function* scanInSteps(
  bytes: Uint8Array,
  maxLabels: number,
  visitor: RequestVisitor,
  fieldsPerStep: number,
  bytesPerStep: number,
): Generator<undefined, number, undefined> {
  const cursor = new Cursor(bytes);
  const series = new SeriesScan(bytes, maxLabels);
  let known = 0;
  let unknown = 0;
  let stepFields = 0;
  let stepStart = 0;
  while (cursor.pos < bytes.length) {
    const at = cursor.pos;
    const tag = cursor.readTag();
    if (tag === TIMESERIES) {
      scanSeries(cursor, cursor.readEnd(), series);
      visitor.series(series);
      known += 1;
    } else if (tag === METADATA) {
      const isText = checkMessage(cursor, cursor.readEnd(), METADATA_SHAPE);
      visitor.metadata(at, cursor.pos, isText);
      known += 1;
    } else if (tag >>> 3 === 1 || tag >>> 3 === 3) {
      throw wrongType(tag, at, "the request");
    } else {
      cursor.skipValue(tag); // a newer sender may add fields
      unknown += 1;
      if (known === 0 && cursor.pos === bytes.length) throw noRequest(tag >>> 3, at);
    }
    if (known + unknown - stepFields >= fieldsPerStep || cursor.pos - stepStart >= bytesPerStep) {
      yield;
      stepFields = known + unknown;
      stepStart = cursor.pos;
    }
  }
  return unknown;
}

/** A request that holds only unknown fields would be answered with success and nothing stored. */
function noRequest(field: number, at: number): WireError {
  const isVersion2 = field === V2_SYMBOLS || field === V2_TIMESERIES;
  return new WireError(
    isVersion2 ? "WIRE_VERSION_2" : "WIRE_MESSAGE",
    at,
    `neither series (field 1) nor metadata (field 3) in the request, only fields such as ${field} at byte ${at}` +
      (isVersion2 ? "; it looks like a remote write 2.0 message, want 1.0" : ""),
  );
}

/**
 * Reads one series' message, from where the cursor is up to `end`, or the label fields that it begins with.
 *
 * @throws {WireError} unless it is well-formed
 */
export function scanSeries(cursor: Cursor, end: number, series: SeriesScan): void {
  series.start = cursor.pos;
  series.end = end;
  series.count = 0;
  series.labelsFound = 0;
  series.samples = 0;
  series.histograms = 0;
  series.exemplars = 0;
  series.restIsText = true;
  while (cursor.pos < end) {
    const at = cursor.pos;
    const tag = cursor.readTag();
    if (tag === LABELS) {
      scanLabel(cursor, cursor.readEnd(), at, series);
    } else if (tag === SAMPLES) {
      checkMessage(cursor, cursor.readEnd(), SAMPLE_SHAPE);
      series.samples += 1;
    } else if (tag === EXEMPLARS) {
      if (!checkMessage(cursor, cursor.readEnd(), EXEMPLAR_SHAPE)) series.restIsText = false;
      series.exemplars += 1;
    } else if (tag === HISTOGRAMS) {
      checkMessage(cursor, cursor.readEnd(), HISTOGRAM_SHAPE);
      series.histograms += 1;
    } else if (tag >>> 3 <= LAST_SERIES_FIELD) {
      throw wrongType(tag, at, "a series");
    } else {
      cursor.skipValue(tag); // unknown fields travel along
    }
  }
  cursor.expectEnd(end, "a series");
}

/** Reads a label's ranges. Of a name or value that occurs twice the last one counts, as protobuf has it. */
function scanLabel(cursor: Cursor, end: number, fieldStart: number, series: SeriesScan): void {
  let nameStart = cursor.pos;
  let nameEnd = nameStart;
  let valueStart = nameStart;
  let valueEnd = nameStart;
  while (cursor.pos < end) {
    const at = cursor.pos;
    const tag = cursor.readTag();
    if (tag === NAME) {
      series.restIsText &&= isUtf8Range(cursor.bytes, nameStart, nameEnd);
      nameEnd = cursor.readEnd();
      nameStart = cursor.pos;
      cursor.pos = nameEnd;
    } else if (tag === VALUE) {
      series.restIsText &&= isUtf8Range(cursor.bytes, valueStart, valueEnd);
      valueEnd = cursor.readEnd();
      valueStart = cursor.pos;
      cursor.pos = valueEnd;
    } else if (tag >>> 3 <= LAST_LABEL_FIELD) {
      throw wrongType(tag, at, "a label");
    } else {
      cursor.skipValue(tag);
    }
  }
  cursor.expectEnd(end, "a label");
  series.labelsFound += 1;
  const span = series.count * SPAN_STRIDE;
  if (span >= series.spans.length) return;
  series.spans[span] = nameStart;
  series.spans[span + 1] = nameEnd;
  series.spans[span + 2] = valueStart;
  series.spans[span + 3] = valueEnd;
  const field = series.count * FIELD_STRIDE;
  series.fields[field] = fieldStart;
  series.fields[field + 1] = end;
  series.count += 1;
}

/** Scans a request of one series and uses it while it is valid. */
export function withSeries<Result>(
  request: Uint8Array,
  maxLabels: number,
  use: (series: SeriesScan) => Result,
): Result {
  let result: { readonly value: Result } | undefined;
  scanRequest(request, maxLabels, {
    series: (series) => {
      result = { value: use(series) };
    },
    metadata: () => undefined,
  });
  if (result === undefined) throw new Error("bug: a request of one series has none");
  return result.value;
}
