/** Whether a change moves more than a reload may move. */
import type { PlanReport, RouteReport } from "../plan/report.ts";

/** What a change moves of one route, at most, of the items that are still to come. */
export interface RouteMove {
  readonly route: string;
  /** 0 to 1. */
  readonly ratio: number;
}

/**
 * By route: the largest share of its copies that is elsewhere, or in another task, than before the change, in any period that
 * items of the last `lateMs` or later fall into. Older ones are replayed at most, and to delete past periods is no move.
 *
 * @param nowMs milliseconds since the epoch
 */
export function movesOf({ routes }: PlanReport, nowMs: number, lateMs: number): RouteMove[] {
  return routes
    .filter(({ change }) => change !== "new")
    .map((route) => ({ route: route.route, ratio: largestOf(route, nowMs - lateMs) }));
}

function largestOf({ change, changed, eras }: RouteReport, sinceMs: number): number {
  if (change === "gone") return 1;
  const current = eras.filter((_, index) => {
    const until = eras[index + 1]?.from ?? null;
    return until === null || Date.parse(until) > sinceMs;
  });
  return Math.max(changed.share, ...current.map((era) => era.changed.share));
}

/** What is said of a change that moves too much. @param lines of the plan */
export function refusalLines(
  moves: readonly RouteMove[],
  maxRatio: number,
  lines: readonly string[],
): string[] {
  const tooLarge = moves
    .filter(({ ratio }) => ratio > maxRatio)
    .map(({ route, ratio }) => `${(ratio * 100).toFixed(1)} % of route ${route}`);
  return [
    `it moves ${tooLarge.join(", ")}; want at most ${maxRatio * 100} % of a route (reload.max_moved_ratio)`,
    ...lines,
    "to have it all the same: POST /-/reload?force=true, or a higher reload.max_moved_ratio in the file",
  ];
}
