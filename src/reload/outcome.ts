/** What became of a reload. */
export type ReloadOutcome =
  /** It is in force; lines for a person say what that changes and moves, warnings what may go wrong by it. */
  | { readonly kind: "applied"; readonly lines: readonly string[]; readonly warnings: readonly string[] }
  /** The configuration is the one that runs. */
  | { readonly kind: "unchanged" }
  /** The file is wrong: its errors, one a line. */
  | { readonly kind: "invalid"; readonly lines: readonly string[] }
  /** It would move more than `reload.max_moved_ratio` allows: what, and what to write instead. */
  | { readonly kind: "refused"; readonly lines: readonly string[] }
  /** Something that it needs cannot be had: certificates, the spool's folder; or the gateway is about to end. */
  | { readonly kind: "failed"; readonly lines: readonly string[] };

/** What asked for it. */
export type ReloadTrigger = "signal" | "watch" | "request";
