/**
 * Whether stream aggregation is right behind a route: rule by rule, with the proof.
 *
 * **What safe means.** Every upstream of the route is a vmagent with this aggregation file. Together they put out what one
 * vmagent with the file would that gets all series, with the task label that the gateway gives them. Where that one vmagent
 * would give a result for each task, safe means besides that these can be merged into the result without the task label.
 *
 * **The proof of safe.** The labels of a series, after the route's rules and with the task label, are what everything behind
 * depends on. The upstream is a function of some of them (keyLabels.ts), K. An aggregation rule puts series into groups by what
 * relabeling leaves of them; some labels certainly come through to the group with the value they had (carried.ts), or have the
 * same value in all series of the rule (selection.ts, settled.ts). Call these G. If K is within G, two series of one group have
 * equal labels K and so the same upstream: no group is split, and each aggregator has all of its groups. The metric name is one
 * of the labels that count: every output is of one metric name, unless `without` names it.
 *
 * The task is itself a function of labels, T. So the task label in K may be replaced by T: if that is within G, a group has one
 * upstream whether or not the task label is part of it. If it is not, the task label may still be in G, as for `key: task` with
 * the label in `by`. Then no group is split but there are several where the user wants one, each of one task, and it comes down
 * to the outputs: sums can be added, averages cannot (outputs.ts). Counts of series and what is computed for every series, such
 * as increases, can be added only if no input series, as relabeling leaves it, is in two tasks.
 *
 * Copies (replicas, or two routes that reach one vmagent) are aggregated again wherever they arrive. Two routes are kept apart
 * by `final` if what it selects by is within G: then a group is wholly of one route.
 *
 * **The proof of unsafe** is a pair of series, found by witness.ts: they are one group and arrive at two upstreams, or are
 * counted twice, or in two tasks whose results cannot be merged. Where neither is proved, the verdict is unknown.
 *
 * **What is taken for granted**: series are what remote write says they are, without empty values, and with no label that begins
 * with two underscores but __name__, which vmagent's relabeling removes; all vmagents have the same files and no flags that
 * change labels or copies besides; windows and their borders are another matter.
 */
import type { RouteConfig } from "../config/config.ts";
import { buildPlacement } from "../hash/placement.ts";
import { ALL_CARRIED, carriedThrough, lossOf } from "./carried.ts";
import { exclusiveBy } from "./exclusive.ts";
import { besidesTask, type Case, type Facts, factsOf, groupedFromBefore, USUAL_LABELS } from "./facts.ts";
import type { Arrival } from "./journeys.ts";
import { difference, includes, isWithin, type LabelNames, NO_LABEL, only, union } from "./labelNames.ts";
import { isKnownOutput, mergeText, needingWholeSeries, unmergeable } from "./outputs.ts";
import { lackingText, listed, notesOn, proofText, splitText } from "./reasons.ts";
import { keyRemedies, taskRemedy } from "./remedies.ts";
import { searchFor } from "./search.ts";
import type { Witness, WitnessSearch } from "./witness.ts";

export type Verdict = "safe" | "unsafe" | "unknown";

/** What is said of one rule behind one route. */
export interface Judgement {
  readonly verdict: Verdict;
  /** For a person: the proof, or what is wrong, or what is not known, naming the labels. */
  readonly reason: string;
  /** Labels at fault; of endlessly many those that show it. */
  readonly labels: readonly string[];
  /** Proves `unsafe`. */
  readonly witness: Witness | null;
  /** What to write instead, each on its own; none where it is safe. */
  readonly remedies: readonly string[];
  /** What else there is to know. */
  readonly notes: readonly string[];
}

/** More tasks do not meet on one upstream of several. */
const MOST_TASKS_PLACED = 1000;

export function judge(given: Case): Judgement {
  return new Judge(factsOf(given)).judge();
}

class Judge {
  readonly #facts: Facts;
  #search: WitnessSearch | null = null;

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  judge(): Judgement {
    return (
      this.#judgeRule() ??
      this.#judgeReplicas() ??
      this.#judgeOtherRoutes() ??
      this.#judgeOneUpstream() ??
      this.#judgeSplit() ??
      this.#judgeTasks()
    );
  }

