/** The route of the measurements that are made in this process. */
import type { RelabelRuleList } from "../../src/relabel/options.ts";
import type { LabelLimits, RouteOptions } from "../../src/route/options.ts";

export const DESTINATIONS = 3;
export const NO_RULES: RelabelRuleList = { dialect: "prometheus", rules: [] };
export const LABEL_LIMITS: LabelLimits = {
  maxLabels: 256,
  maxLabelNameBytes: 1024,
  maxLabelValueBytes: 65536,
};

const NAMES = Array.from({ length: DESTINATIONS }, (_, slot) => `upstream-${slot}`);

/** 128 tasks on three upstreams. */
export function benchRoute(relabel: RelabelRuleList): RouteOptions {
  return {
    name: "bench",
    keyFormat: "pairs",
    tasks: { count: 128, label: "stream_task_id", algorithm: "jump", key: { kind: "all" } },
    placement: { key: { kind: "task" }, algorithm: "jump", missingKey: "one_place", replicas: 1 },
    tenant: { header: "x-scope-orgid", label: null, pass: false },
    relabel,
    final: false,
    topology: [{ fromMs: null, slots: NAMES.map((name) => ({ name })) }],
    upstreams: NAMES.map((name) => ({ name, writeRelabel: NO_RULES })),
    retireAfterMs: 3_600_000,
  };
}
