/** How evenly tasks, and with replicas all copies of them, spread over the upstreams of a route. */
import { buildPlacement, type PlacementMethod } from "../hash/placement.ts";
import type { NamedSlot } from "../hash/slots.ts";

export interface TaskBalance {
  /** Tasks of the fullest live slot over the mean of all live slots, each copy counted; 1 is even. */
  readonly maxOverAverage: number;
  /** Live slots that get no task, in ascending order. */
  readonly emptySlots: readonly number[];
}

/**
 * Places every task and counts; takes time and memory in proportion to both numbers.
 *
 * @param tasks    how many tasks, 1 or more
 * @param replicas how many slots get each of them
 * @throws {PlacementError} where method, slots and replicas do not go together
 */
export function taskBalance(
  tasks: number,
  method: PlacementMethod,
  slots: readonly NamedSlot[],
  replicas = 1,
): TaskBalance {
  const { placeReplicas } = buildPlacement(method, slots, replicas);
  const counts = new Uint32Array(slots.length);
  const picked = new Int32Array(replicas);
  for (let task = 0; task < tasks; task++) {
    placeReplicas(task, picked);
    for (const slot of picked) counts[slot] = (counts[slot] ?? 0) + 1;
  }
  const live = [...slots.keys()].filter((slot) => slots[slot]?.removed !== true);
  const fullest = counts.reduce((most, count) => Math.max(most, count), 0);
  return {
    maxOverAverage: fullest / ((tasks * replicas) / live.length),
    emptySlots: live.filter((slot) => counts[slot] === 0),
  };
}
