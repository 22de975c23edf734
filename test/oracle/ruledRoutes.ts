/** Global rules and routes with rules of every kind, and requests of several tenants, to be routed in every possible way. */
import type { RouteOptions } from "../../src/route/options.ts";
import { type RequestTenants, Tenants, UNKEPT_CONTEXT } from "../../src/route/tenants.ts";
import { ruleOf } from "../relabel/rule.ts";
import { exampleRoute, slotsOf, TASK_LABEL } from "../route/exampleRoute.ts";
import { copy, drop, keep, labelDrop, labelKeep, labelMap, rulesOf, set } from "../route/rules.ts";

const TENANT = { header: "x-scope-orgid", label: "tenant", pass: false };
const LIKE_A_TENANT = { ...TENANT, label: "instance", pass: true };
const UPSTREAM_RULES = [
  [labelDrop(TASK_LABEL)],
  [drop("a", "job|.*x.*"), copy(TASK_LABEL, "task")],
  [labelMap("(job|a)(.*)", "$2")],
  [
    ruleOf({ action: "lowercase", sourceLabels: ["__name__", "job"], targetLabel: "job" }),
    set(TASK_LABEL, "7"),
  ],
].map((rules, slot) => ({ name: `ruled-${slot}`, writeRelabel: rulesOf(...rules) }));

// Some rules change nothing in most series, some most series.
export const GLOBAL_RULES = rulesOf(
  drop("job", "instance|d.*"),
  ruleOf({
    sourceLabels: ["job", "a"],
    separator: "-",
    regex: "(.)(.*)-(a.*|job)",
    targetLabel: "mixed",
    replacement: "${2}_$1",
  }),
);
export const RULED_ROUTES: readonly RouteOptions[] = [
  exampleRoute({
    name: "most",
    tenant: TENANT,
    relabel: rulesOf(drop("instance", "x|job|d")),
    placement: { key: { kind: "task" }, algorithm: "jump", missingKey: "one_place", replicas: 3 },
    upstreams: UPSTREAM_RULES,
  }),
  exampleRoute({
    name: "rewritten",
    tenant: LIKE_A_TENANT,
    relabel: rulesOf(
      ruleOf({ action: "hashmod", sourceLabels: ["a", "instance"], modulus: 5n, targetLabel: "hash" }),
      keep("hash", "[01]"),
      labelMap("(inst)(.*)", "${1}_$2"),
      labelDrop("hash|～|a"),
      ruleOf({ sourceLabels: ["job"], regex: "abc", targetLabel: "__name__", replacement: "" }),
    ),
    placement: {
      key: { kind: "by", names: ["job", "inst_ance"] },
      algorithm: "jump",
      missingKey: "one_place",
      replicas: 1,
    },
  }),
  exampleRoute({
    name: "final",
    final: true,
    tasks: null,
    placement: {
      key: { kind: "without", names: ["a"] },
      algorithm: "hashmod",
      missingKey: "one_place",
      replicas: 1,
    },
    relabel: rulesOf(keep("a", "a.*|job|"), labelKeep("[a-z~_]+|😀")),
    upstreams: slotsOf("old-0", "old-1"),
  }),
  exampleRoute({
    name: "rest",
    tenant: TENANT,
    relabel: {
      dialect: "victoriametrics",
      rules: [drop("instance", "x|job|d"), set("__hidden", "x"), copy("job", "b")],
    },
    upstreams: UPSTREAM_RULES.toReversed(),
  }),
];

const REGISTRY = new Tenants(
  RULED_ROUTES.map(({ tenant }) => tenant),
  1024,
);
/** Of requests that name these tenants, one of them again, and of one that names none. */
export const NAMED_TENANTS = ["acme", "größe", "acme", undefined].map((name) =>
  REGISTRY.of(() => (name === undefined ? [] : [Buffer.from(name).toString("latin1")])),
);
/** These, and one of them again in the context whose decisions are not kept. */
export const SEVERAL_TENANTS: readonly RequestTenants[] = [
  ...NAMED_TENANTS,
  ...NAMED_TENANTS.slice(0, 1).map(({ byRoute }) => ({ context: UNKEPT_CONTEXT, byRoute })),
];
