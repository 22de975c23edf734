/**
 * The hot path's face: one request at a time is decompressed, scanned in steps, and sent on compressed, by the decisions
 * that the table has or that the caller makes.
 *
 * It knows no label semantics. Its memory is used again by the next request: what a method says it answers with is either
 * a number, or copied out, or valid until the next call that is named there.
 */
import { type EngineProgram, instantiate } from "./program.ts";

/** Series, and metadata entries, that a step can take. */
export const MAX_STEP_SERIES = 2048;

/** See Engine.samplePlace(). */
export const SAMPLE_PLACES = 2 ** 53;

/** Of the decision table: when they have turned so often, a decision is gone that was not asked for since. */
export const TABLE_GENERATIONS = 2;

/** Bytes of the hash's key. */
export const HASH_KEY_BYTES = 32;

/** Free bytes in front of elements, as many as assembly/emit.ts leaves: room for the length that makes a block of them. */
export const ELEMENTS_HEADROOM = 8;

/** Limits of a parcel. A series above one of them goes in a parcel of its own. */
export interface DestinationLimits {
  /** Samples, histograms and exemplars together. */
  readonly maxItems: number;
  readonly maxPlainBytes: number;
}

export interface EngineOptions {
  /** By number: where series go. */
  readonly destinations: readonly DestinationLimits[];
  /** How many counts there are that decisions can add their series to. */
  readonly tallies: number;
  /** Where one epoch ends and the next begins: milliseconds since the epoch of clocks, ascending; 65,535 at most. */
  readonly bounds: readonly number[];
  /** Decisions that a generation of the table holds; two are kept. */
  readonly tableSeries: number;
  /** Memory for the whole table, in bytes; it holds fewer series if this does not reach. */
  readonly tableBytes: number;
  /** HASH_KEY_BYTES random bytes, secret and new for each process, so that nobody can make two label sets collide. */
  readonly hashKey: Uint8Array;
}

/** What a decision does with a series, or with a part of its items. */
export type Effect = SendEffect | CountEffect;

/** It goes to a destination, with ranges of its message replaced: in order, none overlaps. */
export interface SendEffect {
  readonly kind: "send";
  readonly destination: number;
  readonly splices: readonly Replacement[];
  /** How many items go there, where these are not all that the series has. */
  readonly items?: ItemTotals;
}

/** It is added to a count. */
export interface CountEffect {
  readonly kind: "count";
  readonly tally: number;
  /** How many items are counted, where these are not all that the series has. */
  readonly items?: ItemTotals;
}

export type ItemTotals = Omit<Counts, "series">;

/** What a decision does with a series whose items are of this epoch, or of those behind it up to that of the next section. */
export interface Section {
  readonly firstEpoch: number;
  readonly effects: readonly Effect[];
}

/** Bytes [keep, resume) of a message are replaced by `inserted`; places count from the message's first byte. */
export interface Replacement {
  readonly keep: number;
  readonly resume: number;
  readonly inserted: Uint8Array;
}

export interface Counts {
  readonly series: number;
  readonly samples: number;
  readonly histograms: number;
  readonly exemplars: number;
}

/** What a step got of a request. */
export interface Step {
  /** Bytes of the window that are done with; the rest begins with a whole field. */
  readonly consumed: number;
  /** Unless 0: how long a window must be for the field at its beginning. */
  readonly needed: number;
  readonly received: Counts;
  /**
   * The newest timestamp of its items, in milliseconds since the epoch, as far as numbers are exact; the smallest of these
   * without items.
   */
  readonly newestTimestampMs: number;
  readonly unknownFields: number;
  /** Series without a decision: each is to be given one. */
  readonly undecided: number;
  readonly metadataEntries: number;
}

/** A series of the step, by its place in bytes(). */
export interface Row extends Counts {
  readonly start: number;
  readonly end: number;
  /** End of the label fields that it begins with, or, when they are not all of them, `end`. */
  readonly labelsEnd: number;
  /** Whether it has items of several epochs. */
  readonly isSplit: boolean;
}

/** A series as the table knows it: its hash, under the key of this engine, in signed words. */
export interface SeriesKey {
  readonly word0: number;
  readonly word1: number;
  readonly word2: number;
  readonly word3: number;
}

