/** A route as the default configuration has it, and label sets to send through it. */
import { labelSpans, type LabelSpans } from "../../src/hash/labelOrder.ts";
import type { RelabelRuleList } from "../../src/relabel/options.ts";
import type { NamedSlot } from "../../src/hash/slots.ts";
import type { Period, RouteOptions, RouteUpstream, TaskOptions } from "../../src/route/options.ts";

export const TASK_LABEL = "stream_task_id";

export const EXAMPLE_TASKS: TaskOptions = {
  count: 128,
  label: TASK_LABEL,
  algorithm: "jump",
  key: { kind: "all" },
};

export const NO_RULES: RelabelRuleList = { dialect: "prometheus", rules: [] };

/** An upstream with its rules, where a list of slots names it. */
export type ExampleSlot = NamedSlot & RouteUpstream;

/** One period of a route: from when on, and the slots that are in force then. */
export interface ExamplePeriod {
  readonly fromMs: number | null;
  readonly slots: readonly ExampleSlot[];
}

/** What is different from the example; `upstreams` are the slots of a single period. */
export type RouteChanges = Partial<Omit<RouteOptions, "topology" | "upstreams">> & {
  readonly upstreams?: readonly ExampleSlot[];
  readonly periods?: readonly ExamplePeriod[];
};

/** Slots without rules. */
export function slotsOf(...names: readonly string[]): ExampleSlot[] {
  return names.map((name) => ({ name, writeRelabel: NO_RULES }));
}

export function exampleRoute(changes: RouteChanges = {}): RouteOptions {
  const { upstreams = slotsOf("vmagent-0", "vmagent-1", "vmagent-2"), ...others } = changes;
  const { periods = [{ fromMs: null, slots: upstreams }], ...changed } = others;
  return {
    name: "aggregation",
    tenant: { header: "x-scope-orgid", label: null, pass: false },
    relabel: NO_RULES,
    final: false,
    keyFormat: "pairs",
    tasks: EXAMPLE_TASKS,
    placement: { key: { kind: "task" }, algorithm: "jump", missingKey: "one_place", replicas: 1 },
    ...topologyOf(periods),
    retireAfterMs: 3_600_000,
    ...changed,
  };
}

/** Periods as a route has them, and its upstreams. */
export function topologyOf(periods: readonly ExamplePeriod[]): Pick<RouteOptions, "topology" | "upstreams"> {
  const live = periods.flatMap(({ slots }) => slots.filter(({ removed }) => removed !== true));
  const named = new Map(live.toReversed().map(({ name, writeRelabel }) => [name, { name, writeRelabel }]));
  const topology = periods.map(({ fromMs, slots }): Period => ({ fromMs, slots }));
  return {
    topology,
    upstreams: [...new Set(live.map(({ name }) => name))].flatMap((name) => named.get(name) ?? []),
  };
}

/** Names and values, one character a byte, or UTF-8 when `encoding` says so. */
export type Labels = readonly (readonly [string, string, ...unknown[]])[];

export function spansOf(labels: Labels, encoding: "latin1" | "utf8" = "utf8"): LabelSpans {
  return labelSpans(
    labels.flatMap(([name, value]) => [Buffer.from(name, encoding), Buffer.from(value, encoding)]),
  );
}
