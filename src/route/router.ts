/**
 * One request in, parcels out: every series to the upstreams that the routes decide, in the order it came.
 *
 * A series' decision is made here, once, from its labels, and replayed by the engine whenever its label bytes come again.
 * The whole request is scanned before anything is answered, so a request that is broken at its end forwards nothing.
 */
import {
  Engine,
  type EngineOptions,
  HASH_KEY_BYTES,
  MAX_STEP_SERIES,
  type Row,
  type Section,
  type SeriesKey,
  type Step,
} from "../engine/engine.ts";
import type { RelabelRuleList } from "../relabel/options.ts";
import { WireError } from "../wire/errors.ts";
import { scanInSteps } from "../wire/scan.ts";
import { readPlainLength, uncompressBlock } from "../wire/snappy.ts";
import { Decider, type Decision } from "./decide.ts";
import { Destinations, type RouterRoute } from "./destinations.ts";
import type { RefusalReason } from "./door.ts";
import { EpochItems } from "./epochItems.ts";
import type { DecisionTableLimits, LabelLimits, ParcelLimits } from "./options.ts";
import { MemoryScan } from "./memoryScan.ts";
import { type HandedSample, LiveSample, type SampleState } from "./liveSample.ts";
import { RequestDecider } from "./requestDecider.ts";
import { type RoutedRequest, RequestParts } from "./requestParts.ts";
import { askedHeader, type RequestTenants } from "./tenants.ts";

/** Plain bytes that a step looks at, unless one series is longer. */
const WINDOW_BYTES = 4 * 1024 * 1024;
const WINDOW_BYTES_PER_SERIES = 2 * 1024;
/** New series in a step, over all routes: each costs microseconds to decide. */
const NEW_SERIES_PER_STEP = 512;
/** A process begins with short steps: until the code is compiled, a new series costs hundreds of microseconds. */
const FIRST_STEP_SERIES = 64;
const STEP_GROWTH = 4;
/** Fields that are read at a time to find what is wrong with a request. */
const EXPLAINED_PER_STEP = 10_000;
/** As much as tells the length of a block, and a block from a framed stream. */
const LENGTH_BYTES = 10;

/** What the router asks its caller, since it has no clock. */
export interface RouterTools {
  /** HASH_KEY_BYTES secret random bytes, see EngineOptions. */
  readonly hashKey: Uint8Array;
  /** Whether others wait for this step to end: then it takes no more new series than it has. */
  readonly isDue: () => boolean;
}

export interface RouterLimits {
  readonly labels: LabelLimits;
  /** Of a request, decompressed. */
  readonly maxPlainBytes: number;
  /** Of a request that holds metadata. */
  readonly metadata: ParcelLimits;
  readonly table: DecisionTableLimits;
}

/** How the decision table does; `newSeries` and `knownSeries` only grow. */
export interface DecisionTableState {
  /** Decisions that are held, by both generations together. */
  readonly series: number;
  readonly bytes: number;
  /** Series that came with a decision in the table, and without. */
  readonly knownSeries: number;
  readonly newSeries: number;
}

/** Bytes of the secret that a router wants. */
export const ROUTER_KEY_BYTES = HASH_KEY_BYTES;

/** Splits requests among the upstreams of all routes. Built once from the configuration. */
export class Router {
  readonly #destinations: Destinations;
  readonly #decider: Decider;
  readonly #limits: RouterLimits;
  readonly #tools: RouterTools;
  /** By route; null for one that does not ask for tenants. */
  readonly #tenantHeaders: readonly (string | null)[];
  #engine: Engine;
  #scan: MemoryScan;
  #sample: LiveSample;
  /** How many series the next step takes at most. */
  #stepSeries = FIRST_STEP_SERIES;
  #knownSeries = 0;
  #newSeries = 0;