/** Series of different salts are sampled independently of each other. */
export interface Salt {
  /** Unsigned halves of 64 bits. */
  readonly low: number;
  readonly high: number;
}

/** What one parcel gets in a step; by itself it is what a parcel is. */
export interface Piece {
  readonly destination: number;
  /** Whether it belongs to the parcel that was open before, see openParcel(). */
  readonly continues: boolean;
  readonly plainBytes: number;
  /** Snappy elements. The ELEMENTS_HEADROOM bytes in front of them, in the same buffer, are free for who has the piece. */
  readonly elements: Uint8Array;
  readonly series: number;
  readonly items: ItemTotals;
}

export interface TableState {
  /** Decisions in both generations, and the memory that they take. */
  readonly series: number;
  readonly bytes: number;
  /** How often the generations have turned. */
  readonly turns: number;
}

// Layouts as in assembly/memory.ts, table.ts and emit.ts, in numbers of four bytes.
const REPORT = {
  rows: 0,
  entries: 1,
  unknownFields: 2,
  consumed: 3,
  needed: 4,
  samples: 5,
  histograms: 6,
  exemplars: 7,
  pieces: 8,
  piecesAt: 9,
  outputAt: 10,
  outputEnd: 11,
  tableSeries: 12,
  tableBytes: 13,
  tableTurns: 14,
  newest: 15,
} as const;
const ROW = {
  stride: 12,
  start: 0,
  end: 1,
  labelsEnd: 2,
  decision: 3,
  samples: 4,
  histograms: 5,
  exemplars: 6,
  kind: 7,
  hash: 8,
} as const;
/** In the lowest of the four bytes of `kind`, and in the one above it. */
const KIND_WHOLE = 1;
const KIND_BITS = 0xff;
const SPLIT_BITS = 0xff00;
const PIECE = {
  stride: 12,
  series: 0,
  samples: 1,
  histograms: 2,
  exemplars: 3,
  destination: 4,
  continues: 5,
  plainBytes: 6,
  output: 7,
  outputEnd: 8,
} as const;
const TALLY_STRIDE = 4;
const DESTINATION_HEADER_BYTES = 16;
const TALLY = 0x80000000;
/** In place of a destination: one more replacement for the one before. */
const FURTHER = 0x40000000;
/** Before a destination or a tally: what part of the items it gets. */
const ITEMS = 0xc0000000;
/** In a record's number of entries. */
const SECTIONED = 0x80000000;
const NO_EPOCH_BEHIND = 0xffffffff;
const NO_SECTION: Section = { firstEpoch: 0, effects: [] };
const UNCHANGED: Replacement = { keep: 0, resume: 0, inserted: new Uint8Array(0) };

export class Engine {
  readonly #program: EngineProgram = instantiate();
  readonly #reportAt: number;
  readonly #rowsAt: number;
  readonly #entriesAt: number;
  #talliesAt = 0;
  /** Views of the memory; new ones are made when it has grown. */
  #bytes: Uint8Array;
  #numbers: Uint32Array;

  constructor(options: EngineOptions) {
    const program = this.#program;
    this.#reportAt = program.reportAt() / 4;
    this.#rowsAt = program.rowsAt() / 4;
    this.#entriesAt = program.metadataAt() / 4;
    this.#bytes = new Uint8Array(program.memory.buffer);
    this.#numbers = new Uint32Array(program.memory.buffer);
    this.configure(options);
  }

  /** Goes on with other options, without a decision. The memory is used again. No request may be under way. */
  configure(options: EngineOptions): void {
    const program = this.#program;
    const { destinations, tallies, bounds, tableSeries, tableBytes, hashKey } = options;
    program.configure(destinations.length, tallies, bounds.length, tableSeries, tableBytes);
    bounds.forEach((bound, index) => {
      program.setBound(index, bound % 2 ** 32, Math.floor(bound / 2 ** 32));
    });
    destinations.forEach(({ maxItems, maxPlainBytes }, number) => {
      program.setLimits(number, maxItems, maxPlainBytes);
    });
    this.#talliesAt = program.talliesAt() / 4;
    this.#refresh();
    this.#bytes.set(hashKey.subarray(0, HASH_KEY_BYTES), program.hashKeyAt());
  }

