/** Plans of changes, and what they come to by placing every series one by one. */
import type { LabelSpans } from "../../src/hash/labelOrder.ts";
import { comparePlacements } from "../../src/plan/comparePlacements.ts";
import type { PlanConfig } from "../../src/plan/planConfig.ts";
import type { PlanReport, RouteReport } from "../../src/plan/report.ts";
import type { RelabelRuleList } from "../../src/relabel/options.ts";
import type { SampledSeries, SampleState } from "../../src/route/liveSample.ts";
import type { RouteOptions } from "../../src/route/options.ts";
import { compilePlacer } from "../../src/route/place.ts";
import { label } from "../wire/handmade.ts";
import { exampleRoute, NO_RULES, type RouteChanges, slotsOf, spansOf } from "../route/exampleRoute.ts";
import { LABEL_LIMITS } from "../route/routed.ts";

export type Labels = readonly (readonly [string, string])[];

export const NOW = Date.parse("2026-06-01T12:00:00Z");

export interface ConfigChanges {
  readonly globalRules?: RelabelRuleList;
  /** Of all upstreams. */
  readonly port?: number;
}

export function configOf(
  routes: readonly (RouteChanges | RouteOptions)[],
  { globalRules = NO_RULES, port = 8429 }: ConfigChanges = {},
): PlanConfig {
  return {
    relabel: globalRules,
    limits: LABEL_LIMITS,
    routes: routes.map((changes) => {
      const route = "topology" in changes ? changes : exampleRoute(changes);
      const upstreams = route.upstreams.map(({ name }) => ({
        name,
        url: new URL(`http://${name}:${port}/w`),
      }));
      return { route, upstreams };
    }),
  };
}

/** A list of upstreams by names; "-b" is the tombstone of b. */
export function upstreams(names: string): ReturnType<typeof slotsOf> {
  return names.split(" ").map((name) => {
    const [slot] = slotsOf(name.replace("-", ""));
    if (slot === undefined) throw new Error("no name");
    return name.startsWith("-") ? { ...slot, removed: true } : slot;
  });
}

export function numberedSeries(count: number): Labels[] {
  return Array.from({ length: count }, (_, number): Labels => [
    ["__name__", `metric_${number % 10}_total`],
    ["instance", `host-${number}`],
    ["job", `job-${number % 7}`],
  ]);
}

export function sampleOf(series: readonly Labels[], fraction = 1): SampleState {
  const sampled = series.map((labels): SampledSeries => {
    return { labels: Buffer.concat(labels.map(([name, value]) => label(name, value))), tenants: new Map() };
  });
  const known = { value: series.length / fraction, standardError: 0 };
  return { isExact: fraction === 1, fraction, known, series: sampled };
}

export interface PlanSetting {
  readonly atMs?: number;
  readonly isLegacy?: boolean;
  readonly isDue?: () => boolean;
}

export function planOf(
  before: PlanConfig,
  after: PlanConfig,
  sample: SampleState,
  { atMs, isLegacy = false, isDue = () => false }: PlanSetting = {},
): PlanReport {
  const options = { nowMs: NOW, atMs: atMs ?? null, isLegacy, isDue };
  const steps = comparePlacements(before, after, sample, options);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** The report of the only route, or of one by its name. */
export function routeIn({ routes }: PlanReport, name = "aggregation"): RouteReport {
  const found = routes.find(({ route }) => route === name);
  if (found === undefined) throw new Error(`no route ${name} in the plan`);
  return found;
}

/** The share of a pair of upstreams; 0 where there is none. */
export function pairShare({ from_to }: RouteReport, from: string, to: string | null): number {
  return from_to.find((pair) => pair.from === from && pair.to === to)?.share.share ?? 0;
}

/** What of all series' copies leaves its upstream, and what gets another task, in the newest periods. */
export function bruteForce(
  series: readonly Labels[],
  before: RouteOptions,
  after: RouteOptions,
): { readonly moved: number; readonly retasked: number; readonly changed: number } {
  const [old, now] = [placerOf(before), placerOf(after)];
  const counts = { copies: 0, moved: 0, retasked: 0, changed: 0 };
  for (const labels of series) {
    const [was, is] = [old(labels), now(labels)];
    for (const name of was.names) {
      const [leaves, retasked] = [!is.names.includes(name), was.task !== is.task];
      counts.copies += 1;
      counts.moved += leaves ? 1 : 0;
      counts.retasked += retasked ? 1 : 0;
      counts.changed += leaves || retasked ? 1 : 0;
    }
  }
  const { copies, moved, retasked, changed } = counts;
  return { moved: moved / copies, retasked: retasked / copies, changed: changed / copies };
}

/** Of series that are placed again and again. */
const spans = new WeakMap<Labels, LabelSpans>();

function spansOnce(labels: Labels): LabelSpans {
  const made = spans.get(labels) ?? spansOf(labels);
  spans.set(labels, made);
  return made;
}

function placerOf(route: RouteOptions): (labels: Labels) => { names: string[]; task: number | null } {
  const place = compilePlacer(route);
  return (labels) => {
    const { places, task } = place(spansOnce(labels));
    return {
      names: (places.at(-1)?.upstreams ?? []).map((index) => route.upstreams[index]?.name ?? ""),
      task,
    };
  };
}
