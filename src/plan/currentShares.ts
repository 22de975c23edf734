/** How the series that come in spread over routes, upstreams and tasks, told from a sample of them. */
import type { Period, RouteOptions } from "../route/options.ts";
import { type Estimate, estimateCount, estimateShare } from "../route/estimate.ts";
import type { SampleState } from "../route/liveSample.ts";
import { asShare, type Copies, copiesOf } from "./copies.ts";
import type { PlanConfig } from "./planConfig.ts";
import type { Share } from "./report.ts";
import { SeriesDecider } from "./seriesDecider.ts";

// The names here are those of JSON.

export interface SharesReport {
  /** Whether the figures are of all series. */
  readonly exact: boolean;
  /** Series that come in, whatever becomes of them. */
  readonly series: SeriesCount;
  readonly routes: readonly RouteShares[];
}

export interface SeriesCount {
  readonly count: number;
  readonly standard_error: number;
}

export interface RouteShares {
  readonly route: string;
  /** Those that it sends somewhere. */
  readonly series: SeriesCount;
  /** Of their copies, those of each live upstream, in the order of the list. */
  readonly upstreams: readonly (Share & { readonly name: string })[];
  /** Of its series, those of each task that has some, in ascending order; null without tasks. */
  readonly tasks: readonly (Share & { readonly task: number })[] | null;
}

const SERIES_A_LOOK = 16;

/**
 * Decides the series of a sample, in steps.
 *
 * @param atMs  in the periods that are in force then
 * @param isDue whether it is time for a pause
 */
export function* currentShares(
  config: PlanConfig,
  { isExact, fraction, known, series }: SampleState,
  atMs: number,
  isDue: () => boolean,
): Generator<undefined, SharesReport, undefined> {
  const decider = new SeriesDecider(config, isDue);
  const counts = config.routes.map(({ route }) => new RouteCounts(route, atMs));
  for (const [number, each] of series.entries()) {
    if (number % SERIES_A_LOOK === 0 && isDue()) yield;
    const decisions = yield* decider.decide(each);
    for (const [index, count] of counts.entries()) {
      const decision = decisions[index];
      const task = decision?.kind === "placed" ? decision.placed.task : null;
      count.add(copiesOf(count.route, decision, count.period), task);
    }
  }
  return {
    exact: isExact,
    series: asCount(known),
    routes: counts.map((count) => count.report(fraction)),
  };
}

class RouteCounts {
  readonly route: RouteOptions;
  /** The number of the one in force. */
  readonly period: number;
  readonly #live: readonly string[];
  readonly #upstreams = new Map<string, number>();
  readonly #tasks = new Map<number, number>();
  #series = 0;
  #copies = 0;

  constructor(route: RouteOptions, atMs: number) {
    this.route = route;
    this.period = route.topology.findLastIndex(({ fromMs }) => fromMs === null || fromMs <= atMs);
    const slots: Period["slots"] = route.topology[this.period]?.slots ?? [];
    this.#live = slots.filter(({ removed }) => removed !== true).map(({ name }) => name);
  }

  add({ upstreams }: Copies, task: number | null): void {
    if (upstreams.length === 0) return;
    this.#series += 1;
    this.#copies += upstreams.length;
    for (const name of upstreams) this.#upstreams.set(name, (this.#upstreams.get(name) ?? 0) + 1);
    if (task !== null) this.#tasks.set(task, (this.#tasks.get(task) ?? 0) + 1);
  }

  report(fraction: number): RouteShares {
    const [series, copies] = [this.#series, Math.max(1, this.#copies)];
    const ofCopies = (count: number): Share =>
      asShare(estimateShare((count * series) / copies, series, fraction));
    const tasks = [...this.#tasks].sort(([a], [b]) => a - b);
    return {
      route: this.route.name,
      series: asCount(estimateCount(series, fraction)),
      upstreams: this.#live.map((name) => ({ name, ...ofCopies(this.#upstreams.get(name) ?? 0) })),
      tasks:
        this.route.tasks === null
          ? null
          : tasks.map(([task, count]) => ({ task, ...asShare(estimateShare(count, series, fraction)) })),
    };
  }
}

function asCount({ value, standardError }: Estimate): SeriesCount {
  return { count: value, standard_error: standardError };
}
