/** What one call of next() has read until now, and how much more it takes. */
import { withHeadroom } from "../../wire/parcel.ts";
import type { Parcel } from "../../wire/parcel.ts";
import type { RecordFacts } from "./record.ts";
import type { Ticket } from "./ticket.ts";

/** How much next() gives out: it stops before the record that would exceed either, but gives at least one. */
export interface ReadLimits {
  readonly maxItems: number;
  readonly maxPlainBytes: number;
}

/** A parcel that was read back. */
export interface SpooledParcel {
  readonly parcel: Parcel;
  readonly ticket: Ticket;
  /** In milliseconds since the epoch. */
  readonly appendedAt: number;
}

export class ReadBatch {
  readonly parcels: SpooledParcel[] = [];
  readonly #limits: ReadLimits;
  #items = 0;
  #plainBytes = 0;

  constructor(limits: ReadLimits) {
    this.#limits = limits;
  }

  fits({ items, plainBytes }: RecordFacts): boolean {
    if (this.parcels.length === 0) return true;
    const { maxItems, maxPlainBytes } = this.#limits;
    return this.#items + countOf(items) <= maxItems && this.#plainBytes + plainBytes <= maxPlainBytes;
  }

  /** @param payload is copied */
  add(facts: RecordFacts, payload: Uint8Array, ticket: Ticket): void {
    const { replica, series, items, plainBytes, newestTimestampMs, appendedAt } = facts;
    const elements = withHeadroom(payload);
    const parcel = { elements, plainBytes, series, items, replica, newestTimestampMs };
    this.parcels.push({ parcel, ticket, appendedAt });
    this.#items += countOf(items);
    this.#plainBytes += plainBytes;
  }
}

function countOf({ samples, histograms, exemplars }: RecordFacts["items"]): number {
  return samples + histograms + exemplars;
}