  /** The engine's memory: valid until a call of uncompress(), setWindow(), decide(), emit() or compress(). */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /**
   * Decompresses a request, which becomes the window.
   *
   * @param block      a snappy block, in pieces
   * @param elementsAt where its elements begin, behind its length
   * @param plainBytes its length
   * @returns false when the elements are not valid
   */
  uncompress(block: readonly Uint8Array[], elementsAt: number, plainBytes: number): boolean {
    let length = 0;
    for (const piece of block) length += piece.length;
    let at = this.#program.reservePacked(length);
    this.#refresh();
    for (const piece of block) {
      this.#bytes.set(piece, at);
      at += piece.length;
    }
    const valid = this.#program.uncompress(elementsAt, length, plainBytes) !== 0;
    this.#refresh();
    return valid;
  }

  /**
   * A hash of 128 bits, in hexadecimal, of the block that was uncompressed last, before anything else was done. Its key is
   * this process's, so nobody outside can make two blocks meet.
   *
   * @param blockBytes how long the block is
   */
  hashOfBlock(blockBytes: number): string {
    const at = this.#program.hashPacked(blockBytes);
    return Buffer.from(this.#bytes.subarray(at, at + 16)).toString("hex");
  }

  /** Where in bytes() the window begins. */
  get windowAt(): number {
    return this.#program.plainAt();
  }

  /** A copy of the window's first bytes. */
  copyWindow(length: number): Uint8Array {
    const at = this.#program.plainAt();
    return this.#copy(at, at + length);
  }

  /** Makes a part of a plain request, from the beginning of a field on, the window. */
  setWindow(part: Uint8Array): void {
    const at = this.#program.reserveWindow(part.length);
    this.#refresh();
    this.#bytes.set(part, at);
  }

  /**
   * Begins a step: scans series of the window, and looks up their decisions.
   *
   * @param maxSeries    how many series and metadata entries it takes at most
   * @param windowBytes  how long the window is
   * @param requestBytes how much of the request there is, from the window's beginning on
   * @param context      series of different contexts have decisions of their own
   * @returns null when what was scanned is not well-formed
   */
  scan(maxSeries: number, windowBytes: number, requestBytes: number, context: number): Step | null {
    if (this.#program.scan(maxSeries, windowBytes, requestBytes) === 0) return null;
    const undecided = this.#program.lookUp(context);
    return {
      consumed: this.#report(REPORT.consumed),
      needed: this.#report(REPORT.needed),
      received: {
        series: this.#report(REPORT.rows),
        samples: this.#report(REPORT.samples),
        histograms: this.#report(REPORT.histograms),
        exemplars: this.#report(REPORT.exemplars),
      },
      newestTimestampMs: this.#newestTimestamp(),
      unknownFields: this.#report(REPORT.unknownFields),
      undecided,
      metadataEntries: this.#report(REPORT.entries),
    };
  }

  /** The next series of the step, from `row` on, that has no decision; -1 when all have one. */
  nextUndecided(row: number): number {
    const rows = this.#report(REPORT.rows);
    const numbers = this.#numbers;
    for (let next = row; next < rows; next++) {
      if (numbers[this.#rowsAt + next * ROW.stride + ROW.decision] === 0) return next;
    }
    return -1;
  }

  row(row: number): Row {
    const at = this.#rowsAt + row * ROW.stride;
    const kind = this.#number(at + ROW.kind);
    const isWhole = (kind & KIND_BITS) === KIND_WHOLE;
    return {
      start: this.#number(at + ROW.start),
      end: this.#number(at + ROW.end),
      labelsEnd: this.#number(at + (isWhole ? ROW.end : ROW.labelsEnd)),
      isSplit: (kind & SPLIT_BITS) !== 0,
      series: 1,
      samples: this.#number(at + ROW.samples),
      histograms: this.#number(at + ROW.histograms),
      exemplars: this.#number(at + ROW.exemplars),
    };
  }

  /** Where the step's metadata entry is in bytes(), its field's tag included. */
  metadataEntry(entry: number): { readonly start: number; readonly end: number } {
    const at = this.#entriesAt + entry * 2;
    return { start: this.#number(at), end: this.#number(at + 1) };
  }

  /**
   * Gives a row its decision, in the place of one that it has. One of several sections is not for rows with items of several
   * epochs: they get what is to become of them as one section, which is not kept.
   *
   * @param sections in ascending order, the first from epoch 0 on; one where the epoch makes no difference
   * @param keep     whether all series of equal label bytes and context get it; those that scan() calls whole never do
   */
  decide(row: number, context: number, sections: readonly Section[], keep: boolean): void {
    const isSectioned = sections.length > 1;
    let bytes = 0;
    let entries = 0;
    for (const { effects } of sections) {
      bytes += bytesOf(effects);
      entries += entriesOf(effects);
      if (!isSectioned) continue;
      bytes += DESTINATION_HEADER_BYTES;
      entries += 1;
    }
    let at = this.#program.decide(row, context, bytes, keep);
    this.#refresh();
    this.#write(at, isSectioned ? (entries | SECTIONED) >>> 0 : entries);
    at += 4;
    for (let section = 0; section < sections.length; section++) {
      const { effects } = sections[section] ?? NO_SECTION;
      if (isSectioned) at = this.#writeSection(at, effects, sections[section + 1]);
      for (const effect of effects) at = this.#writeEffect(at, effect);
    }
  }

  /** Says for the coming emit() that a destination's parcel is open, and what it holds. */
  openParcel(destination: number, items: number, plainBytes: number): void {
    this.#program.setOpenParcel(destination, items, plainBytes);
  }

  /** Ends the step: sends every series where its decision says. The pieces are copies. */
  emit(): Piece[] {
    this.#program.emit();
    this.#refresh();
    const first = this.#report(REPORT.piecesAt) / 4;
    const count = this.#report(REPORT.pieces);
    const pieces: Piece[] = [];
    for (let piece = 0; piece < count; piece++) pieces.push(this.#piece(first + piece * PIECE.stride));
    return pieces;
  }

  #piece(at: number): Piece {
    return {
      destination: this.#number(at + PIECE.destination),
      continues: this.#number(at + PIECE.continues) === 1,
      plainBytes: this.#number(at + PIECE.plainBytes),
      elements: this.#copyElements(this.#number(at + PIECE.output), this.#number(at + PIECE.outputEnd)),
      series: this.#number(at + PIECE.series),
      items: {
        samples: this.#number(at + PIECE.samples),
        histograms: this.#number(at + PIECE.histograms),
        exemplars: this.#number(at + PIECE.exemplars),
      },
    };
  }

  /** What decisions of the emitted step have added to a tally. */
  tally(tally: number): Counts {
    const at = this.#talliesAt + tally * TALLY_STRIDE;
    return {
      series: this.#number(at),
      samples: this.#number(at + 1),
      histograms: this.#number(at + 2),
      exemplars: this.#number(at + 3),
    };
  }

  /** Compresses bytes to snappy elements, with free bytes in front as a piece's; the window is lost. */
  compress(plain: Uint8Array): Uint8Array {
    this.setWindow(plain);
    this.#program.compress(plain.length);
    this.#refresh();
    const at = this.#report(REPORT.outputAt) + ELEMENTS_HEADROOM;
    return this.#copyElements(at, this.#report(REPORT.outputEnd));
  }

  /**
   * Where a row's label bytes fall among the places 0 to SAMPLE_PLACES - 1: evenly, the same in every process, and independent
   * of where the row goes. SAMPLE_PLACES for a row that scan() calls whole: the table never keeps its decision.
   */
  samplePlace(row: number, { low, high }: Salt): number {
    return this.#program.samplePlace(row, low, high);
  }

  /** What knows() asks for a row that is not whole. */
  seriesKey(row: number): SeriesKey {
    const at = this.#rowsAt + row * ROW.stride + ROW.hash;
    return {
      word0: this.#number(at) | 0,
      word1: this.#number(at + 1) | 0,
      word2: this.#number(at + 2) | 0,
      word3: this.#number(at + 3) | 0,
    };
  }

  /** Whether the table has the decision of a series in a context, in one of its generations. Neither moves it nor keeps it. */
  knows({ word0, word1, word2, word3 }: SeriesKey, context: number): boolean {
    return this.#program.knows(word0, word1, word2, word3, context) !== 0;
  }

  get table(): TableState {
    this.#program.reportTable();
    return {
      series: this.#report(REPORT.tableSeries),
      bytes: this.#report(REPORT.tableBytes),
      turns: this.#report(REPORT.tableTurns),
    };
  }

  /** Writes the entry that begins a section, and answers where it ends. */
  #writeSection(at: number, effects: readonly Effect[], next: Section | undefined): number {
    this.#write(at, next?.firstEpoch ?? NO_EPOCH_BEHIND);
    this.#write(at + 4, entriesOf(effects));
    this.#write(at + 8, DESTINATION_HEADER_BYTES + bytesOf(effects));
    this.#write(at + 12, 0);
    return at + DESTINATION_HEADER_BYTES;
  }

  /** Answers where it ends. */
  #writeEffect(start: number, effect: Effect): number {
    const { items } = effect;
    const at = items === undefined ? start : this.#writeEntry(start, ITEMS, itemsEntry(items));
    if (effect.kind === "count") return this.#writeEntry(at, (TALLY | effect.tally) >>> 0, UNCHANGED);
    const { destination, splices } = effect;
    let end = this.#writeEntry(at, destination, splices[0] ?? UNCHANGED);
    for (let i = 1; i < splices.length; i++) end = this.#writeEntry(end, FURTHER, splices[i] ?? UNCHANGED);
    return end;
  }

  #writeEntry(at: number, number: number, splice: Replacement): number {
    this.#write(at, number);
    this.#write(at + 4, splice.keep);
    this.#write(at + 8, splice.resume);
    this.#write(at + 12, splice.inserted.length);
    this.#bytes.set(splice.inserted, at + DESTINATION_HEADER_BYTES);
    return at + entryBytes(splice);
  }

  /** A copy with its headroom. It is by itself: what waits for one upstream must not keep what went to others. */
  #copyElements(start: number, end: number): Uint8Array {
    return this.#copy(start - ELEMENTS_HEADROOM, end).subarray(ELEMENTS_HEADROOM);
  }

  /** Unlike slice(), does not write zeros first. */
  #copy(start: number, end: number): Uint8Array {
    const copy = Buffer.allocUnsafe(end - start);
    copy.set(this.#bytes.subarray(start, end));
    return copy;
  }

  #newestTimestamp(): number {
    const upper = this.#report(REPORT.newest + 1) | 0;
    const timestamp = upper * 2 ** 32 + this.#report(REPORT.newest);
    return Math.min(Math.max(timestamp, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
  }

  #write(at: number, value: number): void {
    this.#numbers[at >>> 2] = value;
  }

  #number(index: number): number {
    return this.#numbers[index] ?? 0;
  }