  /**
   * @param globalRules applied before all routes
   * @param before      a router that this one takes the place of, when no request is under way there: it must not be used again,
   *                    and its engine's memory is, though not what it has decided; its sample goes on
   */
  constructor(
    globalRules: RelabelRuleList,
    routes: readonly RouterRoute[],
    limits: RouterLimits,
    tools: RouterTools,
    before: Router | null = null,
  ) {
    const options = routes.map(({ route }) => route);
    this.#destinations = new Destinations(routes);
    this.#decider = new Decider(globalRules, options, limits.labels);
    this.#limits = limits;
    this.#tools = tools;
    this.#tenantHeaders = options.map(({ tenant }) => askedHeader(tenant));
    let sample: HandedSample | null = null;
    if (before === null) {
      this.#engine = new Engine(this.#engineOptions);
    } else {
      sample = before.#handOver(this.#engineOptions);
      this.#engine = before.#engine;
      this.#knownSeries = before.#knownSeries;
      this.#newSeries = before.#newSeries;
    }
    this.#scan = new MemoryScan(this.#engine.bytes, limits.labels.maxLabels);
    this.#sample = this.#buildSample(sample);
  }

  get #engineOptions(): EngineOptions {
    return {
      destinations: this.#destinations.limits,
      tallies: this.#destinations.tallies.length,
      bounds: this.#destinations.epochs.bounds,
      tableSeries: this.#limits.table.maxSeries,
      tableBytes: this.#limits.table.maxBytes,
      hashKey: this.#tools.hashKey,
    };
  }

  /**
   * Has its engine go on for another router, and answers what that one's sample begins with. Without the memory for that the
   * engine trips over itself: then this one gets a new one.
   */
  #handOver(options: EngineOptions): HandedSample {
    const sample = this.#sample.handOver();
    try {
      this.#engine.configure(options);
    } catch (error) {
      this.#renewEngine(sample);
      throw error;
    }
    return sample;
  }

  /** A new engine begins with an empty table. */
  #renewEngine(sample: HandedSample | null): void {
    this.#engine = new Engine(this.#engineOptions);
    this.#sample = this.#buildSample(sample);
  }

  /** Of the series in the engine's table, which is empty. @param before that it takes the place of */
  #buildSample(before: HandedSample | null): LiveSample {
    const engine = this.#engine;
    const table = {
      knows: (key: SeriesKey, context: number) => engine.knows(key, context),
      get turns() {
        return engine.table.turns;
      },
    };
    return new LiveSample(this.#tenantHeaders, table, before);
  }

  /** A sample of the series that come in, as they are known now. It takes some milliseconds. */
  get sample(): SampleState {
    return this.#sample.state;
  }

  get decisionTable(): DecisionTableState {
    const { series, bytes } = this.#engine.table;
    return { series, bytes, knownSeries: this.#knownSeries, newSeries: this.#newSeries };
  }

  /**
   * Routes a request in steps, between which other requests can take theirs: the steps yield nothing, the last one returns
   * the parts.
   *
   * @param block   the request's body, a snappy block, in pieces
   * @param tenants whose request it is
   * @throws {WireError} from a step, when the request is malformed anywhere; nothing may be forwarded then
   */
  *route(
    block: readonly Uint8Array[],
    tenants: RequestTenants,
  ): Generator<undefined, RoutedRequest, undefined> {
    try {
      return yield* this.#routeInSteps(block, tenants);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      // It trapped for want of memory, which may be half written now: it cannot even be asked which series it knows.
      this.#renewEngine(null);
      const message = "the request and what would be sent of it are more than the engine's memory holds";
      throw Object.assign(new WireError("WIRE_TOO_LARGE", 0, message), { cause: error });
    }
  }

  *#routeInSteps(
    block: readonly Uint8Array[],
    tenants: RequestTenants,
  ): Generator<undefined, RoutedRequest, undefined> {
    const plainBytes = this.#uncompress(block);
    const blockHash = this.#engine.hashOfBlock(lengthOf(block));
    const parts = new RequestParts(this.#destinations, this.#limits.metadata);
    const decider = new RequestDecider(this.#decider, tenants, this.#tools.isDue);
    const compress = (metadata: Uint8Array): Uint8Array => this.#engine.compress(metadata);
    let windowBytes = Math.min(plainBytes, WINDOW_BYTES);
    // The engine is free for others between steps, so what is longer than one is kept here.
    let plain = plainBytes > windowBytes ? this.#engine.copyWindow(plainBytes) : null;
    let at = 0;
    while (at < plainBytes) {
      const step = this.#step(parts, decider, at, windowBytes, plainBytes - at);
      if (step !== null && at + step.consumed === plainBytes) break;
      plain ??= this.#engine.copyWindow(plainBytes);
      if (step === null) throw yield* this.#explain(plain);
      at += step.consumed;
      parts.packMetadata(compress);
      yield;
      windowBytes = Math.min(plainBytes - at, Math.max(this.#windowBytes, step.needed));
      this.#engine.setWindow(plain.subarray(at, at + windowBytes));
    }
    if (parts.isNoRequest) throw yield* this.#explain(plain ?? this.#engine.copyWindow(plainBytes));
    return { ...parts.finish(compress), blockHash };
  }

  #uncompress(block: readonly Uint8Array[]): number {
    const [first] = block;
    const head = first !== undefined && first.length >= LENGTH_BYTES ? first : Buffer.concat(block);
    const { plainBytes, elementsAt } = readPlainLength(head, this.#limits.maxPlainBytes);
    if (this.#engine.uncompress(block, elementsAt, plainBytes)) return plainBytes;
    uncompressBlock(Buffer.concat(block), this.#limits.maxPlainBytes);
    throw new Error("bug: the engine refuses a snappy block that is valid");
  }

  /**
   * @param at where in the request the window begins
   * @returns what was done; null if something in it is not well-formed, and then nothing was
   */
  #step(
    parts: RequestParts,
    decider: RequestDecider,
    at: number,
    windowBytes: number,
    requestBytes: number,
  ): Pick<Step, "consumed" | "needed"> | null {
    const engine = this.#engine;
    const decided = this.#scanAndDecide(decider, at, windowBytes, requestBytes);
    if (decided === null || decided.step === null) return decided === null ? null : NOTHING_DONE;
    const { step, refused } = decided;
    try {
      for (let entry = 0; entry < step.metadataEntries; entry++) this.#addMetadata(parts, entry);
    } catch (error) {
      return malformed(error);
    }
    for (const { row, reason } of refused) {
      const found = engine.row(row);
      parts.refuse(reason, this.#memoryScan().series(found), found);
    }
    parts.openParcels((destination, items, plainBytes) => {
      engine.openParcel(destination, items, plainBytes);
    });
    parts.add(step, engine.emit());
    parts.addTallies((tally) => engine.tally(tally));
    return step;
  }

  /** Scans the step's series and gives all of them decisions; null if something is not well-formed. */
  #scanAndDecide(
    decider: RequestDecider,
    at: number,
    windowBytes: number,
    requestBytes: number,
  ): DecidedStep | null {
    const { context } = decider.tenants;
    decider.beginStep();
    const most = decider.isLong ? 1 : this.#stepSeries;
    const step = this.#engine.scan(most, windowBytes, requestBytes, context);
    if (step === null) return null;
    try {
      const first = this.#decideRows(decider, at, step, true);
      if (first.rows === step.received.series) {
        this.#countDecided(first.rows, first.newRows.length);
        return { step, refused: first.refused };
      }
      if (first.rows === 0) return { step: null, refused: [] };
      // It takes less. What was decided is in the table now, or the decider has it.
      const shorter = this.#engine.scan(first.rows, windowBytes, requestBytes, context);
      if (shorter === null) return null;
      const { refused } = this.#decideRows(decider, at, shorter, false);
      // It has fewer rows still when as many metadata entries come before them.
      const rows = shorter.received.series;
      this.#countDecided(rows, first.newRows.filter((row) => row < rows).length);
      return { step: shorter, refused };
    } catch (error) {
      return malformed(error);
    }
  }

  /** Counts, and makes the next step so long that it has not too much to decide, if its series are as new as these. */
  #countDecided(rows: number, newSeries: number): void {
    // Metadata by itself says nothing of how new series are.
    if (rows === 0) return;
    this.#newSeries += newSeries;
    this.#knownSeries += rows - newSeries;
    const affordable = NEW_SERIES_PER_STEP / Math.max(1, this.#destinations.routes);
    const series = Math.ceil((affordable * rows) / Math.max(1, newSeries));
    this.#stepSeries = Math.max(1, Math.min(series, this.#stepSeries * STEP_GROWTH, MAX_STEP_SERIES));
  }

  /** A window that a step of so many series rarely leaves unused. */
  get #windowBytes(): number {
    return Math.min(WINDOW_BYTES, this.#stepSeries * WINDOW_BYTES_PER_SERIES);
  }

  /**
   * Decides the rows that have no decision.
   *
   * @param mayEnd whether it stops at the row at which it is due to end
   */
  #decideRows(decider: RequestDecider, at: number, step: Step, mayEnd: boolean): DecidedRows {
    const engine = this.#engine;
    const { context } = decider.tenants;
    const rows = step.received.series;
    const refused: RefusedRow[] = [];
    const newRows: number[] = [];
    if (step.undecided === 0) {
      if (rows > 0) decider.dropLong();
      return { rows, newRows, refused };
    }
    for (let row = engine.nextUndecided(0); row >= 0; row = engine.nextUndecided(row + 1)) {
      const found = engine.row(row);
      const series = this.#memoryScan().series(found);
      const place = at + found.start - engine.windowAt;
      const decision = mayEnd ? decider.decide(place, series) : decider.decideNow(place, series);
      if (decision === null) return { rows: row, newRows, refused };
      if (decision.kind === "refused") refused.push({ row, reason: decision.reason });
      const keep = decider.keeps(decision);
      const sections = this.#destinations.sections(decision);
      const isCut = found.isSplit && sections.length > 1;
      if (keep || !isCut) engine.decide(row, context, sections, keep);
      if (keep) this.#offerToSample(row, found, decider.tenants);
      // What is kept is for messages of one epoch. What becomes of this one depends on its items as well.
      if (isCut) engine.decide(row, context, [this.#splitSection(decision, found)], false);
      newRows.push(row);
      if (mayEnd && this.#tools.isDue()) return { rows: row + 1, newRows, refused };
    }
    return { rows, newRows, refused };
  }

  /** What becomes of a row that a single section of its decision would not be right for. */
  #splitSection(decision: Decision, { start, end }: Row): Section {
    const message = this.#engine.bytes.subarray(start, end);
    const items = new EpochItems(message, this.#destinations.epochs);
    return { firstEpoch: 0, effects: this.#destinations.splitEffects(decision, items) };
  }

  #offerToSample(row: number, { start, labelsEnd }: Row, tenants: RequestTenants): void {
    const engine = this.#engine;
    const place = engine.samplePlace(row, this.#sample.saltOf(tenants));
    if (!this.#sample.wants(place, labelsEnd - start)) return;
    const labels = engine.bytes.slice(start, labelsEnd);
    this.#sample.offer(place, { key: engine.seriesKey(row), tenants, labels });
  }

  #addMetadata(parts: RequestParts, entry: number): void {
    const { start, end } = this.#engine.metadataEntry(entry);
    const isText = this.#memoryScan().metadata(start, end);
    parts.addMetadata(this.#engine.bytes, start, end, isText);
  }

  /** The engine's memory is another array once it has grown. */
  #memoryScan(): MemoryScan {
    const { bytes } = this.#engine;
    if (this.#scan.bytes !== bytes) this.#scan = new MemoryScan(bytes, this.#limits.labels.maxLabels);
    return this.#scan;
  }

  /** What is wrong with a request that the engine refused, found in steps. */
  *#explain(plain: Uint8Array): Generator<undefined, Error, undefined> {
    const visitor = { series: () => undefined, metadata: () => undefined };
    try {
      yield* scanInSteps(plain, this.#limits.labels.maxLabels, visitor, EXPLAINED_PER_STEP, WINDOW_BYTES);
    } catch (error) {
      if (error instanceof WireError) return error;
      throw error;
    }
    return new Error("bug: the engine refuses a request that is well-formed");
  }
}

/** What a step does that waits for a decision. */
const NOTHING_DONE: Pick<Step, "consumed" | "needed"> = { consumed: 0, needed: 0 };

function lengthOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((length, piece) => length + piece.length, 0);
}

/** A row of a step that is refused at the door. */
interface RefusedRow {
  readonly row: number;
  readonly reason: RefusalReason;
}

interface DecidedRows {
  /** How many rows have a decision, from the first on. */
  readonly rows: number;
  /** Those that had none before. */
  readonly newRows: readonly number[];
  readonly refused: readonly RefusedRow[];
}

interface DecidedStep {
  /** null when the first series' decision is not done yet. */
  readonly step: Step | null;
  readonly refused: readonly RefusedRow[];
}

/** null for what is malformed: its place is one in the engine's memory, so the request is read again for its sender. */
function malformed(error: unknown): null {
  if (error instanceof WireError) return null;
  throw error;
}
