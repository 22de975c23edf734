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
import { rememberLast } from "./lastAnswer.ts";
import { toLower, toUpper } from "./letterCase.ts";
import type { PrometheusLabels } from "./prometheusLabels.ts";
import type { PrometheusAction, PrometheusRule } from "./prometheusRule.ts";
import { expand, isConstant, parseTemplate } from "./template.ts";
import type { Label } from "./workingLabels.ts";

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
  const source = sourceOf(rule);
  const labelFor = rememberLast(replacementOf(rule));
  return (labels) => {
    const label = labelFor(source(labels));
    if (label !== null) labels.set(label[0], label[1]);
    return true;
  };
}

/** The label that a text makes the rule set, null for none. */
function replacementOf({
  pattern,
  targetLabel,
  replacement,
}: PrometheusRule): (text: string) => Label | null {
  const name = parseTemplate(targetLabel, pattern.groupNames);
  const value = parseTemplate(replacement, pattern.groupNames);
  if (isConstant(name) && isConstant(value)) {
    const label: Label = [expand(name, []), expand(value, [])];
    return (text) => (pattern.matches(text) ? label : null);
  }
  return (text) => {
    const groups = pattern.find(text);
    if (groups === null) return null;
    const label: Label = [expand(name, groups), expand(value, groups)];
    // Of the UTF-8 texts only the empty one is no name.
    return label[0] === "" ? null : label;
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
