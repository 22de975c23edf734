/**
 * What is counted of series besides where they go, by the numbers that the engine knows these counts by.
 *
 * A route has a ledger for each of its replicas, and a series that it selects is in all of them: once given to an upstream's
 * sender, or once dropped. So drops are counted by replica. What a route does not select no replica of it has.
 */
import { REFUSAL_REASONS } from "./door.ts";

/** Why a route drops a series that it selected; the names are the label values of the metric. */
export const DROP_REASONS = [
  "no_labels",
  "no_metric_name",
  "write_relabel_configs",
  ...REFUSAL_REASONS,
] as const;
export type DropReason = (typeof DROP_REASONS)[number];

/** Why a series is dropped before any route has it. */
export const UNROUTED_REASONS = ["no_route", "relabel_configs", "label_value_too_long"] as const;
export type UnroutedReason = (typeof UNROUTED_REASONS)[number];

export type Tally =
  | { readonly kind: "unrouted"; readonly reason: UnroutedReason }
  /** Not kept by the route's rules, or kept from it by a rule or a final route before it. */
  | { readonly kind: "not_selected"; readonly route: number }
  /** Placed without any of the labels that the route keys by. */
  | { readonly kind: "missing_key_labels"; readonly route: number }
  /** A copy of it; a series that is dropped before it has a place is so in all its copies. */
  | {
      readonly kind: "dropped";
      readonly route: number;
      readonly replica: number;
      readonly reason: DropReason;
    };

/** All tallies; the index of each in `all` is its number. */
export class Tallies {
  readonly all: readonly Tally[];
  /** By route: the number of its first. */
  readonly #first: readonly number[];

  /** @param replicas how many each route has */
  constructor(replicas: readonly number[]) {
    const all: Tally[] = UNROUTED_REASONS.map((reason) => ({ kind: "unrouted", reason }));
    this.#first = replicas.map((ofRoute, route) => {
      const first = all.length;
      all.push({ kind: "not_selected", route }, { kind: "missing_key_labels", route });
      for (let replica = 0; replica < ofRoute; replica++) {
        for (const reason of DROP_REASONS) all.push({ kind: "dropped", route, replica, reason });
      }
      return first;
    });
    this.all = all;
  }

  /** The number of one of them. */
  numberOf(tally: Tally): number {
    if (tally.kind === "unrouted") return UNROUTED_REASONS.indexOf(tally.reason);
    const first = this.#first[tally.route] ?? 0;
    if (tally.kind === "not_selected") return first;
    if (tally.kind === "missing_key_labels") return first + 1;
    return first + 2 + tally.replica * DROP_REASONS.length + DROP_REASONS.indexOf(tally.reason);
  }
}
