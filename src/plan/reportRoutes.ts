/** Puts what was counted into a report. */
import type { SampleState } from "../route/liveSample.ts";
import { compareSlots, goesByNumber } from "../route/renumbering.ts";
import { adviceFor } from "./advice.ts";
import type { Movement } from "./copies.ts";
import type { Era } from "./eras.ts";
import { formatMoment } from "../moment.ts";
import type { PlacedTasks, TaskSpread } from "./placedTasks.ts";
import type {
  Balance,
  Basis,
  EraReport,
  ListReport,
  PlanReport,
  RouteReport,
  Share,
  TaskReport,
  UpstreamReport,
  WindowReport,
} from "./report.ts";
import { type RoutePair, type RouteSide, slotsOf } from "./routePair.ts";

/** A route with its counts. */
export interface CountedRoute {
  /** With the counts that figures come from. */
  readonly pair: RoutePair;
  /** The counts over the series that were given. */
  readonly given: Movement;
  readonly basis: Basis;
  /** The era that figures are for. */
  readonly main: number;
  readonly tasks: PlacedTasks;
}

export interface ReportContext {
  readonly sample: SampleState;
  readonly basis: Basis;
  readonly nowMs: number;
  readonly atMs: number | null;
  /** See PlanOptions. */
  readonly isLegacy: boolean;
}

/** As much of all keys as synthetic ones are. */
const NEARLY_NONE = 0;

export function reportOf(routes: readonly RouteReport[], { sample, basis, atMs }: ReportContext): PlanReport {
  const most = routes.reduce<RouteReport | null>(
    (before, route) => (before === null || route.changed.share > before.changed.share ? route : before),
    null,
  );
  return {
    changed: { route: most?.route ?? null, basis: most?.basis ?? basis, ...(most?.changed ?? NOTHING) },
    basis,
    series: sample.series.length,
    known: { series: sample.known.value, standard_error: sample.known.standardError },
    at: timeText(atMs),
    routes,
  };
}

const NOTHING: Share = { share: 0, standard_error: 0 };

export function routeReport(counted: CountedRoute, context: ReportContext): RouteReport {
  const { pair, given, basis, main } = counted;
  const figures = new Figures(counted, context.sample);
  const movement = figures.movement;
  const { fraction } = figures;
  const windows = windowsOf(figures, context.nowMs);
  const tasks = taskReport(counted);
  const list = listReport(pair, main);
  const report = {
    route: pair.name,
    change: changeOf(pair),
    basis,
    moved: figures.certain(main, movement.moved(fraction)),
    retasked: figures.certain(main, movement.retasked(fraction)),
    changed: figures.certain(main, movement.changed(fraction)),
    ceased: figures.certain(main, movement.ceased(fraction)),
    begun: figures.certain(main, movement.begun(fraction)),
    from_to: movement.fromTo(fraction),
    upstreams: upstreamReports(figures),
    balance: {
      before: balanceOf(figures, "before", counted.tasks.before),
      after: balanceOf(figures, "after", counted.tasks.after),
    },
    tasks,
    list,
    eras: pair.eras.map((era, number) => figures.eraReport(era, number)),
    windows,
    given: {
      before: given.seriesBefore,
      after: given.seriesAfter,
      changed: given.seriesChanged,
      ceased: given.seriesCeased,
      begun: given.seriesBegun,
    },
  };
  return { ...report, advice: adviceFor(pair, main, report, context.isLegacy) };
}

/** The counts of a route, and how to read them. */
class Figures {
  readonly pair: RoutePair;
  readonly main: number;
  readonly era: Era;
  readonly movement: Movement;
  /** Of all series, those that were counted. */
  readonly fraction: number;

  constructor({ pair, main, basis }: CountedRoute, sample: SampleState) {
    const [era, movement] = [pair.eras[main], pair.movements[main]];
    if (era === undefined || movement === undefined) throw new Error(`bug: no era ${main}`);
    this.pair = pair;
    this.main = main;
    this.era = era;
    this.movement = movement;
    this.fraction = basis === "synthetic" ? NEARLY_NONE : sample.fraction;
  }

  /** A share of what changes, which is exact in an era in which nothing can, and for a route that is new or gone. */
  certain(number: number, { share, standard_error }: Share): Share {
    const era = this.pair.eras[number];
    const isCertain =
      this.pair.before === null || this.pair.after === null || (era !== undefined && this.pair.isSameIn(era));
    return { share, standard_error: isCertain ? 0 : standard_error };
  }

  eraReport({ fromMs }: Era, number: number): EraReport {
    const movement = this.pair.movements[number];
    if (movement === undefined) throw new Error(`bug: no era ${number}`);
    return {
      from: timeText(fromMs),
      moved: this.certain(number, movement.moved(this.fraction)),
      retasked: this.certain(number, movement.retasked(this.fraction)),
      changed: this.certain(number, movement.changed(this.fraction)),
    };
  }

