import type { RouteOptions } from "../../src/route/options.ts";
import { compilePlacer } from "../../src/route/place.ts";
import type { ReferenceLabel, ReferenceSeries } from "../reference/writeRequest.ts";
import { spansOf } from "./exampleRoute.ts";

/** A series as a route forwards it: with the task label in sorted place, where the route has one; and its first upstream. */
export function labelled(
  series: ReferenceSeries,
  route: RouteOptions,
): { readonly upstream: number; readonly series: ReferenceSeries } {
  const { places, task } = compilePlacer(route)(spansOf(series.labels, "latin1"));
  const upstream = places[0]?.upstreams[0] ?? -1;
  const name = route.tasks?.label;
  if (task === null || name === undefined) return { upstream, series };
  const others = series.labels.filter(([other]) => other !== name);
  // One character a byte, so that strings have the order of bytes.
  const greater = others.findIndex(([other]) => other > name);
  const taskLabel: ReferenceLabel = [name, String(task)];
  const labels = others.toSpliced(greater < 0 ? others.length : greater, 0, taskLabel);
  return { upstream, series: { ...series, labels } };
}
