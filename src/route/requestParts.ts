/** What becomes of one request, gathered step by step: parcels by destination, metadata, refusals and counts. */
import type { Counts, Piece, Step } from "../engine/engine.ts";
import type { LabelSpans } from "../hash/labelOrder.ts";
import { type ItemCounts, type Parcel, withHeadroom } from "../wire/parcel.ts";
import type { Destinations, LaneAddress } from "./destinations.ts";
import type { RefusalReason } from "./door.ts";
import { labelTextOf } from "./labelText.ts";
import { MetadataBodies, type MetadataBody } from "./metadataBodies.ts";
import type { ParcelLimits } from "./options.ts";
import type { Tally } from "./tally.ts";

/** Refused series that are named in the answer; the rest are counted. */
const MAX_NAMED_REFUSALS = 3;
const MAX_NAMED_CHARACTERS = 200;

/** Series and their items; counts that the caller reports. */
export interface SeriesCounts extends ItemCounts {
  readonly series: number;
}

/** What one lane of one upstream gets of a request for one replica, to be sent in this order. */
export interface Consignment extends LaneAddress {
  readonly parcels: readonly Parcel[];
}

export interface RoutedRequest {
  readonly consignments: readonly Consignment[];
  /** Request bodies (snappy blocks) that hold the metadata entries, for every upstream alike. */
  readonly metadata: readonly MetadataBody[];
  readonly metadataEntries: number;
  /** Entries that go nowhere, since a string in them is no UTF-8. */
  readonly metadataDropped: number;
  /** Entries that go nowhere, since they are more than one request may have. */
  readonly metadataBeyondLimit: number;
  readonly received: SeriesCounts;
  readonly refused: ReadonlyMap<RefusalReason, SeriesCounts>;
  /** The first refused series, as text. */
  readonly refusedExamples: readonly { readonly reason: RefusalReason; readonly series: string }[];
  /** What is counted of series besides where they go, as far as there are any. */
  readonly tallies: readonly { readonly tally: Tally; readonly counts: SeriesCounts }[];
  /** Top-level fields that this version does not know; they are not forwarded. */
  readonly unknownFields: number;
  /** Of the body: equal for equal bytes, and for no others that can be found without this process's key. */
  readonly blockHash: string;
}

export class RequestParts {
  readonly #destinations: Destinations;
  /** By destination, in the order in which the request's series came to them. */
  readonly #parcels = new Map<number, Piece[][]>();
  readonly #metadata: MetadataBodies;
  #metadataEntries = 0;
  #metadataDropped = 0;
  readonly #received = new CountTally();
  readonly #refused = new Map<RefusalReason, CountTally>();
  readonly #refusedExamples: { reason: RefusalReason; series: string }[] = [];
  readonly #tallies = new Map<Tally, CountTally>();
  #unknownFields = 0;
  #newestTimestampMs = Number.MIN_SAFE_INTEGER;

  /** @param metadata limits of a request that holds metadata; an entry counts as one item */
  constructor(destinations: Destinations, metadata: ParcelLimits) {
    this.#destinations = destinations;
    this.#metadata = new MetadataBodies(metadata);
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

  /** Adds bytes[start, end), a whole field, tag included; they are copied. */
  addMetadata(bytes: Uint8Array, start: number, end: number, isText: boolean): void {
    this.#metadataEntries += 1;
    if (isText) this.#metadata.add(bytes, start, end);
    else this.#metadataDropped += 1;
  }

  /** Compresses the metadata that fills requests, once a step is over. */
  packMetadata(compress: (plain: Uint8Array) => Uint8Array): void {
    this.#metadata.pack(compress);
  }

  /** Adds what a step counted, by number of the tally. */
  addTallies(countsOf: (number: number) => Counts): void {
    this.#destinations.tallies.forEach((tally, number) => {
      const counts = countsOf(number);
      if (counts.series === 0) return;
      const sum = this.#tallies.get(tally) ?? new CountTally();
      this.#tallies.set(tally, sum);
      sum.add(counts);
    });
  }

  /** Tells of every parcel that an earlier step has left open. */
  openParcels(tell: (destination: number, items: number, plainBytes: number) => void): void {
    for (const [destination, parcels] of this.#parcels) {
      let items = 0;
      let plainBytes = 0;
      for (const piece of parcels[parcels.length - 1] ?? []) {
        items += piece.items.samples + piece.items.histograms + piece.items.exemplars;
        plainBytes += piece.plainBytes;
      }
      tell(destination, items, plainBytes);
    }
  }

  /** Adds what a step got. */
  add(step: Step, pieces: readonly Piece[]): void {
    this.#received.add(step.received);
    this.#unknownFields += step.unknownFields;
    this.#newestTimestampMs = Math.max(this.#newestTimestampMs, step.newestTimestampMs);
    for (const piece of pieces) {
      const parcels = this.#parcels.get(piece.destination);
      const open = parcels?.[parcels.length - 1];
      if (parcels === undefined || open === undefined) this.#parcels.set(piece.destination, [[piece]]);
      else if (piece.continues) open.push(piece);
      else parcels.push([piece]);
    }
  }

  /** @param compress to snappy elements */
  finish(compress: (plain: Uint8Array) => Uint8Array): Omit<RoutedRequest, "blockHash"> {
    return {
      consignments: [...this.#parcels].map(([destination, parcels]) => this.#consign(destination, parcels)),
      metadata: this.#metadata.finish(compress),
      metadataEntries: this.#metadataEntries,
      metadataDropped: this.#metadataDropped,
      metadataBeyondLimit: this.#metadata.dropped,
      received: this.#received,
      refused: this.#refused,
      refusedExamples: this.#refusedExamples,
      tallies: [...this.#tallies].map(([tally, counts]) => ({ tally, counts })),
      unknownFields: this.#unknownFields,
    };
  }

  #consign(destination: number, parcels: readonly (readonly Piece[])[]): Consignment {
    const address = this.#destinations.addresses[destination];
    if (address === undefined) throw new Error(`bug: no destination ${destination}`);
    const { replica } = address;
    const newestTimestampMs = this.#newestTimestampMs;
    return {
      ...address,
      parcels: parcels.map((pieces) => ({ ...joined(pieces), replica, newestTimestampMs })),
    };
  }
}

/** The parcel of its pieces, of which there is one unless the request took several steps. */
function joined(pieces: readonly Piece[]): Omit<Parcel, "replica" | "newestTimestampMs"> {
  const [only] = pieces;
  if (only !== undefined && pieces.length === 1) {
    const { elements, plainBytes, series, items } = only;
    return { elements, plainBytes, series, items };
  }
  const counts = new CountTally();
  let plainBytes = 0;
  for (const piece of pieces) {
    counts.add({ series: piece.series, ...piece.items });
    plainBytes += piece.plainBytes;
  }
  const { series, samples, histograms, exemplars } = counts;
  const elements = withHeadroom(...pieces.map((piece) => piece.elements));
  return { elements, plainBytes, series, items: { samples, histograms, exemplars } };
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
