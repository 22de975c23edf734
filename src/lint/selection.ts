/** What a rule's `match` says of every series that the rule takes. */
import { parseSelector, type SelectorFilter } from "../relabel/selectorSyntax.ts";
import { only, type LabelNames } from "./labelNames.ts";

export interface Selection {
  /** Of which one has to match, each with filters that all have to; null takes all series. */
  readonly alternatives: readonly (readonly SelectorFilter[])[] | null;
  /** Labels that have one and the same value, or none, in all series taken. */
  readonly fixed: LabelNames;
  /** Labels that all series taken have. */
  readonly present: LabelNames;
}

/** @param match selectors that are known to be good; none takes all series */
export function selectionOf(match: readonly string[]): Selection {
  if (match.length === 0) return { alternatives: null, fixed: only([]), present: only([]) };
  const alternatives = match.flatMap(parseSelector);
  const values = alternatives.map(
    (filters) => new Map(filters.filter(isEqual).map(({ label, value }) => [label, value] as const)),
  );
  const [first, ...others] = values;
  const inAll = [...(first ?? [])].filter(([label]) => others.every((each) => each.has(label)));
  const fixed = inAll.filter(([label, value]) => others.every((each) => each.get(label) === value));
  const present = inAll.filter(([label]) => values.every((each) => each.get(label) !== ""));
  return {
    alternatives,
    fixed: only(fixed.map(([label]) => label)),
    present: only(present.map(([label]) => label)),
  };
}

/** A regex that is plain text matches nothing else. */
function isEqual({ operator, value }: SelectorFilter): boolean {
  return operator === "=" || (operator === "=~" && /^[\w:]+$/.test(value));
}
