/** What became of a parcel by the time its sender had to be answered, and how it ended for the ledger. */
export type ParcelOutcome =
  | { readonly kind: "delivered" }
  /** In the spool, and synced. */
  | { readonly kind: "spooled" }
  /** In memory, which is enough with `ack: enqueued`. */
  | { readonly kind: "enqueued" }
  /**
   * Gone and counted: with `on_outage: drop`, as too old, since the upstream takes nothing any more, or as unreadable when it
   * was read back.
   */
  | {
      readonly kind: "dropped";
      readonly reason: "outage" | "sample_age_limit" | "period_retired" | "spool_damaged";
    }
  /** A final 4xx: trying again cannot help. `reply` is the upstream's text, cut and cleaned. */
  | { readonly kind: "refused"; readonly status: number; readonly reply: string }
  /** Not accepted in time: the sender still has it and should come again. `cause` is for a person. */
  | { readonly kind: "undelivered"; readonly cause: string; readonly retryAfterMs: number };

export type Undelivered = Extract<ParcelOutcome, { kind: "undelivered" }>;

/** Why delivery drops what it has taken; the names are the label values of the metric. */
export const DELIVERY_DROP_REASONS = [
  /** `on_outage: drop`. */
  "outage",
  /** It was older than that when it was to be sent. */
  "sample_age_limit",
  /** The last topology period that has the upstream was over for too long when it came. */
  "period_retired",
  /** Its sender had been told before that it is accepted. */
  "refused_by_upstream",
  /** With `ack: enqueued`: it could be neither delivered in time nor spooled. */
  "undelivered",
  "spool_full",
  "spool_damaged",
] as const;
export type DeliveryDropReason = (typeof DELIVERY_DROP_REASONS)[number];

/** Where a parcel goes in the ledger: the upstream has it, its sender keeps it, the spool has it, or it is dropped. */
export type Settlement = "delivered" | "refused" | "spooled" | DeliveryDropReason;

/** Where it was before: in flight from being routed on, or in the spool. */
export type SettledFrom = "in_flight" | "spooled";

export function undelivered(cause: string, retryAfterMs: number): Undelivered {
  return { kind: "undelivered", cause, retryAfterMs };
}
