/**
 * The oracle of routing: the same as src/route/router.ts, series by series over plain bytes, without table or engine.
 *
 * It shares the code that decides (src/route/decide.ts, door.ts, taskLabel.ts) and the scanner of src/wire, which have tests
 * of their own; all that moves, counts, cuts and compresses bytes is its own.
 */
import type { ItemCounts } from "../../src/wire/parcel.ts";
import { type RequestVisitor, scanRequest, type SeriesScan } from "../../src/wire/scan.ts";
import { compressBlock } from "../../src/wire/snappy.ts";
import type { Route } from "../../src/route/decide.ts";
import { checkAtDoor, type RefusalReason } from "../../src/route/door.ts";
import { labelTextOf } from "../../src/route/labelText.ts";
import type { LabelLimits, ParcelLimits } from "../../src/route/options.ts";
import { TaskLabel } from "../../src/route/taskLabel.ts";
import { NO_SPLICE, type Splice } from "../../src/wire/splice.ts";
import { PlainRequest, seriesFieldBytes, splicedBytes } from "./plainRequest.ts";

/** Refused series that are named in the answer; the rest are counted. */
const MAX_NAMED_REFUSALS = 3;
const MAX_NAMED_CHARACTERS = 200;

/** Series and their items; counts that the caller reports. */
export interface SeriesCounts extends ItemCounts {
  readonly series: number;
}

/** A parcel as a request of its own: a whole snappy block. */
export interface SplitParcel {
  readonly body: Uint8Array;
  readonly plainBytes: number;
  readonly series: number;
  readonly items: ItemCounts;
}

/** What one upstream of one route gets of a request, to be sent in this order. */
export interface Consignment {
  /** Index of the route, and slot number in it. */
  readonly route: number;
  readonly slot: number;
  readonly parcels: readonly SplitParcel[];
}

export interface SplitRequest {
  readonly consignments: readonly Consignment[];
  /** Request bodies (snappy blocks) that hold the metadata entries, for every upstream alike. */
  readonly metadata: readonly { readonly body: Uint8Array; readonly entries: number }[];
  readonly metadataEntries: number;
  /** Entries that go nowhere, since a string in them is no UTF-8. */
  readonly metadataDropped: number;
  readonly metadataBeyondLimit: number;
  readonly received: SeriesCounts;
  readonly refused: ReadonlyMap<RefusalReason, SeriesCounts>;
  /** The first refused series, as text. */
  readonly refusedExamples: readonly { readonly reason: RefusalReason; readonly series: string }[];
  /** By route: series without any of the labels that the route keys by. */
  readonly missingKeyLabels: readonly number[];
  /** Top-level fields that this version does not know; they are not forwarded. */
  readonly unknownFields: number;
}

/** A route and the limits of what it sends. */
export interface SplitRoute {
  readonly route: Route;
  readonly limits: ParcelLimits;
}

/** Splits requests among the upstreams of all routes. Built once from the configuration. */
export class Splitter {
  readonly #routes: readonly LabellingRoute[];
  readonly #labels: LabelLimits;
  readonly #metadata: ParcelLimits;

