/**
 * Time as all routes together see it: cut where any of them begins a new period.
 *
 * What becomes of a series is decided for all time at once, and kept. Which part of the decision an item belongs to is said by
 * the epoch that its timestamp is in. So nobody here needs a clock, and data of an hour ago is as quick as new data.
 */
import type { Period } from "./options.ts";

export class Epochs {
  /** Where epochs end and the next begin: milliseconds since the epoch of clocks, ascending. There is one epoch more. */
  readonly bounds: readonly number[];
  /** By route and epoch: index of the route's period. */
  readonly #periods: readonly (readonly number[])[];

  /** @param topologies of all routes */
  constructor(topologies: readonly (readonly Period[])[]) {
    const moments = topologies.flatMap((topology) => topology.map(({ fromMs }) => fromMs));
    const bounds = [...new Set(moments.filter((moment) => moment !== null))].sort((a, b) => a - b);
    this.bounds = bounds;
    const starts = [Number.NEGATIVE_INFINITY, ...bounds];
    this.#periods = topologies.map((topology) => starts.map((startMs) => periodAt(topology, startMs)));
  }

  /** The epoch of an item with this timestamp. */
  at(timestampMs: number): number {
    const behind = this.bounds.findIndex((bound) => timestampMs < bound);
    return behind < 0 ? this.bounds.length : behind;
  }

  /** Index of the period of a route that an epoch is in. */
  periodOf(route: number, epoch: number): number {
    return this.#periods[route]?.[epoch] ?? 0;
  }
}

/** Index of the period that is in force for items with a timestamp. */
export function periodAt(topology: readonly Period[], timestampMs: number): number {
  return Math.max(
    0,
    topology.findLastIndex(({ fromMs }) => fromMs !== null && fromMs <= timestampMs),
  );
}
