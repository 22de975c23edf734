/**
 * The parcels that wait in a lane, in the order in which they came, and how much of a request they make.
 *
 * Many thousands can wait for an upstream that does not answer, so nothing here looks at all of them: what is due is
 * mostly in front, since deadlines come nearly in the order of the parcels.
 */
import type { LaneParcel } from "./delivery.ts";
import { Deque } from "./deque.ts";

/** What one request holds at most; a single parcel may exceed it. */
export interface BatchLimits {
  readonly maxItems: number;
  readonly maxPlainBytes: number;
}

/** That much is worth a request of its own: what a request costs is small beside it. */
const WORTHWHILE_SERIES = 500;

export class LaneQueue {
  readonly #limits: BatchLimits;
  readonly #parcels = new Deque<LaneParcel>();
  /** Those with no earlier deadline behind them, in their order: the first has the nearest deadline of all. */
  readonly #nearest = new Deque<LaneParcel>();
  #series = 0;
  #items = 0;
  #plainBytes = 0;
  /** The number of the newest group. */
  #group = 0;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#parcels.length;
  }

  get first(): LaneParcel | undefined {
    return this.#parcels.first;
  }

  /** The first that is not on disk as well: those that are, a batch at most, are in front of the others. */
  get firstUnspooled(): LaneParcel | null {
    for (const parcel of this.#parcels) if (parcel.ticket === null) return parcel;
    return null;
  }

  /** In their order; nothing may change meanwhile. */
  [Symbol.iterator](): Iterator<LaneParcel> {
    return this.#parcels[Symbol.iterator]();
  }

  /** Whether nothing is gained by waiting for more: it is worth a request, fills one, or nothing may join the first. */
  get isWorthSending(): boolean {
    return (
      this.#series >= WORTHWHILE_SERIES ||
      this.#items >= this.#limits.maxItems ||
      this.#plainBytes >= this.#limits.maxPlainBytes ||
      (this.first !== undefined && this.first.group !== null)
    );
  }

  /** Infinity when nothing waits. */
  get nearestDeadline(): number {
    return this.#nearest.first?.deadline ?? Infinity;
  }

  push(parcel: LaneParcel): void {
    const { deadline } = parcel;
    for (let last = this.#nearest.last; last !== undefined; last = this.#nearest.last) {
      if (last.deadline <= deadline) break;
      this.#nearest.dropLast();
    }
    this.#nearest.push(parcel);
    this.#parcels.push(parcel);
    this.#count(parcel, 1);
  }

  /** Takes the parcels of the next request: as many of one group as fit, and at least one. */
  takeBatch(): readonly LaneParcel[] {
    const taken: LaneParcel[] = [];
    const group = this.first?.group;
    let items = 0;
    let plainBytes = 0;
    for (let next = this.first; next !== undefined && next.group === group; next = this.first) {
      items += itemsOf(next);
      plainBytes += next.parcel.plainBytes;
      const fits = items <= this.#limits.maxItems && plainBytes <= this.#limits.maxPlainBytes;
      if (!fits && taken.length > 0) break;
      this.#dropFirst(next);
      taken.push(next);
    }
    return taken;
  }

  /** Puts parcels that were taken in front of all others, as a group: they share a request with each other only. */
  putBackAsGroup(parcels: readonly LaneParcel[]): void {
    this.#group += 1;
    for (const parcel of parcels) parcel.group = this.#group;
    this.#putBack(parcels);
  }

  /** Puts parcels that were read from disk, as a group, behind all that came before them: see isOlderThanRecords(). */
  putReadAsGroup(parcels: readonly LaneParcel[]): void {
    const older = this.#takeWhile(isOlderThanRecords);
    this.putBackAsGroup(parcels);
    this.#putBack(older);
  }

  /** Takes everything out that has no place before what is on disk, in order. */
  takeNewcomers(): readonly LaneParcel[] {
    const older = this.#takeWhile(isOlderThanRecords);
    const newcomers = this.#takeWhile(() => true);
    this.#putBack(older);
    return newcomers;
  }

  #takeWhile(isTaken: (parcel: LaneParcel) => boolean): readonly LaneParcel[] {
    const taken: LaneParcel[] = [];
    for (let next = this.first; next !== undefined && isTaken(next); next = this.first) {
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
      if (next.deadline <= at) due.push(next);
      else notDue.push(next);
    }
    this.#putBack(notDue);
    return due;
  }

  #putBack(parcels: readonly LaneParcel[]): void {
    for (const parcel of parcels.toReversed()) {
      if (parcel.deadline <= this.nearestDeadline) this.#nearest.unshift(parcel);
      this.#parcels.unshift(parcel);
      this.#count(parcel, 1);
    }
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

/**
 * Whether a parcel came before all that has still to be read from disk: it was read before that, or is a part of a batch that
 * was refused.
 */
export function isOlderThanRecords({ ticket, group }: LaneParcel): boolean {
  return ticket !== null || group !== null;
}

function itemsOf({ parcel: { items } }: LaneParcel): number {
  return items.samples + items.histograms + items.exemplars;
}
