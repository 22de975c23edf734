/**
 * The decision table: from the hash of a series' label bytes, and the request's context, to its decision.
 *
 * It has two generations. New decisions go to the young one; what is found in the old one is copied to the young one. When
 * the young one is full it becomes the old one, and the one that was old before is overwritten: so series that are gone
 * fall out, and nothing is ever swept. A generation is
 *
 *     index   2^n entries of 8 bytes: check (32 bits of the hash) | address of the record, 0 for a free entry
 *     arena   records, one behind another
 *
 *     record  hash (16 bytes) | context | destinations | destination, destination, ...
 *     destination   number | keep | resume | inserted | that many bytes, filled up to a multiple of 8
 *
 * A destination's series is bytes [0, keep) of the one that came in, the inserted bytes, and what is from `resume` on. An
 * entry with the number FURTHER behind it replaces one more range, further on. A number with TALLY set stands for no
 * destination but for a count that the series' items are added to; the number ITEMS for neither, but for how many samples,
 * histograms and exemplars (inserted, four bytes each) the destination or count behind it gets, where these are not all that
 * the row has. The record's number of destinations counts all entries.
 *
 * What is done with a series may depend on the epoch of its items. The number of destinations is then marked SECTIONED, and the
 * entries are sections, each of an entry of its own before those that it is made of:
 *
 *     section       first epoch behind it | entries | bytes, these 16 included | 0
 *
 * Two label sets are taken for the same one only if all 128 bits of their keyed hashes are equal (highwayHash.ts).
 */
import { hash128 } from "./highwayHash";
import {
  copyBlocks,
  HASH_KEY,
  KIND_ORDINARY,
  OPEN_KEY,
  PROBE,
  regionAfter,
  report,
  REPORT_TABLE_BYTES,
  REPORT_TABLE_SERIES,
  REPORT_TABLE_TURNS,
  ROW_BYTES,
  ROW_DECISION,
  ROW_HASH,
  ROW_KIND,
  ROW_LABELS_END,
  ROW_SPLIT,
  ROW_START,
  ROWS,
} from "./memory";

const RECORD_CONTEXT: usize = 16;
export const RECORD_DESTINATIONS: usize = 20;
export const RECORD_HEADER: usize = 24;
export const DESTINATION_NUMBER: usize = 0;
export const DESTINATION_KEEP: usize = 4;
export const DESTINATION_RESUME: usize = 8;
export const DESTINATION_INSERTED: usize = 12;
export const DESTINATION_HEADER: usize = 16;
export const TALLY: u32 = 0x80000000;
export const FURTHER: u32 = 0x40000000;
export const ITEMS: u32 = TALLY | FURTHER;
/** In a record's number of destinations. */
export const SECTIONED: u32 = 0x80000000;
export const SECTION_UNTIL: usize = 0;
export const SECTION_ENTRIES: usize = 4;
export const SECTION_BYTES: usize = 8;

const ENTRY_BYTES: usize = 8;
const ENTRY_RECORD: usize = 4;
/** Larger records would leave room for few others; their series are decided anew each time. */
const MAX_KEPT_BYTES: usize = 8 * 1024;
/** As many as a number of TypeScript can tell apart. */
const SAMPLE_PLACES: f64 = 9007199254740992;
const UNUSED_HASH_BITS: u64 = 11;
/** Rows that are hashed before the first of them is looked up: the memory's answers are then waited for together. */
const BLOCK: u32 = 32;

let youngIndex: usize = 0;
let youngArena: usize = 0;
let youngEnd: usize = 0;
let youngSeries: u32 = 0;
let oldIndex: usize = 0;
let oldArena: usize = 0;
let oldEnd: usize = 0;
let oldSeries: u32 = 0;
let indexMask: usize = 0;
let arenaBytes: usize = 0;
let maxSeries: u32 = 0;
let turns: u32 = 0;
/** Behind the record that was found last; a record of the young generation begins there if it is below youngEnd. */
let nextRecord: usize = 0;
/** The young generation had no room for a decision. */
let isFull: bool = false;

/** Bytes of the two indexes of a table for so many series. */
export function indexBytes(series: u32): usize {
  return 2 * indexEntries(series) * ENTRY_BYTES;
}

/** A power of two, so that entries are a third to two thirds full at most. */
function indexEntries(series: u32): usize {
  const least = <u32>series + (series >> 1) + 1;
  return (<usize>1) << (32 - clz<u32>(least - 1));
}

/** Lays the table out from `start` on, empty, and answers where it ends. */
export function layTable(start: usize, series: u32, bytesOfArenas: usize): usize {
  const entries = indexEntries(series);
  maxSeries = series;
  indexMask = entries - 1;
  arenaBytes = (bytesOfArenas >> 1) & ~63;
  youngIndex = start;
  oldIndex = regionAfter(youngIndex + entries * ENTRY_BYTES);
  youngArena = regionAfter(oldIndex + entries * ENTRY_BYTES);
  oldArena = regionAfter(youngArena + arenaBytes);
  youngEnd = youngArena;
  oldEnd = oldArena;
  nextRecord = youngArena;
  return regionAfter(oldArena + arenaBytes);
}

