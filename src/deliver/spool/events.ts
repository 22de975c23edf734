/** What the owner of an upstream's spool is told besides the ends of its calls. */
import type { ItemCounts } from "../../wire/parcel.ts";

export type SpoolDropReason = "spool_full" | "spool_damaged";

/** Told synchronously. None may throw. */
export interface SpoolEvents {
  /** Items of records that nobody gets any more. */
  dropped(reason: SpoolDropReason, replica: number, items: ItemCounts): void;
  /** Bytes in which no record can be recognised. What is known to have been in them is told by dropped(). */
  damaged(bytes: number): void;
}
