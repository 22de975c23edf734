/** What became of a parcel by the time its sender had to be answered. */
export type ParcelOutcome =
  | { readonly kind: "delivered" }
  /** A final 4xx: trying again cannot help. `reply` is the upstream's text, cut and cleaned. */
  | { readonly kind: "refused"; readonly status: number; readonly reply: string }
  /** Not accepted in time: the sender still has it and should come again. `cause` is for a person. */
  | { readonly kind: "undelivered"; readonly cause: string; readonly retryAfterMs: number };

export type Undelivered = Extract<ParcelOutcome, { kind: "undelivered" }>;

/** How a parcel ended for the ledger: the upstream has it, or its sender keeps it. */
export type Settlement = "delivered" | "refused";

export function undelivered(cause: string, retryAfterMs: number): Undelivered {
  return { kind: "undelivered", cause, retryAfterMs };
}
