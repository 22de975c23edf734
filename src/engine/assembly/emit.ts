/**
 * Writes every series of the step to its destinations, and compresses what each destination got.
 *
 * Two passes over the rows: the first adds up what goes where, so that the second writes into regions of the right size and
 * looks at no limit. What one destination gets is cut into *pieces*: a piece is what goes into one parcel. A request's
 * parcel that was begun in an earlier step is carried on; its elements of snappy follow one another.
 */
import {
  copyBlocks,
  ENCODER,
  ensure,
  regionAfter,
  report,
  REPORT_OUTPUT_AT,
  REPORT_OUTPUT_END,
  REPORT_PIECES,
  REPORT_PIECES_AT,
  ROW_BYTES,
  ROW_DECISION,
  ROW_END,
  ROW_EPOCH,
  ROW_SAMPLES,
  ROW_START,
  ROWS,
  SLACK,
} from "./memory";
import { encodeElements, maxEncodedBytes } from "./snappyEncode";
import {
  DESTINATION_HEADER,
  DESTINATION_INSERTED,
  DESTINATION_KEEP,
  DESTINATION_NUMBER,
  DESTINATION_RESUME,
  FURTHER,
  ITEMS,
  nextDestination,
  RECORD_DESTINATIONS,
  RECORD_HEADER,
  SECTION_BYTES,
  SECTION_ENTRIES,
  SECTION_UNTIL,
  SECTIONED,
  TALLY,
} from "./table";

const TIMESERIES: u8 = (1 << 3) | 2;

// Counts of series and items: a tally, and the beginning of a piece.
export const COUNTS_BYTES: usize = 16;
const COUNT_SERIES: usize = 0;
const COUNT_SAMPLES: usize = 4;
const COUNT_HISTOGRAMS: usize = 8;
const COUNT_EXEMPLARS: usize = 12;

// Items of a series: a part of its row, or of an entry of ITEMS.
const ITEM_COUNTS: usize = ROW_SAMPLES;
const ITEMS_SAMPLES: usize = 0;
const ITEMS_HISTOGRAMS: usize = 4;
const ITEMS_EXEMPLARS: usize = 8;

// What one parcel gets in this step.
const PIECE_BYTES: usize = 48;
const PIECE_DESTINATION: usize = 16;
/** 1: goes on where the step before ended. */
const PIECE_CONTINUES: usize = 20;
const PIECE_PLAIN: usize = 24;
const PIECE_OUTPUT: usize = 28;
const PIECE_OUTPUT_END: usize = 32;
/** Where it is written to in the second pass, and the piece of the same destination behind it. */
const PIECE_STAGE: usize = 36;
const PIECE_NEXT: usize = 40;
/** Series that the second pass has still to write. */
const PIECE_LEFT: usize = 44;

/** Free bytes in front of each piece's elements: room for the length that makes a block of them. */
export const HEADROOM: usize = 8;

// A destination: its limits, the open parcel of the request, and its pieces in this step.
export const DESTINATION_BYTES: usize = 32;
const LIMIT_ITEMS: usize = 0;
const LIMIT_PLAIN: usize = 4;
const OPEN_ITEMS: usize = 8;
const OPEN_PLAIN: usize = 12;
const OPEN: usize = 16;
const FIRST_PIECE: usize = 20;
const LAST_PIECE: usize = 24;

let destinations: usize = 0;
let destinationCount: u32 = 0;
let tallies: usize = 0;
let tallyCount: u32 = 0;
let pieces: usize = 0;
let pieceEnd: usize = 0;
let stagedBytes: u64 = 0;
// Of the record that is carried out: the entry that comes next, and how many there are from it on.
let entry: usize = 0;
let entriesLeft: u32 = 0;

/** Lays destinations and tallies out from `start` on, and answers where they end. */
export function layDestinations(start: usize, countOfDestinations: u32, countOfTallies: u32): usize {
  tallies = start;
  tallyCount = countOfTallies;
  destinationCount = countOfDestinations;
  destinations = regionAfter(tallies + tallyCount * COUNTS_BYTES);
  return regionAfter(destinations + destinationCount * DESTINATION_BYTES);
}

export function talliesAt(): usize {
  return tallies;
}

export function setLimits(destination: u32, maxItems: u32, maxPlainBytes: u32): void {
  const at = destinations + destination * DESTINATION_BYTES;
  store<u32>(at, maxItems, LIMIT_ITEMS);
  store<u32>(at, maxPlainBytes, LIMIT_PLAIN);
}

/** Says, for the coming step, what the request's open parcel for a destination holds already; without it there is none. */
export function setOpenParcel(destination: u32, items: u32, plainBytes: u32): void {
  const at = destinations + destination * DESTINATION_BYTES;
  store<u32>(at, 1, OPEN);
  store<u32>(at, items, OPEN_ITEMS);
  store<u32>(at, plainBytes, OPEN_PLAIN);
}