  live(side: "before" | "after"): readonly string[] {
    return slotsOf(this.pair[side], this.era[side])
      .filter(({ removed }) => removed !== true)
      .map(({ name }) => name);
  }

  copiesAt(side: "before" | "after", upstream: string): Share {
    return side === "before"
      ? this.movement.copiesBefore(upstream, this.fraction)
      : this.movement.copiesAfter(upstream, this.fraction);
  }
}

function changeOf({ before, after, isSame }: RoutePair): RouteReport["change"] {
  if (before === null) return "new";
  if (after === null) return "gone";
  return isSame ? "same" : "changed";
}

function upstreamReports(figures: Figures): readonly UpstreamReport[] {
  const [before, after] = [new Set(figures.live("before")), new Set(figures.live("after"))];
  return [...new Set([...before, ...after])].map((name) => ({
    name,
    before: before.has(name) ? figures.copiesAt("before", name) : null,
    after: after.has(name) ? figures.copiesAt("after", name) : null,
  }));
}

function balanceOf(figures: Figures, side: "before" | "after", tasks: TaskSpread | null): Balance | null {
  const live = figures.live(side);
  if (live.length === 0) return null;
  const shares = live.map((name) => figures.copiesAt(side, name).share);
  return {
    copies_max_over_average: Math.max(...shares) * live.length,
    tasks_max_over_average: tasks?.maxOverAverage ?? null,
    empty: tasks?.empty ?? live.filter((_, index) => shares[index] === 0),
  };
}

function taskReport({ pair, tasks }: CountedRoute): TaskReport {
  const countOf = (side: RouteSide | null): number | null => side?.planned.route.tasks?.count ?? null;
  return { before: countOf(pair.before), after: countOf(pair.after), moved: tasks.moved };
}

function listReport(pair: RoutePair, main: number): ListReport {
  const era = pair.eras[main];
  const [before, after] = [slotsOf(pair.before, era?.before ?? -1), slotsOf(pair.after, era?.after ?? -1)];
  const namesOf = (slots: typeof before): ReadonlySet<string> =>
    new Set(slots.filter(({ removed }) => removed !== true).map(({ name }) => name));
  const [had, has] = [namesOf(before), namesOf(after)];
  const algorithm = pair.after?.planned.route.placement.algorithm;
  const numbered = algorithm !== undefined && goesByNumber(algorithm) && pair.before !== null;
  const changes = numbered ? compareSlots(before, after).renumbered : [];
  const added = [...has].filter((name) => !had.has(name));
  const removed = [...had].filter((name) => !has.has(name));
  return {
    added,
    removed,
    readdressed: readdressed(pair),
    renamed: renamed(pair, removed, added),
    renumbered: changes.map(({ name }) => name),
  };
}

function urlsOf(side: RouteSide | null): ReadonlyMap<string, string> {
  return new Map(side?.planned.upstreams.map(({ name, url }) => [name, url.href]));
}

function readdressed({ before, after }: RoutePair): readonly string[] {
  const [old, now] = [urlsOf(before), urlsOf(after)];
  return [...now].filter(([name, url]) => old.has(name) && old.get(name) !== url).map(([name]) => name);
}

function renamed(
  { before, after }: RoutePair,
  removed: readonly string[],
  added: readonly string[],
): ListReport["renamed"] {
  const [old, now] = [urlsOf(before), urlsOf(after)];
  return removed.flatMap((from) => {
    const to = added.find((name) => now.get(name) === old.get(from));
    return to === undefined ? [] : [{ from, to }];
  });
}

/** Where in time the change takes effect: the most harmful of the eras in which something changes. */
function windowsOf({ pair, fraction }: Figures, nowMs: number): WindowReport {
  const changed = pair.eras.map((_, number) => {
    const movement = pair.movements[number];
    return { number, share: movement?.changed(fraction) ?? NOTHING };
  });
  const inForce = pair.eras.findLastIndex(({ fromMs }) => fromMs === null || fromMs <= nowMs);
  const changing = changed.filter(({ share }) => share.share > 0);
  const now = changing.find(({ number }) => number === inForce);
  if (now !== undefined) return { kind: "at_reload", split: now.share, from: null };
  const later = changing.find(({ number }) => number > inForce);
  if (later !== undefined) {
    return { kind: "at_border", split: later.share, from: timeText(pair.eras[later.number]?.fromMs ?? null) };
  }
  return { kind: changing.length > 0 ? "in_the_past" : "none", split: NOTHING, from: null };
}

function timeText(ms: number | null): string | null {
  return ms === null ? null : formatMoment(ms);
}