  /** What a rule does that is not wholly understood is not known. */
  #judgeRule(): Judgement | null {
    const { rule, selection } = this.#facts;
    const unknownOutputs = rule.outputs.filter((output) => !isKnownOutput(output));
    if (rule.unknown.length > 0) return unknown(`what ${rule.unknown.join(", ")} does is not known here`);
    if (unknownOutputs.length > 0)
      return unknown(`the output ${unknownOutputs.join(", ")} is not known here`);
    return selection.alternatives?.length === 0 ? unknown("match selects no series") : null;
  }

  #judgeReplicas(): Judgement | null {
    const { judged, rule } = this.#facts;
    const { replicas } = judged.route.placement;
    if (replicas === 1) return null;
    const dedup = rule.dedupIntervalMs > 0 ? "; dedup_interval sees the copies of one upstream only" : "";
    const reason =
      `replicas: ${replicas}, so each series is aggregated by ${replicas} upstreams, ` +
      `and what is behind them gets each result ${replicas} times${dedup}`;
    return this.#proven(this.#searched().doubled(), reason, [], ["placement: {replicas: 1}"]);
  }

  /** Routes that send to the same upstreams. */
  #judgeOtherRoutes(): Judgement | null {
    const { config, route: index, judged, urls } = this.#facts;
    for (const [other, otherRoute] of config.routes.entries()) {
      const shared = otherRoute.upstreams.filter(({ url }) => urls.has(url.href)).map(({ name }) => name);
      if (other === index || shared.length === 0) continue;
      const selectedBy = exclusiveBy(config.routes, other, index);
      const kept = [judged, otherRoute].map((each) => groupedFromBefore(each, this.#facts));
      if (selectedBy !== null && kept.every((names) => isWithin(selectedBy, names))) continue;
      return this.#judgeSharing(otherRoute.route.name, shared, selectedBy);
    }
    return null;
  }

  /** @param selectedBy labels that part the routes, null when nothing is known to */
  #judgeSharing(name: string, shared: readonly string[], selectedBy: LabelNames | null): Judgement {
    const { judged, group } = this.#facts;
    const both = `the routes ${judged.route.name} and ${name} both send to ${shared.join(", ")}`;
    const remedies = ["upstreams of its own for one of the two routes, or final: true at the first of them"];
    const doubled = this.#searched().doubled();
    if (doubled !== null) {
      return this.#proven(doubled, `${both}, which aggregates twice what both select`, [], remedies);
    }
    const labels = listed(difference(selectedBy ?? NO_LABEL, group.names), null);
    const parted = labels.length === 0 ? "" : `, parted by ${labels.join(", ")}`;
    const reason = `${both}, and one group can have series of both${parted}`;
    return this.#proven(this.#searched().find(isSplit), reason, labels, remedies);
  }

  #judgeOneUpstream(): Judgement | null {
    const isAlone = this.#facts.urls.size === 1;
    if (!isAlone && !haveOneUpstream(this.#facts.judged)) return null;
    return this.#safe(
      `${isAlone ? "the route has" : "all tasks live on"} one upstream, which gets all series`,
    );
  }

  #judgeSplit(): Judgement | null {
    const { taskLabel, upstreamBy, upstreamByLabels, determined, rule, input } = this.#facts;
    if (isWithin(upstreamByLabels, besidesTask(determined, this.#facts)))
      return this.#safe(proofText(this.#facts));
    if (isWithin(upstreamBy, determined)) return null;
    const isByTask = taskLabel !== null && includes(difference(upstreamBy, determined), taskLabel);
    const fault = difference(isByTask ? upstreamByLabels : upstreamBy, determined);
    const witness = this.#searched().find(isSplit);
    const canMerge = unmergeable(rule.outputs).length === 0;
    const remedies = isByTask && canMerge ? [taskRemedy(taskLabel, rule, lossOf(input, taskLabel))] : [];
    return this.#proven(
      witness,
      splitText(this.#facts, isByTask, fault, witness),
      [...(isByTask ? [taskLabel] : []), ...listed(fault, witness)],
      [...remedies, ...this.#keyRemedies()],
    );
  }

  /** No group is split, but the results are those of tasks. */
  #judgeTasks(): Judgement {
    const { fixed, rule } = this.#facts;
    const label = this.#facts.taskLabel ?? "";
    if (includes(fixed, label)) return this.#safe(`match takes the series of one task, by ${label}`);
    const each = `${label} is in the group, so each result is of one task on one upstream`;
    const unable = unmergeable(rule.outputs);
    if (unable.length > 0) {
      const reason = `${each}, and results of tasks cannot be merged for ${unable.join(", ")}`;
      return this.#proven(this.#searched().find(isOfTasks), reason, [label], this.#keyRemedies());
    }
    const merged = `${each}; merge over ${label}: ${mergeText(rule.outputs)}`;
    return (
      this.#judgeOutput(each, label) ?? this.#judgeTornSeries(each) ?? { ...this.#safe(merged), notes: [] }
    );
  }

  /** The label that tells the results of tasks apart has to be in them. */
  #judgeOutput(each: string, label: string): Judgement | null {
    const { rule, asked } = this.#facts;
    const sent = carriedThrough(ALL_CARRIED, rule.outputRelabel, "output_relabel_configs", asked);
    const loss = lossOf(sent, label);
    if (loss === null) return null;
    const collide = (one: Arrival, other: Arrival): boolean =>
      isOfTasks(one, other) && one.output !== null && one.output === other.output;
    const reason = `${each}, but ${label} is ${loss}, so the results of several tasks become one series`;
    const remedies = [`${label} left in by output_relabel_configs`];
    return this.#proven(this.#searched().find(collide), reason, [label], remedies);
  }

  /** Some outputs need all samples of an input series in one task. */
  #judgeTornSeries(each: string): Judgement | null {
    const { rule, input, determined, taskBy } = this.#facts;
    const deduplicates = rule.dedupIntervalMs > 0;
    const torn = needingWholeSeries(rule.outputs, deduplicates);
    const fault = difference(taskBy, union(input.names, determined));
    if (torn.length === 0 || isWithin(fault, NO_LABEL)) return null;
    const witness = this.#searched().find(
      (one, other) => isOfTasks(one, other) && one.inputWithoutTask === other.inputWithoutTask,
    );
    const wrong = deduplicates
      ? "dedup_interval sees them apart, which is wrong for"
      : "they are counted apart by";
    const reason =
      `${each}, but series that relabeling makes one are in several tasks ` +
      `(${lackingText(this.#facts, fault, witness)}): ${wrong} ${torn.join(", ")}`;
    return this.#proven(witness, reason, listed(fault, witness), this.#keyRemedies());
  }

  /** Keys of labels that the group certainly has; not of those that only this program has asked for. */
  #keyRemedies(): string[] {
    const { judged, rule, group } = this.#facts;
    const asked = rule.by.length > 0 || group.names.kind === "all_but" ? [] : USUAL_LABELS;
    return keyRemedies(judged.route, difference(group.names, only(asked)));
  }

  #safe(reason: string): Judgement {
    return { verdict: "safe", reason, labels: [], witness: null, remedies: [], notes: notesOn(this.#facts) };
  }

  /** Unsafe with a witness, else unknown. */
  #proven(
    witness: Witness | null,
    reason: string,
    labels: readonly string[],
    remedies: readonly string[],
  ): Judgement {
    if (witness === null) return { ...unknown(`not proved safe: ${reason}`), labels, remedies };
    return { verdict: "unsafe", reason, labels, witness, remedies, notes: [] };
  }

  #searched(): WitnessSearch {
    this.#search ??= searchFor(this.#facts);
    return this.#search;
  }
}

function unknown(reason: string): Judgement {
  return { verdict: "unknown", reason, labels: [], witness: null, remedies: [], notes: [] };
}

/** Whether the tasks of a route that places them are so few that they meet on one upstream. */
function haveOneUpstream({ route, upstreams }: RouteConfig): boolean {
  const tasks = route.tasks?.count ?? 0;
  if (route.placement.key.kind !== "task" || tasks > MOST_TASKS_PLACED) return false;
  const urlOf = new Map(upstreams.map(({ name, url }) => [name, url.href]));
  const urls = new Set<string | undefined>();
  for (const { slots } of route.topology) {
    const { place } = buildPlacement(route.placement, slots);
    for (let task = 0; task < tasks; task++) urls.add(urlOf.get(slots[place(task)]?.name ?? ""));
  }
  return urls.size === 1;
}

function isSplit(one: Arrival, other: Arrival): boolean {
  return one.url !== other.url && one.group === other.group;
}

/** Whether two series are in one group, but for the tasks that they are in. */
function isOfTasks(one: Arrival, other: Arrival): boolean {
  return (
    one.route === other.route && one.task !== other.task && one.groupWithoutTask === other.groupWithoutTask
  );
}
