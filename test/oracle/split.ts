/**
 * The oracle of routing: the same as src/route/router.ts, series by series over plain bytes, without table or engine.
 *
 * It shares the code that decides (src/route/decide.ts) and the scanner of src/wire, which have tests of their own; all that
 * moves, counts, cuts and compresses bytes is its own.
 */
import type { ItemCounts } from "../../src/wire/parcel.ts";
import { type RequestVisitor, scanRequest, type SeriesScan } from "../../src/wire/scan.ts";
import { compressBlock } from "../../src/wire/snappy.ts";
import { copyFor, type Decision, Decider, type RouteDecision } from "../../src/route/decide.ts";
import type { RefusalReason } from "../../src/route/door.ts";
import { labelTextOf } from "../../src/route/labelText.ts";
import type { RelabelRuleList } from "../../src/relabel/options.ts";
import type { LabelLimits, ParcelLimits, RouteOptions } from "../../src/route/options.ts";
import type { Tally } from "../../src/route/tally.ts";
import type { Tenant } from "../../src/route/tenants.ts";
import type { Splice } from "../../src/wire/splice.ts";
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

/** What one upstream of one route gets of a request for one replica, to be sent in this order. */
export interface Consignment {
  /** Index of the route, and of the upstream in it. */
  readonly route: number;
  readonly upstream: number;
  readonly replica: number;
  /** Every upstream has one. */
  readonly lane: number;
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
  /** What is counted of series besides where they go. */
  readonly tallies: readonly { readonly tally: Tally; readonly counts: SeriesCounts }[];
  /** Top-level fields that this version does not know; they are not forwarded. */
  readonly unknownFields: number;
}

/** A route and the limits of what it sends. */
export interface SplitRoute {
  readonly route: RouteOptions;
  readonly limits: ParcelLimits;
}

/** Splits requests among the upstreams of all routes. Built once from the configuration. */
export class Splitter {
  readonly #routes: readonly SplitRoute[];
  readonly #labels: LabelLimits;
  readonly #metadata: ParcelLimits;
  readonly #decider: Decider;

  /** @param metadata limits of a request that holds metadata */
  constructor(
    globalRules: RelabelRuleList,
    routes: readonly SplitRoute[],
    labels: LabelLimits,
    metadata: ParcelLimits,
  ) {
    this.#routes = routes;
    this.#labels = labels;
    this.#metadata = metadata;
    this.#decider = new Decider(
      globalRules,
      routes.map(({ route }) => route),
      labels,
    );
  }

  /**
   * Splits a request.
   *
   * @param plain   the request, decompressed
   * @param tenants by route
   * @throws {WireError} when the request is malformed anywhere; nothing may be forwarded then
   */
  split(plain: Uint8Array, tenants: readonly (Tenant | null)[]): SplitRequest {
    const parts = new RequestParts(plain, this.#routes, this.#metadata, (series) =>
      this.#decider.decide(series, tenants),
    );
    return parts.finish(scanRequest(plain, this.#labels.maxLabels, parts));
  }
}

/** The parts of one request, filled as it is scanned. */
class RequestParts implements RequestVisitor {
  readonly #plain: Uint8Array;
  readonly #routes: readonly RouteParts[];
  readonly #decide: (series: SeriesScan) => Decision;
  readonly #metadata: MetadataBuilder;
  #metadataEntries = 0;
  #metadataDropped = 0;
  readonly #received = new CountTally();
  readonly #refused = new Map<RefusalReason, CountTally>();
  readonly #refusedExamples: { reason: RefusalReason; series: string }[] = [];
  readonly #tallies = new Map<string, CountTally>();

  constructor(
    plain: Uint8Array,
    routes: readonly SplitRoute[],
    metadata: ParcelLimits,
    decide: (series: SeriesScan) => Decision,
  ) {
    this.#plain = plain;
    this.#routes = routes.map((route) => new RouteParts(route));
    this.#decide = decide;
    this.#metadata = new MetadataBuilder(metadata);
  }

  series(series: SeriesScan): void {
    this.#received.add(series);
    const decision = this.#decide(series);
    if (decision.kind === "refused") {
      this.#refuse(series, decision.reason);
      return;
    }
    const routes = this.#routes.map((_, index): RouteDecision => {
      const ofRoute = decision.kind === "offered" ? decision.routes[index] : undefined;
      return ofRoute ?? { kind: "not_selected" };
    });
    routes.forEach((ofRoute, route) => {
      this.#offer(route, ofRoute, series);
    });
    if (decision.kind === "dropped") this.#count({ kind: "unrouted", reason: decision.reason }, series);
    else if (routes.every(({ kind }) => kind === "not_selected")) {
      this.#count({ kind: "unrouted", reason: "no_route" }, series);
    }
  }

  #offer(route: number, decision: RouteDecision, series: SeriesScan): void {
    if (decision.kind === "not_selected") {
      this.#count({ kind: "not_selected", route }, series);
      return;
    }
    if (decision.kind === "dropped") {
      const replicas = this.#routes[route]?.replicas ?? 0;
      for (let replica = 0; replica < replicas; replica++) {
        this.#count({ kind: "dropped", route, replica, reason: decision.reason }, series);
      }
      return;
    }
    const { placed, copies } = decision;
    for (const [replica, upstream] of (placed.places[0]?.upstreams ?? []).entries()) {
      const copy = copyFor(copies, upstream);
      if (copy.kind === "dropped")
        this.#count({ kind: "dropped", route, replica, reason: copy.reason }, series);
      else this.#routes[route]?.add(series, upstream, replica, copy.splices);
    }
    if (placed.missingKeyLabels) this.#count({ kind: "missing_key_labels", route }, series);
  }

  #count(tally: Tally, series: SeriesScan): void {
    const key = JSON.stringify(tally);
    const counts = this.#tallies.get(key) ?? new CountTally();
    this.#tallies.set(key, counts);
    counts.add(series);
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
      tallies: [...this.#tallies].map(([key, counts]) => ({ tally: JSON.parse(key) as Tally, counts })),
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
  readonly replicas: number;
  readonly #limits: ParcelLimits;
  /** By upstream and replica, in the order in which the request's series come to them. */
  readonly #builders = new Map<string, { upstream: number; replica: number; builder: ParcelBuilder }>();

  constructor({ route, limits }: SplitRoute) {
    this.replicas = route.placement.replicas;
    this.#limits = limits;
  }

  add(series: SeriesScan, upstream: number, replica: number, splices: readonly Splice[]): void {
    const key = `${upstream} ${replica}`;
    const part = this.#builders.get(key) ?? { upstream, replica, builder: new ParcelBuilder(this.#limits) };
    this.#builders.set(key, part);
    part.builder.add(series, splices);
  }

  /** @param route this route's index */
  finish(route: number): Consignment[] {
    return [...this.#builders.values()].map(({ upstream, replica, builder }) => ({
      route,
      upstream,
      replica,
      lane: 0,
      parcels: builder.finish(),
    }));
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

  add(series: SeriesScan, splices: readonly Splice[]): void {
    const bytes = seriesFieldBytes(splicedBytes(series, splices));
    const items = this.#tally.items + series.items;
    if (items > this.#limits.maxItems || this.#plain.length + bytes > this.#limits.maxPlainBytes)
      this.#close();
    this.#plain.appendSeries(series, splices);
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
