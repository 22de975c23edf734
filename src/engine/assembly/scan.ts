/**
 * Walks a plain remote write 1.0 request, or a window of it, and makes one row per series.
 *
 * Of a series only three things are found: where its leading run of label fields ends, how many items follow, and that all
 * that follows is well-formed. What the labels are is not looked at: that was done when the decision was made that the run
 * will find, or is done by TypeScript if none is found.
 */
import {
  ENTRY_BYTES,
  KIND_ORDINARY,
  KIND_WHOLE,
  METADATA,
  report,
  REPORT_CONSUMED,
  REPORT_ENTRIES,
  REPORT_EXEMPLARS,
  REPORT_HISTOGRAMS,
  REPORT_NEEDED,
  REPORT_NEWEST,
  REPORT_ROWS,
  REPORT_SAMPLES,
  REPORT_UNKNOWN_FIELDS,
  ROW_BYTES,
  ROW_DECISION,
  ROW_END,
  ROW_EXEMPLARS,
  ROW_HISTOGRAMS,
  ROW_KIND,
  ROW_LABELS_END,
  ROW_SAMPLES,
  ROW_START,
  ROWS,
} from "./memory";
import {
  checkMessage,
  EXEMPLAR,
  HISTOGRAM,
  LENGTH_DELIMITED,
  newestTimestamp,
  noteTimestamp,
  position,
  prefix,
  readLength,
  readTag,
  resetSawTimestamp,
  resetText,
  resetTimestamps,
  SAMPLE,
  sawOtherThanAscii,
  sawTimestamp,
  setPosition,
  skipValue,
} from "./protobuf";

// message WriteRequest { repeated TimeSeries timeseries = 1; repeated MetricMetadata metadata = 3; }
const TIMESERIES: u32 = (1 << 3) | 2;
const METADATA_ENTRY: u32 = (3 << 3) | 2;
// message TimeSeries { repeated Label labels = 1; Sample samples = 2; Exemplar exemplars = 3; Histogram histograms = 4; }
const LABELS: u32 = (1 << 3) | 2;
const SAMPLES: u32 = (2 << 3) | 2;
const EXEMPLARS: u32 = (3 << 3) | 2;
const HISTOGRAMS: u32 = (4 << 3) | 2;
const LAST_SERIES_FIELD: u32 = 4;
// message Sample { double value = 1; int64 timestamp = 2; }
const SAMPLE_VALUE: u8 = (1 << 3) | 1;
const SAMPLE_TIMESTAMP: u8 = 2 << 3;
/** The highest bit of each of eight bytes: set in all bytes of a varint but the last. */
const CONTINUES: u64 = 0x8080808080808080;

/** More bytes than a tag and a length, or a tag and any other scalar, take. */
const MAX_HEADER: usize = 16;

let samples: u32 = 0;
let histograms: u32 = 0;
let exemplars: u32 = 0;

// The field that readField() has read.
let fieldTag: u32 = 0;
let fieldStart: usize = 0;
let fieldEnd: usize = 0;

/**
 * Scans fields of a request from `from` on, until the window ends, the rows are full, or a field reaches past the window.
 *
 * @param maxRows    series, and metadata entries, at most
 * @param windowEnd  end of what is in memory
 * @param requestEnd where the whole request would end
 * @returns whether all that was passed over is well-formed; the report says what was found
 */
export function scanWindow(maxRows: u32, from: usize, windowEnd: usize, requestEnd: usize): bool {
  let rows: u32 = 0;
  let entries: u32 = 0;
  let unknown: u32 = 0;
  let at = from;
  samples = histograms = exemplars = 0;
  resetTimestamps();
  report(REPORT_NEEDED, 0);
  while (at < windowEnd && rows < maxRows && entries < maxRows) {
    setPosition(at);
    if (!readField(windowEnd, requestEnd)) return false;
    if (position > windowEnd) {
      report(REPORT_NEEDED, position - at);
      break;
    }
    if (fieldTag === TIMESERIES) {
      if (!scanSeries(ROWS + rows * ROW_BYTES, fieldStart, position)) return false;
      rows++;
      at = fieldEnd;
    } else {
      if (fieldTag === METADATA_ENTRY) {
        store<u32>(METADATA + entries * ENTRY_BYTES, at);
        store<u32>(METADATA + entries * ENTRY_BYTES, position, 4);
        entries++;
      } else {
        unknown++; // a newer sender may add fields
      }
      at = position;
    }
  }
  report(REPORT_ROWS, rows);
  report(REPORT_ENTRIES, entries);
  report(REPORT_UNKNOWN_FIELDS, unknown);
  report(REPORT_CONSUMED, at - from);
  report(REPORT_SAMPLES, samples);
  report(REPORT_HISTOGRAMS, histograms);
  report(REPORT_EXEMPLARS, exemplars);
  report(REPORT_NEWEST, <u32>newestTimestamp);
  report(REPORT_NEWEST + 1, <u32>(newestTimestamp >> 32));
  return true;
}

/**
 * Reads a field of the request: its tag, where a length-delimited one's content starts, and, in `position`, where it ends,
 * which may be behind the window when the request goes on there.
 */
