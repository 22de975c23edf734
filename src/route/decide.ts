/**
 * What becomes of a series: a pure function of the configuration, its label set and the request's tenant.
 *
 * The stages, in their order: checks at the door; global rules; then in every route the tenant's label, the route's rules,
 * checks of what they made, keys, task and slot, the task label, and the rules of the upstream. Routes never see each
 * other's labels.
 */
import { compareBytewise } from "../relabel/byteOrder.ts";
import type { RelabelRuleList } from "../relabel/options.ts";
import { type ApplyLimits, type Label, RelabelRules } from "../relabel/rules.ts";
import type { SeriesScan } from "../wire/scan.ts";
import { NO_SPLICE, type Splice } from "../wire/splice.ts";
import { checkAtDoor, type RefusalReason } from "./door.ts";
import { LabelReader } from "./labelReader.ts";
import type { LabelLimits, RouteOptions } from "./options.ts";
import { compilePlacer, type Placed, type Placer } from "./place.ts";
import { replaceLabels, RewrittenLabels } from "./rewrite.ts";
import type { DropReason, UnroutedReason } from "./tally.ts";
import { TaskLabel } from "./taskLabel.ts";
import type { Tenant } from "./tenants.ts";

export type Decision =
  /** At the door: the sender is told. */
  | { readonly kind: "refused"; readonly reason: RefusalReason }
  /** By a global rule, or for what one made. */
  | { readonly kind: "dropped"; readonly reason: UnroutedReason }
  | { readonly kind: "offered"; readonly routes: readonly RouteDecision[] };

export type RouteDecision =
  | { readonly kind: "not_selected" }
  /** After the route had selected it, and before it had a place: for what the route's rules made of it. */
  | { readonly kind: "dropped"; readonly reason: DropReason }
  | PlacedDecision;

/** It has places, and one copy for every upstream that is in them. */
export interface PlacedDecision {
  readonly kind: "placed";
  readonly placed: Placed;
  readonly copies: readonly UpstreamCopy[];
}

/** The copy for one upstream. */
export interface UpstreamCopy {
  /** Index of the upstream in its route. */
  readonly upstream: number;
  readonly copy: CopyDecision;
}

/** What becomes of the copy for one upstream, whatever becomes of the others. */
export type CopyDecision =
  /** By the upstream's rules, or for what they made of it. */
  | { readonly kind: "dropped"; readonly reason: DropReason }
  /** It leaves with these changes of the message that came in, in order. */
  | { readonly kind: "sent"; readonly splices: readonly Splice[] };

/** @param upstream one of those that the decision has a place at */
export function copyFor(copies: readonly UpstreamCopy[], upstream: number): CopyDecision {
  const copy = findCopy(copies, upstream);
  if (copy === null) throw new Error(`bug: no copy for upstream ${upstream}`);
  return copy;
}

function findCopy(copies: readonly UpstreamCopy[], upstream: number): CopyDecision | null {
  for (const each of copies) if (each.upstream === upstream) return each.copy;
  return null;
}

/** Told what rules do, for explanations; null labels mean that the rule dropped the series. Rules count from 0. */
export interface DecisionWitness {
  readonly globalRules: TellRule;
  /** By route. */
  readonly routes: readonly RouteWitness[];
}

export interface RouteWitness {
  readonly rules: TellRule;
  /** The labels with the tenant's, in a route that has such a label. */
  tenantLabel(labels: readonly Label[]): void;
  /** For the rules of an upstream that the series is placed on; asked once for each. */
  upstreamRules(upstream: number): TellRule;
}

export type TellRule = (rule: number, labels: readonly Label[] | null) => void;

/** What takes steps: it yields when it is time for a pause. */
type Steps<Result> = Generator<undefined, Result, undefined>;

const METRIC_NAME = "__name__";
/** Rules join values of labels before they cut them: so many of the longest are nothing to stop at. */
const JOINED_VALUES = 16;
const NEVER_DUE = (): boolean => false;
/** One for all deciders: series are read one at a time. */
const reader = new LabelReader();
const NOT_SELECTED: RouteDecision = Object.freeze({ kind: "not_selected" });

/** Decides under one configuration. */
export class Decider {
  readonly #limits: LabelLimits;
  readonly #globalRules: RelabelRules | null;
  readonly #routes: readonly CompiledRoute[];

  /** @throws {RelabelError} for rules that faultOf() has something against */
  constructor(globalRules: RelabelRuleList, routes: readonly RouteOptions[], limits: LabelLimits) {
    this.#limits = limits;
    this.#globalRules = compileRules(globalRules);
    this.#routes = routes.map((route) => new CompiledRoute(route, limits));
  }

