/** Why a rule is safe or not, in words that name the labels. */
import { lossOf } from "./carried.ts";
import type { Facts } from "./facts.ts";
import {
  difference,
  includes,
  intersection,
  isEmpty,
  type LabelNames,
  namesText,
  only,
} from "./labelNames.ts";
import type { Witness } from "./witness.ts";

/** Why no group is split. */
export function proofText({ taskLabel, upstreamBy, upstreamByLabels, group }: Facts): string {
  if (isEmpty(upstreamByLabels)) return "all series go to one upstream, since nothing decides between them";
  const isByTask = taskLabel !== null && includes(upstreamBy, taskLabel);
  const decided = isByTask
    ? "the task, and with it the upstream, is decided by"
    : "the upstream is decided by";
  const same = difference(upstreamByLabels, group.names);
  const besides = isEmpty(same)
    ? ""
    : `, but for ${namesText(same)}, which rules make the same in all series`;
  return `${decided} ${namesText(upstreamByLabels)}: labels that tell groups apart${besides}`;
}

/**
 * Why groups are split.
 *
 * @param isByTask whether that is because the group does not have the task label
 * @param fault    labels that decide, and that the group does not have
 * @param witness  null when there is none
 */
export function splitText(
  facts: Facts,
  isByTask: boolean,
  fault: LabelNames,
  witness: Witness | null,
): string {
  const lacking = lackingText(facts, fault, witness);
  const buckets = bucketLabels(fault);
  const ofBuckets =
    buckets.length === 0
      ? ""
      : `; with ${buckets.join(" and ")} among them the buckets of one histogram go to several upstreams`;
  if (!isByTask) return `the upstream depends on labels that the group does not have: ${lacking}${ofBuckets}`;
  const task = lackingText(facts, only([facts.taskLabel ?? ""]), null);
  return (
    `the task decides the upstream, and a group can be of several tasks: ${task}; ` +
    `and of the labels that decide the task, ${lacking}${ofBuckets}`
  );
}

/** Which labels the group does not have, each with what took it. @param witness has examples for endlessly many */
export function lackingText({ group }: Facts, names: LabelNames, witness: Witness | null): string {
  if (names.kind === "only") {
    const each = [...names.names].map(
      (name) => `${name} is ${lossOf(group, name) ?? "not certain to be in the group"}`,
    );
    return each.join(", ");
  }
  const taken = group.losses
    .filter((loss) => !isEmpty(intersection(loss.names, names)))
    .map(({ how }) => how);
  const examples = differing(witness);
  const such = examples.length === 0 ? "" : `, such as ${examples.join(", ")}`;
  return `${namesText(names)}${such} (${[...new Set(taken)].join("; ")})`;
}

/** Labels at fault, as far as they can be listed. */
export function listed(fault: LabelNames, witness: Witness | null): string[] {
  const finite = fault.kind === "only" ? [...fault.names] : [];
  return [...new Set([...finite, ...differing(witness), ...bucketLabels(fault)])];
}

/** What else there is to know of a rule that is safe. */
export function notesOn({ vmagentRules, upstreamBy }: Facts): string[] {
  const hidden =
    "vmagent's relabeling removes labels that begin with two underscores; no series is taken to have any";
  return vmagentRules.rules.length > 0 && upstreamBy.kind === "all_but" ? [hidden] : [];
}

/** Labels that a key of nearly all labels should not have. */
function bucketLabels(fault: LabelNames): string[] {
  return ["le", "vmrange"].filter((name) => includes(fault, name));
}

function differing(witness: Witness | null): string[] {
  if (witness === null) return [];
  const [one, other] = witness.series.map((labels) => new Map(labels));
  const names = new Set([...(one?.keys() ?? []), ...(other?.keys() ?? [])]);
  return [...names].filter((name) => one?.get(name) !== other?.get(name));
}
