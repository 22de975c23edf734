/** What every route does with a series, by the code that routes real traffic. */
import type { Config, RouteConfig } from "../config/config.ts";
import { formatMoment } from "../moment.ts";
import type { Label } from "../relabel/rules.ts";
import {
  type CopyDecision,
  copyFor,
  Decider,
  type RouteDecision,
  type RouteWitness,
  type TellRule,
} from "../route/decide.ts";
import type { RefusalReason } from "../route/door.ts";
import { periodAt } from "../route/epochs.ts";
import { labelPairs } from "../route/labelText.ts";
import type { Period } from "../route/options.ts";
import type { Place, Placed } from "../route/place.ts";
import { retirements } from "../route/retirement.ts";
import type { DropReason, UnroutedReason } from "../route/tally.ts";
import type { Tenant } from "../route/tenants.ts";
import { encodeLabelSet, seriesRequest } from "../wire/labelField.ts";
import { type SeriesScan, withSeries } from "../wire/scan.ts";
import { type Splice, spliced } from "../wire/splice.ts";
import { recorder, type RuleStep } from "./ruleSteps.ts";

// The names here are those of `explain --json` and of POST /api/v1/explain. What is empty is left out.

export type Explanation = { readonly refused: RefusalReason } | OfferedExplanation;

export interface OfferedExplanation {
  /** Why no route has it. */
  readonly dropped?: UnroutedReason;
  /** What the global rules did. */
  readonly relabel_configs?: readonly RuleStep[];
  readonly routes: readonly RouteExplanation[];
}

/** What one route does with a series: it is not selected, or dropped, or leaves for an upstream or several. */
export interface RouteExplanation extends RouteSteps, Partial<PlacedExplanation>, CopyOutcome {
  readonly route: string;
  readonly selected?: false;
  /** The route before this one that is final and kept the series, so that this one was not asked. */
  readonly final?: string;
  /** Where the route has replicas: what becomes of each copy. That of a single one stands in the route itself. */
  readonly copies?: readonly CopyExplanation[];
}

/** The labels after its stages. */
export interface RouteSteps {
  readonly tenant_label?: readonly Label[];
  readonly relabel_configs?: readonly RuleStep[];
}

/** What becomes of a series on its way to one upstream. */
export interface CopyOutcome {
  readonly write_relabel_configs?: readonly RuleStep[];
  readonly dropped?: DropReason | "period_retired";
  /** As they leave for the upstream, task label included. */
  readonly labels?: readonly Label[];
}

export interface CopyExplanation extends CopyOutcome {
  readonly slot: number;
  readonly upstream: string;
}

/** The period of a route that has several, and the names of its slots. */
export interface PeriodExplanation {
  /** RFC 3339; null for the first, and for the last. */
  readonly from: string | null;
  readonly until: string | null;
  /** Tombstones with a minus before their names. */
  readonly slots: readonly string[];
}

/** Where a route places a series. */
export interface PlacedExplanation {
  /** The one that is asked for. */
  readonly period?: PeriodExplanation;
  /** Stage 1's key and task; absent in a route without tasks. */
  readonly key?: number;
  readonly task?: number;
  /** What stage 2 hashes. */
  readonly placement_key: number;
  /** By replica. */
  readonly slots: readonly number[];
  readonly upstreams: readonly string[];
}

const NO_PLACE: Place = { slots: [], upstreams: [] };
const LONE_SURROGATE = /\p{Surrogate}/u;
const encoder = new TextEncoder();

/** Explains series under one configuration. */
export class Explainer {
  readonly #config: Config;
  readonly #decider: Decider;
  /** By route and upstream: whether it takes nothing more, since its periods are over for long. */
  readonly #retired: readonly (readonly boolean[])[];

  /**
   * @param nowMs when series are to come, in milliseconds since the epoch; by default, before any upstream of past periods
   *              has retired
   */
  constructor(config: Config, nowMs = Number.NEGATIVE_INFINITY) {
    this.#config = config;
    const routes = config.routes.map(({ route }) => route);
    this.#decider = new Decider(config.relabel, routes, config.limits);
    this.#retired = routes.map((route) => retirements(route).map((atMs) => atMs !== null && atMs <= nowMs));
  }

  /**
   * @param tenant what the request's header says, to the routes that look at it
   * @param atMs   timestamp of the items that are asked about, in milliseconds since the epoch; by default, in the newest period
   */
  explain(
    labels: readonly Label[],
    tenant: string | null = null,
    atMs = Number.POSITIVE_INFINITY,
  ): Explanation {
    // Text that is no Unicode cannot be sent as UTF-8.
    if (labels.flat().some((text) => LONE_SURROGATE.test(text))) return { refused: "invalid_utf8" };
    const request = encodeLabelSet(labels.flat().map((text) => encoder.encode(text)));
    return withSeries(request, this.#config.limits.maxLabels, (series) =>
      this.#explain(series, tenant, atMs),
    );
  }