  /**
   * @param series  scanned whole, or the label fields that it begins with when they are all it has
   * @param tenants by route
   */
  decide(series: SeriesScan, tenants: readonly (Tenant | null)[], witness?: DecisionWitness): Decision {
    const steps = this.decideInSteps(series, tenants, NEVER_DUE, witness);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  }

  /**
   * decide() with pauses between rules: many of them on long values take longer than others can wait.
   *
   * @param isDue whether it is time for a pause; what is scanned must stay as it is meanwhile
   */
  *decideInSteps(
    series: SeriesScan,
    tenants: readonly (Tenant | null)[],
    isDue: () => boolean,
    witness?: DecisionWitness,
  ): Steps<Decision> {
    const refusal = checkAtDoor(series, this.#limits);
    if (refusal !== null) return { kind: "refused", reason: refusal };
    const draft = new Draft(series, {
      maxValueLength: this.#limits.maxLabelValueBytes * JOINED_VALUES,
      isDue,
    });
    const rules = this.#globalRules;
    const kept = rules === null ? draft : yield* draft.apply(rules, witness?.globalRules);
    if (kept === "dropped") return { kind: "dropped", reason: "relabel_configs" };
    if (kept === "overlong") return { kind: "dropped", reason: "label_value_too_long" };
    const routes: RouteDecision[] = [];
    let isTaken = false;
    for (const [index, route] of this.#routes.entries()) {
      const decision: RouteDecision = isTaken
        ? NOT_SELECTED
        : yield* route.decide(kept, tenants[index] ?? null, witness?.routes[index]);
      routes.push(decision);
      isTaken ||= route.options.final && decision.kind !== "not_selected";
    }
    return { kind: "offered", routes };
  }
}

/** A series on its way through the stages: as it came, or with the labels that rules gave it. */
class Draft {
  readonly series: SeriesScan;
  /** null while the labels are those that came. */
  readonly #changed: readonly Label[] | null;
  readonly #origin: Draft;
  readonly #limits: ApplyLimits;
  #came: readonly Label[] | null = null;

  constructor(
    series: SeriesScan,
    limits: ApplyLimits,
    changed: readonly Label[] | null = null,
    origin: Draft | null = null,
  ) {
    this.series = series;
    this.#limits = limits;
    this.#changed = changed;
    this.#origin = origin ?? this;
  }

  get isChanged(): boolean {
    return this.#changed !== null;
  }

  /** The labels that came in, which are read only if somebody asks. */
  get came(): readonly Label[] {
    const origin = this.#origin;
    origin.#came ??= reader.read(origin.series);
    return origin.#came;
  }

  get labels(): readonly Label[] {
    return this.#changed ?? this.came;
  }

