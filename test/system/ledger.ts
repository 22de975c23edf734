/** What the metrics of a gateway have to add up to: no item that came in is anywhere but where the ledger has it. */
import type { Metrics } from "../peers/metrics.ts";

export const ITEMS = ["samples", "histograms", "exemplars"] as const;

type Labels = Readonly<Record<string, string>>;

/** The equations, as text, that do not hold for these routes. @param replicas how many all of them have */
export function ledgerGaps(metrics: Metrics, routes: readonly string[], replicas = 1): string[] {
  const copies = Array.from({ length: replicas }, (_, replica) => String(replica));
  return ITEMS.flatMap((items) =>
    routes.flatMap((route) => copies.flatMap((copy) => gapsOf(metrics, items, { route, copy }))),
  );
}

function gapsOf(metrics: Metrics, items: string, ledger: { route: string; copy: string }): string[] {
  const { route, copy } = ledger;
  const count = (name: string, labels: Labels): number =>
    metrics.sum(`stream_metrics_route_${items}_${name}`, labels);
  const sides = (name: string, left: number, right: readonly number[]): string[] => {
    const sum = right.reduce((total, each) => total + each, 0);
    return left === sum && right.every((each) => each >= 0)
      ? []
      : [`${items} ${name} of route ${route}, copy ${copy}: ${left}, but ${right.join(" + ")}`];
  };
  const ends = [
    "delivered_total",
    "refused_total",
    "skipped_resend_total",
    "dropped_total",
    "spooled",
    "in_flight",
  ];
  const nowhere = { ...ledger, upstream: "" };
  return [
    ...sides("received = refused_at_door + not_selected + routed", count("received_total", {}), [
      count("refused_at_door_total", {}),
      count("not_selected_total", { route }),
      count("routed_total", ledger),
    ]),
    ...sides(
      `routed + found_in_spool = ${ends.join(" + ")}`,
      count("routed_total", ledger) + count("found_in_spool_total", ledger),
      ends.map((end) => count(end, ledger)),
    ),
    ...sides("difference", count("ledger_difference", ledger), [0]),
    ...sides("routed to no upstream = dropped", count("routed_total", nowhere), [
      count("dropped_total", nowhere),
    ]),
  ];
}