/** Forgets all decisions, of whatever layout they were. */
export function clearTable(): void {
  const indexLength = (indexMask + 1) * ENTRY_BYTES;
  memory.fill(youngIndex, 0, indexLength);
  memory.fill(oldIndex, 0, indexLength);
  youngSeries = oldSeries = 0;
  isFull = false;
}

/** Turns the generations if it is time. Not within a step: its rows point to records of both. */
export function beginStep(): void {
  if (isFull) turn();
}

/**
 * Gives every ordinary row the decision that the table has for it, and answers how many rows are without one.
 *
 * Senders send their series in much the same order each time, and records are in the order in which their series came first. So
 * a row's record is nearly always the one behind that of the row before: found without the index, in memory that is about to
 * be read anyway.
 */
export function lookUpRows(rows: u32, context: u32): u32 {
  let undecided: u32 = 0;
  for (let from: u32 = 0; from < rows; from += BLOCK) {
    const end = min(rows, from + BLOCK);
    for (let row = from; row < end; row++) hashRow(ROWS + row * ROW_BYTES);
    let missed: u32 = 0;
    for (let row = from; row < end; row++) missed += followRow(ROWS + row * ROW_BYTES, context);
    if (missed === 0) continue;
    for (let row = from; row < end; row++) guessRecord(ROWS + row * ROW_BYTES);
    for (let row = from; row < end; row++) undecided += lookUpRow(ROWS + row * ROW_BYTES, context);
  }
  return undecided;
}

/**
 * Takes its decision from every row whose items are of several epochs, if that has sections: no single one of them is right.
 * Answers how many rows that leaves without one.
 */
export function leaveSplitRows(rows: u32): u32 {
  let left: u32 = 0;
  for (let row: u32 = 0; row < rows; row++) {
    const at = ROWS + row * ROW_BYTES;
    const record = <usize>load<u32>(at, ROW_DECISION);
    if (load<u8>(at, ROW_SPLIT) === 0 || record === 0) continue;
    if ((load<u32>(record, RECORD_DESTINATIONS) & SECTIONED) === 0) continue;
    store<u32>(at, 0, ROW_DECISION);
    left++;
  }
  return left;
}

function hashRow(row: usize): void {
  if (load<u8>(row, ROW_KIND) !== <u8>KIND_ORDINARY) return;
  const start = load<u32>(row, ROW_START);
  hash128(start, load<u32>(row, ROW_LABELS_END) - start, HASH_KEY, row + ROW_HASH);
}

/** Tries the record behind the one that was found last; answers 1 if that is not the row's, else 0. */
function followRow(row: usize, context: u32): u32 {
  if (nextRecord >= youngEnd || load<u8>(row, ROW_KIND) !== <u8>KIND_ORDINARY) return 1;
  if (!isRecordOf(nextRecord, row + ROW_HASH, context)) return 1;
  store<u32>(row, nextRecord, ROW_DECISION);
  nextRecord = recordEnd(nextRecord);
  return 0;
}

/** Reads the entry where the row's record is in nearly all other cases, unchecked: the loads of a block overlap. */
function guessRecord(row: usize): void {
  if (load<u32>(row, ROW_DECISION) !== 0 || load<u8>(row, ROW_KIND) !== <u8>KIND_ORDINARY) return;
  const entry = youngIndex + (load<u32>(row, ROW_HASH) & indexMask) * ENTRY_BYTES;
  store<u32>(row, load<u32>(entry, ENTRY_RECORD), ROW_DECISION);
}

/** Finds the row's record, in the young generation or the old one. Answers 1 if there is none, else 0. */
function lookUpRow(row: usize, context: u32): u32 {
  if (load<u8>(row, ROW_KIND) !== <u8>KIND_ORDINARY) return 1;
  let record = <usize>load<u32>(row, ROW_DECISION);
  if (record === 0 || !isRecordOf(record, row + ROW_HASH, context)) {
    record = find(youngIndex, row + ROW_HASH, context);
  }
  if (record !== 0) {
    nextRecord = recordEnd(record);
  } else if (oldSeries > 0) {
    record = find(oldIndex, row + ROW_HASH, context);
    if (record !== 0) record = promote(record);
  }
  store<u32>(row, record, ROW_DECISION);
  return record === 0 ? 1 : 0;
}

function isRecordOf(record: usize, hash: usize, context: u32): bool {
  return (
    load<u64>(record) === load<u64>(hash) &&
    load<u64>(record, 8) === load<u64>(hash, 8) &&
    load<u32>(record, RECORD_CONTEXT) === context
  );
}

