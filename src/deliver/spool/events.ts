/** What the owner of an upstream's spool is told besides the ends of its calls. */
import type { ItemCounts } from "../../wire/parcel.ts";

export type SpoolDropReason = "spool_full" | "spool_damaged";

/** Told synchronously, after the counts of the spool have changed. None may throw. */
export interface SpoolEvents {
  /** Records that nobody gets any more; they are not in the counts of what the spool holds now. */
  dropped(reason: SpoolDropReason, replica: number, records: number, items: ItemCounts): void;
  /** Bytes in which no record can be recognised. What is known to have been in them is told by dropped(). */
  damaged(bytes: number, file: string): void;
}
