/**
 * Which labels decide where a route sends a series: nothing else does, whatever the algorithm.
 *
 * They are labels of the series as it leaves stage 1, the task label included: those after the route's rules, which the keys
 * are made of, with the task in its label.
 */
import type { KeyRule } from "../hash/keyRule.ts";
import type { RouteOptions, TaskOptions } from "../route/options.ts";
import { allBut, EVERY_LABEL, type LabelNames, NO_LABEL, only } from "./labelNames.ts";

/** Labels that decide the task. */
export function taskLabels({ count, key, label }: TaskOptions): LabelNames {
  return count === 1 ? NO_LABEL : keyLabels(key, label);
}

/**
 * Labels that decide the upstream, the task label for a `key: task`.
 *
 * @param hasSome whether every series has one of these labels; where none of a `by` key is there, `whole_set` takes all labels
 */
export function upstreamLabels(
  { placement, tasks }: RouteOptions,
  hasSome: (names: readonly string[]) => boolean,
): LabelNames {
  const { key, missingKey } = placement;
  const taskLabel = tasks?.label ?? null;
  if (key.kind === "task") return taskLabel === null ? NO_LABEL : only([taskLabel]);
  if (key.kind !== "by" || missingKey === "one_place" || hasSome(key.names)) return keyLabels(key, taskLabel);
  // A flat key may hash the task as well.
  return taskLabel !== null && key.names.includes(taskLabel)
    ? EVERY_LABEL
    : keyLabels({ kind: "all" }, taskLabel);
}

function keyLabels(key: KeyRule, taskLabel: string | null): LabelNames {
  if (key.kind === "by") return only(key.names);
  const never = taskLabel === null ? [] : [taskLabel];
  return allBut(key.kind === "without" ? [...key.names, ...never] : never);
}
