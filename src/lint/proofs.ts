/** What two copies show to be wrong with a rule. */
import type { Arrival } from "./journeys.ts";
import { areTwo } from "./vmagents.ts";

/** One group is on two vmagents. */
export function isSplit(one: Arrival, other: Arrival): boolean {
  return one.group === other.group && areTwo(one.vmagent, other.vmagent);
}

/** What would be one group without the task label is two, of two tasks. */
export function isOfTasks(one: Arrival, other: Arrival): boolean {
  const [task, another] = [one.task, other.task];
  if (task === null || another === null || task === another) return false;
  return one.groupWithoutTask === other.groupWithoutTask;
}
