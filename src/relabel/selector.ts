/** The `if` of a rule: series selectors, of which one has to match the labels as they are when the rule's turn comes. */
import { RelabelError } from "./errors.ts";
import { parseSelector, type SelectorFilter } from "./selectorSyntax.ts";
import { compileMatcher } from "./victoriaMetricsPattern.ts";
import type { VictoriaMetricsLabels } from "./victoriaMetricsLabels.ts";

export type Condition = (labels: VictoriaMetricsLabels) => boolean;

/**
 * @param selectors none of them is no condition
 * @throws {RelabelError} RELABEL_SELECTOR for one that cannot be read
 */
export function parseCondition(selectors: readonly string[]): Condition {
  if (selectors.length === 0) return () => true;
  const alternatives = selectors.flatMap(alternativesOf);
  return (labels) => alternatives.some((filters) => filters.every((matches) => matches(labels)));
}

function alternativesOf(selector: string): Condition[][] {
  try {
    return parseSelector(selector).map((filters) => filters.map(filterOf));
  } catch (cause) {
    if (!(cause instanceof SyntaxError || cause instanceof RelabelError)) throw cause;
    throw new RelabelError("RELABEL_SELECTOR", "if", `want a series selector; ${cause.message}`, { cause });
  }
}

function filterOf({ label, operator, value }: SelectorFilter): Condition {
  const isNegative = operator === "!=" || operator === "!~";
  const test =
    operator === "=" || operator === "!=" ? (text: string) => text === value : compileMatcher(value);
  // A label that is missing is as good as empty, but for the metric name in a comparison.
  const whenMissing = label === "__name__" && !operator.endsWith("~") ? false : test("");
  return (labels) => (labels.hasValue(label, test) ?? whenMissing) !== isNegative;
}
