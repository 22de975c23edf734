import { describe, expect, it } from "vitest";
import type { RouteConfig } from "../../src/config/config.ts";
import { parseConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";
import type { RelabelRule } from "../../src/relabel/options.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";
import { inRoute, itTellsAll } from "./badConfig.ts";
import type { BadConfig } from "./badConfig.ts";

/** Text of routes of which each has an upstream in its first line and further options in the lines after it. */
function withRoutes(...routes: readonly (readonly string[])[]): string {
  const text = routes.map((lines, index) => {
    const head = `  - {name: r${index}, upstreams: [{name: a, url: "http://a/w"}],`;
    return [head, ...lines.map((line) => `    ${line},`), "    }"].join("\n");
  });
  return ["routes:", ...text].join("\n");
}

/** The routes of a text without errors that has the given warnings, written without the file's name. */
function load(yaml: string, warnings: readonly string[] = []): readonly RouteConfig[] {
  const { config, problems } = parseConfig(yaml, "f.yaml", {
    legacyHash: "jump",
    checkRule: faultOf,
    checkPlacement: placementFault,
  });
  expect(problems.map(formatProblem)).toEqual(warnings.map((warning) => `f.yaml:${warning}`));
  if (config === null) throw new Error("no config");
  return config.routes;
}

function loadRoute(...lines: readonly string[]): RouteConfig {
  const [route] = load(withRoutes(lines));
  if (route === undefined) throw new Error("no route");
  return route;
}

const DROP_DEBUG: Partial<RelabelRule> = { action: "drop", sourceLabels: ["__name__"], regex: "debug_.*" };
const DROP_DEBUG_TEXT = "{action: drop, source_labels: [__name__], regex: debug_.*}";

describe("relabel rules", () => {
  it("before all routes are in the prometheus dialect", () => {
    const yaml = `relabel_configs: [${DROP_DEBUG_TEXT}]\n${withRoutes(["relabel_dialect: victoriametrics"])}`;
    const { config, problems } = parseConfig(yaml, "f.yaml", {
      legacyHash: "jump",
      checkRule: faultOf,
      checkPlacement: placementFault,
    });
    expect(problems).toEqual([]);
    expect(config?.relabel).toMatchObject({ dialect: "prometheus", rules: [DROP_DEBUG] });
    expect(config?.routes[0]?.route.relabel).toEqual({ dialect: "victoriametrics", rules: [] });
  });

  it.each([
    { name: "relabel_configs", line: `relabel_configs: [${DROP_DEBUG_TEXT}]` },
    { name: "metric_relabel_configs", line: `metric_relabel_configs: [${DROP_DEBUG_TEXT}]` },
    {
      name: "metric_relabel_configs beside a null",
      line: `metric_relabel_configs: [${DROP_DEBUG_TEXT}], relabel_configs: null`,
    },
  ])("of a route may stand under $name", ({ line }) => {
    expect(loadRoute(line).route.relabel).toMatchObject({ dialect: "prometheus", rules: [DROP_DEBUG] });
  });

  it("of a route may be vmagent's", () => {
    const rules = `[{action: keep_metrics, regex: [a, b], if: '{job="node"}'}]`;
    const { route } = loadRoute("relabel_dialect: victoriametrics", `relabel_configs: ${rules}`);
    expect(route.relabel).toMatchObject({
      dialect: "victoriametrics",
      rules: [{ action: "keep_metrics", regex: "a|b", if: ['{job="node"}'] }],
    });
  });

  it("of upstreams belong to their slots, in the dialect of the route", () => {
    const rules = `write_relabel_configs: [${DROP_DEBUG_TEXT}]`;
    const upstreams = `upstreams: [{name: a, url: "http://a/w"}, {name: b, url: "http://b/w", ${rules}}]`;
    const [config] = load(`routes: [{name: r, relabel_dialect: victoriametrics, ${upstreams}}]`);
    expect(config?.route.upstreams).toMatchObject([
      { name: "a", writeRelabel: { dialect: "victoriametrics", rules: [] } },
      { name: "b", writeRelabel: { dialect: "victoriametrics", rules: [DROP_DEBUG] } },
    ]);
    expect(config?.upstreams.map(({ name }) => name)).toEqual(["a", "b"]);
  });

  it("keep the literal text of scalars", () => {
    const texts = ["1.0", "010", "1e3", "yes", "True", "0x10", "~x"];
    const rules = texts.map((text) => `{target_label: a, replacement: ${text}, separator: ${text}}`);
    expect(loadRoute(`relabel_configs: [${rules.join(", ")}]`).route.relabel.rules).toMatchObject(
      texts.map((text) => ({ replacement: text, separator: text })),
    );
  });

  it("take null for the empty text, and not for the default", () => {
    const { rules } = loadRoute("relabel_configs: [{target_label: a, replacement: null, regex: }]").route
      .relabel;
    expect(rules).toMatchObject([{ replacement: "", regex: "", separator: null }]);
  });

  it("may be shared by an anchor", () => {
    const routes = load(
      withRoutes([`relabel_configs: &rules [${DROP_DEBUG_TEXT}]`], ["metric_relabel_configs: *rules"]),
    );
    expect(routes.map(({ route }) => route.relabel.rules.length)).toEqual([1, 1]);
  });
});

describe("relabel rules that set the task label", () => {
  const overwritten = "shard is the task label of this route, which overwrites what the rule sets";

  it("are warned about", () => {
    const rules = [
      "{target_label: shard, replacement: a}",
      "{target_label: other, replacement: a}",
      "{action: HashMod, modulus: 2, source_labels: [job], target_label: shard}",
    ];
    load(withRoutes(["tasks: {label: shard}", `metric_relabel_configs: [${rules.join(", ")}]`]), [
      `4:45: warning: routes[0].metric_relabel_configs[0].target_label: rule 1: ${overwritten}`,
      `4:174: warning: routes[0].metric_relabel_configs[2].target_label: rule 3: ${overwritten}`,
    ]);
  });

  it.each([
    {
      name: "a rule that only reads it",
      rule: "{action: dropequal, source_labels: [a], target_label: shard}",
    },
    { name: "a label that the series decides", rule: "{source_labels: [a], target_label: shard$1}" },
  ])("are not taken for others: $name", ({ rule }) => {
    load(withRoutes(["tasks: {label: shard}", `relabel_configs: [${rule}]`]));
  });

  it("are no concern of a route without tasks", () => {
    load(withRoutes(["relabel_configs: [{target_label: stream_task_id, replacement: a}]"]));
  });
});

describe("a final route", () => {
  const keepsAll =
    "warning: routes[0].final: no series goes to the routes behind this one, since it has no rules and keeps all";

  it("ends the search for what it keeps", () => {
    const routes = load(withRoutes([`relabel_configs: [${DROP_DEBUG_TEXT}]`, "final: true"], []));
    expect(routes.map(({ route }) => route.final)).toEqual([true, false]);
  });

  it("that keeps all is warned about, once", () => {
    load(withRoutes(["final: true"], ["final: true"], []), [`3:12: ${keepsAll}`]);
  });

  it("that keeps all by an empty list of rules is warned about", () => {
    load(withRoutes(["relabel_configs: []", "final: true"], []), [`4:12: ${keepsAll}`]);
  });

  it("may keep all when it is the last", () => {
    load(withRoutes([`relabel_configs: [${DROP_DEBUG_TEXT}]`, "final: true"], ["final: true"]));
  });
});

describe("a tenant", () => {
  it.each([
    {
      name: "on a label",
      options: "{label: tenant}",
      tenant: { header: "x-scope-orgid", label: "tenant", pass: false },
    },
    {
      name: "passed on",
      options: "{header: X-Team, pass: true}",
      tenant: { header: "x-team", label: null, pass: true },
    },
    {
      name: "on a label and passed on",
      options: '{header: "THANOS-TENANT", label: _team1, pass: TRUE}',
      tenant: { header: "thanos-tenant", label: "_team1", pass: true },
    },
    {
      name: "of no concern, written out",
      options: '{header: X-Team, label: "", pass: false}',
      tenant: { header: "x-team", label: null, pass: false },
    },
  ])("may be $name", ({ options, tenant }) => {
    const { route, delivery } = loadRoute(`tenant: ${options}`);
    expect(route.tenant).toEqual(tenant);
    expect(delivery.tenantHeader).toBe(tenant.pass ? tenant.header : null);
  });

  it("is warned about when only its header is given", () => {
    load(withRoutes(["tenant: {header: X-Team}"]), [
      "3:22: warning: routes[0].tenant.header: has no effect without label, for the series, or pass: true, for the upstreams",
    ]);
  });

  it("that is not passed on leaves its header to the upstreams", () => {
    const upstream = "{name: a, url: http://a/w, headers: {X-Team: b}}";
    const [config] = load(
      `routes: [{name: r, tenant: {header: x-team, label: t}, upstreams: [${upstream}]}]`,
    );
    expect(config?.upstreams[0]?.headers).toEqual({ "X-Team": "b" });
  });
});

const ACTIONS =
  "replace, keep, drop, keepequal, dropequal, hashmod, labelmap, labeldrop, labelkeep, lowercase, uppercase";

const NOT_GLOBALLY = "which is vmagent's, while rules before all routes are Prometheus'";

const RULES: readonly BadConfig[] = [
  {
    name: "rules that are no list",
    yaml: `relabel_configs: {}\n${inRoute("relabel_configs: drop")}`,
    problems: [
      "1:18: relabel_configs: want a list of rules; got a map",
      "5:22: routes[0].relabel_configs: want a list of rules; got text",
    ],
  },
  {
    name: "rules under both names",
    yaml: inRoute("relabel_configs: []", "metric_relabel_configs: []"),
    problems: [
      "5:29: routes[0].metric_relabel_configs: want either relabel_configs or metric_relabel_configs; got both",
    ],
  },
  {
    name: "rules of a route before all routes",
    yaml: `metric_relabel_configs: []\n${inRoute()}`,
    problems: [
      "1:1: metric_relabel_configs: unknown key; want one of: listen, admin_listen, admin_token_file, reload, limits, memory, shutdown, max_connection_age, spool, relabel_configs, routes",
    ],
  },
  {
    name: "unknown fields and actions, with the rule's number",
    yaml: inRoute(
      "relabel_configs:",
      "  - {action: keep, source_label: [a], regex: b}",
      "  - {action: kep}",
      "  -",
    ),
    problems: [
      "5:24: routes[0].relabel_configs[0].source_label: rule 1: unknown key; did you mean source_labels?",
      `6:18: routes[0].relabel_configs[1].action: rule 2: want one of ${ACTIONS}; got "kep"`,
      "7:8: routes[0].relabel_configs[2]: rule 3: want keys and values; got nothing",
    ],
  },
  {
    name: "patterns and numbers before all routes",
    yaml: `relabel_configs:\n- {action: drop, regex: "(?=a)"}\n- {action: hashmod, target_label: a, modulus: 0}\n${inRoute()}`,
    problems: [
      '2:25: relabel_configs[0].regex: rule 1: want a regular expression of RE2; invalid or unsupported Perl syntax: "(?="',
      "3:47: relabel_configs[1].modulus: rule 2: hashmod wants a modulus above 0",
    ],
  },
  {
    name: "rules of an upstream",
    yaml: 'routes: [{name: r, upstreams: [{name: a, url: "http://a/w", write_relabel_configs: [{action: lowercase, target_label: a, replacement: b}]}]}]',
    problems: [
      "1:135: routes[0].upstreams[0].write_relabel_configs[0].replacement: rule 1: lowercase takes no replacement",
    ],
  },
  {
    name: "a dialect that nobody speaks, alone: in which the rules are meant is not known",
    yaml: [
      "routes:",
      "  - name: r",
      "    relabel_dialect: vm",
      "    relabel_configs: [{action: keep_metrics, regex: a}, {target_label: x, nonsense: 1}]",
      '    upstreams: [{name: a, url: "http://a/w", write_relabel_configs: [{target_label: x, if: up}]},',
      "      {name: b, removed: true}]",
    ].join("\n"),
    problems: ["3:22: routes[0].relabel_dialect: want prometheus or victoriametrics; got vm"],
  },
  {
    name: "what only vmagent knows, in the default dialect",
    yaml: inRoute("relabel_configs: [{action: keep_metrics, regex: a}]"),
    problems: [
      `4:32: routes[0].relabel_configs[0].action: rule 1: want one of ${ACTIONS}; got "keep_metrics", which is vmagent's and wants relabel_dialect: victoriametrics`,
    ],
  },
  {
    name: "what only vmagent knows, before all routes",
    yaml: [
      "relabel_configs:",
      "  - {action: keep_metrics, regex: a}",
      "  - {target_label: x, if: up}",
      "  - {target_label: x, regex: [a]}",
      inRoute("relabel_dialect: victoriametrics"),
    ].join("\n"),
    problems: [
      `2:14: relabel_configs[0].action: rule 1: want one of ${ACTIONS}; got "keep_metrics", ${NOT_GLOBALLY}`,
      `3:27: relabel_configs[1].if: rule 2: Prometheus knows no if, ${NOT_GLOBALLY}`,
      `4:30: relabel_configs[2].regex: rule 3: want text; got a list, ${NOT_GLOBALLY}`,
    ],
  },
  {
    name: "a final route that is neither",
    yaml: inRoute("final: maybe"),
    problems: ["4:12: routes[0].final: want true or false; got maybe"],
  },
];

const TENANTS: readonly BadConfig[] = [
  {
    name: "a tenant without keys and values",
    yaml: inRoute("tenant: X-Scope-OrgID"),
    problems: ["4:13: routes[0].tenant: want keys and values; got text"],
  },
  {
    name: "a typo in tenant",
    yaml: inRoute("tenant: {lable: a}"),
    problems: ["4:14: routes[0].tenant.lable: unknown key; did you mean label?"],
  },
  {
    name: "a tenant in credentials",
    yaml: inRoute("tenant: {header: Authorization, label: a}"),
    problems: ["4:22: routes[0].tenant.header: want a header that holds no credentials; got Authorization"],
  },
  {
    name: "a tenant in a header of the protocol",
    yaml: inRoute("tenant: {header: Content-Type, label: a}"),
    problems: [
      "4:22: routes[0].tenant.header: want a header that HTTP and remote write leave free; got Content-Type",
    ],
  },
  {
    name: "a tenant in no header's name",
    yaml: inRoute("tenant: {header: 'X Team', label: a}"),
    problems: [
      `4:22: routes[0].tenant.header: want a header name of letters, digits and dashes; got "X Team"`,
    ],
  },
  {
    name: "a tenant in an empty header, and both uses wrong",
    yaml: inRoute('tenant: {header: "", label: a-b, pass: "true"}'),
    problems: [
      `4:22: routes[0].tenant.header: want some text; got ""`,
      "4:33: routes[0].tenant.label: want a label name of letters, digits and _, not beginning with a digit; got a-b",
      `4:44: routes[0].tenant.pass: want true or false; got "true"`,
    ],
  },
  {
    name: "a tenant in place of the metric's name",
    yaml: inRoute("tenant: {label: __name__}"),
    problems: [
      "4:21: routes[0].tenant.label: want a label of its own, since __name__ is the metric's name; got __name__",
    ],
  },
  {
    name: "a tenant in place of the task",
    yaml: inRoute("tasks: {}", "tenant: {label: stream_task_id}"),
    problems: [
      "5:21: routes[0].tenant.label: want another label; stream_task_id is the task label of this route",
    ],
  },
  {
    name: "a tenant that is passed where an upstream has a fixed one",
    yaml: [
      "routes:",
      "  - name: r",
      "    tenant: {pass: true}",
      "    upstreams: [{name: a, url: http://a/w, headers: {X-Other: b, x-scope-orgid: hunter2}}]",
    ].join("\n"),
    problems: [
      "4:66: routes[0].upstreams[0].headers.x-scope-orgid: want other headers than the tenant's, which the route passes on (tenant.pass)",
    ],
  },
];

describe("rules, dialects and tenants with errors", () => {
  itTellsAll([...RULES, ...TENANTS]);
});
