/** Random lists of rules, applied to random label sets by a peer and by us. */
import type { Labels } from "../../src/cli/seriesLines.ts";
import { Random } from "../fuzz/random.ts";
import { differenceOf, disagreement, type Outcomes } from "./differences.ts";
import type { OurRelabeling } from "./ourRelabeling.ts";

export interface Peer {
  /** What it has against a list, null when it takes it. */
  problemOf(yaml: string): Promise<string | null>;
  /** What it makes of the label sets by each of the lists. */
  relabel(lists: readonly string[], sets: readonly Labels[]): Promise<readonly Outcomes[]>;
}

export interface Trial {
  readonly seed: number;
  /** How many lists that both sides take. */
  readonly lists: number;
  readonly makeSets: (random: Random) => Labels[];
  readonly makeList: (random: Random, sets: readonly Labels[]) => string;
  /** What we do, with label sets that are the same for all lists. */
  readonly ours: (sets: readonly Labels[]) => Promise<OurRelabeling>;
}

export interface TrialResult {
  /** A text for every list that only one side takes, or by which the two make different things. */
  readonly differences: readonly string[];
  /** How many outcomes were compared, and how many of them were series that were kept. */
  readonly compared: number;
  readonly kept: number;
}

/** Of the differences; with as many lists that only one side takes, no more are tried. */
const MOST_SHOWN = 10;

interface AcceptedList {
  readonly origin: string;
  readonly yaml: string;
  readonly ours: Outcomes;
}

/** Makes lists that both sides take, and compares what the two make of the label sets by each. */
export async function tryOnBoth(
  peer: Peer,
  { seed, lists, makeSets, makeList, ours }: Trial,
): Promise<TrialResult> {
  const random = new Random(seed);
  const sets = makeSets(random);
  const our = await ours(sets);
  const differences: string[] = [];
  const accepted: AcceptedList[] = [];
  for (let number = 1; accepted.length < lists && differences.length < MOST_SHOWN; number += 1) {
    const origin = `list ${number} of seed ${seed}`;
    const yaml = makeList(random, sets);
    const [answer, theirProblem] = await Promise.all([our.apply(yaml), peer.problemOf(yaml)]);
    const ourProblem = answer.kind === "refused" ? answer.problem : null;
    const difference = disagreement(origin, yaml, theirProblem, ourProblem);
    if (difference !== null) differences.push(difference);
    else if (answer.kind === "applied") accepted.push({ origin, yaml, ours: answer.outcomes });
  }
  const theirs = await peer.relabel(
    accepted.map(({ yaml }) => yaml),
    sets,
  );
  for (const [index, list] of accepted.entries()) {
    const difference = differenceOf({ ...list, theirs: theirs[index] ?? [] }, sets);
    if (difference !== null) differences.push(difference);
  }
  const outcomes = theirs.flat();
  return {
    differences,
    compared: outcomes.length,
    kept: outcomes.filter((labels) => labels !== null).length,
  };
}

export interface FlawedTrial {
  readonly seed: number;
  /** How many lists. */
  readonly lists: number;
  readonly makeList: (random: Random) => string;
  readonly ours: OurRelabeling;
  /** What we have against lists that the peer takes, on purpose. */
  readonly refusedByUsAlone: readonly { readonly name: string; readonly problem: RegExp }[];
}

/** Gives both sides lists of which many are not valid. */
export async function tryFlawedOnBoth(
  peer: Pick<Peer, "problemOf">,
  { seed, lists, makeList, ours, refusedByUsAlone }: FlawedTrial,
): Promise<{ readonly differences: readonly string[]; readonly refused: number }> {
  const random = new Random(seed);
  const differences: string[] = [];
  let refused = 0;
  for (let number = 1; number <= lists; number += 1) {
    const yaml = makeList(random);
    const [answer, theirProblem] = await Promise.all([ours.apply(yaml), peer.problemOf(yaml)]);
    const ourProblem = answer.kind === "refused" ? answer.problem : null;
    if (ourProblem !== null) {
      refused += 1;
      if (refusedByUsAlone.some(({ problem }) => problem.test(ourProblem))) continue;
    }
    const difference = disagreement(`list ${number} of seed ${seed}`, yaml, theirProblem, ourProblem);
    if (difference !== null) differences.push(difference);
  }
  return { differences, refused };
}

/** For a message: the first ones whole, and how many there are. Empty when there are none. */
export function differencesText(differences: readonly string[]): string {
  if (differences.length === 0) return "";
  return `${differences.length} differences\n\n${differences.slice(0, MOST_SHOWN).join("\n")}`;
}
