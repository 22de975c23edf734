/**
 * One request in, parcels out: every series to the upstreams that the routes decide, in the order it came.
 *
 * A series' decision is made here, once, from its labels, and replayed by the engine whenever its label bytes come again.
 * The whole request is scanned before anything is answered, so a request that is broken at its end forwards nothing.
 */
import {
  type Effect,
  Engine,
  HASH_KEY_BYTES,
  MAX_STEP_SERIES,
  type Row,
  type Step,
} from "../engine/engine.ts";
import { Cursor } from "../wire/cursor.ts";
import { WireError } from "../wire/errors.ts";
import { scanInSteps, scanSeries, SeriesScan } from "../wire/scan.ts";
import { checkMessage, METADATA_SHAPE } from "../wire/shapes.ts";
import { readPlainLength, uncompressBlock } from "../wire/snappy.ts";
import { NO_SPLICE } from "../wire/splice.ts";
import type { Route } from "./decide.ts";
import { checkAtDoor } from "./door.ts";
import type { DecisionTableLimits, LabelLimits, ParcelLimits } from "./options.ts";
import { type RoutedRequest, RequestParts } from "./requestParts.ts";
import { TaskLabel } from "./taskLabel.ts";

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
/** Requests are of one context until something of a request but its series has a part in decisions. */
const CONTEXT = 0;
const NONE: readonly Effect[] = [];

/** A route, the limits of what it sends, and how many lanes each of its upstreams has. */
export interface RouterRoute {
  readonly route: Route;
  readonly limits: ParcelLimits;
  readonly lanes: number;
}

export interface RouterLimits {
  readonly labels: LabelLimits;
  /** Of a request, decompressed. */
  readonly maxPlainBytes: number;
  /** Of a request that holds metadata. */
  readonly metadata: ParcelLimits;
  readonly table: DecisionTableLimits;
}

/** Where parcels go: index of the route, slot number in it, and lane of that slot's upstream. */
export interface LaneAddress {
  readonly route: number;
  readonly slot: number;
  readonly lane: number;
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
  readonly #routes: readonly LabellingRoute[];
  readonly #limits: RouterLimits;
  /** By the engine's number of a destination. */
  readonly #addresses: readonly LaneAddress[];
  readonly #hashKey: Uint8Array;
  #engine: Engine;
  #scan: MemoryScan;
  /** How many series the next step takes at most. */
  #stepSeries = FIRST_STEP_SERIES;
  #knownSeries = 0;
  #newSeries = 0;

