/**
 * Whether stream aggregation is right behind a route: rule by rule, with the proof.
 *
 * **What safe means.** Every upstream of the route is a vmagent with this aggregation file, and so are those of the other routes
 * that are judged with it. Together they put out what one vmagent with the file would that gets all series once, with the task
 * label that the gateway gives them. Where that one vmagent would give a result for each task, safe means besides that these can
 * be merged into the result without the task label.
 *
 * **The proof of safe.** The labels of a series, after the route's rules and with the task label, are what everything behind
 * depends on. The upstream is a function of some of them (keyLabels.ts), K. An aggregation rule puts series into groups by what
 * relabeling leaves of them; some labels certainly come through to the group with the value they had (carried.ts), or have the
 * same value in all series of the rule (selection.ts, settled.ts). Call these G. If K is within G, two series of one group have
 * equal labels K and so the same upstream: no group is split, and each aggregator has all of its groups. The metric name is one
 * of the labels that count: every output is of one metric name, unless `without` names it. Upstreams that are one vmagent
 * (vmagents.ts) split nothing.
 *
 * The task is itself a function of labels, T. So the task label in K may be replaced by T: if that is within G, a group has one
 * upstream whether or not the task label is part of it. If it is not, the task label may still be in G, as for `key: task` with
 * the label in `by`. Then no group is split.
 *
 * Wherever the task label tells groups apart (taskFate.ts) and T is not within G, there are several groups where the user wants
 * one, each of one task, on one upstream or on several, and it comes down to the outputs: sums can be added, averages cannot
 * (outputs.ts). Counts of series and what is computed for every series, such as increases, can be added only if no input series,
 * as relabeling leaves it, is in two tasks.
 *
 * Copies (replicas, or those of two routes) are aggregated again wherever they arrive. Another route counts if it is judged as
 * well, since all its upstreams have the file then, or if it sends to a vmagent of the route. It is kept apart if no group has
 * series of both (apart.ts): by `final` if what it selects by is within G, or by a label in G whose values the rules of the two
 * routes, or the rule's match, allow to one of them only. Then the groups of a route are wholly its own.
 *
 * **The proof of unsafe** is a pair of series, found by witness.ts: they are one group and arrive at two upstreams, or are
 * counted twice, or in two tasks whose results cannot be merged. Where neither is proved, the verdict is unknown.
 *
 * **What is taken for granted**: series are what remote write says they are, without empty values, and with no label that begins
 * with two underscores but __name__, which vmagent's relabeling removes; all vmagents have the same files and no flags that
 * change labels or copies besides; windows and their borders are another matter.
 */
import { ALL_CARRIED, carriedThrough, lossOf } from "./carried.ts";
import { besidesTask, type Case, type Facts, factsOf, USUAL_LABELS } from "./facts.ts";
import type { Arrival } from "./journeys.ts";
import { type Judgement, provenBy, unknown } from "./judgement.ts";
import { difference, includes, isWithin, type LabelNames, NO_LABEL, only, union } from "./labelNames.ts";
import { judgeOtherRoutes } from "./otherRoutes.ts";
import { isKnownOutput, mergeText, needingWholeSeries, unmergeable } from "./outputs.ts";
import { isOfTasks, isSplit } from "./proofs.ts";
import { lackingText, listed, notesOn, proofText, splitText } from "./reasons.ts";
import { keyRemedies, taskRemedies, taskRemedy, ungroupedText } from "./remedies.ts";
import { searchFor } from "./search.ts";
import type { WitnessSearch } from "./witness.ts";

export function judge(given: Case): Judgement {
  return new Judge(factsOf(given)).judge();
}

/** Why no group of the route is split. */
interface Whole {
  readonly reason: string;
  /** Whether that is because each group is of one task. */
  readonly isByTask: boolean;
}

