/** What each of vmagent's actions does to the labels of a series. */
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
import { expandGraphite, matchGraphite } from "./graphite.ts";
import { xxhashHashmod } from "./hashmod.ts";
import { toLower, toUpper } from "./letterCase.ts";
import { expand, type Groups, parseTemplate } from "./template.ts";
import type { VictoriaMetricsAction, VictoriaMetricsRule } from "./victoriaMetricsRule.ts";
import { compileSubstitution } from "./victoriaMetricsPattern.ts";
import type { VictoriaMetricsLabels } from "./victoriaMetricsLabels.ts";
import type { WorkingLabels } from "./workingLabels.ts";

export type VictoriaMetricsStep = Step<VictoriaMetricsLabels>;

const ACTIONS: Readonly<Record<VictoriaMetricsAction, (rule: VictoriaMetricsRule) => VictoriaMetricsStep>> = {
  replace,
  replace_all: replaceAll,
  keep,
  drop,
  keep_metrics: keep,
  drop_metrics: drop,
  keep_if_contains: (rule) => (labels) => containsAll(rule, labels),
  drop_if_contains: (rule) => (labels) => !containsAll(rule, labels),
  keep_if_equal: (rule) => (labels) => areEqual(rule, labels),
  drop_if_equal: (rule) => (labels) => !areEqual(rule, labels),
  keepequal: (rule) => keepEqual(sourceOf(rule), rule.targetLabel),
  dropequal: (rule) => dropEqual(sourceOf(rule), rule.targetLabel),
  hashmod: (rule) => setTarget(sourceOf(rule), rule.targetLabel, (text) => xxhashHashmod(text, rule.modulus)),
  lowercase: (rule) => setTarget(sourceOf(rule), rule.targetLabel, toLower),
  uppercase: (rule) => setTarget(sourceOf(rule), rule.targetLabel, toUpper),
  labelmap,
  labelmap_all: labelmapAll,
  labeldrop: (rule) => removeNames(rule.pattern.matches),
  labelkeep: (rule) => removeNames((name) => !rule.pattern.matches(name)),
  graphite,
};

/** A step that drops the series as well when no label is left. */
export function victoriaMetricsStep(rule: VictoriaMetricsRule): VictoriaMetricsStep {
  const { action, condition } = rule;
  const act = ACTIONS[action](rule);
  const isKeep = action === "keep" || action === "keep_metrics";
  return (labels) => (condition(labels) ? act(labels) : !isKeep) && !labels.isEmpty;
}

function keep(rule: VictoriaMetricsRule): VictoriaMetricsStep {
  return keepWhere(rule.pattern.matches, sourceOf(rule));
}

function drop(rule: VictoriaMetricsRule): VictoriaMetricsStep {
  return dropWhere(rule.pattern.matches, sourceOf(rule));
}

function containsAll({ sourceLabels, targetLabel }: VictoriaMetricsRule, labels: WorkingLabels): boolean {
  const text = labels.get(targetLabel);
  return sourceLabels.every((name) => text.includes(labels.get(name)));
}

function areEqual(
  { sourceLabels: [first = "", ...others] }: VictoriaMetricsRule,
  labels: WorkingLabels,
): boolean {
  return others.every((name) => labels.get(name) === labels.get(first));
}

const NO_GROUPS: Groups = [];

function replace(rule: VictoriaMetricsRule): VictoriaMetricsStep {
  const { pattern, targetLabel, replacement: written } = rule;
  const source = sourceOf(rule);
  const refersToLabels = written.includes("{{");
  const takesWhole = pattern.isDefault && !targetLabel.includes("$");
  const target = parseTemplate(targetLabel, pattern.groupNames);
  const writtenTemplate = parseTemplate(written, pattern.groupNames);
  return (labels) => {
    const replacement = refersToLabels ? withLabels(written, labels) : written;
    const text = source(labels);
    if (takesWhole && (replacement === "$1" || !written.includes("$"))) {
      labels.set(targetLabel, replacement === "$1" ? text : replacement);
      return true;
    }
    if (!pattern.matches(text)) return true;
    const groups = pattern.find(text);
    const isWritten = replacement === written;
    const template = isWritten ? writtenTemplate : parseTemplate(replacement, pattern.groupNames);
    // A text that matches without groups is taken as it is.
    const value = isWritten && groups === null ? text : expand(template, groups ?? NO_GROUPS);
    labels.set(expand(target, groups ?? NO_GROUPS), value);
    return true;
  };
}

/** Fills in `{{label}}`. */
function withLabels(replacement: string, labels: WorkingLabels): string {
  return replacement.replaceAll(/\{\{(.*?)\}\}/gs, (_, name: string) => labels.get(name));
}

function replaceAll(rule: VictoriaMetricsRule): VictoriaMetricsStep {
  const source = sourceOf(rule);
  const { targetLabel } = rule;
  const substitution = compileSubstitution(rule.regex);
  const replacement = parseTemplate(rule.replacement, substitution.groupNames);
  return (labels) => {
    const text = source(labels);
    const replaced = substitution.replaceAll(text, replacement);
    if (replaced !== text) labels.set(targetLabel, replaced);
    return true;
  };
}

function labelmap({ pattern, replacement }: VictoriaMetricsRule): VictoriaMetricsStep {
  const template = parseTemplate(replacement, pattern.groupNames);
  const nameOf = (name: string): string => {
    if (!pattern.matches(name)) return name;
    const groups = pattern.find(name);
    return groups === null ? name : expand(template, groups);
  };
  return (labels) => {
    labels.copy(nameOf);
    return true;
  };
}

function labelmapAll({ regex, replacement }: VictoriaMetricsRule): VictoriaMetricsStep {
  const substitution = compileSubstitution(regex);
  const template = parseTemplate(replacement, substitution.groupNames);
  return (labels) => {
    labels.rename((name) => substitution.replaceAll(name, template));
    return true;
  };
}

function graphite({ graphiteMatch, graphiteLabels }: VictoriaMetricsRule): VictoriaMetricsStep {
  return (labels) => {
    const found = matchGraphite(graphiteMatch, labels.get("__name__"));
    if (found === null) return true;
    for (const { name, template } of graphiteLabels) labels.set(name, expandGraphite(template, found));
    return true;
  };
}
