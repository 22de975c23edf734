/** Tells how what a peer makes of relabel rules differs from what we make of them. */
import type { Labels } from "../../src/cli/seriesLines.ts";

/** By label set: its labels behind the rules, null where it was dropped. */
export type Outcomes = readonly (Labels | null)[];

export interface ListOutcomes {
  /** Where the list came from, so that it can be made again. */
  readonly origin: string;
  readonly yaml: string;
  readonly theirs: Outcomes;
  readonly ours: Outcomes;
}

const LONGEST_SHOWN = 600;

/**
 * A text for a list by which the two make different things of label sets: of the one with the fewest labels. null when
 * there is none. The order of labels is not looked at.
 */
export function differenceOf(
  { origin, yaml, theirs, ours }: ListOutcomes,
  sets: readonly Labels[],
): string | null {
  const differing = sets.flatMap((labels, set) => {
    const [their, our] = [shown(theirs[set]), shown(withoutEmptyOf(labels, ours[set]))];
    return their === our ? [] : [{ labels, their, our }];
  });
  const [least] = differing.toSorted((one, other) => one.labels.length - other.labels.length);
  if (least === undefined) return null;
  const { labels, their, our } = least;
  const howMany = `${differing.length} of ${sets.length} label sets, such as`;
  return `${origin}\n${yaml}${howMany} ${cut(shown(labels))}\npeer: ${cut(their)}\nwe:   ${cut(our)}\n`;
}

/** A text for a list that only one of the two takes, null when they agree. */
export function disagreement(
  origin: string,
  yaml: string,
  theirProblem: string | null,
  ourProblem: string | null,
): string | null {
  if ((theirProblem === null) === (ourProblem === null)) return null;
  return `${origin}\n${yaml}peer: ${theirProblem ?? "takes it"}\nwe:   ${ourProblem ?? "take it"}\n`;
}

/** An empty label that came in and that no rule changed goes on as it came. It is no label to anybody, and peers leave it out. */
function withoutEmptyOf(incoming: Labels, labels: Labels | null | undefined): Labels | null | undefined {
  const empty = new Set(incoming.filter(([, value]) => value === "").map(([name]) => name));
  return labels?.filter(([name, value]) => value !== "" || !empty.has(name)) ?? labels;
}

function shown(labels: Labels | null | undefined): string {
  if (labels === undefined) return "nothing was said of it";
  if (labels === null) return "dropped";
  return JSON.stringify(labels.toSorted(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0)));
}

function cut(text: string): string {
  return text.length <= LONGEST_SHOWN
    ? text
    : `${text.slice(0, LONGEST_SHOWN)}... (${text.length} characters)`;
}
