/**
 * The engine's one linear memory, and where everything is in it.
 *
 *     0              the compiler's static data, and the fixed regions:
 *                      REPORT      what a call found, in numbers that TypeScript reads
 *                      HASH_KEY    the 32 secret bytes of this process
 *                      PACKED_HASH what the packed request hashes to
 *                      OPEN_KEY    the key, no secret, of the hash that samples series
 *                      PROBE       the hash of a series that is asked for
 *                      ENCODER     the snappy encoder's table
 *                      ROWS        one row per series of the step
 *                      METADATA    where the step's metadata entries are
 *     __heap_base    fixed once configure() has run:
 *                      tallies     counts by tally number
 *                      destinations, one record each: limits, and where the step writes to
 *                      bounds      where epochs end
 *                      the decision table: two indexes, two arenas (table.ts draws them)
 *     scratch        one request, or one window of a large one; laid out anew for each step:
 *                      packed | plain | records of decisions that are not kept | pieces | stage | packed output
 *
 * Nothing is ever freed: regions are used again. The table has its full size from the start, since a page that was never
 * written costs address space only. The scratch is last and grows by memory.grow, which detaches TypeScript's views.
 *
 * SLACK bytes are free behind every region that is read or written by copies, so that these may work in blocks of 16 and
 * overrun an end. Nothing that is read there has an influence on a result.
 */
export const SLACK: usize = 64;
const PAGE_BITS = 16;
const MAX_PAGES: u64 = 1 << 16;

/** Series, and metadata entries, that one step takes at most. */
export const MAX_ROWS: u32 = 2048;

// A series of the step, as scan.ts finds it. All places are addresses in this memory.
export const ROW_BYTES: usize = 48;
export const ROW_START: usize = 0; //       its message, without tag and length
export const ROW_END: usize = 4;
export const ROW_LABELS_END: usize = 8; //  end of the leading run of label fields
export const ROW_DECISION: usize = 12; //   record of its decision; 0 while there is none
export const ROW_SAMPLES: usize = 16;
export const ROW_HISTOGRAMS: usize = 20;
export const ROW_EXEMPLARS: usize = 24;
export const ROW_KIND: usize = 28; //       one byte, KIND_...
export const ROW_SPLIT: usize = 29; //      one byte, 1 if its items are of several epochs
export const ROW_EPOCH: usize = 30; //      two bytes, the epoch of its items, or of some of them
export const ROW_HASH: usize = 32; //       16 bytes

/** All labels are in the leading run: the decision can be looked up and kept. */
export const KIND_ORDINARY: u32 = 0;
/** Labels elsewhere or none, or text to be looked at outside of the labels: decided anew each time, over all its bytes. */
export const KIND_WHOLE: u32 = 1;

/** A metadata entry of the step: start and end of its field, tag included. */
export const ENTRY_BYTES: usize = 8;

// What TypeScript reads after a call: numbers of four bytes, by their index.
export const REPORT_ROWS = 0;
export const REPORT_ENTRIES = 1;
export const REPORT_UNKNOWN_FIELDS = 2;
/** Bytes of the window that the scan used up. */
export const REPORT_CONSUMED = 3;
/** How long a window must be to hold the next field whole; 0 unless the scan stopped for that. */
export const REPORT_NEEDED = 4;
export const REPORT_SAMPLES = 5;
export const REPORT_HISTOGRAMS = 6;
export const REPORT_EXEMPLARS = 7;
export const REPORT_PIECES = 8;
export const REPORT_PIECES_AT = 9;
export const REPORT_OUTPUT_AT = 10;
export const REPORT_OUTPUT_END = 11;
export const REPORT_TABLE_SERIES = 12;
export const REPORT_TABLE_BYTES = 13;
export const REPORT_TABLE_TURNS = 14;
/** Of the items that the scan passed over, in milliseconds: the lower half, and the upper half behind it. */
export const REPORT_NEWEST = 15;
const REPORT_NUMBERS = 17;

export const REPORT: usize = memory.data(REPORT_NUMBERS * 4, 8);
export const HASH_KEY: usize = memory.data(32, 16);
/** Of the packed request. */
export const PACKED_HASH: usize = memory.data(16, 16);
/** Zeros, but for the salt of a tenant. */
export const OPEN_KEY: usize = memory.data(32, 16);
export const PROBE: usize = memory.data(16, 16);
export const ENCODER: usize = memory.data(16 * 1024, 16);
export const ROWS: usize = memory.data(<i32>MAX_ROWS * <i32>ROW_BYTES, 16);
export const METADATA: usize = memory.data(<i32>MAX_ROWS * <i32>ENTRY_BYTES, 16);

export function report(index: i32, value: u32): void {
  store<u32>(REPORT + ((<usize>index) << 2), value);
}

/** The next address that a region may begin at, SLACK bytes or more behind `end`. */
export function regionAfter(end: usize): usize {
  return (end + SLACK + 63) & ~63;
}

/**
 * Makes sure that memory holds `bytes` bytes from `start` on, and the slack behind them. Traps when there can be no more: 4 GiB
 * are all that addresses reach, so lengths are added up in 64 bits.
 */
export function ensure(start: usize, bytes: u64): void {
  const pages = (<u64>start + bytes + SLACK + ((1 << PAGE_BITS) - 1)) >> PAGE_BITS;
  const have = memory.size();
  if (pages <= <u64>have) return;
  if (pages > MAX_PAGES || memory.grow(<i32>pages - have) < 0) unreachable();
}

/** Copies `length` bytes in blocks of 16; may write up to 15 bytes behind the end. The ranges do not overlap. */
export function copyBlocks(to: usize, from: usize, length: usize): void {
  if (length > 1024) {
    memory.copy(to, from, length);
    return;
  }
  const end = from + length;
  while (from < end) {
    v128.store(to, v128.load(from));
    from += 16;
    to += 16;
  }
}
