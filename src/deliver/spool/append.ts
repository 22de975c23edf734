/** How parcels get into the spool, and how that ends. */
import type { Parcel } from "../../wire/parcel.ts";
import type { Ticket } from "./ticket.ts";

/** How an append ended; `cause` is for a person. */
export type AppendEnd =
  /** On disk and synced. If it is held there is one ticket for each parcel, in their order; otherwise none. */
  | { readonly kind: "synced"; readonly tickets: readonly Ticket[] }
  /** There is no room for it. Nothing of it is in the spool. */
  | { readonly kind: "full"; readonly cause: string }
  /** It could not be written. Nothing of it will be read in this process. */
  | { readonly kind: "failed"; readonly cause: string };

/** An append under way. */
export interface Append {
  readonly parcels: readonly Parcel[];
  readonly held: boolean;
  /** Of its records. */
  readonly bytes: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly onEnd: (end: AppendEnd) => void;
}