/** Emits the rows. All of them have a decision. What is free for it begins at `free`. */
export function emitRows(rows: u32, free: usize): void {
  memory.fill(tallies, 0, tallyCount * COUNTS_BYTES);
  pieces = pieceEnd = free;
  stagedBytes = 0;
  for (let row: u32 = 0; row < rows; row++) measureRow(ROWS + row * ROW_BYTES);
  layPieces();
  for (let row: u32 = 0; row < rows; row++) writeRow(ROWS + row * ROW_BYTES);
  compressPieces();
  forgetStep();
}

/** Leaves nothing of this request to the next one, of parcels either that got nothing in this step. */
export function forgetStep(): void {
  for (let number: u32 = 0; number < destinationCount; number++) {
    const destination = destinations + number * DESTINATION_BYTES;
    store<u64>(destination, 0, OPEN_ITEMS); // and OPEN_PLAIN
    store<u64>(destination, 0, OPEN); // and FIRST_PIECE
    store<u32>(destination, 0, LAST_PIECE);
  }
}

/** Begins with the row's first entry. */
function openRecord(row: usize): void {
  const record = <usize>load<u32>(row, ROW_DECISION);
  entry = record + RECORD_HEADER;
  entriesLeft = load<u32>(record, RECORD_DESTINATIONS);
  if (entriesLeft & SECTIONED) openSection(<u32>load<u16>(row, ROW_EPOCH));
}

/** Goes to the first entry of an epoch's section. */
function openSection(epoch: u32): void {
  while (load<u32>(entry, SECTION_UNTIL) <= epoch) entry += load<u32>(entry, SECTION_BYTES);
  entriesLeft = load<u32>(entry, SECTION_ENTRIES);
  entry += DESTINATION_HEADER;
}

function passEntry(): void {
  entry = nextDestination(entry);
  entriesLeft--;
}

/** Whether the entry is one more replacement for the destination before it. */
function isFurther(): bool {
  return entriesLeft > 0 && load<u32>(entry, DESTINATION_NUMBER) === FURTHER;
}

function measureRow(row: usize): void {
  openRecord(row);
  let items = row + ITEM_COUNTS;
  while (entriesLeft > 0) {
    const number = load<u32>(entry, DESTINATION_NUMBER);
    if (number & TALLY) {
      if (number !== ITEMS) addCounts(tallies + (number & ~TALLY) * COUNTS_BYTES, items);
      items = number === ITEMS ? entry + DESTINATION_HEADER : row + ITEM_COUNTS;
      passEntry();
    } else {
      measureSeries(number, items, fieldBytes(messageBytes(row)));
      items = row + ITEM_COUNTS;
    }
  }
}

/** Length of a series' message as the destination gets it; passes over the destination. */
function messageBytes(row: usize): usize {
  let bytes = <usize>(load<u32>(row, ROW_END) - load<u32>(row, ROW_START));
  do {
    bytes -= load<u32>(entry, DESTINATION_RESUME) - load<u32>(entry, DESTINATION_KEEP);
    bytes += load<u32>(entry, DESTINATION_INSERTED);
    passEntry();
  } while (isFurther());
  return bytes;
}

/** Length of a whole series field, for a message of `message` bytes. */
function fieldBytes(message: usize): usize {
  // A varint has a byte for every seven bits begun.
  const bits = 32 - clz<u32>((<u32>message) | 1);
  return 1 + <usize>((bits + 6) / 7) + message;
}

function measureSeries(number: u32, itemCounts: usize, bytes: usize): void {
  const destination = destinations + number * DESTINATION_BYTES;
  const items =
    load<u32>(itemCounts, ITEMS_SAMPLES) +
    load<u32>(itemCounts, ITEMS_HISTOGRAMS) +
    load<u32>(itemCounts, ITEMS_EXEMPLARS);
  const full =
    load<u32>(destination, OPEN_ITEMS) + items > load<u32>(destination, LIMIT_ITEMS) ||
    load<u32>(destination, OPEN_PLAIN) + bytes > load<u32>(destination, LIMIT_PLAIN);
  const open = load<u32>(destination, OPEN) !== 0;
  let piece = <usize>load<u32>(destination, LAST_PIECE);
  if (piece === 0 || !open || full) piece = addPiece(destination, number, open && !full);
  addCounts(piece, itemCounts);
  store<u32>(piece, load<u32>(piece, PIECE_PLAIN) + bytes, PIECE_PLAIN);
  store<u32>(destination, load<u32>(destination, OPEN_ITEMS) + items, OPEN_ITEMS);
  store<u32>(destination, load<u32>(destination, OPEN_PLAIN) + bytes, OPEN_PLAIN);
  stagedBytes += bytes;
}

function addPiece(destination: usize, number: u32, continues: bool): usize {
  const piece = pieceEnd;
  pieceEnd += PIECE_BYTES;
  ensure(piece, PIECE_BYTES);
  memory.fill(piece, 0, PIECE_BYTES);
  store<u32>(piece, number, PIECE_DESTINATION);
  store<u32>(piece, continues ? 1 : 0, PIECE_CONTINUES);
  const last = <usize>load<u32>(destination, LAST_PIECE);
  if (last === 0) store<u32>(destination, piece, FIRST_PIECE);
  else store<u32>(last, piece, PIECE_NEXT);
  store<u32>(destination, piece, LAST_PIECE);
  if (!continues) {
    store<u32>(destination, 1, OPEN);
    store<u32>(destination, 0, OPEN_ITEMS);
    store<u32>(destination, 0, OPEN_PLAIN);
  }
  return piece;
}

