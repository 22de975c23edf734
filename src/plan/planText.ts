/** A plan for a person. */
import { percent } from "./percent.ts";
import type { Basis, FromTo, PlanReport, RouteReport, UpstreamReport } from "./report.ts";
import { shortened } from "./shortened.ts";

/** Pairs and upstreams that are written out. */
const MAX_ROWS = 20;

/** What would move, in one line. */
export function headline({ changed, series, known, routes }: PlanReport): string {
  const route = changed.route === null ? "" : ` of route ${changed.route}`;
  const what = changed.share === 0 ? "moves nothing" : `moves ${percent(changed)} of the copies${route}`;
  const eras = routes.flatMap((report) => eraText(report).map((text) => `of route ${report.route} ${text}`));
  const when = eras.length === 0 ? "" : " in the newest period";
  return [`${what}${when} (${basisText(changed.basis, series, known.series)})`, ...eras].join("; ");
}

/** What moves in another period than the newest, where that is more: nothing of it is in the other figures of a route. */
function eraText({ changed, eras }: RouteReport): string[] {
  const [most] = eras.toSorted((one, other) => other.changed.share - one.changed.share);
  if (most === undefined || most.changed.share <= changed.share) return [];
  return [`${percent(most.changed)} of items ${eraName(eras, eras.indexOf(most))}`];
}

function basisText(basis: Basis, series: number, known: number): string {
  switch (basis) {
    case "all":
      return `exact, over all ${series} series`;
    case "sample":
      return `by a sample of ${series} of about ${Math.round(known)} series`;
    case "synthetic":
      return `by made-up keys, as ${series === 0 ? "no" : "too few"} series are known`;
  }
}

export function planLines(report: PlanReport): string[] {
  return [
    headline(report),
    ...report.routes.flatMap((route) => ["", ...routeLines(route)]),
    "",
    "± is one standard error; a copy of a series moves when it leaves its upstream or gets another task",
  ];
}

/** What would move of one route, in one line: elsewhere, and into another task. */
export function routeHeadline(report: RouteReport): string {
  const { route, change, moved, retasked, begun, ceased } = report;
  if (change === "new") return `route ${route}: new`;
  if (change === "gone") return `route ${route}: gone, and with it all of its copies`;
  const others = [
    ...(retasked.share > 0 ? [`${percent(retasked)} get another task`] : []),
    ...(ceased.share > 0 ? [`${percent(ceased)} go nowhere instead`] : []),
    ...(begun.share > 0 ? [`${percent(begun)} of those afterwards are new here`] : []),
  ];
  const when = eraText(report).length === 0 ? "" : " in the newest period";
  const what =
    moved.share === 0
      ? `nothing leaves its upstream${when}`
      : `${percent(moved)} of its copies leave their upstream${when}`;
  return `route ${route}: ${[what, ...others, ...eraText(report)].join("; ")}`;
}

function routeLines(route: RouteReport): string[] {
  const line = routeHeadline(route);
  if (route.change === "new") return [line, ...balanceLines(route)];
  if (route.change === "gone") return [line];
  return [
    line,
    ...listLines(route),
    ...pairLines(route.from_to),
    ...eraLines(route),
    ...taskLines(route),
    ...balanceLines(route),
    ...route.advice.map((line) => `  ${line}`),
  ];
}

function listLines({ list }: RouteReport): string[] {
  const lists: readonly (readonly [string, readonly string[]])[] = [
    ["added", list.added],
    ["no longer live", list.removed],
    ["at another url, which moves nothing", list.readdressed],
    ["under another number", list.renumbered],
  ];
  return lists.flatMap(([what, names]) => (names.length === 0 ? [] : [`  ${what}: ${shortened(names)}`]));
}

function pairLines(pairs: readonly FromTo[]): string[] {
  const moves = pairs.filter(({ from, to }) => from !== to);
  if (moves.length === 0) return [];
  const rows = moves
    .slice(0, MAX_ROWS)
    .map(({ from, to, share }) => `  ${from} -> ${to ?? "nowhere"}: ${percent(share)}`);
  const more = moves.length - rows.length;
  return more > 0 ? [...rows, `  and ${more} more pairs`] : rows;
}

/** Where time matters: what is different for items of which time. */
function eraLines({ eras }: RouteReport): string[] {
  if (eras.length < 2) return [];
  return eras.map(({ changed }, index) => {
    const what = changed.share === 0 ? "nothing changes" : `${percent(changed)} change`;
    return `  items ${eraName(eras, index)}: ${what}`;
  });
}

function eraName(eras: RouteReport["eras"], index: number): string {
  const from = eras[index]?.from ?? null;
  return from === null ? `before ${eras[index + 1]?.from ?? ""}` : `from ${from} on`;
}

function taskLines({ tasks: { before, after, moved } }: RouteReport): string[] {
  if (moved === null || (moved.tasks === 0 && before === after)) return [];
  const counts =
    before === after ? `${before ?? 0} tasks` : `${before ?? 0} tasks before, ${after ?? 0} after`;
  return [`  ${counts}: ${moved.tasks} of ${moved.of} numbers go to another upstream`];
}

function balanceLines({ balance: { before, after }, upstreams }: RouteReport): string[] {
  if (after === null) return [];
  const empty = after.empty.length === 0 ? [] : [`  empty afterwards: ${shortened(after.empty)}`];
  const tasks = beforeAndAfter(before?.tasks_max_over_average ?? null, after.tasks_max_over_average);
  const copies = beforeAndAfter(before?.copies_max_over_average ?? null, after.copies_max_over_average);
  return [
    `  the fullest upstream has, over the average: copies ${copies}${after.tasks_max_over_average === null ? "" : `; tasks ${tasks}`}`,
    ...upstreamLines(upstreams),
    ...empty,
  ];
}

function beforeAndAfter(before: number | null, after: number | null): string {
  const [was, is] = [before, after].map((figure) => (figure === null ? "-" : figure.toFixed(2)));
  return before === null ? `${is ?? ""} after` : `${was ?? ""} before, ${is ?? ""} after`;
}

function upstreamLines(upstreams: readonly UpstreamReport[]): string[] {
  if (upstreams.length > MAX_ROWS) return [];
  return upstreams.map(({ name, before, after }) => {
    const [was, is] = [before, after].map((share) => (share === null ? "-" : percent(share)));
    return `    ${name}: ${was ?? ""} before, ${is ?? ""} after`;
  });
}
