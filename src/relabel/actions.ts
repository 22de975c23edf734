/** What the actions do that both dialects have, each given its parts by the dialect. */
import { LONGEST_REMEMBERED, rememberLast } from "./lastAnswer.ts";
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
  return joinedSource(sourceLabels, separator);
}

/** Remembers the last text: the values of neighbouring series mostly give the same, and joining makes a new string. */
function joinedSource(names: readonly string[], separator: string): Source {
  let values: readonly string[] = [];
  let text = "";
  return (labels) => {
    if (names.every((name, at) => labels.get(name) === values[at])) return text;
    const now = names.map((name) => labels.get(name));
    const joined = now.join(separator);
    if (joined.length <= LONGEST_REMEMBERED) {
      values = now;
      text = joined;
    }
    return joined;
  };
}

export function keepWhere(test: (text: string) => boolean, source: Source): Step {
  const passes = rememberLast(test);
  return (labels) => passes(source(labels));
}

export function dropWhere(test: (text: string) => boolean, source: Source): Step {
  const passes = rememberLast(test);
  return (labels) => !passes(source(labels));
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
