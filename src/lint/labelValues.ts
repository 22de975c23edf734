/**
 * Which values labels may have in the series that rules let through, as far as the rules say so of one label alone.
 *
 * It is an upper bound: what rules say of several labels together, or under a condition, is left out.
 */
import type { Config } from "../config/config.ts";
import type { RelabelDialect, RelabelRule, RelabelRuleList } from "../relabel/options.ts";
import { RelabelRules } from "../relabel/rules.ts";
import { parseSelector, type SelectorFilter } from "../relabel/selectorSyntax.ts";
import type { RouteOptions } from "../route/options.ts";
import { actionOf, isHidden, literalNames, touchedBy } from "./carried.ts";
import { includes } from "./labelNames.ts";

/** The values of a label; that a series does not have it is the empty value. */
export interface Values {
  /** There are no others; null where they are not listed. */
  readonly texts: readonly string[] | null;
  /** All of them pass these. */
  readonly tests: readonly Test[];
}

/** Labels of which something is known. */
export type LabelValues = ReadonlyMap<string, Values>;

interface Test {
  /** Of two tests with one condition and opposite `keeps` each value passes one. */
  readonly condition: string;
  readonly keeps: boolean;
  readonly passes: (value: string) => boolean;
}

interface Narrowing {
  readonly label: string;
  readonly texts: readonly string[] | null;
  readonly test: Test;
}

const ANY: Values = { texts: null, tests: [] };

/** After the rules of a route, and with its task label. */
export function valuesAfterRules({ relabel }: Config, route: RouteOptions): LabelValues {
  const values = valuesAfter(new Map(), relabel);
  if (route.tenant.label !== null) values.delete(route.tenant.label);
  const ruled = valuesAfter(values, route.relabel);
  if (route.tasks !== null) ruled.delete(route.tasks.label);
  // Such labels may be removed at the end of any list.
  for (const label of [...ruled.keys()].filter(isHidden)) ruled.delete(label);
  return ruled;
}

/** Those of the values that are among some texts. */
export function among({ texts, tests }: Values = ANY, some: readonly string[]): Values {
  return { texts: texts === null ? some : texts.filter((text) => some.includes(text)), tests };
}

/** Whether there is no value that is one of both. */
export function excludeEachOther(one: Values, other: Values): boolean {
  const isOpposed = one.tests.some(({ condition, keeps }) =>
    other.tests.some((test) => test.condition === condition && test.keeps !== keeps),
  );
  if (isOpposed) return true;
  const listed = one.texts ?? other.texts;
  return listed !== null && !listed.some((text) => mayBe(one, text) && mayBe(other, text));
}

/** Whether there is no value at all. */
export function isNone(values: Values): boolean {
  return excludeEachOther(values, values);
}

function mayBe({ texts, tests }: Values, text: string): boolean {
  return (texts === null || texts.includes(text)) && tests.every(({ passes }) => passes(text));
}

function valuesAfter(before: LabelValues, { dialect, rules }: RelabelRuleList): Map<string, Values> {
  const values = new Map(before);
  for (const rule of rules) {
    for (const narrowing of narrowingsBy(rule, dialect)) narrow(values, narrowing);
    const touched = touchedBy(rule, dialect, [...values.keys()]);
    for (const label of values.keys()) if (includes(touched, label)) values.delete(label);
    for (const [label, text] of madeBy(rule)) values.set(label, { texts: [text], tests: [] });
  }
  return values;
}

function narrow(values: Map<string, Values>, { label, texts, test }: Narrowing): void {
  const before = values.get(label) ?? ANY;
  const left = texts === null ? before : among(before, texts);
  values.set(label, { texts: left.texts, tests: [...left.tests, test] });
}

/** What a rule says of the series that it keeps. */
function narrowingsBy(rule: RelabelRule, dialect: RelabelDialect): Narrowing[] {
  const action = actionOf(rule);
  const selector = rule.if === null ? null : onlyAlternative(rule.if);
  switch (action) {
    case "keep":
      return [...bySource(rule, dialect, true), ...(selector ?? []).map((filter) => byFilter(filter, true))];
    case "drop": {
      if (rule.if === null) return bySource(rule, dialect, false);
      const [filter, ...others] = selector ?? [];
      const isAlone = rule.sourceLabels === null && filter !== undefined && others.length === 0;
      return isAlone ? [byFilter(filter, false)] : [];
    }
    case "keep_metrics":
    case "drop_metrics": {
      const named = {
        ...rule,
        action: action === "keep_metrics" ? "keep" : "drop",
        sourceLabels: ["__name__"],
      };
      return rule.if === null ? bySource(named, dialect, action === "keep_metrics") : [];
    }
    default:
      return [];
  }
}

function onlyAlternative(selectors: readonly string[]): readonly SelectorFilter[] | null {
  const [alternative, ...others] = selectors.flatMap(parseSelector);
  return alternative === undefined || others.length > 0 ? null : alternative;
}

/** By the regex of a rule of one source label. */
function bySource(rule: RelabelRule, dialect: RelabelDialect, keeps: boolean): Narrowing[] {
  const { sourceLabels, regex } = rule;
  const [label, ...others] = sourceLabels ?? [];
  if (label === undefined || others.length > 0 || regex === null) return [];
  const alone = new RelabelRules({ dialect, rules: [{ ...rule, if: null }] });
  const passes = (value: string): boolean => alone.apply(labelled(label, value)).kind === "kept";
  const texts = keeps ? plainTexts(regex) : null;
  return [{ label, texts, test: { condition: `${dialect}: ${regex}`, keeps, passes } }];
}

/** A label set with a value, and another label, since one without any is dropped by itself. */
function labelled(label: string, value: string): (readonly [string, string])[] {
  const other = label === "other" ? "another" : "other";
  return value === ""
    ? [[other, "value"]]
    : [
        [label, value],
        [other, "value"],
      ];
}

/** By a filter of a selector. @param wanted whether a series has to match it */
function byFilter({ label, operator, value }: SelectorFilter, wanted: boolean): Narrowing {
  const isRegex = operator.endsWith("~");
  const keeps = operator.startsWith("=") === wanted;
  const texts = isRegex ? plainTexts(value) : [value];
  const passes = (given: string): boolean => texts === null || texts.includes(given) === keeps;
  const condition = `selector: ${isRegex ? "~" : ""}${value}`;
  return { label, texts: keeps ? texts : null, test: { condition, keeps, passes } };
}

/** The texts that a regex matches, when it is a list of such; else null. */
export function plainTexts(regex: string): string[] | null {
  return /^[\w:/ -]+(\|[\w:/ -]+)*$/.test(regex) ? regex.split("|") : null;
}

/** Labels that a rule gives one value in all series. */
function madeBy(rule: RelabelRule): (readonly [string, string])[] {
  if (rule.if !== null) return [];
  const { regex, targetLabel, replacement } = rule;
  switch (actionOf(rule)) {
    case "labeldrop":
      return (literalNames(regex) ?? []).map((name) => [name, ""] as const);
    case "replace": {
      const isConstant =
        replacement !== null && targetLabel !== null && !/[${]/.test(replacement + targetLabel);
      return isConstant && regex === null ? [[targetLabel, replacement]] : [];
    }
    default:
      return [];
  }
}