  /** @param metadata limits of a request that holds metadata */
  constructor(routes: readonly SplitRoute[], labels: LabelLimits, metadata: ParcelLimits) {
    this.#routes = routes.map((each) => ({
      ...each,
      taskLabel: each.route.options.tasks === null ? null : new TaskLabel(each.route.options.tasks.label),
    }));
    this.#labels = labels;
    this.#metadata = metadata;
  }

  /**
   * Splits a request.
   *
   * @param plain the request, decompressed
   * @throws {WireError} when the request is malformed anywhere; nothing may be forwarded then
   */
  split(plain: Uint8Array): SplitRequest {
    const parts = new RequestParts(plain, this.#routes, this.#labels, this.#metadata);
    return parts.finish(scanRequest(plain, this.#labels.maxLabels, parts));
  }
}

/** A route and its task label; null in a route without tasks. */
interface LabellingRoute extends SplitRoute {
  readonly taskLabel: TaskLabel | null;
}

/** The parts of one request, filled as it is scanned. */
class RequestParts implements RequestVisitor {
  readonly #plain: Uint8Array;
  readonly #routes: readonly RouteParts[];
  readonly #labels: LabelLimits;
  readonly #metadata: MetadataBuilder;
  #metadataEntries = 0;
  #metadataDropped = 0;
  readonly #received = new CountTally();
  readonly #refused = new Map<RefusalReason, CountTally>();
  readonly #refusedExamples: { reason: RefusalReason; series: string }[] = [];

  constructor(
    plain: Uint8Array,
    routes: readonly LabellingRoute[],
    labels: LabelLimits,
    metadata: ParcelLimits,
  ) {
    this.#plain = plain;
    this.#routes = routes.map((route) => new RouteParts(route));
    this.#labels = labels;
    this.#metadata = new MetadataBuilder(metadata);
  }

  series(series: SeriesScan): void {
    this.#received.add(series);
    const reason = checkAtDoor(series, this.#labels);
    if (reason !== null) this.#refuse(series, reason);
    else for (const route of this.#routes) route.add(series);
  }

  metadata(start: number, end: number, isText: boolean): void {
    this.#metadataEntries += 1;
    if (isText) this.#metadata.add(this.#plain, start, end);
    else this.#metadataDropped += 1;
  }

  finish(unknownFields: number): SplitRequest {
    return {
      consignments: this.#routes.flatMap((route, index) => route.finish(index)),
      metadata: this.#metadata.finish(),
      metadataEntries: this.#metadataEntries,
      metadataDropped: this.#metadataDropped,
      // Requests of so many are not compared.
      metadataBeyondLimit: 0,
      received: this.#received,
      refused: this.#refused,
      refusedExamples: this.#refusedExamples,
      missingKeyLabels: this.#routes.map((route) => route.missingKeyLabels),
      unknownFields,
    };
  }

  #refuse(series: SeriesScan, reason: RefusalReason): void {
    const tally = this.#refused.get(reason) ?? new CountTally();
    this.#refused.set(reason, tally);
    tally.add(series);
    if (this.#refusedExamples.length < MAX_NAMED_REFUSALS) {
      this.#refusedExamples.push({ reason, series: labelTextOf(series, MAX_NAMED_CHARACTERS) });
    }
  }
}

/** What one route gets of a request. */
class RouteParts {
  readonly #route: LabellingRoute;
  /** By slot, in the order in which the request's series come to them. */
  readonly #builders = new Map<number, ParcelBuilder>();
  #missingKeyLabels = 0;

  constructor(route: LabellingRoute) {
    this.#route = route;
  }

  get missingKeyLabels(): number {
    return this.#missingKeyLabels;
  }

  add(series: SeriesScan): void {
    const { route, limits, taskLabel } = this.#route;
    const { slot, task, missingKeyLabels } = route.decide(series);
    if (missingKeyLabels) this.#missingKeyLabels += 1;
    const builder = this.#builders.get(slot) ?? new ParcelBuilder(limits);
    this.#builders.set(slot, builder);
    builder.add(series, taskLabel === null || task === null ? NO_SPLICE : taskLabel.splice(series, task));
  }

  /** @param route this route's index */
  finish(route: number): Consignment[] {
    return [...this.#builders].map(([slot, builder]) => ({ route, slot, parcels: builder.finish() }));
  }
}

/** Counts that grow. */
class CountTally implements SeriesCounts {
  series = 0;
  samples = 0;
  histograms = 0;
  exemplars = 0;

  get items(): number {
    return this.samples + this.histograms + this.exemplars;
  }

  add(series: SeriesScan): void {
    this.series += 1;
    this.samples += series.samples;
    this.histograms += series.histograms;
    this.exemplars += series.exemplars;
  }
}

/** Fills parcels up to their limits and compresses each as it is closed. */
class ParcelBuilder {
  readonly #limits: ParcelLimits;
  readonly #plain = new PlainRequest();
  #tally = new CountTally();
  readonly #closed: SplitParcel[] = [];

  constructor(limits: ParcelLimits) {
    this.#limits = limits;
  }

  add(series: SeriesScan, splice: Splice): void {
    const bytes = seriesFieldBytes(splicedBytes(series, splice));
    const items = this.#tally.items + series.items;
    if (items > this.#limits.maxItems || this.#plain.length + bytes > this.#limits.maxPlainBytes)
      this.#close();
    this.#plain.appendSeries(series, splice);
    this.#tally.add(series);
  }

  finish(): readonly SplitParcel[] {
    this.#close();
    return this.#closed;
  }

  #close(): void {
    if (this.#plain.length === 0) return;
    const { series, samples, histograms, exemplars } = this.#tally;
    this.#closed.push({
      body: compressBlock(this.#plain.view()),
      plainBytes: this.#plain.length,
      series,
      items: { samples, histograms, exemplars },
    });
    this.#plain.clear();
    this.#tally = new CountTally();
  }
}

/** Fills requests that hold metadata only; an entry counts as one item. */
class MetadataBuilder {
  readonly #limits: ParcelLimits;
  readonly #plain = new PlainRequest();
  #entries = 0;
  readonly #closed: { readonly body: Uint8Array; readonly entries: number }[] = [];

  constructor(limits: ParcelLimits) {
    this.#limits = limits;
  }

  add(bytes: Uint8Array, start: number, end: number): void {
    const full = this.#plain.length + (end - start) > this.#limits.maxPlainBytes;
    if (full || this.#entries === this.#limits.maxItems) this.#close();
    this.#plain.appendField(bytes, start, end);
    this.#entries += 1;
  }

  finish(): SplitRequest["metadata"] {
    this.#close();
    return this.#closed;
  }

  #close(): void {
    if (this.#entries === 0) return;
    this.#closed.push({ body: compressBlock(this.#plain.view()), entries: this.#entries });
    this.#plain.clear();
    this.#entries = 0;
  }
}
