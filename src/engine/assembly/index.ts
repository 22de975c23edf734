/**
 * What TypeScript calls: a request is decompressed, then taken in steps of scan, look up, decide (in TypeScript) and emit.
 *
 * The engine moves bytes and finds decisions. It knows what a label field is, but not what a label means. It checks what it
 * reads and trusts its caller: see src/engine/engine.ts, the only one.
 */
import { emitRows, forgetStep, HEADROOM, layDestinations } from "./emit";
import { assignEpochs, isMixed, layBounds } from "./epochs";
import { hash128 } from "./highwayHash";
import {
  ENCODER,
  ensure,
  HASH_KEY,
  MAX_ROWS,
  METADATA,
  PACKED_HASH,
  regionAfter,
  report,
  REPORT,
  REPORT_OUTPUT_AT,
  REPORT_OUTPUT_END,
  REPORT_ROWS,
  ROW_BYTES,
  ROW_DECISION,
  ROWS,
} from "./memory";
import { scanWindow } from "./scan";
import { decodeElements } from "./snappyDecode";
import { encodeElements, maxEncodedBytes } from "./snappyEncode";
import {
  beginStep,
  clearTable,
  fillRecord,
  indexBytes,
  keepRecord,
  layTable,
  leaveSplitRows,
  lookUpRows,
  RECORD_DESTINATIONS,
  RECORD_HEADER,
} from "./table";

export { setLimits, setOpenParcel, talliesAt } from "./emit";
export { setBound } from "./epochs";
export { knows, reportTable, samplePlace } from "./table";

let scratch: usize = 0;
let plain: usize = 0;
/** Where the scratch that the step has not used yet begins. */
let free: usize = 0;

export function reportAt(): usize {
  return REPORT;
}

export function hashKeyAt(): usize {
  return HASH_KEY;
}

export function rowsAt(): usize {
  return ROWS;
}

export function metadataAt(): usize {
  return METADATA;
}

/**
 * Lays memory out, or lays it out anew: then all decisions are forgotten, and no request may be under way.
 *
 * @param bounds     how many there are between epochs
 * @param tableBytes for the decision table; if its indexes would take more than half of it, it is laid out for fewer series
 */
export function configure(
  destinations: u32,
  tallies: u32,
  bounds: u32,
  tableSeries: u32,
  tableBytes: usize,
): void {
  while (tableSeries > 1 && indexBytes(tableSeries) > tableBytes / 2) tableSeries >>= 1;
  const table = layBounds(layDestinations(regionAfter(__heap_base), destinations, tallies), bounds);
  const isFirst = scratch === 0;
  scratch = layTable(table, tableSeries, tableBytes - indexBytes(tableSeries));
  ensure(scratch, 0);
  // Fresh memory is empty; writing it would only have the system provide it.
  if (isFirst) return;
  forgetStep();
  clearTable();
}

/** Room for a packed request; answers where. */
export function reservePacked(bytes: usize): usize {
  ensure(scratch, bytes);
  return scratch;
}

/** Decompresses the elements of a block that is where reservePacked() said; false if they are not valid. */
export function uncompress(elementsFrom: usize, packedBytes: usize, plainBytes: usize): bool {
  reservePlain(regionAfter(scratch + packedBytes), plainBytes);
  return decodeElements(scratch + elementsFrom, scratch + packedBytes, plain, plainBytes);
}

/** Hashes the packed request that was uncompressed last, and answers where the 16 bytes are. */
export function hashPacked(packedBytes: usize): usize {
  hash128(scratch, packedBytes, HASH_KEY, PACKED_HASH);
  return PACKED_HASH;
}

/** Room for a window of a plain request; answers where. */
export function reserveWindow(bytes: usize): usize {
  reservePlain(scratch, bytes);
  return plain;
}

function reservePlain(at: usize, bytes: usize): void {
  ensure(at, bytes);
  plain = at;
  free = regionAfter(plain + bytes);
}

export function plainAt(): usize {
  return plain;
}

/** Scans a step's series, and finds their items' epochs. See scanWindow(). */
export function scan(maxRows: u32, windowBytes: usize, requestBytes: usize): bool {
  beginStep();
  free = regionAfter(plain + windowBytes);
  if (!scanWindow(min(maxRows, MAX_ROWS), plain, plain + windowBytes, plain + requestBytes)) return false;
  assignEpochs(scannedRows());
  return true;
}

function scannedRows(): u32 {
  return load<u32>(REPORT + ((<usize>REPORT_ROWS) << 2));
}

/** Looks the scanned series' decisions up; answers how many have none, or none that is right for all of their items. */
export function lookUp(context: u32): u32 {
  const undecided = lookUpRows(scannedRows(), context);
  return isMixed ? undecided + leaveSplitRows(scannedRows()) : undecided;
}

/**
 * Makes a record for a row's decision, in the table if it is to be kept and can be, and answers where its number of destinations is to
 * be written, with `bytes` bytes of destinations behind.
 */
export function decide(row: u32, context: u32, bytes: usize, keep: bool): usize {
  const at = ROWS + row * ROW_BYTES;
  let record = keep ? keepRecord(at, context, bytes) : 0;
  if (record === 0) {
    record = free;
    ensure(record, RECORD_HEADER + bytes);
    free += RECORD_HEADER + bytes;
    fillRecord(record, at, context);
  }
  store<u32>(at, record, ROW_DECISION);
  return record + RECORD_DESTINATIONS;
}

/** Writes all rows, which have decisions now, to their destinations, compressed. */
export function emit(): void {
  emitRows(scannedRows(), regionAfter(free));
}

/** Compresses what is in the window to a stream of elements, behind HEADROOM bytes. */
export function compress(plainBytes: usize): void {
  const output = regionAfter(plain + plainBytes);
  ensure(output, HEADROOM + maxEncodedBytes(plainBytes));
  report(REPORT_OUTPUT_AT, <u32>output);
  report(REPORT_OUTPUT_END, <u32>encodeElements(plain, plain + plainBytes, output + HEADROOM, ENCODER));
}
