/** What whoever makes a change should know, and how to write it so that less moves. */
import { placementIn, type RoutePlacement } from "../route/renumbering.ts";
import { LEGACY_REMEDY, listRemedies } from "./changeText.ts";
import type { RouteFigures } from "./report.ts";
import { type RoutePair, type RouteSide, slotsOf } from "./routePair.ts";
import { percent } from "./percent.ts";
import { shortened } from "./shortened.ts";

/**
 * @param main     the era that the report's figures are for
 * @param isLegacy see PlanOptions
 */
export function adviceFor(pair: RoutePair, main: number, report: RouteFigures, isLegacy: boolean): string[] {
  return [
    ...basisAdvice(report),
    ...nameAdvice(report),
    ...listAdvice(pair, main, isLegacy),
    ...windowAdvice(pair, report),
    ...taskAdvice(report),
  ];
}

function basisAdvice({ basis, change, given }: RouteFigures): string[] {
  if (basis !== "synthetic" || change === "same") return [];
  const counts =
    given.before + given.after === 0
      ? ""
      : `; of the ${given.before} series that were looked at here ${given.changed} change, ${given.ceased} of them to nowhere, and ${given.begun} are new here`;
  return [
    `too few series are known for figures, so these are of made-up keys, which tell nothing of rules${counts}`,
  ];
}

function nameAdvice({ list }: RouteFigures): string[] {
  const pairs = list.renamed.map(({ from, to }) => `${to} for ${from}`);
  if (pairs.length === 0) return [];
  return [
    `only the name is another, at the same url: ${shortened(pairs)}; placement by number would keep what goes there, but queue, ` +
      "spool and these figures go by name: keep the names",
  ];
}

/** How to write the list without renumbering. */
function listAdvice({ before, after, eras }: RoutePair, main: number, isLegacy: boolean): string[] {
  const era = eras[main];
  if (before === null || after === null || era === undefined) return [];
  const placementOf = (side: RouteSide, period: number): RoutePlacement =>
    placementIn(side.planned.route, { fromMs: null, slots: slotsOf(side, period) });
  const remedies = listRemedies(placementOf(before, era.before), placementOf(after, era.after));
  const advice = remedies.map((remedy) => `to move less, ${remedy}`);
  return isLegacy && advice.length > 0 ? [...advice, LEGACY_REMEDY] : advice;
}

function windowAdvice(pair: RoutePair, { windows }: RouteFigures): string[] {
  const share = percent(windows.split);
  switch (windows.kind) {
    case "none":
      return [];
    case "in_the_past":
      return [
        "it changes past periods: late and replayed items go elsewhere than the windows that they belong to",
      ];
    case "at_border":
      return [
        `windows of ${share} have ${windows.from ?? ""} inside them unless it is a boundary of the aggregation interval; ` +
          "with enable_windows at the aggregators none is split then, without it those at the border are, by what is in flight",
      ];
    case "at_reload":
      return pair.keysAlike ? listWindows(share) : keyWindows(share, pair);
  }
}

function listWindows(share: string): string[] {
  return [
    `windows under way are split for ${share}, in each replica when it reloads; a period of the topology with a from on a boundary ` +
      "of the aggregation interval avoids it (plan --effective 10m --round 1m prints one): with enable_windows at the aggregators " +
      "no window is split then, without it those at the border are, by what is in flight",
  ];
}

/** What only a reload can bring into force. */
function keyWindows(share: string, { before, after }: RoutePair): string[] {
  if (before === null || after === null) return [];
  return [
    `windows under way are split for ${share}, in each replica when it reloads; no period avoids it, since periods differ in ` +
      "upstreams alone: reload all replicas within one interval, and leave out what was aggregated over it",
  ];
}

function taskAdvice({ retasked, tasks }: RouteFigures): string[] {
  if (retasked.share === 0) return [];
  const counts =
    tasks.before === tasks.after
      ? ""
      : ` (${tasks.before ?? "no"} tasks before, ${tasks.after ?? "none"} after)`;
  return [
    `${percent(retasked)} get another task label${counts}: output series that keep it end under the old number and begin under ` +
      "the new one; sums over the label stay right, but for the windows that are split",
  ];
}
