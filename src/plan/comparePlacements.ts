/**
 * What a change of the configuration moves: series are decided under both, and what becomes of their copies is counted.
 *
 * Everything that decides counts: rules, keys, tasks, algorithms, lists of upstreams, and their periods. It is the code that
 * routes real traffic, over the series that are given. Where a route has too few of them, made-up keys tell what its
 * placement does.
 *
 * No step takes long but those that build placements, one configuration or list at a time: a few milliseconds for a list of
 * a thousand upstreams, but for a ring, whose points take a tenth of a second then.
 */
import type { SampledSeries, SampleState } from "../route/liveSample.ts";
import { Movement } from "./copies.ts";
import { compareTasks, type PlacedTasks, type RouteInPeriod } from "./placedTasks.ts";
import type { PlanConfig } from "./planConfig.ts";
import type { Basis, PlanReport, RouteReport } from "./report.ts";
import { type CountedRoute, reportOf, routeReport } from "./reportRoutes.ts";
import { RoutePair, routePairs, type RouteSide } from "./routePair.ts";
import { SeriesDecider } from "./seriesDecider.ts";
import { KeyRules, SYNTHETIC_KEYS, syntheticPlacer } from "./synthetic.ts";

/** A share of fewer series than these says too little. */
const LEAST_SERIES = 1_000;
/** Enough to tell how even a route is that nothing moves in. */
const KEYS_OF_UNCHANGED = 50_000;
/** Of a route that changes, however many do: a share within half a percent. */
const LEAST_KEYS = 100_000;
const SERIES_A_LOOK = 16;
const KEYS_A_LOOK = 128;

export interface PlanOptions {
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** For items of which time the figures are; null for the newest period of each topology. */
  readonly atMs: number | null;
  /** Whether the configuration after the change is a file of the old Go gateway. */
  readonly isLegacy: boolean;
  /** Whether it is time for a pause. */
  readonly isDue: () => boolean;
}

type Steps<Result> = Generator<undefined, Result, undefined>;

/**
 * Compares two configurations in steps: it yields when a pause is due, and returns the report.
 *
 * @param sample whose series are decided under both
 */
export function* comparePlacements(
  before: PlanConfig,
  after: PlanConfig,
  sample: SampleState,
  options: PlanOptions,
): Steps<PlanReport> {
  const pairs = routePairs(before, after);
  yield* countSeries(before, after, sample.series, pairs, options.isDue);
  const reports: RouteReport[] = [];
  // All routes together take no longer than one.
  const keys = Math.max(LEAST_KEYS, Math.ceil(SYNTHETIC_KEYS / pairs.filter(isChanged).length));
  const context = { sample, basis: basisOf(sample.series.length, sample), ...options };
  for (const pair of pairs) {
    const counted = yield* complete(pair, keys, sample, options);
    if (options.isDue()) yield;
    reports.push(routeReport(counted, context));
  }
  return reportOf(reports, context);
}

function basisOf(series: number, { isExact }: SampleState): Basis {
  if (series < LEAST_SERIES) return "synthetic";
  return isExact ? "all" : "sample";
}

/** Decides all series under both configurations. */
function* countSeries(
  before: PlanConfig,
  after: PlanConfig,
  series: readonly SampledSeries[],
  pairs: readonly RoutePair[],
  isDue: () => boolean,
): Steps<void> {
  const isSame = pairs.every((pair) => pair.isSame);
  const old = new SeriesDecider(before, isDue);
  if (isDue()) yield;
  const now = isSame ? old : new SeriesDecider(after, isDue);
  for (const [number, each] of series.entries()) {
    if (number % SERIES_A_LOOK === 0 && isDue()) yield;
    const was = yield* old.decide(each);
    const is = isSame ? was : yield* now.decide(each);
    for (const pair of pairs) pair.countDecided(was, is);
  }
}

/** Adds what series do not tell: where tasks go, and, for a route of too few series, where keys would. */
function* complete(
  pair: RoutePair,
  keys: number,
  sample: SampleState,
  options: PlanOptions,
): Steps<CountedRoute> {
  const main = pair.mainEra(options.atMs);
  const given = pair.movements[main] ?? new Movement();
  const basis = basisOf(Math.max(given.seriesBefore, given.seriesAfter), sample);
  const placed = basis === "synthetic" ? yield* placeKeys(pair, keys, options.isDue) : pair;
  const era = pair.eras[main];
  const tasks: PlacedTasks = yield* compareTasks(
    inPeriod(pair.before, era?.before),
    inPeriod(pair.after, era?.after),
    options.isDue,
  );
  return { pair: placed, given, basis, main, tasks };
}

function isChanged({ before, after, isSame }: RoutePair): boolean {
  return before !== null && after !== null && !isSame;
}

function* placeKeys(pair: RoutePair, keysOfChanged: number, isDue: () => boolean): Steps<RoutePair> {
  const { before, after } = pair;
  const placed = new RoutePair(before, after);
  const rules = new KeyRules();
  const placerOf = (side: RouteSide | null): ReturnType<typeof syntheticPlacer> =>
    side === null ? () => [] : syntheticPlacer(side.planned.route, rules);
  const old = placerOf(before);
  if (isDue()) yield;
  const now = placerOf(after);
  const keys = isChanged(pair) ? keysOfChanged : KEYS_OF_UNCHANGED;
  for (let key = 0; key < keys; key++) {
    if (key % KEYS_A_LOOK === 0 && isDue()) yield;
    placed.countPlaced(old(key), now(key));
  }
  return placed;
}

function inPeriod(side: RouteSide | null, period: number | undefined): RouteInPeriod | null {
  const route = side?.planned.route;
  const found = route?.topology[period ?? -1];
  return route === undefined || found === undefined ? null : { route, period: found };
}
