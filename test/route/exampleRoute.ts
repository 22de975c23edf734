/** A route as the default configuration has it, and label sets to send through it. */
import { labelSpans, type LabelSpans } from "../../src/hash/labelOrder.ts";
import type { RelabelRuleList } from "../../src/relabel/options.ts";
import type { RouteOptions, SlotOptions, TaskOptions } from "../../src/route/options.ts";

export const TASK_LABEL = "stream_task_id";

export const EXAMPLE_TASKS: TaskOptions = {
  count: 128,
  label: TASK_LABEL,
  algorithm: "jump",
  key: { kind: "all" },
};

export const NO_RULES: RelabelRuleList = { dialect: "prometheus", rules: [] };

/** Slots without rules. */
export function slotsOf(...names: readonly string[]): SlotOptions[] {
  return names.map((name) => ({ name, writeRelabel: NO_RULES }));
}

export function exampleRoute(changes: Partial<RouteOptions> = {}): RouteOptions {
  return {
    name: "aggregation",
    tenant: { header: "x-scope-orgid", label: null, pass: false },
    relabel: NO_RULES,
    final: false,
    keyFormat: "pairs",
    tasks: EXAMPLE_TASKS,
    placement: { key: { kind: "task" }, algorithm: "jump", missingKey: "one_place", replicas: 1 },
    upstreams: slotsOf("vmagent-0", "vmagent-1", "vmagent-2"),
    ...changes,
  };
}

/** Names and values, one character a byte, or UTF-8 when `encoding` says so. */
export type Labels = readonly (readonly [string, string, ...unknown[]])[];

export function spansOf(labels: Labels, encoding: "latin1" | "utf8" = "utf8"): LabelSpans {
  return labelSpans(
    labels.flatMap(([name, value]) => [Buffer.from(name, encoding), Buffer.from(value, encoding)]),
  );
}