function readField(windowEnd: usize, requestEnd: usize): bool {
  const at = position;
  // A prefix that the window cuts can be read in a longer one.
  const cut = requestEnd > windowEnd && at + MAX_HEADER > windowEnd;
  if (cut) {
    setPosition(windowEnd + MAX_HEADER);
    return true;
  }
  if (!readTag(windowEnd)) return false;
  fieldTag = prefix;
  const wireType = prefix & 7;
  if (wireType !== LENGTH_DELIMITED) {
    const number = prefix >> 3;
    return number !== 1 && number !== 3 && skipValue(wireType, windowEnd);
  }
  // Lengths are compared with the whole request, of which the window may hold a part.
  if (!readLength(requestEnd)) return false;
  fieldStart = position;
  fieldEnd = position + prefix;
  setPosition(fieldEnd);
  return true;
}

function scanSeries(row: usize, start: usize, end: usize): bool {
  const labelsEnd = passLabels(start, end);
  if (labelsEnd === 0) return false;
  store<u32>(row, start, ROW_START);
  store<u32>(row, end, ROW_END);
  store<u32>(row, labelsEnd, ROW_LABELS_END);
  store<u32>(row, 0, ROW_DECISION);
  // Neither split nor of any but the first epoch, until assignEpochs() says otherwise.
  store<u32>(row, labelsEnd > start ? KIND_ORDINARY : KIND_WHOLE, ROW_KIND);
  store<u32>(row, 0, ROW_HISTOGRAMS);
  store<u32>(row, 0, ROW_EXEMPLARS);

  let found: u32 = 0;
  let at = labelsEnd;
  while (at < end) {
    const next = passPlainSample(at, end);
    if (next === 0) break;
    found++;
    at = next;
  }
  store<u32>(row, found, ROW_SAMPLES);
  samples += found;
  return at === end || scanRest(row, at, end);
}

/** Passes over the label fields that a series begins with; 0 if one of them is too long. */
function passLabels(start: usize, end: usize): usize {
  let at = start;
  while (at < end && <u32>load<u8>(at) === LABELS) {
    const length = <usize>load<u8>(at, 1);
    if (length < 0x80) {
      at += 2 + length;
    } else {
      setPosition(at + 1);
      if (!readLength(end)) return 0;
      at = position + prefix;
    }
  }
  return at > end ? 0 : at;
}

/** Passes over a sample as all senders write it, and answers where it ends; 0 for anything else. */
function passPlainSample(at: usize, end: usize): usize {
  if (<u32>load<u8>(at) !== SAMPLES) return 0;
  const length = <usize>load<u8>(at, 1);
  let pos = at + 2;
  const sampleEnd = pos + length;
  if (length >= 0x80 || sampleEnd > end) return 0;
  // A value of 0 is left out.
  if (load<u8>(pos) === SAMPLE_VALUE) pos += 9;
  if (load<u8>(pos) !== SAMPLE_TIMESTAMP) return 0;
  pos += 1;
  const bytes = sampleEnd - pos;
  if (bytes - 1 >= 8) return 0; // longer ones are read by scanRest(), and 0 - 1 is large
  const unused = 64 - 8 * <u64>bytes;
  const bits = CONTINUES >> unused;
  const varint = load<u64>(pos);
  if ((varint & bits) !== bits >> 8) return 0;
  noteTimestamp(<i64>joinSevens((varint << unused) >> unused));
  return sampleEnd;
}

/** The number that the lower seven bits of each byte make, from the first byte up. */
function joinSevens(bytes: u64): u64 {
  const twos = ((bytes & 0x7f007f007f007f00) >> 1) | (bytes & 0x007f007f007f007f);
  const fours = ((twos & 0x3fff00003fff0000) >> 2) | (twos & 0x00003fff00003fff);
  return ((fours & 0x0fffffff00000000) >> 4) | (fours & 0x000000000fffffff);
}

/** The general way through a series, from a field behind its labels on. */
function scanRest(row: usize, at: usize, end: usize): bool {
  setPosition(at);
  resetText();
  let labelBehind = false;
  while (position < end) {
    if (!readTag(end)) return false;
    const tag = prefix;
    if (tag === LABELS) {
      labelBehind = true;
      if (!skipValue(LENGTH_DELIMITED, end)) return false;
    } else if (tag === SAMPLES) {
      if (!checkItem(row, ROW_SAMPLES, end, SAMPLE)) return false;
      samples++;
    } else if (tag === EXEMPLARS) {
      if (!checkItem(row, ROW_EXEMPLARS, end, EXEMPLAR)) return false;
      exemplars++;
    } else if (tag === HISTOGRAMS) {
      if (!checkItem(row, ROW_HISTOGRAMS, end, HISTOGRAM)) return false;
      histograms++;
    } else if (tag >> 3 <= LAST_SERIES_FIELD || !skipValue(tag & 7, end)) {
      return false; // unknown fields travel along
    }
  }
  if (labelBehind || sawOtherThanAscii) store<u8>(row, <u8>KIND_WHOLE, ROW_KIND);
  return true;
}

function checkItem(row: usize, count: usize, end: usize, shape: usize): bool {
  if (!readLength(end)) return false;
  resetSawTimestamp();
  if (!checkMessage(position + prefix, shape)) return false;
  if (!sawTimestamp) noteTimestamp(0); // what is left out is 0
  store<u32>(row + count, load<u32>(row + count) + 1);
  return true;
}
