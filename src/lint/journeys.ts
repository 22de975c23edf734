/**
 * Follows series through the gateway, by the code that routes real traffic, and through a vmagent up to the output group of an
 * aggregation rule.
 */
import type { AggregationRule } from "../config/aggregationFile.ts";
import type { Config } from "../config/config.ts";
import type { RelabelRule, RelabelRuleList } from "../relabel/options.ts";
import { type Label, RelabelRules } from "../relabel/rules.ts";
import { copyFor, Decider, type RouteDecision } from "../route/decide.ts";
import { labelPairs } from "../route/labelText.ts";
import { encodeLabelSet, seriesRequest } from "../wire/labelField.ts";
import { type SeriesScan, withSeries } from "../wire/scan.ts";
import { spliced } from "../wire/splice.ts";
import { groupLabels } from "./groups.ts";
import { includes } from "./labelNames.ts";

/** A copy of a series that a rule aggregates. Names of groups and series are equal if and only if their labels are. */
export interface Arrival {
  readonly route: number;
  /** Upstreams with one url are one. */
  readonly url: string;
  readonly upstream: string;
  /** The value of the task label of the route, null when it is not among the labels of the group. */
  readonly task: string | null;
  readonly group: string;
  readonly groupWithoutTask: string;
  /** The input series as the rule sees it, without the task label. */
  readonly inputWithoutTask: string;
  /** The group as the output rules leave it, null when they drop it. */
  readonly output: string | null;
}

const encoder = new TextEncoder();
/** Rules can make as many labels as senders, and two are the gateway's own. */
const OWN_LABELS = 2;

/** Where series arrive under one configuration and one aggregation rule. */
export class Journeys {
  readonly #config: Config;
  readonly #decider: Decider;
  readonly #urls: readonly ReadonlyMap<string, string>[];
  readonly #aggregator: Aggregator;

  /** @param vmagentRules what vmagent applies to all series before it aggregates them */
  constructor(config: Config, vmagentRules: RelabelRuleList, rule: AggregationRule) {
    this.#config = config;
    const routes = config.routes.map(({ route }) => route);
    this.#decider = new Decider(config.relabel, routes, config.limits);
    this.#urls = config.routes.map(
      ({ upstreams }) => new Map(upstreams.map(({ name, url }) => [name, url.href])),
    );
    this.#aggregator = new Aggregator(vmagentRules, rule);
  }

  /** The copies that the rule aggregates. @param labels unique names; the tenant of a request is in its route's label */
  arrivals(labels: readonly Label[]): Arrival[] {
    const request = encodeLabelSet(labels.flat().map((text) => encoder.encode(text)));
    const { maxLabels } = this.#config.limits;
    return withSeries(request, maxLabels, (series) => {
      const tenants = this.#config.routes.map(({ route }) => {
        const text = labels.find(([name]) => name === route.tenant.label)?.[1] ?? "";
        return text === "" ? null : { text, header: text };
      });
      const decision = this.#decider.decide(series, tenants);
      if (decision.kind !== "offered") return [];
      return decision.routes.flatMap((each, route) => this.#ofRoute(each, route, series));
    });
  }

  #ofRoute(decision: RouteDecision, index: number, series: SeriesScan): Arrival[] {
    if (decision.kind !== "placed") return [];
    const route = this.#config.routes[index]?.route;
    const taskLabel = route?.tasks?.label ?? null;
    // Groups are of one period: at a border they begin anew.
    const { upstreams = [] } = decision.placed.places.at(-1) ?? {};
    return upstreams.flatMap((number) => {
      const copy = copyFor(decision.copies, number);
      if (copy.kind === "dropped") return [];
      const message = spliced(series.bytes.subarray(series.start, series.end), ...copy.splices);
      const maxLabels = this.#config.limits.maxLabels + OWN_LABELS;
      const labels = withSeries(seriesRequest(message), maxLabels, labelPairs);
      const upstream = route?.upstreams[number]?.name ?? "";
      const aggregated = this.#aggregator.aggregate(labels, taskLabel);
      if (aggregated === null) return [];
      return [{ route: index, url: this.#urls[index]?.get(upstream) ?? "", upstream, ...aggregated }];
    });
  }
}

/** A vmagent with one aggregation rule. */
class Aggregator {
  readonly #vmagentRules: RelabelRules | null;
  readonly #match: RelabelRules | null;
  readonly #rule: AggregationRule;
  readonly #input: OpenRules;
  readonly #output: OpenRules;

  constructor(vmagentRules: RelabelRuleList, rule: AggregationRule) {
    this.#vmagentRules = vmagentRules.rules.length === 0 ? null : new RelabelRules(vmagentRules);
    this.#match = rule.match.length === 0 ? null : new RelabelRules(keepIf(rule.match));
    this.#rule = rule;
    this.#input = new OpenRules(rule.inputRelabel);
    this.#output = new OpenRules(rule.outputRelabel);
  }

  aggregate(
    labels: readonly Label[],
    taskLabel: string | null,
  ): Omit<Arrival, "route" | "url" | "upstream"> | null {
    const outcome = this.#vmagentRules?.apply(labels) ?? { kind: "kept", labels };
    if (outcome.kind !== "kept" || this.#match?.apply(outcome.labels).kind === "dropped") return null;
    const { dropInputLabels } = this.#rule;
    const left = outcome.labels.filter(([name]) => !dropInputLabels.includes(name));
    const input = this.#input.apply(left);
    if (input === null || input.length === 0) return null;
    const group = input.filter(([name]) => includes(groupLabels(this.#rule), name));
    const output = this.#output.apply(group);
    const isTask = ([name]: Label): boolean => name === taskLabel;
    return {
      task: group.find(isTask)?.[1] ?? null,
      group: nameOf(group),
      groupWithoutTask: nameOf(group.filter((label) => !isTask(label))),
      inputWithoutTask: nameOf(input.filter((label) => !isTask(label))),
      output: output === null ? null : nameOf(output),
    };
  }
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
  const keep: RelabelRule = {
    action: "keep",
    sourceLabels: null,
    separator: null,
    regex: null,
    targetLabel: null,
    replacement: null,
    modulus: null,
    if: selectors,
    match: null,
    labels: null,
  };
  return { dialect: "victoriametrics", rules: [keep] };
}

function nameOf(labels: readonly Label[]): string {
  return JSON.stringify([...labels].sort(([a], [b]) => (a < b ? -1 : 1)));
}