function addCounts(counts: usize, items: usize): void {
  store<u32>(counts, load<u32>(counts, COUNT_SERIES) + 1, COUNT_SERIES);
  store<u32>(counts, load<u32>(counts, COUNT_SAMPLES) + load<u32>(items, ITEMS_SAMPLES), COUNT_SAMPLES);
  store<u32>(
    counts,
    load<u32>(counts, COUNT_HISTOGRAMS) + load<u32>(items, ITEMS_HISTOGRAMS),
    COUNT_HISTOGRAMS,
  );
  store<u32>(counts, load<u32>(counts, COUNT_EXEMPLARS) + load<u32>(items, ITEMS_EXEMPLARS), COUNT_EXEMPLARS);
}

/** Gives every piece its region of the stage. */
function layPieces(): void {
  let stage = regionAfter(pieceEnd);
  ensure(stage, stagedBytes + <u64>((pieceEnd - pieces) / PIECE_BYTES) * SLACK);
  for (let piece = pieces; piece < pieceEnd; piece += PIECE_BYTES) {
    store<u32>(piece, stage, PIECE_STAGE);
    store<u32>(piece, load<u32>(piece, COUNT_SERIES), PIECE_LEFT);
    stage += load<u32>(piece, PIECE_PLAIN) + SLACK;
  }
}

function writeRow(row: usize): void {
  openRecord(row);
  while (entriesLeft > 0) {
    const number = load<u32>(entry, DESTINATION_NUMBER);
    if (number & TALLY) passEntry();
    else writeSeries(pieceFor(number), row);
  }
}

/** The piece that a destination's next series goes into. */
function pieceFor(number: u32): usize {
  const destination = destinations + number * DESTINATION_BYTES;
  let piece = <usize>load<u32>(destination, FIRST_PIECE);
  if (load<u32>(piece, PIECE_LEFT) === 0) {
    piece = load<u32>(piece, PIECE_NEXT);
    store<u32>(destination, piece, FIRST_PIECE);
  }
  store<u32>(piece, load<u32>(piece, PIECE_LEFT) - 1, PIECE_LEFT);
  return piece;
}

/** Writes a series as the destination gets it; passes over the destination. */
function writeSeries(piece: usize, row: usize): void {
  const start = <usize>load<u32>(row, ROW_START);
  let to = <usize>load<u32>(piece, PIECE_STAGE);
  store<u8>(to, TIMESERIES);
  to = writeVarint(to + 1, messageBytesAhead(row));
  let from = start;
  do {
    const keepEnd = start + load<u32>(entry, DESTINATION_KEEP);
    const inserted = <usize>load<u32>(entry, DESTINATION_INSERTED);
    copyBlocks(to, from, keepEnd - from);
    to += keepEnd - from;
    copyBlocks(to, entry + DESTINATION_HEADER, inserted);
    to += inserted;
    from = start + load<u32>(entry, DESTINATION_RESUME);
    passEntry();
  } while (isFurther());
  const rest = <usize>load<u32>(row, ROW_END) - from;
  copyBlocks(to, from, rest);
  store<u32>(piece, to + rest, PIECE_STAGE);
}

/** messageBytes() that passes over nothing. */
function messageBytesAhead(row: usize): usize {
  const first = entry;
  const left = entriesLeft;
  const bytes = messageBytes(row);
  entry = first;
  entriesLeft = left;
  return bytes;
}

function writeVarint(to: usize, value: usize): usize {
  while (value >= 0x80) {
    store<u8>(to++, <u8>(value | 0x80));
    value >>= 7;
  }
  store<u8>(to++, <u8>value);
  return to;
}

/** Compresses every piece, one behind another. */
function compressPieces(): void {
  const stageEnd = pieceEnd === pieces ? pieceEnd : <usize>load<u32>(pieceEnd - PIECE_BYTES, PIECE_STAGE);
  const count = (pieceEnd - pieces) / PIECE_BYTES;
  const output = regionAfter(stageEnd);
  ensure(output, stagedBytes + stagedBytes / 6 + <u64>count * (maxEncodedBytes(0) + HEADROOM));
  let to = output;
  for (let piece = pieces; piece < pieceEnd; piece += PIECE_BYTES) {
    const end = <usize>load<u32>(piece, PIECE_STAGE);
    to += HEADROOM;
    store<u32>(piece, to, PIECE_OUTPUT);
    to = encodeElements(end - load<u32>(piece, PIECE_PLAIN), end, to, ENCODER);
    store<u32>(piece, to, PIECE_OUTPUT_END);
  }
  report(REPORT_PIECES, <u32>count);
  report(REPORT_PIECES_AT, <u32>pieces);
  report(REPORT_OUTPUT_AT, <u32>output);
  report(REPORT_OUTPUT_END, <u32>to);
}
