/** One ordered stream of records on disk: what waits for one lane of one upstream. */
import type { LaneId } from "../lane.ts";
import type { ItemCounts, Parcel } from "../../wire/parcel.ts";

/** A parcel for the spool. */
export interface SpoolParcel {
  readonly parcel: Parcel;
  /** Which copy of its route's data it is: 0 is the first. */
  readonly replica: number;
  /** Of its items, in milliseconds since the epoch. */
  readonly newestTimestampMs: number;
}

/** A parcel that was read back. */
export interface SpooledParcel extends SpoolParcel {
  readonly ticket: Ticket;
}

/** A record that the caller has in memory: it is released or given up once. Nothing in it is for the caller. */
export interface Ticket {
  readonly replica: number;
  readonly items: ItemCounts;
}

/** How an append ended; `cause` is for a person. */
export type AppendEnd =
  /** On disk and synced, with one ticket for each parcel, in their order. */
  | { readonly kind: "synced"; readonly tickets: readonly Ticket[] }
  /** There is no room for it. Nothing of it is in the spool. */
  | { readonly kind: "full"; readonly cause: string }
  /** It could not be written. Nothing of it will be read in this process. */
  | { readonly kind: "failed"; readonly cause: string };

/** How much next() gives out: it stops before the record that would exceed either, but gives at least one. */
export interface ReadLimits {
  readonly maxItems: number;
  readonly maxPlainBytes: number;
}

export class SpoolStream {
  readonly id: LaneId;

  constructor(id: LaneId) {
    this.id = id;
  }

  /** Whether no record is unreleased and no append is under way. */
  get isEmpty(): boolean {
    throw new Error("not built yet");
  }

  /** Whether there are synced records that next() would give out. */
  get hasUnread(): boolean {
    throw new Error("not built yet");
  }

  /**
   * Puts parcels behind all others, in their order: all of them or none.
   *
   * @param parcels at least one; their elements must not change until the end
   * @param held    the caller keeps the parcels and tries them itself: next() does not give them out unless they are given
   *                up by unhold(). Only where nothing is unread and no append that is not held is under way.
   * @param onEnd   called once, after append() has returned; must not throw
   */
  append(parcels: readonly SpoolParcel[], held: boolean, onEnd: (end: AppendEnd) => void): void {
    throw new Error(`not built yet ${parcels.length} ${held} ${onEnd.length}`);
  }

  /**
   * Reads the next records, in order. Not called again before it has ended.
   *
   * @returns those that were read; none if nothing is unread, or all of it was damaged. Their elements have the free bytes
   *   in front that a parcel has.
   * @throws {SpoolError} SPOOL_UNREADABLE when the disk fails: the same records are tried again by the next call; what fails
   *   several times is dropped as damaged
   */
  next(limits: ReadLimits): Promise<readonly SpooledParcel[]> {
    return Promise.reject(new Error(`not built yet ${limits.maxItems}`));
  }

  /** Takes records out of the spool for good, which the caller delivered or dropped. Any order will do. */
  release(tickets: readonly Ticket[]): void {
    throw new Error(`not built yet ${tickets.length}`);
  }

  /**
   * Gives records up that the caller has: next() gives them out, before all later ones. What had to make room meanwhile is
   * dropped.
   */
  unhold(tickets: readonly Ticket[]): void {
    throw new Error(`not built yet ${tickets.length}`);
  }
}
