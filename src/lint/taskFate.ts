/** What becomes of the task label on its way into the groups of a rule. */
import type { AggregationRule } from "../config/aggregationFile.ts";
import type { RelabelDialect, RelabelRule, RelabelRuleList } from "../relabel/options.ts";
import { RelabelRules } from "../relabel/rules.ts";
import { parseSelector } from "../relabel/selectorSyntax.ts";
import type { RouteOptions } from "../route/options.ts";
import { actionOf, type Carried, FILTERS, NO_FIELDS } from "./carried.ts";
import { groupLabels } from "./groups.ts";
import { includes } from "./labelNames.ts";

/**
 * `kept`: it tells groups apart, and it alone tells those of tasks apart; `gone`: the task makes no difference to any group;
 * `unsure`: a rule may change it, or makes other labels of it.
 */
export type TaskFate = "kept" | "gone" | "unsure";

/** @param group labels that are certainly those of the group */
export function taskFate(
  label: string,
  group: Carried,
  { upstreams }: RouteOptions,
  vmagentRules: RelabelRuleList,
  rule: AggregationRule,
): TaskFate {
  const lists = [...upstreams.map(({ writeRelabel }) => writeRelabel), vmagentRules, rule.inputRelabel];
  if (lists.some((list) => readIn(list, label))) return "unsure";
  const isGone =
    !includes(groupLabels(rule), label) ||
    rule.dropInputLabels.includes(label) ||
    takes(vmagentRules, label) ||
    takes(rule.inputRelabel, label) ||
    upstreams.every(({ writeRelabel }) => takes(writeRelabel, label));
  if (isGone) return "gone";
  return includes(group.names, label) && !readIn(rule.outputRelabel, label) ? "kept" : "unsure";
}

/** Whether labels that rules make may depend on a label. */
function readIn({ dialect, rules }: RelabelRuleList, label: string): boolean {
  return rules.some((rule) => reads(rule, dialect, label));
}

function reads(rule: RelabelRule, dialect: RelabelDialect, label: string): boolean {
  const action = actionOf(rule);
  if (FILTERS.has(action)) return false;
  const ofIf = (rule.if ?? []).flatMap(parseSelector).flat();
  if (ofIf.some((filter) => filter.label === label)) return true;
  if (action === "labelmap")
    return leaves({ ...NO_FIELDS, action: "labelkeep", regex: rule.regex }, dialect, label);
  if (action === "labelmap_all") return true;
  return (rule.sourceLabels ?? []).includes(label) || (rule.replacement ?? "").includes(`{{${label}}}`);
}

/** Whether rules take a label from every series, or give it a value of their own. */
function takes({ dialect, rules }: RelabelRuleList, label: string): boolean {
  return rules.some((rule) => {
    if (rule.if !== null) return false;
    const action = actionOf(rule);
    if (action === "labeldrop" || action === "labelkeep") return !leaves(rule, dialect, label);
    return action === "replace" && rule.regex === null && rule.targetLabel === label;
  });
}

/** Whether a rule that removes labels by their names leaves this one, where it applies. */
function leaves(rule: RelabelRule, dialect: RelabelDialect, label: string): boolean {
  const alone = new RelabelRules({ dialect, rules: [{ ...rule, if: null }] });
  const outcome = alone.apply([[label, "value"]]);
  return outcome.kind === "kept" && outcome.labels.length > 0;
}