  /** @param hashKey ROUTER_KEY_BYTES secret random bytes, see EngineOptions */
  constructor(routes: readonly RouterRoute[], limits: RouterLimits, hashKey: Uint8Array) {
    const addresses: LaneAddress[] = [];
    this.#routes = routes.map(({ route, limits: parcels, lanes }, index) => {
      const first = addresses.length;
      for (let slot = 0; slot < route.options.upstreams.length; slot++) {
        for (let lane = 0; lane < lanes; lane++) addresses.push({ route: index, slot, lane });
      }
      const taskLabel = route.options.tasks === null ? null : new TaskLabel(route.options.tasks.label);
      return { route, limits: parcels, lanes, first, taskLabel };
    });
    this.#addresses = addresses;
    this.#limits = limits;
    this.#hashKey = hashKey;
    this.#engine = this.#buildEngine();
    this.#scan = new MemoryScan(this.#engine.bytes, limits.labels.maxLabels);
  }

  #buildEngine(): Engine {
    return new Engine({
      destinations: this.#addresses.map(({ route }) => limitsOf(this.#routes, route)),
      tallies: this.#routes.length,
      tableSeries: this.#limits.table.maxSeries,
      tableBytes: this.#limits.table.maxBytes,
      hashKey: this.#hashKey,
    });
  }

  get decisionTable(): DecisionTableState {
    const { series, bytes } = this.#engine.table;
    return { series, bytes, knownSeries: this.#knownSeries, newSeries: this.#newSeries };
  }

  /**
   * Routes a request in steps, between which other requests can take theirs: the steps yield nothing, the last one returns
   * the parts.
   *
   * @param block the request's body, a snappy block, in pieces
   * @throws {WireError} from a step, when the request is malformed anywhere; nothing may be forwarded then
   */
  *route(block: readonly Uint8Array[]): Generator<undefined, RoutedRequest, undefined> {
    try {
      return yield* this.#routeInSteps(block);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      // It trapped for want of memory, which may be half written now. A new engine begins with an empty table.
      this.#engine = this.#buildEngine();
      const message = "the request and what would be sent of it are more than the engine's memory holds";
      throw Object.assign(new WireError("WIRE_TOO_LARGE", 0, message), { cause: error });
    }
  }

  *#routeInSteps(block: readonly Uint8Array[]): Generator<undefined, RoutedRequest, undefined> {
    const plainBytes = this.#uncompress(block);
    const parts = new RequestParts(this.#addresses, this.#routes.length, this.#limits.metadata);
    const compress = (metadata: Uint8Array): Uint8Array => this.#engine.compress(metadata);
    let windowBytes = Math.min(plainBytes, WINDOW_BYTES);
    // The engine is free for others between steps, so what is longer than one is kept here.
    let plain = plainBytes > windowBytes ? this.#engine.copyWindow(plainBytes) : null;
    let at = 0;
    while (at < plainBytes) {
      const step = this.#step(parts, windowBytes, plainBytes - at);
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
    return parts.finish(compress);
  }

  #uncompress(block: readonly Uint8Array[]): number {
    const [first] = block;
    const head = first !== undefined && first.length >= LENGTH_BYTES ? first : Buffer.concat(block);
    const { plainBytes, elementsAt } = readPlainLength(head, this.#limits.maxPlainBytes);
    if (this.#engine.uncompress(block, elementsAt, plainBytes)) return plainBytes;
    uncompressBlock(Buffer.concat(block), this.#limits.maxPlainBytes);
    throw new Error("bug: the engine refuses a snappy block that is valid");
  }

  /** @returns what was done; null if something in it is not well-formed, and then nothing was */
  #step(parts: RequestParts, windowBytes: number, requestBytes: number): Step | null {
    const engine = this.#engine;
    const step = engine.scan(this.#stepSeries, windowBytes, requestBytes, CONTEXT);
    if (step === null) return null;
    try {
      for (let entry = 0; entry < step.metadataEntries; entry++) this.#addMetadata(parts, entry);
      if (step.undecided > 0) this.#decideRows(parts);
    } catch (error) {
      // Its place is one in the engine's memory: the request is read again for the error that its sender understands.
      if (error instanceof WireError) return null;
      throw error;
    }
    this.#countStep(step);
    parts.openParcels((destination, items, plainBytes) => {
      engine.openParcel(destination, items, plainBytes);
    });
    parts.add(step, engine.emit());
    for (let route = 0; route < this.#routes.length; route++) {
      parts.addMissingKeyLabels(route, engine.tally(route).series);
    }
    return step;
  }

  /** Counts, and makes the next step so long that it has not too much to decide, if its series are as new as these. */
  #countStep({ undecided, received }: Step): void {
    this.#newSeries += undecided;
    this.#knownSeries += received.series - undecided;
    const affordable = NEW_SERIES_PER_STEP / Math.max(1, this.#routes.length);
    const series = Math.ceil((affordable * received.series) / Math.max(1, undecided));
    this.#stepSeries = Math.max(1, Math.min(series, this.#stepSeries * STEP_GROWTH, MAX_STEP_SERIES));
  }

  /** A window that a step of so many series rarely leaves unused. */
  get #windowBytes(): number {
    return Math.min(WINDOW_BYTES, this.#stepSeries * WINDOW_BYTES_PER_SERIES);
  }

  #decideRows(parts: RequestParts): void {
    const engine = this.#engine;
    for (let row = engine.nextUndecided(0); row >= 0; row = engine.nextUndecided(row + 1)) {
      const found = engine.row(row);
      const series = this.#memoryScan().series(found);
      const reason = checkAtDoor(series, this.#limits.labels);
      if (reason !== null) parts.refuse(reason, series, found);
      // A refused series is looked at each time it comes: its sender is told each time.
      engine.decide(row, CONTEXT, reason === null ? this.#effects(series) : NONE, reason === null);
    }
  }

  #effects(series: SeriesScan): Effect[] {
    const effects: Effect[] = [];
    this.#routes.forEach(({ route, lanes, first, taskLabel }, index) => {
      const { slot, task, placementKey, missingKeyLabels } = route.decide(series);
      const splice = taskLabel === null || task === null ? NO_SPLICE : taskLabel.splice(series, task);
      const lane = laneOf(placementKey, lanes);
      effects.push({ kind: "send", destination: first + slot * lanes + lane, ...splice });
      if (missingKeyLabels) effects.push({ kind: "count", tally: index });
    });
    return effects;
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

interface LabellingRoute extends RouterRoute {
  /** The engine's number for lane 0 of slot 0. */
  readonly first: number;
  /** null in a route without tasks. */
  readonly taskLabel: TaskLabel | null;
}

/** Scans series and metadata where they are in the engine's memory. */
class MemoryScan {
  readonly bytes: Uint8Array;
  readonly #cursor: Cursor;
  readonly #series: SeriesScan;

  constructor(bytes: Uint8Array, maxLabels: number) {
    this.bytes = bytes;
    this.#cursor = new Cursor(bytes);
    this.#series = new SeriesScan(bytes, maxLabels);
  }

  /** Valid until the next call. */
  series({ start, labelsEnd }: Row): SeriesScan {
    this.#cursor.pos = start;
    scanSeries(this.#cursor, labelsEnd, this.#series);
    return this.#series;
  }

  /** Whether all strings of an entry are UTF-8. */
  metadata(start: number, end: number): boolean {
    this.#cursor.pos = start;
    this.#cursor.readTag();
    return checkMessage(this.#cursor, this.#cursor.readEnd(), METADATA_SHAPE) && this.#cursor.pos === end;
  }
}

function limitsOf(routes: readonly RouterRoute[], route: number): ParcelLimits {
  const limits = routes[route]?.limits;
  if (limits === undefined) throw new Error(`bug: no route ${route}`);
  return limits;
}

/** Lanes keep the order of a series, so a series has one lane; neighbouring tasks get different ones. */
function laneOf(placementKey: number, lanes: number): number {
  return placementKey % lanes;
}
