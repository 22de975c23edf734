/** A batch: parcels of one tenant that go to the upstream in one request, and how often that was tried. */
import { joinParcels } from "../wire/parcel.ts";
import type { LaneParcel } from "./delivery.ts";
import { keptBytes } from "./memory.ts";

/** Below the 8 MiB that vmagent itself keeps to, and so below every known receiver's limit. */
export const MAX_BATCH_PLAIN_BYTES = 8 * 1024 * 1024;

export class Batch {
  readonly parcels: readonly LaneParcel[];
  readonly tenant: string | null;
  readonly body: Uint8Array;
  readonly series: number;
  /** Of the body, as far as it is not the only parcel's. */
  readonly ownBytes: number;
  /** Attempts that have begun. */
  attempts = 0;
  /** Why the last attempt failed, in words that may be the upstream's: for the senders of its parcels only. */
  lastFailure: string | null = null;

  /** @param parcels at least one, all of this tenant */
  constructor(parcels: readonly LaneParcel[], tenant: string | null) {
    this.parcels = parcels;
    this.tenant = tenant;
    this.body = joinParcels(parcels.map(({ parcel }) => parcel));
    this.ownBytes = parcels.length === 1 ? 0 : keptBytes(this.body);
    this.series = parcels.reduce((series, { parcel }) => series + parcel.series, 0);
  }

  /** No item of it is newer; milliseconds since the epoch. */
  get newestTimestampMs(): number {
    return this.parcels.reduce(
      (newest, { parcel }) => Math.max(newest, parcel.newestTimestampMs),
      Number.MIN_SAFE_INTEGER,
    );
  }

  /** This batch with some of its parcels only; null with none. What was tried with all was tried with them. */
  reducedTo(parcels: readonly LaneParcel[]): Batch | null {
    if (parcels.length === 0) return null;
    if (parcels.length === this.parcels.length) return this;
    return this.rebuiltOf(parcels);
  }

  /** This batch of other parcels, at least one, or of what is left of them. */
  rebuiltOf(parcels: readonly LaneParcel[]): Batch {
    const rebuilt = new Batch(parcels, this.tenant);
    rebuilt.attempts = this.attempts;
    rebuilt.lastFailure = this.lastFailure;
    return rebuilt;
  }
}
