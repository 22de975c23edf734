/** Whether a change moves more than a reload may move. */
import type { PlanReport, RouteReport, Share } from "../plan/report.ts";

/** What a change moves of one route, at most, of the items that are still to come: shares of its copies, from 0 to 1. */
export interface RouteMove {
  readonly route: string;
  /** Elsewhere or in another task, or both: what may be too much. */
  readonly ratio: number;
  /** Elsewhere, whatever their task; those that go nowhere any more included. */
  readonly moved: number;
  /** In another task, wherever they go. */
  readonly retasked: number;
}

/**
 * By route: the largest shares of its copies that are otherwise than before the change, in any period that items of the last
 * `lateMs` or later fall into. Older ones are replayed at most, and to delete past periods is no move.
 *
 * @param nowMs milliseconds since the epoch
 */
export function movesOf({ routes }: PlanReport, nowMs: number, lateMs: number): RouteMove[] {
  return routes.filter(({ change }) => change !== "new").map((route) => moveOf(route, nowMs - lateMs));
}

function moveOf({ route, change, moved, retasked, changed, eras }: RouteReport, sinceMs: number): RouteMove {
  if (change === "gone") return { route, ratio: 1, moved: 1, retasked: 0 };
  const current = eras.filter((_, index) => {
    const until = eras[index + 1]?.from ?? null;
    return until === null || Date.parse(until) > sinceMs;
  });
  return {
    route,
    ratio: largest([changed, ...current.map((era) => era.changed)]),
    moved: largest([moved, ...current.map((era) => era.moved)]),
    retasked: largest([retasked, ...current.map((era) => era.retasked)]),
  };
}

function largest(shares: readonly Share[]): number {
  return Math.max(...shares.map(({ share }) => share));
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
