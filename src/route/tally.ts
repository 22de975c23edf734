/** What is counted of series besides where they go, by the numbers that the engine knows these counts by. */
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
  | { readonly kind: "dropped"; readonly route: number; readonly reason: DropReason };

const OF_A_ROUTE = 2 + DROP_REASONS.length;

/** All tallies for so many routes; the index of each is its number. */
export function talliesOf(routes: number): Tally[] {
  const tallies: Tally[] = UNROUTED_REASONS.map((reason) => ({ kind: "unrouted", reason }));
  for (let route = 0; route < routes; route++) {
    tallies.push({ kind: "not_selected", route }, { kind: "missing_key_labels", route });
    for (const reason of DROP_REASONS) tallies.push({ kind: "dropped", route, reason });
  }
  return tallies;
}

/** The number of a tally: its index among talliesOf(). */
export function tallyNumber(tally: Tally): number {
  if (tally.kind === "unrouted") return UNROUTED_REASONS.indexOf(tally.reason);
  const first = UNROUTED_REASONS.length + tally.route * OF_A_ROUTE;
  if (tally.kind === "not_selected") return first;
  if (tally.kind === "missing_key_labels") return first + 1;
  return first + 2 + DROP_REASONS.indexOf(tally.reason);
}
