/** What the metrics of a gateway have to add up to: no item that came in is anywhere but where the ledger has it. */
import type { Metrics } from "../peers/metrics.ts";

export const ITEMS = ["samples", "histograms", "exemplars"] as const;

type Labels = Readonly<Record<string, string>>;

/** The equations, as text, that do not hold for these routes. */
export function ledgerGaps(metrics: Metrics, routes: readonly string[]): string[] {
  return ITEMS.flatMap((items) => routes.flatMap((route) => gapsOf(metrics, items, route)));
}

function gapsOf(metrics: Metrics, items: string, route: string): string[] {
  const count = (name: string, labels: Labels): number =>
    metrics.sum(`stream_metrics_route_${items}_${name}`, labels);
  const sides = (name: string, left: number, right: readonly number[]): string[] => {
    const sum = right.reduce((total, each) => total + each, 0);
    return left === sum && right.every((each) => each >= 0)
      ? []
      : [`${items} ${name} of route ${route}: ${left}, but ${right.join(" + ")}`];
  };
  const ends = ["delivered_total", "refused_total", "in_flight"];
  const dropped = count("dropped_total", { route });
  return [
    ...sides("received = refused_at_door + not_selected + routed", count("received_total", {}), [
      count("refused_at_door_total", {}),
      count("not_selected_total", { route }),
      count("routed_total", { route }),
    ]),
    ...sides("routed = delivered + refused + in_flight + dropped", count("routed_total", { route }), [
      ...ends.map((end) => count(end, { route })),
      dropped,
    ]),
    ...sides("routed to no upstream = dropped", count("routed_total", { route, upstream: "" }), [dropped]),
  ];
}
