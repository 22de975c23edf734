/** What to write instead. */
import type { AggregationRule } from "../config/aggregationFile.ts";
import type { RouteOptions } from "../route/options.ts";
import type { LabelNames } from "./labelNames.ts";

/**
 * Keys that keep the groups of a rule together.
 *
 * @param group labels that certainly tell groups apart
 * @param ungrouped what the rule has to say besides, where the task label must not tell groups apart; null where it may
 */
export function keyRemedies(
  { placement, tasks }: RouteOptions,
  group: LabelNames,
  ungrouped: string | null,
): string[] {
  const key = keyText(group, tasks?.label ?? null);
  if (key === null)
    return ["one upstream for these series: no label tells the groups apart that a key could have"];
  const placed = `placement: {key: ${key}}${ungrouped === null ? "" : `, and in the rule ${ungrouped}`}`;
  if (tasks === null || placement.key.kind !== "task" || key === "series") return [placed];
  return [taskKeyRemedy(key), placed];
}

/** How no group is of several tasks. @param group @param ungrouped as for keyRemedies(), for a rule without the task label */
export function taskRemedies({ tasks }: RouteOptions, group: LabelNames, ungrouped: string): string[] {
  const key = keyText(group, tasks?.label ?? null);
  return key === null || key === "series" ? [ungrouped] : [taskKeyRemedy(key), ungrouped];
}

function taskKeyRemedy(key: string): string {
  return `tasks: ${key}, so that each group is of one task`;
}

/** A rule whose groups the task label does not tell apart. */
export function ungroupedText(label: string, { by, without, dropInputLabels }: AggregationRule): string {
  if (without.length > 0) return `without: [${[...without, label].join(", ")}]`;
  const others = by.filter((name) => name !== label);
  return others.length > 0
    ? `by: [${others.join(", ")}]`
    : `drop_input_labels: [${[...dropInputLabels, label].join(", ")}]`;
}

/**
 * How the task label gets into the group.
 *
 * @param loss what takes it before the rule groups, null when nothing does
 */
export function taskRemedy(
  label: string,
  { by, without, dropInputLabels }: AggregationRule,
  loss: string | null,
): string {
  if (dropInputLabels.includes(label)) return `${label} left out of drop_input_labels`;
  if (loss !== null) return `${label} kept as it is: it is ${loss}`;
  if (by.length > 0) return `by: [${[...by, label].join(", ")}]`;
  return `without: [${without.filter((name) => name !== label).join(", ")}]`;
}

/** The task label is in no key, so it is not written there either. */
function keyText({ kind, names }: LabelNames, taskLabel: string | null): string | null {
  const list = [...names].filter((name) => name !== taskLabel);
  if (kind === "all_but") return list.length === 0 ? "series" : `{without: [${list.join(", ")}]}`;
  // The metric name tells groups apart as well, and is a key if need be; without it their series stay together.
  const others = list.filter((name) => name !== "__name__");
  const chosen = others.length > 0 ? others : list;
  return chosen.length === 0 ? null : `{by: [${chosen.join(", ")}]}`;
}