  #report(index: number): number {
    return this.#numbers[this.#reportAt + index] ?? 0;
  }

  /** Memory that has grown leaves its old views empty. */
  #refresh(): void {
    if (this.#bytes.length > 0) return;
    this.#bytes = new Uint8Array(this.#program.memory.buffer);
    this.#numbers = new Uint32Array(this.#program.memory.buffer);
  }
}

function entryBytes({ inserted }: Replacement): number {
  return DESTINATION_HEADER_BYTES + ((inserted.length + 7) & ~7);
}

/** What effects take in a record. */
function bytesOf(effects: readonly Effect[]): number {
  let bytes = 0;
  for (const effect of effects) {
    if (effect.items !== undefined) bytes += entryBytes(itemsEntry(effect.items));
    if (effect.kind === "count" || effect.splices.length === 0) bytes += DESTINATION_HEADER_BYTES;
    else for (const splice of effect.splices) bytes += entryBytes(splice);
  }
  return bytes;
}

function entriesOf(effects: readonly Effect[]): number {
  let entries = 0;
  for (const effect of effects) {
    if (effect.items !== undefined) entries += 1;
    entries += effect.kind === "count" ? 1 : Math.max(1, effect.splices.length);
  }
  return entries;
}

function itemsEntry({ samples, histograms, exemplars }: ItemTotals): Replacement {
  const inserted = new Uint8Array(Uint32Array.of(samples, histograms, exemplars).buffer);
  return { ...UNCHANGED, inserted };
}