function find(index: usize, hash: usize, context: u32): usize {
  const check = load<u32>(hash, 4);
  let at = (<usize>load<u32>(hash)) & indexMask;
  let record = <usize>load<u32>(index + at * ENTRY_BYTES, ENTRY_RECORD);
  while (record !== 0) {
    if (load<u32>(index + at * ENTRY_BYTES) === check && isRecordOf(record, hash, context)) break;
    at = (at + 1) & indexMask;
    record = load<u32>(index + at * ENTRY_BYTES, ENTRY_RECORD);
  }
  return record;
}

/** Whether the table has a decision for a series of this hash, in words, and context. Changes nothing. */
export function knows(word0: u32, word1: u32, word2: u32, word3: u32, context: u32): bool {
  store<u32>(PROBE, word0);
  store<u32>(PROBE, word1, 4);
  store<u32>(PROBE, word2, 8);
  store<u32>(PROBE, word3, 12);
  return find(youngIndex, PROBE, context) !== 0 || (oldSeries > 0 && find(oldIndex, PROBE, context) !== 0);
}

/**
 * Where a row's label bytes fall among 2^53 places: the same place in every process, whatever their secret keys. A row that
 * the table cannot keep is beyond all places.
 *
 * @param saltLow  and saltHigh: label bytes of different salts fall independently of each other
 */
export function samplePlace(row: u32, saltLow: u32, saltHigh: u32): f64 {
  const at = ROWS + row * ROW_BYTES;
  if (load<u8>(at, ROW_KIND) !== <u8>KIND_ORDINARY) return SAMPLE_PLACES;
  const start = load<u32>(at, ROW_START);
  store<u32>(OPEN_KEY, saltLow);
  store<u32>(OPEN_KEY, saltHigh, 4);
  hash128(start, load<u32>(at, ROW_LABELS_END) - start, OPEN_KEY, PROBE);
  return <f64>(load<u64>(PROBE) >> UNUSED_HASH_BITS);
}

/** Copies a record of the old generation to the young one, so that it survives the next turn. */
function promote(record: usize): usize {
  const bytes = recordEnd(record) - record;
  if (!hasRoom(bytes)) return record;
  const copy = youngEnd;
  copyBlocks(copy, record, bytes);
  youngEnd += bytes;
  enter(copy);
  return copy;
}

function recordEnd(record: usize): usize {
  let at = record + RECORD_HEADER;
  for (let left = load<u32>(record, RECORD_DESTINATIONS) & ~SECTIONED; left > 0; left--)
    at = nextDestination(at);
  return at;
}

export function nextDestination(destination: usize): usize {
  return destination + DESTINATION_HEADER + ((load<u32>(destination, DESTINATION_INSERTED) + 7) & ~7);
}

/**
 * Makes room for the record of a row's decision, with hash and context filled in.
 *
 * @param bytes length of its destinations
 * @returns its address; 0 if it cannot be kept
 */
export function keepRecord(row: usize, context: u32, bytes: usize): usize {
  if (load<u8>(row, ROW_KIND) !== <u8>KIND_ORDINARY) return 0;
  // The same series may come twice in a step.
  const present = find(youngIndex, row + ROW_HASH, context);
  if (present !== 0) return present;
  const whole = RECORD_HEADER + bytes;
  if (whole > MAX_KEPT_BYTES || !hasRoom(whole)) return 0;
  const record = youngEnd;
  youngEnd += whole;
  fillRecord(record, row, context);
  enter(record);
  return record;
}

export function fillRecord(record: usize, row: usize, context: u32): void {
  memory.copy(record, row + ROW_HASH, RECORD_CONTEXT);
  store<u32>(record, context, RECORD_CONTEXT);
}

function hasRoom(bytes: usize): bool {
  const fits = youngSeries < maxSeries && bytes <= youngArena + arenaBytes - youngEnd;
  isFull = isFull || !fits;
  return fits;
}

/** The young generation becomes the old one, and an empty one young. */
function turn(): void {
  const index = oldIndex;
  const arena = oldArena;
  oldIndex = youngIndex;
  oldArena = youngArena;
  oldEnd = youngEnd;
  oldSeries = youngSeries;
  youngIndex = index;
  youngArena = arena;
  youngEnd = arena;
  nextRecord = arena;
  youngSeries = 0;
  memory.fill(index, 0, (indexMask + 1) * ENTRY_BYTES);
  isFull = false;
  turns++;
}

/** Puts a record into the young index; there is a free entry, since maxSeries is below the number of entries. */
function enter(record: usize): void {
  let at = (<usize>load<u32>(record)) & indexMask;
  while (load<u32>(youngIndex + at * ENTRY_BYTES, ENTRY_RECORD) !== 0) at = (at + 1) & indexMask;
  const entry = youngIndex + at * ENTRY_BYTES;
  store<u32>(entry, load<u32>(record, 4));
  store<u32>(entry, record, ENTRY_RECORD);
  youngSeries++;
}

/** Tells how large the table is. */
export function reportTable(): void {
  report(REPORT_TABLE_SERIES, youngSeries + oldSeries);
  report(REPORT_TABLE_BYTES, <u32>(youngEnd - youngArena + (oldEnd - oldArena)));
  report(REPORT_TABLE_TURNS, turns);
}
