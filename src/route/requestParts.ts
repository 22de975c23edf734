/** What becomes of one request, gathered step by step: parcels by destination, metadata, refusals and counts. */
import type { Counts, Piece, Step } from "../engine/engine.ts";
import type { LabelSpans } from "../hash/labelOrder.ts";
import { type ItemCounts, joinParcels, type Parcel, withHeadroom } from "../wire/parcel.ts";
import type { RefusalReason } from "./door.ts";
import { labelTextOf } from "./labelText.ts";
import type { ParcelLimits } from "./options.ts";
import type { LaneAddress } from "./router.ts";

/** Refused series that are named in the answer; the rest are counted. */
const MAX_NAMED_REFUSALS = 3;
const MAX_NAMED_CHARACTERS = 200;

/** Series and their items; counts that the caller reports. */
export interface SeriesCounts extends ItemCounts {
  readonly series: number;
}

/** What one lane of one upstream gets of a request, to be sent in this order. */
export interface Consignment extends LaneAddress {
  readonly parcels: readonly Parcel[];
}

export interface RoutedRequest {
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

export class RequestParts {
  readonly #addresses: readonly LaneAddress[];
  readonly #metadataLimits: ParcelLimits;
  /** By destination, in the order in which the request's series came to them. */
  readonly #parcels = new Map<number, Parcel[]>();
  readonly #metadata: Uint8Array[] = [];
  #metadataEntries = 0;
  #metadataDropped = 0;
  readonly #received = new CountTally();
  readonly #refused = new Map<RefusalReason, CountTally>();
  readonly #refusedExamples: { reason: RefusalReason; series: string }[] = [];
  readonly #missingKeyLabels: number[];
  #unknownFields = 0;

  /** @param metadata limits of a request that holds metadata; an entry counts as one item */
  constructor(addresses: readonly LaneAddress[], routes: number, metadata: ParcelLimits) {
    this.#addresses = addresses;
    this.#metadataLimits = metadata;
    this.#missingKeyLabels = new Array<number>(routes).fill(0);
  }

  /** Whether all that came are fields that this version does not know: answered with success, they would be lost. */
  get isNoRequest(): boolean {
    return this.#unknownFields > 0 && this.#received.series === 0 && this.#metadataEntries === 0;
  }

  refuse(reason: RefusalReason, series: LabelSpans, counts: Counts): void {
    const tally = this.#refused.get(reason) ?? new CountTally();
    this.#refused.set(reason, tally);
    tally.add(counts);
    if (this.#refusedExamples.length < MAX_NAMED_REFUSALS) {
      this.#refusedExamples.push({ reason, series: labelTextOf(series, MAX_NAMED_CHARACTERS) });
    }
  }

  /** @param field of the request, tag included */
  addMetadata(field: Uint8Array, isText: boolean): void {
    this.#metadataEntries += 1;
    if (isText) this.#metadata.push(field);
    else this.#metadataDropped += 1;
  }

  addMissingKeyLabels(route: number, series: number): void {
    this.#missingKeyLabels[route] = (this.#missingKeyLabels[route] ?? 0) + series;
  }

  /** Tells of every parcel that an earlier step has left open. */
  openParcels(tell: (destination: number, items: number, plainBytes: number) => void): void {
    for (const [destination, parcels] of this.#parcels) {
      const open = parcels[parcels.length - 1];
      if (open === undefined) continue;
      const { samples, histograms, exemplars } = open.items;
      tell(destination, samples + histograms + exemplars, open.plainBytes);
    }
  }

  /** Adds what a step got. */
  add(step: Step, pieces: readonly Piece[]): void {
    this.#received.add(step.received);
    this.#unknownFields += step.unknownFields;
    for (const piece of pieces) {
      const parcels = this.#parcels.get(piece.destination);
      const open = parcels?.[parcels.length - 1];
      if (parcels === undefined || open === undefined) this.#parcels.set(piece.destination, [piece]);
      else if (piece.continues) parcels[parcels.length - 1] = joined(open, piece);
      else parcels.push(piece);
    }
  }

  /** @param compress to snappy elements */
  finish(compress: (plain: Uint8Array) => Uint8Array): RoutedRequest {
    return {
      consignments: [...this.#parcels].map(([destination, parcels]) => this.#consign(destination, parcels)),
      metadata: this.#packMetadata(compress),
      metadataEntries: this.#metadataEntries,
      metadataDropped: this.#metadataDropped,
      received: this.#received,
      refused: this.#refused,
      refusedExamples: this.#refusedExamples,
      missingKeyLabels: this.#missingKeyLabels,
      unknownFields: this.#unknownFields,
    };
  }

  #consign(destination: number, parcels: readonly Parcel[]): Consignment {
    const address = this.#addresses[destination];
    if (address === undefined) throw new Error(`bug: no destination ${destination}`);
    return { route: address.route, slot: address.slot, lane: address.lane, parcels };
  }

  #packMetadata(compress: (plain: Uint8Array) => Uint8Array): RoutedRequest["metadata"] {
    const { maxItems, maxPlainBytes } = this.#metadataLimits;
    const packed: { readonly body: Uint8Array; readonly entries: number }[] = [];
    let entries: Uint8Array[] = [];
    let bytes = 0;
    const close = (): void => {
      if (entries.length === 0) return;
      const plain = Buffer.concat(entries);
      const body = joinParcels([{ elements: compress(plain), plainBytes: plain.length }]);
      packed.push({ body, entries: entries.length });
      entries = [];
      bytes = 0;
    };
    for (const field of this.#metadata) {
      if (bytes + field.length > maxPlainBytes || entries.length === maxItems) close();
      entries.push(field);
      bytes += field.length;
    }
    close();
    return packed;
  }
}

/** A parcel and what it gets in a later step. */
function joined(parcel: Parcel, more: Parcel): Parcel {
  return {
    elements: withHeadroom(parcel.elements, more.elements),
    plainBytes: parcel.plainBytes + more.plainBytes,
    series: parcel.series + more.series,
    items: {
      samples: parcel.items.samples + more.items.samples,
      histograms: parcel.items.histograms + more.items.histograms,
      exemplars: parcel.items.exemplars + more.items.exemplars,
    },
  };
}

/** Counts that grow. */
class CountTally implements SeriesCounts {
  series = 0;
  samples = 0;
  histograms = 0;
  exemplars = 0;

  add(counts: Counts): void {
    this.series += counts.series;
    this.samples += counts.samples;
    this.histograms += counts.histograms;
    this.exemplars += counts.exemplars;
  }
}
