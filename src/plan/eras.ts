/** Times of items over which neither of two topologies changes. */
import type { Period } from "../route/options.ts";

export interface Era {
  /** Milliseconds since the epoch; null for the first. */
  readonly fromMs: number | null;
  /** The period in force on each side, by its number; -1 where there is no topology. */
  readonly before: number;
  readonly after: number;
}

/** In ascending order, one or more. */
export function erasOf(before: readonly Period[], after: readonly Period[]): readonly Era[] {
  const moments = [...before, ...after].flatMap(({ fromMs }) => (fromMs === null ? [] : [fromMs]));
  const borders = [...new Set(moments)].sort((a, b) => a - b);
  return [null, ...borders].map((fromMs) => {
    return { fromMs, before: inForce(before, fromMs), after: inForce(after, fromMs) };
  });
}

/** The period that an item of this time is in. */
function inForce(periods: readonly Period[], atMs: number | null): number {
  return periods.findLastIndex(({ fromMs }) => fromMs === null || (atMs !== null && fromMs <= atMs));
}

/** Which of the eras holds a time. */
export function eraAt(eras: readonly Era[], atMs: number): number {
  return eras.findLastIndex(({ fromMs }) => fromMs === null || fromMs <= atMs);
}
