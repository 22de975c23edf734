/** What each action does to the labels of a series. */
import type { CheckedRule, RelabelAction } from "./checkedRule.ts";
import { hashmod } from "./hashmod.ts";
import { toLower, toUpper } from "./letterCase.ts";
import { expand, parseTemplate } from "./template.ts";
import type { WorkingLabels } from "./workingLabels.ts";

/** Applies one rule; false drops the series. */
export type Step = (labels: WorkingLabels) => boolean;

const ACTIONS: Readonly<Record<RelabelAction, (rule: CheckedRule) => Step>> = {
  replace,
  keep: (rule) => (labels) => rule.pattern.matches(sourceOf(rule, labels)),
  drop: (rule) => (labels) => !rule.pattern.matches(sourceOf(rule, labels)),
  keepequal: (rule) => (labels) => sourceOf(rule, labels) === labels.get(rule.targetLabel),
  dropequal: (rule) => (labels) => sourceOf(rule, labels) !== labels.get(rule.targetLabel),
  hashmod: (rule) => settingTarget(rule, (source) => hashmod(source, rule.modulus)),
  labelmap,
  labeldrop: (rule) => removing((name) => rule.pattern.matches(name)),
  labelkeep: (rule) => removing((name) => !rule.pattern.matches(name)),
  lowercase: (rule) => settingTarget(rule, toLower),
  uppercase: (rule) => settingTarget(rule, toUpper),
};

export function stepOf(rule: CheckedRule): Step {
  return ACTIONS[rule.action](rule);
}

/** The values of the source labels in one text; a label that is missing is empty, its separators stay. */
function sourceOf({ sourceLabels, separator }: CheckedRule, labels: WorkingLabels): string {
  return sourceLabels.map((name) => labels.get(name)).join(separator);
}

function replace(rule: CheckedRule): Step {
  const target = parseTemplate(rule.targetLabel, rule.pattern.groupNames);
  const replacement = parseTemplate(rule.replacement, rule.pattern.groupNames);
  return (labels) => {
    const groups = rule.pattern.find(sourceOf(rule, labels));
    if (groups === null) return true;
    const name = expand(target, groups);
    // Of the UTF-8 texts only the empty one is no name.
    if (name !== "") labels.set(name, expand(replacement, groups));
    return true;
  };
}

function labelmap(rule: CheckedRule): Step {
  const replacement = parseTemplate(rule.replacement, rule.pattern.groupNames);
  return (labels) => {
    for (const [name, value] of labels.visitingOrder()) {
      if (rule.pattern.matches(name)) labels.set(rule.pattern.replaceAll(name, replacement), value);
    }
    return true;
  };
}

function settingTarget(rule: CheckedRule, valueOf: (source: string) => string): Step {
  return (labels) => {
    labels.set(rule.targetLabel, valueOf(sourceOf(rule, labels)));
    return true;
  };
}

function removing(isUnwanted: (name: string) => boolean): Step {
  return (labels) => {
    for (const [name] of labels.visitingOrder()) if (isUnwanted(name)) labels.remove(name);
    return true;
  };
}
