/** What the actions do that both dialects have, each given its parts by the dialect. */
import type { WorkingLabels } from "./workingLabels.ts";

/** Applies one rule; false drops the series. */
export type Step<L extends WorkingLabels = WorkingLabels> = (labels: L) => boolean;

/** The text that a rule looks at. */
export type Source = (labels: WorkingLabels) => string;

/** The values of the source labels in one text; a label that is missing is empty, its separators stay. */
export function sourceOf({
  sourceLabels,
  separator,
}: {
  readonly sourceLabels: readonly string[];
  readonly separator: string;
}): Source {
  const [first, ...others] = sourceLabels;
  if (first === undefined) return () => "";
  // Most rules have one.
  if (others.length === 0) return (labels) => labels.get(first);
  return (labels) => others.reduce((text, name) => text + separator + labels.get(name), labels.get(first));
}

export function keepWhere(test: (text: string) => boolean, source: Source): Step {
  return (labels) => test(source(labels));
}

export function dropWhere(test: (text: string) => boolean, source: Source): Step {
  return (labels) => !test(source(labels));
}

export function keepEqual(source: Source, target: string): Step {
  return (labels) => source(labels) === labels.get(target);
}

export function dropEqual(source: Source, target: string): Step {
  return (labels) => source(labels) !== labels.get(target);
}

/** Sets the target to what `valueOf` makes of the source. */
export function setTarget(source: Source, target: string, valueOf: (text: string) => string): Step {
  return (labels) => {
    labels.set(target, valueOf(source(labels)));
    return true;
  };
}

export function removeNames(isUnwanted: (name: string) => boolean): Step {
  return (labels) => {
    labels.removeWhere(isUnwanted);
    return true;
  };
}
