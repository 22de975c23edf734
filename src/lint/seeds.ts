/** Label sets that a rule may select after all relabeling, made of what the rules themselves say. */
import type { RelabelRule } from "../relabel/options.ts";
import type { Label } from "../relabel/rules.ts";
import { parseSelector, type SelectorFilter } from "../relabel/selectorSyntax.ts";
import { actionOf } from "./carried.ts";
import { sampleText } from "./sampleText.ts";
import type { Selection } from "./selection.ts";
import type { ValuesOf } from "./witness.ts";

/** A regex for the values of several labels, joined. */
interface JoinedFilter {
  readonly labels: readonly string[];
  readonly separator: string;
  readonly regex: string;
}

type Wanted = SelectorFilter | JoinedFilter;

/** Different values for all labels: one of few values of a label may make a difference with some of them only. */
const VARIANTS = 8;

/** What selects series. */
export interface Selecting {
  /** By the `match` of an aggregation rule. */
  readonly selection: Selection;
  /** The relabel rules on the way to it, and those of other routes. */
  readonly rules: readonly RelabelRule[];
  readonly otherRules: readonly RelabelRule[];
}

/**
 * Series in the order in which they are worth trying: of every kind first, then with other values.
 *
 * @param names labels that the series have, as far as they may
 * @param key   labels that may all be missing, which some keys make a difference of
 */
export function seedsOf(selecting: Selecting, names: readonly string[], key: readonly string[]): Label[][] {
  const { selection, rules } = selecting;
  const valueOf = variantsOf(selecting);
  const keeps = rules.flatMap(keepFilters);
  const drops = rules.filter((rule) => actionOf(rule) === "drop");
  const dropped = drops.flatMap(({ sourceLabels }) => sourceLabels ?? []);
  const seeds: Label[][] = [];
  for (let variant = 0; variant < VARIANTS; variant++) {
    for (const filters of selection.alternatives ?? [[]]) {
      const wanted = valuesOf([...keeps, ...filters], variant);
      for (const missing of [[], key, dropped, names]) {
        const there = names.filter((name) => name === "__name__" || !missing.includes(name));
        seeds.push(labelsOf(new Map(there.map((name) => [name, valueOf(name)(variant)])), wanted));
      }
    }
  }
  return seeds;
}

/** Labels with which rules may select a series, one choice for each of their values; none where they ask for none. */
export function selectingLabels(rules: readonly RelabelRule[]): Label[][] {
  const keeps = rules.flatMap(keepFilters);
  const choices = Array.from({ length: VARIANTS }, (_, variant) =>
    [...valuesOf(keeps, variant)].filter(([, value]) => value !== ""),
  );
  const distinct = new Map(choices.map((labels) => [JSON.stringify(labels), labels]));
  return [...distinct.values()].filter((labels) => labels.length > 0);
}

/** Values for a label: such as rules look for, where they do. */
export function variantsOf({ selection, rules, otherRules }: Selecting): ValuesOf {
  const ofRules = [...rules, ...otherRules].flatMap(regexFilters);
  const filters = [...ofRules, ...(selection.alternatives ?? []).flat()];
  return (label) => {
    const regexes = filters.filter((each) => each.label === label && each.operator === "=~");
    return (variant) => {
      // Both what the rules ask for and what they do not, in turns: they may be told apart further on.
      const turns = regexes.length + 1;
      const regex = regexes[variant % turns];
      const sample = regex === undefined ? null : sampleText(regex.value, Math.floor(variant / turns));
      return sample ?? plainValue(label, variant);
    };
  };
}

function plainValue(name: string, variant: number): string {
  return name === "__name__" ? `metric_${variant}` : `${name}-${variant}`;
}

/** Labels that rules speak of, and such as their patterns of names match. */
export function labelsNamed(rules: readonly RelabelRule[]): string[] {
  return rules.flatMap((rule) => {
    const { sourceLabels, targetLabel, regex } = rule;
    const isOfNames = actionOf(rule).startsWith("label");
    const samples = isOfNames && regex !== null ? [0, 1, 2].map((variant) => sampleText(regex, variant)) : [];
    return [...(sourceLabels ?? []), targetLabel, ...samples].filter(isName);
  });
}

function isName(text: string | null): text is string {
  return text !== null && /^[a-zA-Z_]\w*$/.test(text);
}

/** What a rule keeps, as filters; nothing for what is not said so simply. */
function keepFilters(rule: RelabelRule): Wanted[] {
  const action = actionOf(rule);
  if (action === "keep_metrics") return regexFilters({ ...rule, sourceLabels: ["__name__"] });
  if (action !== "keep") return [];
  const [selector] = rule.if ?? [];
  const ofSelector = selector === undefined ? [] : (parseSelector(selector)[0] ?? []);
  return [...ofSelector, ...regexFilters(rule), ...joinedFilters(rule)];
}

/** What a rule looks for in several source labels. */
function joinedFilters({ sourceLabels, separator, regex }: RelabelRule): JoinedFilter[] {
  const labels = sourceLabels ?? [];
  return labels.length < 2 || regex === null ? [] : [{ labels, separator: separator ?? ";", regex }];
}

/** What a rule looks for in its one source label. */
function regexFilters({ sourceLabels, regex }: RelabelRule): SelectorFilter[] {
  const [label, ...others] = sourceLabels ?? [];
  if (label === undefined || others.length > 0 || regex === null) return [];
  return [{ label, operator: "=~", value: regex }];
}

function valuesOf(filters: readonly Wanted[], variant: number): Map<string, string> {
  return new Map(filters.flatMap((filter) => [...valuesFor(filter, variant)]));
}

function valuesFor(filter: Wanted, variant: number): Label[] {
  if ("labels" in filter) {
    const { labels, separator, regex } = filter;
    const values = sampleText(regex, variant)?.split(separator) ?? [];
    return values.length === labels.length ? labels.map((name, at) => [name, values[at] ?? ""]) : [];
  }
  const { label, operator, value } = filter;
  const wanted = operator === "=" ? value : operator === "=~" ? sampleText(value, variant) : null;
  if (wanted !== null) return [[label, wanted]];
  // A label that must not be empty has to be there, and one that must not have some value may be missing.
  return operator === "!=" && value === "" ? [[label, plainValue(label, variant)]] : [];
}

function labelsOf(all: ReadonlyMap<string, string>, wanted: ReadonlyMap<string, string>): Label[] {
  return [...new Map([...all, ...wanted])].filter(([, value]) => value !== "");
}
