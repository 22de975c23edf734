/** What each of Prometheus' actions does to the labels of a series. */
import {
  dropEqual,
  dropWhere,
  keepEqual,
  keepWhere,
  removeNames,
  setTarget,
  sourceOf,
  type Step,
} from "./actions.ts";
import { md5Hashmod } from "./hashmod.ts";
import { toLower, toUpper } from "./letterCase.ts";
import type { PrometheusLabels } from "./prometheusLabels.ts";
import type { PrometheusAction, PrometheusRule } from "./prometheusRule.ts";
import { expand, isConstant, parseTemplate } from "./template.ts";

export type PrometheusStep = Step<PrometheusLabels>;

const ACTIONS: Readonly<Record<PrometheusAction, (rule: PrometheusRule) => PrometheusStep>> = {
  replace,
  keep: (rule) => keepWhere((text) => rule.pattern.matches(text), sourceOf(rule)),
  drop: (rule) => dropWhere((text) => rule.pattern.matches(text), sourceOf(rule)),
  keepequal: (rule) => keepEqual(sourceOf(rule), rule.targetLabel),
  dropequal: (rule) => dropEqual(sourceOf(rule), rule.targetLabel),
  hashmod: (rule) => setTarget(sourceOf(rule), rule.targetLabel, (text) => md5Hashmod(text, rule.modulus)),
  labelmap,
  labeldrop: (rule) => removeNames((name) => rule.pattern.matches(name)),
  labelkeep: (rule) => removeNames((name) => !rule.pattern.matches(name)),
  lowercase: (rule) => setTarget(sourceOf(rule), rule.targetLabel, toLower),
  uppercase: (rule) => setTarget(sourceOf(rule), rule.targetLabel, toUpper),
};

export function prometheusStep(rule: PrometheusRule): PrometheusStep {
  return ACTIONS[rule.action](rule);
}

function replace(rule: PrometheusRule): PrometheusStep {
  const { pattern } = rule;
  const source = sourceOf(rule);
  const target = parseTemplate(rule.targetLabel, pattern.groupNames);
  const replacement = parseTemplate(rule.replacement, pattern.groupNames);
  if (isConstant(target) && isConstant(replacement)) {
    const name = expand(target, []);
    const value = expand(replacement, []);
    return (labels) => {
      if (pattern.matches(source(labels))) labels.set(name, value);
      return true;
    };
  }
  return (labels) => {
    const groups = pattern.find(source(labels));
    if (groups === null) return true;
    const name = expand(target, groups);
    // Of the UTF-8 texts only the empty one is no name.
    if (name !== "") labels.set(name, expand(replacement, groups));
    return true;
  };
}

function labelmap({ pattern, replacement }: PrometheusRule): PrometheusStep {
  const template = parseTemplate(replacement, pattern.groupNames);
  return (labels) => {
    for (const [name, value] of labels.visitingOrder()) {
      if (pattern.matches(name)) labels.set(pattern.replaceAll(name, template), value);
    }
    return true;
  };
}
