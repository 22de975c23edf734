/** How much of each replica's data is in a place. */
import type { ItemCounts } from "../../wire/parcel.ts";

export interface ReplicaCount {
  readonly replica: number;
  readonly records: number;
  readonly items: ItemCounts;
}
