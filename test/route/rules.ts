/** Rules that tests of routes use, in the dialect of Prometheus. */
import type { RelabelRule, RelabelRuleList } from "../../src/relabel/options.ts";
import { ruleOf } from "../relabel/rule.ts";

export function rulesOf(...rules: readonly RelabelRule[]): RelabelRuleList {
  return { dialect: "prometheus", rules };
}

/** Keeps the series in which a label matches. */
export function keep(name: string, regex: string): RelabelRule {
  return ruleOf({ action: "keep", sourceLabels: [name], regex });
}

/** Drops the series in which a label matches. */
export function drop(name: string, regex: string): RelabelRule {
  return ruleOf({ action: "drop", sourceLabels: [name], regex });
}

/** Sets a label, whatever there is; the empty value takes it away. */
export function set(name: string, value: string): RelabelRule {
  return ruleOf({ action: "replace", targetLabel: name, replacement: value });
}

/** Copies a label, an absent one as the empty value. */
export function copy(from: string, to: string): RelabelRule {
  return ruleOf({ action: "replace", sourceLabels: [from], targetLabel: to });
}

/** Sets a label to values of others, one behind another. */
export function join(to: string, ...from: readonly string[]): RelabelRule {
  return ruleOf({ action: "replace", sourceLabels: from, separator: "", targetLabel: to });
}

export function labelDrop(regex: string): RelabelRule {
  return ruleOf({ action: "labeldrop", regex });
}

export function labelKeep(regex: string): RelabelRule {
  return ruleOf({ action: "labelkeep", regex });
}

/** Copies labels to names that are made of theirs. */
export function labelMap(regex: string, replacement: string): RelabelRule {
  return ruleOf({ action: "labelmap", regex, replacement });
}
