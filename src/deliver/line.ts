/** Parcels that may share a request, in the order in which they came, and how much of a request they make. */
import type { LaneParcel } from "./delivery.ts";
import { Deque } from "./deque.ts";

/** What one request holds at most; a single parcel may exceed it. */
export interface BatchLimits {
  readonly maxItems: number;
  readonly maxPlainBytes: number;
}

/** All that waits of a tenant, or a group: a part of a refused batch, which nothing joins. Groups are numbered from 1. */
export type LineOwner =
  | { readonly kind: "tenant"; readonly tenant: string | null }
  | { readonly kind: "group"; readonly number: number };

/** That much is worth a request of its own: what a request costs is small beside it. */
const WORTHWHILE_SERIES = 500;

export class Line {
  readonly owner: LineOwner;
  readonly #limits: BatchLimits;
  readonly #parcels = new Deque<LaneParcel>();
  /** Those with no earlier deadline behind them, in their order: the first has the nearest deadline of all. */
  readonly #nearest = new Deque<LaneParcel>();
  #series = 0;
  #items = 0;
  #plainBytes = 0;

  constructor(owner: LineOwner, limits: BatchLimits) {
    this.owner = owner;
    this.#limits = limits;
  }

  get length(): number {
    return this.#parcels.length;
  }

  get first(): LaneParcel | undefined {
    return this.#parcels.first;
  }

  /** Whether nothing is gained by waiting for more: it is worth a request, fills one, or nothing may join it. */
  get isWorthSending(): boolean {
    return (
      this.#series >= WORTHWHILE_SERIES ||
      this.#items >= this.#limits.maxItems ||
      this.#plainBytes >= this.#limits.maxPlainBytes ||
      this.owner.kind === "group"
    );
  }

  /** Infinity when it is empty. */
  get nearestDeadline(): number {
    return this.#nearest.first?.delivery.deadline ?? Infinity;
  }

  push(parcel: LaneParcel): void {
    const { deadline } = parcel.delivery;
    for (let last = this.#nearest.last; last !== undefined; last = this.#nearest.last) {
      if (last.delivery.deadline <= deadline) break;
      this.#nearest.dropLast();
    }
    this.#nearest.push(parcel);
    this.#parcels.push(parcel);
    this.#count(parcel, 1);
  }

  /** Takes as many of the first parcels as fit into a request, and at least one. */
  takeBatch(): readonly LaneParcel[] {
    const taken: LaneParcel[] = [];
    let items = 0;
    let plainBytes = 0;
    for (let next = this.first; next !== undefined; next = this.first) {
      items += itemsOf(next);
      plainBytes += next.parcel.plainBytes;
      const fits = items <= this.#limits.maxItems && plainBytes <= this.#limits.maxPlainBytes;
      if (!fits && taken.length > 0) break;
      this.#dropFirst(next);
      taken.push(next);
    }
    return taken;
  }

  /** Takes all parcels whose deadline is not later than `at`. Looks no further than the last of them. */
  takeDue(at: number): readonly LaneParcel[] {
    const due: LaneParcel[] = [];
    const notDue: LaneParcel[] = [];
    for (let next = this.first; next !== undefined && this.nearestDeadline <= at; next = this.first) {
      this.#dropFirst(next);
      if (next.delivery.deadline <= at) due.push(next);
      else notDue.push(next);
    }
    for (const parcel of notDue.toReversed()) this.#putBack(parcel);
    return due;
  }

  #putBack(parcel: LaneParcel): void {
    if (parcel.delivery.deadline <= this.nearestDeadline) this.#nearest.unshift(parcel);
    this.#parcels.unshift(parcel);
    this.#count(parcel, 1);
  }

  #dropFirst(first: LaneParcel): void {
    if (this.#nearest.first === first) this.#nearest.dropFirst();
    this.#parcels.dropFirst();
    this.#count(first, -1);
  }

  /** @param times 1 for one that comes, -1 for one that goes */
  #count(parcel: LaneParcel, times: 1 | -1): void {
    this.#series += times * parcel.parcel.series;
    this.#items += times * itemsOf(parcel);
    this.#plainBytes += times * parcel.parcel.plainBytes;
  }
}

function itemsOf({ parcel: { items } }: LaneParcel): number {
  return items.samples + items.histograms + items.exemplars;
}