class Judge {
  readonly #facts: Facts;
  #search: WitnessSearch | null = null;

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  judge(): Judgement {
    return this.#judgeRule() ?? this.#judgeReplicas() ?? this.#judgeGroups();
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
    return provenBy(this.#searched().doubled(), reason, [], ["placement: {replicas: 1}"]);
  }

  #judgeGroups(): Judgement {
    const { judgement: others, proofs } = judgeOtherRoutes(this.#facts, () => this.#searched());
    if (others?.verdict === "unsafe") return others;
    const whole = this.#whole();
    const own = whole === null ? this.#judgeSplit() : this.#judgeTasks(whole);
    if (others !== null && own.verdict !== "unsafe") return others;
    return own.verdict === "safe" ? { ...own, reason: [own.reason, ...proofs].join("; ") } : own;
  }

  /** null where a group may be split. */
  #whole(): Whole | null {
    const { upstreams, upstreamBy, upstreamByLabels, determined } = this.#facts;
    if (upstreams.oneVmagent !== null) return { reason: upstreams.oneVmagent, isByTask: false };
    if (isWithin(upstreamByLabels, besidesTask(determined, this.#facts)))
      return { reason: proofText(this.#facts), isByTask: false };
    return isWithin(upstreamBy, determined)
      ? { reason: `${this.#ofOneTask()} on one upstream`, isByTask: true }
      : null;
  }

  #ofOneTask(): string {
    return `${this.#facts.taskLabel ?? ""} is in the group, so each result is of one task`;
  }

  #judgeSplit(): Judgement {
    const { taskLabel, upstreamBy, upstreamByLabels, determined, rule, input, upstreams } = this.#facts;
    const isByTask = taskLabel !== null && includes(difference(upstreamBy, determined), taskLabel);
    const fault = difference(isByTask ? upstreamByLabels : upstreamBy, determined);
    const witness = this.#searched().find(isSplit);
    const canMerge = unmergeable(rule.outputs).length === 0;
    const remedies = isByTask && canMerge ? [taskRemedy(taskLabel, rule, lossOf(input, taskLabel))] : [];
    const { doubtful } = upstreams;
    const doubt =
      witness !== null || doubtful.length === 0
        ? ""
        : `; whether ${doubtful.join(", ")} are one vmagent, behind one address, is not known`;
    return provenBy(
      witness,
      `${splitText(this.#facts, isByTask, fault, witness)}${doubt}`,
      [...(isByTask ? [taskLabel] : []), ...listed(fault, witness)],
      [...remedies, ...this.#keyRemedies()],
    );
  }

  /** No group is split, but the results may be those of tasks. */
  #judgeTasks(whole: Whole): Judgement {
    const { taskLabel, fixed, rule, fate } = this.#facts;
    if (!this.#areOfTasks() || taskLabel === null) return this.#safe(whole.reason);
    if (includes(fixed, taskLabel)) {
      const one = `match takes the series of one task, by ${taskLabel}`;
      return this.#safe(whole.isByTask ? one : whole.reason);
    }
    const each = whole.isByTask ? whole.reason : `${whole.reason}; ${this.#ofOneTask()}`;
    const remedies = whole.isByTask ? this.#keyRemedies() : this.#taskRemedies(taskLabel);
    const unable = unmergeable(rule.outputs);
    const witness = unable.length === 0 ? null : this.#searched().find(isOfTasks);
    if (fate === "unsure" && witness === null) {
      const doubt = `rules may change ${taskLabel}, or make labels of it: what is of one task then is not known`;
      return provenBy(null, `${whole.reason}; ${doubt}`, [taskLabel], remedies);
    }
    if (unable.length > 0) {
      const reason = `${each}, and results of tasks cannot be merged for ${unable.join(", ")}`;
      return provenBy(witness, reason, [taskLabel], remedies);
    }
    return (
      this.#judgeOutput(each, taskLabel) ??
      this.#judgeTornSeries(each, remedies) ??
      this.#safe(`${each}; merge over ${taskLabel}: ${mergeText(rule.outputs)}`)
    );
  }

  /** Whether there may be a result for each task where without the task label there is one. */
  #areOfTasks(): boolean {
    const { fate, taskBy, determined } = this.#facts;
    return fate !== "gone" && !isWithin(taskBy, besidesTask(determined, this.#facts));
  }

  /** The label that tells the results of tasks apart has to be in them. */
  #judgeOutput(each: string, label: string): Judgement | null {
    const loss = this.#lossInOutput(label);
    if (loss === null) return null;
    const collide = (one: Arrival, other: Arrival): boolean =>
      isOfTasks(one, other) && one.output !== null && one.output === other.output;
    const reason = `${each}, but ${label} is ${loss}, so the results of several tasks become one series`;
    const remedies = [`${label} left in by output_relabel_configs`];
    return provenBy(this.#searched().find(collide), reason, [label], remedies);
  }

  #lossInOutput(label: string): string | null {
    const { rule, asked } = this.#facts;
    return lossOf(carriedThrough(ALL_CARRIED, rule.outputRelabel, "output_relabel_configs", asked), label);
  }

  /** Some outputs need all samples of an input series in one task. */
  #judgeTornSeries(each: string, remedies: readonly string[]): Judgement | null {
    const { torn, fault } = this.#torn();
    if (torn.length === 0) return null;
    const witness = this.#searched().find(
      (one, other) => isOfTasks(one, other) && one.inputWithoutTask === other.inputWithoutTask,
    );
    const wrong =
      this.#facts.rule.dedupIntervalMs > 0
        ? "dedup_interval sees them apart, which is wrong for"
        : "they are counted apart by";
    const reason =
      `${each}, but series that relabeling makes one are in several tasks ` +
      `(${lackingText(this.#facts, fault, witness)}): ${wrong} ${torn.join(", ")}`;
    return provenBy(witness, reason, listed(fault, witness), remedies);
  }

  /** Outputs that need it where it is not certain, and the labels that may tear a series. */
  #torn(): { readonly torn: readonly string[]; readonly fault: LabelNames } {
    const { rule, input, determined, taskBy } = this.#facts;
    const fault = difference(taskBy, union(input.names, determined));
    const needing = needingWholeSeries(rule.outputs, rule.dedupIntervalMs > 0);
    return { torn: isWithin(fault, NO_LABEL) ? [] : needing, fault };
  }

  /** A key of the labels of the group is not enough where results of tasks remain that cannot be merged. */
  #keyRemedies(): string[] {
    const { judged, rule, taskLabel, fate } = this.#facts;
    const isEnough = taskLabel === null || !this.#areOfTasks() || this.#canMerge(taskLabel);
    if (isEnough) return keyRemedies(judged.route, this.#keyLabels(), null);
    if (fate === "unsure") return [leftAloneText(taskLabel)];
    return keyRemedies(judged.route, this.#keyLabels(), ungroupedText(taskLabel, rule));
  }

  #taskRemedies(taskLabel: string): string[] {
    const { judged, rule, fate } = this.#facts;
    if (fate === "unsure") return [leftAloneText(taskLabel)];
    return taskRemedies(judged.route, this.#keyLabels(), ungroupedText(taskLabel, rule));
  }

  #canMerge(taskLabel: string): boolean {
    const { rule, fate } = this.#facts;
    const isKept = fate === "kept" && this.#lossInOutput(taskLabel) === null;
    return isKept && unmergeable(rule.outputs).length === 0 && this.#torn().torn.length === 0;
  }

  /** Labels for a key: such as the group certainly has; not those that only this program has asked for. */
  #keyLabels(): LabelNames {
    const { rule, group } = this.#facts;
    const asked = rule.by.length > 0 || group.names.kind === "all_but" ? [] : USUAL_LABELS;
    return difference(group.names, only(asked));
  }

  #safe(reason: string): Judgement {
    return { verdict: "safe", reason, labels: [], witness: null, remedies: [], notes: notesOn(this.#facts) };
  }

  #searched(): WitnessSearch {
    this.#search ??= searchFor(this.#facts);
    return this.#search;
  }
}

function leftAloneText(taskLabel: string): string {
  return `relabeling that leaves ${taskLabel} as it is, and makes no other labels of it`;
}
