/** Labels that the gateway's own rules leave no choice: the same value, or none, in every series that they let through. */
import type { RelabelRule, RelabelRuleList } from "../relabel/options.ts";
import { actionOf, literalNames, touchedBy } from "./carried.ts";
import { allBut, difference, type LabelNames, NO_LABEL, only, union } from "./labelNames.ts";

/** After rules, of labels of which some were settled before them. */
export function settledAfter(before: LabelNames, { dialect, rules }: RelabelRuleList): LabelNames {
  return rules.reduce(
    (settled, rule) => union(difference(settled, touchedBy(rule, dialect, [])), settledBy(rule)),
    before,
  );
}

/** What a rule settles for all series. */
function settledBy(rule: RelabelRule): LabelNames {
  // A condition leaves series out, except that keep drops them.
  if (rule.if !== null) return NO_LABEL;
  const { sourceLabels, regex, targetLabel, replacement } = rule;
  const names = literalNames(regex);
  switch (actionOf(rule)) {
    case "labeldrop":
      return only(names ?? []);
    case "labelkeep":
      return names === null ? NO_LABEL : allBut(names);
    case "keep":
      return sourceLabels?.length === 1 && names?.length === 1 ? only(sourceLabels) : NO_LABEL;
    case "replace": {
      const isConstant = !/[${]/.test((replacement ?? "$1") + (targetLabel ?? ""));
      return isConstant && regex === null && targetLabel !== null ? only([targetLabel]) : NO_LABEL;
    }
    default:
      return NO_LABEL;
  }
}