  with(labels: readonly Label[]): Draft {
    return new Draft(this.series, this.#limits, labels, this.#origin);
  }

  /** The draft after rules, or why not all of them were run. */
  *apply(rules: RelabelRules, tell?: TellRule): Steps<Draft | "dropped" | "overlong"> {
    const applying = rules.begin(this.labels, this.#limits, tell);
    let outcome = applying.goOn();
    while (outcome === null) {
      yield;
      outcome = applying.goOn();
    }
    if (outcome.kind !== "kept") {
      tell?.(outcome.rule, null);
      return outcome.kind;
    }
    return outcome.changed ? this.with(outcome.labels) : this;
  }

  rewritten(): RewrittenLabels {
    return new RewrittenLabels(this.series, this.came, this.labels);
  }
}

class CompiledRoute {
  readonly options: RouteOptions;
  /** Of what the route's rules make, and of what its upstreams' rules make. */
  readonly #limits: LabelLimits;
  readonly #upstreamLimits: LabelLimits;
  readonly #rules: RelabelRules | null;
  readonly #place: Placer;
  readonly #taskLabel: TaskLabel | null;
  /** By upstream. */
  readonly #upstreamRules: readonly (RelabelRules | null)[];

  constructor(options: RouteOptions, limits: LabelLimits) {
    this.options = options;
    // The labels that the gateway adds are not counted.
    this.#limits = options.tenant.label === null ? limits : withOneMore(limits);
    this.#upstreamLimits = options.tasks === null ? this.#limits : withOneMore(this.#limits);
    this.#rules = compileRules(options.relabel);
    this.#place = compilePlacer(options);
    this.#taskLabel = options.tasks === null ? null : new TaskLabel(options.tasks.label);
    this.#upstreamRules = options.upstreams.map(({ writeRelabel }) => compileRules(writeRelabel));
  }

  *decide(incoming: Draft, tenant: Tenant | null, witness?: RouteWitness): Steps<RouteDecision> {
    const offered = this.#withTenant(incoming, tenant, witness);
    const rules = this.#rules;
    const draft = rules === null ? offered : yield* offered.apply(rules, witness?.rules);
    if (draft === "dropped") return NOT_SELECTED;
    if (draft === "overlong") return { kind: "dropped", reason: "label_value_too_long" };
    const rewritten = draft.isChanged ? draft.rewritten() : null;
    const fault = rewritten === null ? null : faultOf(draft, rewritten, this.#limits);
    if (fault !== null) return { kind: "dropped", reason: fault };
    const placed = this.#place(rewritten ?? draft.series);
    const copies: UpstreamCopy[] = [];
    let unwritten: CopyDecision | null = null;
    for (const { upstreams } of placed.places) {
      for (const upstream of upstreams) {
        if (findCopy(copies, upstream) !== null) continue;
        const rules = this.#upstreamRules[upstream] ?? null;
        const tell = rules === null ? undefined : witness?.upstreamRules(upstream);
        const written = rules === null ? null : yield* this.#write(draft, rules, placed.task, tell);
        const copy = written ?? (unwritten ??= this.#send(draft, rewritten, placed.task));
        copies.push({ upstream, copy });
      }
    }
    return { kind: "placed", placed, copies };
  }

  /** The label says what the header says: a label of that name that came with the series is none of the sender's. */
  #withTenant(draft: Draft, tenant: Tenant | null, witness?: RouteWitness): Draft {
    const { label } = this.options.tenant;
    if (label === null) return draft;
    const value = tenant?.text ?? "";
    const before = draft.labels.find(([name]) => name === label);
    const isSaid = (before?.[1] ?? "") === value;
    const labelled = isSaid ? draft : draft.with(withLabel(draft.labels, label, value));
    witness?.tenantLabel(labelled.labels);
    return labelled;
  }

  /** A copy as the rules of its upstream make it; null when they change nothing. */
  *#write(
    draft: Draft,
    rules: RelabelRules,
    task: number | null,
    tell?: TellRule,
  ): Steps<CopyDecision | null> {
    const labelled = draft.with(this.#withTask(draft.labels, task));
    const written = yield* labelled.apply(rules, tell);
    if (written === "dropped") return { kind: "dropped", reason: "write_relabel_configs" };
    if (written === "overlong") return { kind: "dropped", reason: "label_value_too_long" };
    if (written === labelled) return null;
    const rewritten = written.rewritten();
    const fault = faultOf(written, rewritten, this.#upstreamLimits);
    if (fault !== null) return { kind: "dropped", reason: fault };
    return { kind: "sent", splices: replaceLabels(draft.series, rewritten, NO_SPLICE) };
  }

  /** A copy with the labels that the route made, and the task's. */
  #send(draft: Draft, rewritten: RewrittenLabels | null, task: number | null): CopyDecision {
    const taskSplice =
      this.#taskLabel === null || task === null
        ? NO_SPLICE
        : this.#taskLabel.splice(rewritten ?? draft.series, task);
    const splices = rewritten === null ? [taskSplice] : replaceLabels(draft.series, rewritten, taskSplice);
    return { kind: "sent", splices };
  }

  #withTask(labels: readonly Label[], task: number | null): readonly Label[] {
    if (this.options.tasks === null || task === null) return labels;
    return withLabel(labels, this.options.tasks.label, String(task));
  }
}

/** What is wrong with labels that rules have made. */
function faultOf(draft: Draft, rewritten: RewrittenLabels, limits: LabelLimits): DropReason | null {
  if (draft.labels.length === 0) return "no_labels";
  if (hasMetricName(draft.came) && !hasMetricName(draft.labels)) return "no_metric_name";
  return checkAtDoor(rewritten, limits);
}

function withOneMore(limits: LabelLimits): LabelLimits {
  return { ...limits, maxLabels: limits.maxLabels + 1 };
}

function compileRules(list: RelabelRuleList): RelabelRules | null {
  return list.rules.length === 0 ? null : new RelabelRules(list);
}

function hasMetricName(labels: readonly Label[]): boolean {
  return labels.some(([name, value]) => name === METRIC_NAME && value !== "");
}

/** Labels with one of them set, before the first with a greater name; with the empty value it is taken away. */
function withLabel(labels: readonly Label[], name: string, value: string): Label[] {
  const others = labels.filter(([other]) => other !== name);
  if (value === "") return others;
  const greater = others.findIndex(([other]) => compareBytewise(other, name) > 0);
  return others.toSpliced(greater < 0 ? others.length : greater, 0, [name, value]);
}
