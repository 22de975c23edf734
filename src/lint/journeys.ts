/** Follows series through the gateway, and through a vmagent up to the output group of an aggregation rule. */
import type { AggregationRule } from "../config/aggregationFile.ts";
import type { RelabelRuleList } from "../relabel/options.ts";
import { type Label, RelabelRules } from "../relabel/rules.ts";
import { NO_FIELDS } from "./carried.ts";
import { groupLabels } from "./groups.ts";
import { includes, type LabelNames } from "./labelNames.ts";
import type { Routing } from "./routing.ts";
import type { Vmagent } from "./vmagents.ts";

/** A copy of a series that a rule aggregates. */
export interface Arrival extends Aggregated {
  readonly route: number;
  readonly vmagent: Vmagent;
  readonly upstream: string;
}

/** What a rule makes of a series. Names of groups and series are equal if and only if their labels are. */
interface Aggregated {
  /** The task, null when its label is not among the labels of the group, or is not what the gateway gave. */
  readonly task: string | null;
  readonly group: string;
  readonly groupWithoutTask: string;
  /** The input series as the rule sees it, without the task label. */
  readonly inputWithoutTask: string;
  /** The group as the output rules leave it, null when they drop it. */
  readonly output: string | null;
}

/** Where series arrive under one configuration and one aggregation rule. */
export class Journeys {
  readonly #routing: Routing;
  readonly #aggregator: Aggregator;

  /** @param vmagentRules what vmagent applies to all series before it aggregates them */
  constructor(routing: Routing, vmagentRules: RelabelRuleList, rule: AggregationRule) {
    this.#routing = routing;
    this.#aggregator = new Aggregator(vmagentRules, rule);
  }

  /** The copies that the rule aggregates. @param labels as for Routing.sent() */
  arrivals(labels: readonly Label[]): Arrival[] {
    return this.#routing.sent(labels).flatMap(({ route, upstream, vmagent, task, labels: sent }) => {
      const label = this.#routing.route(route).judged.route.tasks?.label ?? null;
      const aggregated = this.#aggregator.aggregate(sent, label, task);
      return aggregated === null ? [] : [Object.assign(aggregated, { route, upstream, vmagent })];
    });
  }
}

/** A vmagent with one aggregation rule. */
class Aggregator {
  readonly #vmagentRules: RelabelRules | null;
  readonly #match: RelabelRules | null;
  readonly #dropped: ReadonlySet<string>;
  readonly #groupLabels: LabelNames;
  readonly #input: OpenRules;
  readonly #output: OpenRules;

  constructor(vmagentRules: RelabelRuleList, rule: AggregationRule) {
    this.#vmagentRules = vmagentRules.rules.length === 0 ? null : new RelabelRules(vmagentRules);
    this.#match = rule.match.length === 0 ? null : new RelabelRules(keepIf(rule.match));
    this.#dropped = new Set(rule.dropInputLabels);
    this.#groupLabels = groupLabels(rule);
    this.#input = new OpenRules(rule.inputRelabel);
    this.#output = new OpenRules(rule.outputRelabel);
  }

  aggregate(labels: readonly Label[], taskLabel: string | null, given: number | null): Aggregated | null {
    const outcome = this.#vmagentRules?.apply(labels) ?? { kind: "kept", labels };
    if (outcome.kind !== "kept" || this.#match?.apply(outcome.labels).kind === "dropped") return null;
    const left = outcome.labels.filter(([name]) => !this.#dropped.has(name));
    const input = this.#input.apply(left);
    if (input === null || input.length === 0) return null;
    const group = input.filter(([name]) => includes(this.#groupLabels, name)).sort(byName);
    const task = group.find(([name]) => name === taskLabel)?.[1] ?? null;
    const output = this.#output;
    // Many are made, and of most of them only the group is asked for.
    return {
      task: task === String(given) ? task : null,
      group: JSON.stringify(group),
      get groupWithoutTask() {
        return JSON.stringify(without(group, taskLabel));
      },
      get inputWithoutTask() {
        return JSON.stringify(without(input, taskLabel).sort(byName));
      },
      get output() {
        const left = output.apply(group);
        return left === null ? null : JSON.stringify([...left].sort(byName));
      },
    };
  }
}

function byName([one]: Label, [other]: Label): number {
  return one < other ? -1 : 1;
}

function without(labels: readonly Label[], label: string | null): Label[] {
  return labels.filter(([name]) => name !== label);
}

/** Rules of an aggregation: unlike those of vmagent's command line they leave labels that begin with two underscores. */
class OpenRules {
  readonly #rules: RelabelRules | null;
  readonly #last: number;

  constructor(list: RelabelRuleList) {
    this.#rules = list.rules.length === 0 ? null : new RelabelRules(list);
    this.#last = list.rules.length - 1;
  }

  /** null when they drop the series. */
  apply(labels: readonly Label[]): readonly Label[] | null {
    if (this.#rules === null) return labels;
    let left: readonly Label[] | null = null;
    this.#rules.apply(labels, (rule, after) => {
      if (rule === this.#last) left = after;
    });
    return left;
  }
}

function keepIf(selectors: readonly string[]): RelabelRuleList {
  return { dialect: "victoriametrics", rules: [{ ...NO_FIELDS, action: "keep", if: selectors }] };
}