  #explain(series: SeriesScan, text: string | null, atMs: number): Explanation {
    const { relabel, routes } = this.#config;
    const globalSteps: RuleStep[] = [];
    const notes = routes.map((route) => new RouteNotes(route));
    const tenant: Tenant | null = text === null || text === "" ? null : { text, header: text };
    const tenants = routes.map(() => tenant);
    const decision = this.#decider.decide(series, tenants, {
      globalRules: recorder(relabel, globalSteps),
      routes: notes,
    });
    if (decision.kind === "refused") return { refused: decision.reason };
    const steps = globalSteps.length === 0 ? {} : { relabel_configs: globalSteps };
    if (decision.kind === "dropped") return { dropped: decision.reason, ...steps, routes: [] };
    const final = finalRoute(decision.routes, routes);
    const explained = decision.routes.map((each, index) => ({
      route: routes[index]?.route.name ?? "",
      ...notes[index]?.steps,
      ...this.#explainRoute(each, index, notes[index], series, atMs),
      ...(final === null || index <= final.index ? {} : { final: final.name }),
    }));
    const isUnrouted = decision.routes.every(({ kind }) => kind === "not_selected");
    return { ...(isUnrouted ? { dropped: "no_route" } : {}), ...steps, routes: explained };
  }

  #explainRoute(
    decision: RouteDecision,
    route: number,
    notes: RouteNotes | undefined,
    series: SeriesScan,
    atMs: number,
  ): Omit<RouteExplanation, "route"> {
    switch (decision.kind) {
      case "not_selected":
        return { selected: false };
      case "dropped":
        return { dropped: decision.reason };
      case "placed":
        return this.#explainCopies(decision, route, notes, series, atMs);
    }
  }

  #explainCopies(
    { placed, copies }: Extract<RouteDecision, { kind: "placed" }>,
    route: number,
    notes: RouteNotes | undefined,
    series: SeriesScan,
    atMs: number,
  ): Omit<RouteExplanation, "route"> {
    const config = this.#config.routes[route];
    const topology = config?.route.topology ?? [];
    const period = periodAt(topology, atMs);
    const copiesAt = placed.places[period] ?? NO_PLACE;
    const place = { ...explainPeriod(topology, period), ...explainPlaced(placed, copiesAt, config) };
    const outcomes = copiesAt.upstreams.map((upstream) => {
      const steps = notes?.upstreamSteps(upstream) ?? [];
      const end = this.#explainEnd(
        copyFor(copies, upstream),
        series,
        this.#retired[route]?.[upstream] === true,
      );
      return steps.length === 0 ? end : { write_relabel_configs: steps, ...end };
    });
    if (outcomes.length === 1) return { ...outcomes[0], ...place };
    const explained = outcomes.map((outcome, replica): CopyExplanation => {
      return { slot: place.slots[replica] ?? -1, upstream: place.upstreams[replica] ?? "", ...outcome };
    });
    return { ...place, copies: explained };
  }

  #explainEnd(copy: CopyDecision, series: SeriesScan, isRetired: boolean): CopyOutcome {
    if (copy.kind === "dropped") return { dropped: copy.reason };
    if (isRetired) return { dropped: "period_retired" };
    return { labels: this.#forwardedLabels(series, copy.splices) };
  }

  #forwardedLabels(series: SeriesScan, splices: readonly Splice[]): readonly Label[] {
    const message = spliced(series.bytes.subarray(series.start, series.end), ...splices);
    // Rules can make as many labels as senders, and two are the gateway's own.
    return withSeries(seriesRequest(message), this.#config.limits.maxLabels + 2, labelPairs);
  }
}

/** The route behind which no other was asked, null when all were. */
function finalRoute(
  decisions: readonly RouteDecision[],
  routes: readonly RouteConfig[],
): { readonly index: number; readonly name: string } | null {
  const index = decisions.findIndex(
    ({ kind }, each) => kind !== "not_selected" && routes[each]?.route.final === true,
  );
  const name = routes[index]?.route.name;
  return name === undefined ? null : { index, name };
}

function explainPlaced(
  { key, task, placementKey }: Placed,
  { slots, upstreams }: Place,
  config: RouteConfig | undefined,
): PlacedExplanation {
  return {
    ...(key === null || task === null ? {} : { key, task }),
    placement_key: placementKey,
    slots,
    upstreams: upstreams.map((upstream) => config?.route.upstreams[upstream]?.name ?? ""),
  };
}

/** Nothing where there is one period. */
function explainPeriod(topology: readonly Period[], period: number): Pick<PlacedExplanation, "period"> {
  if (topology.length <= 1) return {};
  const momentOf = (index: number): string | null => {
    const fromMs = topology[index]?.fromMs ?? null;
    return fromMs === null ? null : formatMoment(fromMs);
  };
  const slots =
    topology[period]?.slots.map(({ name, removed }) => (removed === true ? `-${name}` : name)) ?? [];
  return { period: { from: momentOf(period), until: momentOf(period + 1), slots } };
}

/** Notes what a route's rules do. */
class RouteNotes implements RouteWitness {
  readonly rules: TellRule;
  readonly #route: RouteConfig["route"];
  readonly #steps: RuleStep[] = [];
  /** By upstream. */
  readonly #upstreamSteps = new Map<number, RuleStep[]>();
  #tenantLabel: readonly Label[] | null = null;

  constructor({ route }: RouteConfig) {
    this.#route = route;
    this.rules = recorder(route.relabel, this.#steps);
  }

  tenantLabel(labels: readonly Label[]): void {
    this.#tenantLabel = labels;
  }

  upstreamRules(upstream: number): TellRule {
    const steps: RuleStep[] = [];
    this.#upstreamSteps.set(upstream, steps);
    return recorder(this.#route.upstreams[upstream]?.writeRelabel ?? this.#route.relabel, steps);
  }

  upstreamSteps(upstream: number): readonly RuleStep[] {
    return this.#upstreamSteps.get(upstream) ?? [];
  }

  get steps(): RouteSteps {
    return {
      ...(this.#tenantLabel === null ? {} : { tenant_label: this.#tenantLabel }),
      ...(this.#steps.length === 0 ? {} : { relabel_configs: this.#steps }),
    };
  }
}
