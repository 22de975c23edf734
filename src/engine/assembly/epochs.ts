/**
 * To which epoch the items of each row belong.
 *
 * Bounds cut time into epochs, numbered from 0 for all that is older than the first bound; decisions may differ between them.
 * Nearly always all items of a step are in one epoch, as the oldest and the newest of them tell. Only in a step that has a
 * bound within are the rows' items looked at once more, one by one.
 */
import {
  regionAfter,
  ROW_BYTES,
  ROW_END,
  ROW_EPOCH,
  ROW_EXEMPLARS,
  ROW_HISTOGRAMS,
  ROW_LABELS_END,
  ROW_SAMPLES,
  ROW_SPLIT,
  ROWS,
} from "./memory";
import {
  newestTimestamp,
  oldestTimestamp,
  position,
  prefix,
  readLength,
  readTag,
  setPosition,
  skipValue,
  timestampAt,
} from "./protobuf";

const BOUND_BYTES: usize = 8;

// message TimeSeries { ...; Sample samples = 2; Exemplar exemplars = 3; Histogram histograms = 4; }
const SAMPLES: u32 = (2 << 3) | 2;
const EXEMPLARS: u32 = (3 << 3) | 2;
const HISTOGRAMS: u32 = (4 << 3) | 2;
// message Sample { ...; int64 timestamp = 2; }, Exemplar { ...; int64 timestamp = 3; }, Histogram { ...; int64 timestamp = 15; }
const TIMESTAMP_OF_SAMPLE: u32 = 2 << 3;
const TIMESTAMP_OF_EXEMPLAR: u32 = 3 << 3;
const TIMESTAMP_OF_HISTOGRAM: u32 = 15 << 3;
const NO_ITEM: u32 = 0;

let bounds: usize = 0;
let boundCount: u32 = 0;
/** Whether the step has items of several epochs. */
export let isMixed: bool = false;

/** Lays the bounds out from `start` on, and answers where they end. */
export function layBounds(start: usize, count: u32): usize {
  bounds = start;
  boundCount = count;
  return regionAfter(bounds + count * BOUND_BYTES);
}

/** Sets the first millisecond of epoch `index + 1`, in two halves. Bounds ascend. */
export function setBound(index: u32, lower: u32, upper: i32): void {
  store<i64>(bounds + index * BOUND_BYTES, ((<i64>upper) << 32) | (<i64>lower));
}

/** How many bounds a timestamp is at or behind. */
function epochOf(timestamp: i64): u32 {
  let from: u32 = 0;
  let to = boundCount;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (timestamp < load<i64>(bounds + middle * BOUND_BYTES)) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** Gives the rows of a step, just scanned, their epochs; those without items the newest. */
export function assignEpochs(rows: u32): void {
  isMixed = false;
  if (boundCount === 0) return; // they say 0, which is the only one
  const oldest = epochOf(oldestTimestamp);
  isMixed = oldestTimestamp < newestTimestamp && oldest !== epochOf(newestTimestamp);
  for (let row: u32 = 0; row < rows; row++) {
    const at = ROWS + row * ROW_BYTES;
    if (!hasItems(at)) store<u16>(at, <u16>boundCount, ROW_EPOCH);
    else if (isMixed) findEpoch(at);
    else store<u16>(at, <u16>oldest, ROW_EPOCH);
  }
}

function hasItems(row: usize): bool {
  return (load<u32>(row, ROW_SAMPLES) | load<u32>(row, ROW_HISTOGRAMS) | load<u32>(row, ROW_EXEMPLARS)) !== 0;
}

/** Looks at all items of a row; one that has some of several epochs is split, and its epoch one of them. */
function findEpoch(row: usize): void {
  const end = <usize>load<u32>(row, ROW_END);
  let first = true;
  setPosition(load<u32>(row, ROW_LABELS_END));
  while (position < end) {
    readTag(end);
    const wanted = timestampTagOf(prefix);
    if (wanted === NO_ITEM) {
      skipValue(prefix & 7, end);
      continue;
    }
    readLength(end);
    const epoch = <u16>epochOf(passItem(position + prefix, wanted));
    if (first) store<u16>(row, epoch, ROW_EPOCH);
    first = false;
    if (epoch === load<u16>(row, ROW_EPOCH)) continue;
    store<u8>(row, 1, ROW_SPLIT);
    return;
  }
}

function timestampTagOf(tag: u32): u32 {
  if (tag === SAMPLES) return TIMESTAMP_OF_SAMPLE;
  if (tag === EXEMPLARS) return TIMESTAMP_OF_EXEMPLAR;
  return tag === HISTOGRAMS ? TIMESTAMP_OF_HISTOGRAM : NO_ITEM;
}

/** Passes over an item's message, and answers its timestamp: the last of several, 0 where there is none. */
function passItem(end: usize, wanted: u32): i64 {
  let timestamp: i64 = 0;
  while (position < end) {
    readTag(end);
    const tag = prefix;
    const start = position;
    skipValue(tag & 7, end);
    if (tag === wanted) timestamp = timestampAt(start, position);
  }
  return timestamp;
}
