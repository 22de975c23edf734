/** What a rule's `match` says of every series that the rule takes. */
import { parseSelector, type SelectorFilter } from "../relabel/selectorSyntax.ts";
import { only, type LabelNames } from "./labelNames.ts";
import { plainTexts } from "./labelValues.ts";

export interface Selection {
  /** Of which one has to match, each with filters that all have to; null takes all series. */
  readonly alternatives: readonly (readonly SelectorFilter[])[] | null;
  /** Labels that have one and the same value, or none, in all series taken. */
  readonly fixed: LabelNames;
  /** Labels that all series taken have. */
  readonly present: LabelNames;
  /** Of labels that have one of a few values, those, the empty one for none. */
  readonly values: ReadonlyMap<string, readonly string[]>;
}

/** @param match selectors that are known to be good; none takes all series */
export function selectionOf(match: readonly string[]): Selection {
  if (match.length === 0) {
    return { alternatives: null, fixed: only([]), present: only([]), values: new Map() };
  }
  const alternatives = match.flatMap(parseSelector);
  const [first, ...others] = alternatives.map(textsOf);
  const values = new Map(
    [...(first ?? [])].flatMap(([label, texts]) => {
      const all = [texts, ...others.map((each) => each.get(label) ?? null)];
      return all.every((each) => each !== null) ? [[label, [...new Set(all.flat())]] as const] : [];
    }),
  );
  const named = (holds: (texts: readonly string[]) => boolean): LabelNames =>
    only([...values].filter(([, texts]) => holds(texts)).map(([label]) => label));
  return {
    alternatives,
    fixed: named((texts) => texts.length === 1),
    present: named((texts) => !texts.includes("")),
    values,
  };
}

/** The only values of labels that filters list; those of the last filter on a label, which is but a bound. */
function textsOf(filters: readonly SelectorFilter[]): Map<string, readonly string[]> {
  return new Map(
    filters.flatMap(({ label, operator, value }) => {
      const texts = operator === "=" ? [value] : operator === "=~" ? plainTexts(value) : null;
      return texts === null ? [] : [[label, texts] as const];
    }),
  );
}
