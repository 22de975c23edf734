/** The parcels that wait in a lane, in the order in which they came, and how much of a request they make. */
import type { LaneParcel } from "./delivery.ts";

/** What one request holds at most; a single parcel may exceed it. */
export interface BatchLimits {
  readonly maxItems: number;
  readonly maxPlainBytes: number;
}

/** That much is worth a request of its own: what a request costs is small beside it. */
const WORTHWHILE_SERIES = 500;

export class LaneQueue {
  readonly #limits: BatchLimits;
  #parcels: LaneParcel[] = [];
  #series = 0;
  #items = 0;
  #plainBytes = 0;
  #nearestDeadline = Infinity;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#parcels.length;
  }

  get first(): LaneParcel | undefined {
    return this.#parcels[0];
  }

  /** Whether nothing is gained by waiting for more: it is worth a request, fills one, or is to be sent alone. */
  get isWorthSending(): boolean {
    return (
      this.#series >= WORTHWHILE_SERIES ||
      this.#items >= this.#limits.maxItems ||
      this.#plainBytes >= this.#limits.maxPlainBytes ||
      this.first?.alone === true
    );
  }

  /** Infinity when nothing waits. */
  get nearestDeadline(): number {
    return this.#nearestDeadline;
  }

  push(parcel: LaneParcel): void {
    this.#parcels.push(parcel);
    this.#series += parcel.parcel.series;
    this.#items += itemsOf(parcel);
    this.#plainBytes += parcel.parcel.plainBytes;
    if (parcel.delivery.deadline < this.#nearestDeadline) this.#nearestDeadline = parcel.delivery.deadline;
  }

  /** Takes the parcels of the next request: as many as fit, and at least one. */
  takeBatch(): readonly LaneParcel[] {
    const end = this.#batchEnd();
    const taken = this.#parcels.slice(0, end);
    this.#replace(this.#parcels.slice(end));
    return taken;
  }

  /** Puts parcels in front of all others. */
  putBack(parcels: readonly LaneParcel[]): void {
    this.#replace([...parcels, ...this.#parcels]);
  }

  /** Takes all parcels whose deadline is not later than `at`. */
  takeDue(at: number): readonly LaneParcel[] {
    if (at < this.#nearestDeadline) return [];
    const waiting = this.#parcels;
    this.#replace(waiting.filter(({ delivery }) => delivery.deadline > at));
    return waiting.filter(({ delivery }) => delivery.deadline <= at);
  }

  #batchEnd(): number {
    if (this.first?.alone === true) return 1;
    let items = 0;
    let plainBytes = 0;
    const end = this.#parcels.findIndex((next, index) => {
      items += itemsOf(next);
      plainBytes += next.parcel.plainBytes;
      return index > 0 && (items > this.#limits.maxItems || plainBytes > this.#limits.maxPlainBytes);
    });
    return end === -1 ? this.#parcels.length : end;
  }

  #replace(parcels: readonly LaneParcel[]): void {
    this.#parcels = [];
    this.#series = this.#items = this.#plainBytes = 0;
    this.#nearestDeadline = Infinity;
    for (const parcel of parcels) this.push(parcel);
  }
}

function itemsOf({ parcel: { items } }: LaneParcel): number {
  return items.samples + items.histograms + items.exemplars;
}
