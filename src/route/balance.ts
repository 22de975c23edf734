/** How evenly tasks spread over the upstreams of a route. */
import { buildPlacement, type PlacementMethod } from "../hash/placement.ts";
import type { NamedSlot } from "../hash/slots.ts";

export interface TaskBalance {
  /** Tasks of the fullest live slot over the mean of all live slots; 1 is even. */
  readonly maxOverAverage: number;
  /** Live slots that get no task, in ascending order. */
  readonly emptySlots: readonly number[];
}

/**
 * Places every task and counts; takes time and memory in proportion to both numbers.
 *
 * @param tasks how many tasks, 1 or more
 * @throws {PlacementError} where method and slots do not go together
 */
export function taskBalance(
  tasks: number,
  method: PlacementMethod,
  slots: readonly NamedSlot[],
): TaskBalance {
  const { place } = buildPlacement(method, slots);
  const counts = new Uint32Array(slots.length);
  for (let task = 0; task < tasks; task++) {
    const slot = place(task);
    counts[slot] = (counts[slot] ?? 0) + 1;
  }
  const live = [...slots.keys()].filter((slot) => slots[slot]?.removed !== true);
  const fullest = counts.reduce((most, count) => Math.max(most, count), 0);
  return {
    maxOverAverage: fullest / (tasks / live.length),
    emptySlots: live.filter((slot) => counts[slot] === 0),
  };
}
