/** What each rule of a list does to one series, as data and as lines for a person. */
import type { RelabelRuleList } from "../relabel/options.ts";
import type { Label } from "../relabel/rules.ts";
import type { TellRule } from "../route/decide.ts";
import { labelText } from "../route/labelText.ts";

/** A rule, counted from 1 as people count them; or the end that a list of VictoriaMetrics' rules has. */
type StepName = { readonly rule: number; readonly action: string } | { readonly rule: "end" };

/** What it did. */
export type RuleStep = StepName & ({ readonly labels: readonly Label[] } | { readonly dropped: true });

/** Adds a step for every rule that it is told of. */
export function recorder(list: RelabelRuleList, steps: RuleStep[]): TellRule {
  return (index, labels) => {
    const rule = list.rules[index];
    // A list that drops at its end says so of its last rule, which has kept the series before.
    const isEnd = rule === undefined || steps.at(-1)?.rule === index + 1;
    const name: StepName = isEnd
      ? { rule: "end" }
      : { rule: index + 1, action: (rule.action ?? "replace").toLowerCase() };
    steps.push(labels === null ? { ...name, dropped: true } : { ...name, labels });
  };
}

/**
 * A line for each step.
 *
 * @param kind   what the rules are called, "rule" for example
 * @param before the labels before the first step; null shows what they are after it, changed or not
 */
export function stepLines(
  steps: readonly RuleStep[],
  kind: string,
  before: readonly Label[] | null,
): string[] {
  const names = steps.map((step) =>
    step.rule === "end" ? "the end" : `${kind} ${step.rule} ${step.action}`,
  );
  const width = Math.max(0, ...names.map((name) => name.length));
  let last = before === null ? "" : labelText(before);
  return steps.map((step, index) => {
    const name = (names[index] ?? "").padEnd(width);
    if ("dropped" in step) return `${name}  drops the series`;
    const text = labelText(step.labels);
    const effect = text === last ? "changes nothing" : text;
    last = text;
    return `${name}  ${effect}`;
  });
}
