/**
 * One request in, parcels out: every series to the upstream that each route decides, in the order it came.
 *
 * The whole request is scanned before anything is answered, so a request that is broken at its end forwards nothing.
 */
import { editedBytes, type LabelEdit, PlainRequest, seriesFieldBytes } from "../wire/emit.ts";
import type { ItemCounts, Parcel } from "../wire/parcel.ts";
import { type SeriesScan, scanRequest } from "../wire/scan.ts";
import { compressBlock } from "../wire/snappy.ts";
import type { Route } from "./decide.ts";
import { checkAtDoor, type RefusalReason } from "./door.ts";
import { labelTextOf } from "./labelText.ts";
import type { LabelLimits, ParcelLimits } from "./options.ts";
import { taskLabelEdit } from "./taskLabel.ts";

/** Refused series that are named in the answer; the rest are counted. */
const MAX_NAMED_REFUSALS = 3;
const MAX_NAMED_CHARACTERS = 200;

/** Series and their items; counts that the caller reports. */
export interface SeriesCounts extends ItemCounts {
  readonly series: number;
}

/** What one upstream of one route gets of a request, to be sent in this order. */
export interface Consignment {
  /** Index of the route, and slot number in it. */
  readonly route: number;
  readonly slot: number;
  readonly parcels: readonly Parcel[];
}

export interface SplitRequest {
  readonly consignments: readonly Consignment[];
  /** Request bodies (snappy blocks) that hold the metadata entries, for every upstream alike. */
  readonly metadata: readonly { readonly body: Uint8Array; readonly entries: number }[];
  readonly metadataEntries: number;
  /** Entries that go nowhere, since a string in them is no UTF-8. */
  readonly metadataDropped: number;
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
  readonly #routes: readonly {
    readonly route: Route;
    readonly limits: ParcelLimits;
    readonly taskLabel: Uint8Array;
  }[];
  readonly #labels: LabelLimits;
  readonly #metadata: ParcelLimits;

  /** @param metadata limits of a request that holds metadata */
  constructor(routes: readonly SplitRoute[], labels: LabelLimits, metadata: ParcelLimits) {
    this.#routes = routes.map(({ route, limits }) => ({
      route,
      limits,
      taskLabel: new TextEncoder().encode(route.options.tasks?.label ?? ""),
    }));
    this.#labels = labels;
    this.#metadata = metadata;
  }

  /**
   * @param plain the request, decompressed
   * @throws {WireError} when it is malformed anywhere
   */
  split(plain: Uint8Array): SplitRequest {
    const destinations = this.#routes.map(() => new Map<number, ParcelBuilder>());
    const metadata = new MetadataBuilder(this.#metadata);
    const missingKeyLabels = this.#routes.map(() => 0);
    const received = new CountTally();
    const refused = new Map<RefusalReason, CountTally>();
    const refusedExamples: { reason: RefusalReason; series: string }[] = [];
    let metadataEntries = 0;
    let metadataDropped = 0;

    const forward = (series: SeriesScan): void => {
      this.#routes.forEach(({ route, limits, taskLabel }, index) => {
        const decision = route.decide(series);
        if (decision.missingKeyLabels) missingKeyLabels[index] = (missingKeyLabels[index] ?? 0) + 1;
        const builder = destinations[index]?.get(decision.slot) ?? new ParcelBuilder(limits);
        destinations[index]?.set(decision.slot, builder);
        const edit = decision.task === null ? null : taskLabelEdit(series, taskLabel, decision.task);
        builder.add(series, edit);
      });
    };
    const unknownFields = scanRequest(plain, this.#labels.maxLabels, {
      series: (series) => {
        received.add(series);
        const reason = checkAtDoor(series, this.#labels);
        if (reason === null) {
          forward(series);
          return;
        }
        const tally = refused.get(reason) ?? new CountTally();
        refused.set(reason, tally);
        tally.add(series);
        if (refusedExamples.length < MAX_NAMED_REFUSALS) {
          refusedExamples.push({ reason, series: labelTextOf(series, MAX_NAMED_CHARACTERS) });
        }
      },
      metadata: (start, end, isText) => {
        metadataEntries += 1;
        if (isText) metadata.add(plain, start, end);
        else metadataDropped += 1;
      },
    });
    return {
      consignments: destinations.flatMap((slots, route) =>
        [...slots].map(([slot, builder]) => ({ route, slot, parcels: builder.finish() })),
      ),
      metadata: metadata.finish(),
      metadataEntries,
      metadataDropped,
      received,
      refused,
      refusedExamples,
      missingKeyLabels,
      unknownFields,
    };
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
  readonly #closed: Parcel[] = [];

  constructor(limits: ParcelLimits) {
    this.#limits = limits;
  }

  add(series: SeriesScan, edit: LabelEdit | null): void {
    const bytes = seriesFieldBytes(editedBytes(series, edit));
    const items = this.#tally.items + series.items;
    if (items > this.#limits.maxItems || this.#plain.length + bytes > this.#limits.maxPlainBytes)
      this.#close();
    this.#plain.appendSeries(series, edit);
    this.#tally.add(series);
  }

  finish(): readonly Parcel[] {
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
