import { describe, expect, it } from "vitest";
import { loadConfig, parseConfig } from "../../src/config/load.ts";
import type { LoadedConfig, LoadOptions } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";
import type { RouteOptions } from "../../src/route/options.ts";

const FIXTURES = new URL("../fixtures/legacy/", import.meta.url).pathname;

function load(name: string, legacyHash: LoadOptions["legacyHash"] = "jump"): LoadedConfig {
  return loadConfig(FIXTURES + name, { legacyHash, checkRule: faultOf, checkPlacement: placementFault });
}

function parse(yaml: string): LoadedConfig {
  return parseConfig(yaml, "old.yaml", {
    legacyHash: "jump",
    checkRule: faultOf,
    checkPlacement: placementFault,
  });
}

function problemsOf({ problems }: LoadedConfig): string[] {
  return problems.map((problem) => formatProblem(problem).replace(FIXTURES, ""));
}

function namesOf(route: RouteOptions): string[] {
  return route.upstreams.map(({ name }) => name);
}

const ACTIONS =
  "replace, keep, drop, keepequal, dropequal, hashmod, labelmap, labeldrop, labelkeep, lowercase, uppercase";
const CONVERTED =
  "warning: a file of the old Go gateway, converted: it listens on :8080, and has the limits and the delivery of this gateway's defaults; the command convert writes it natively";

describe("an old file with upstreams by the task", () => {
  it("becomes key: task under jump hash", () => {
    const names = [0, 1, 2].map((n) => `monitoring-vmagent-${n}.monitoring-vmagent.monitoring.svc:8429`);
    const { config, origin } = load("by-task.yaml");
    expect(origin).toBe("legacy");
    expect(config?.listen).toEqual({ host: "", port: 8080 });
    expect(config?.routes[0]?.route).toEqual({
      name: "vmagent",
      tenant: { header: "x-scope-orgid", label: null, pass: false },
      relabel: { dialect: "prometheus", rules: [] },
      final: false,
      keyFormat: "flat",
      tasks: { count: 128, label: "stream_task_id", algorithm: "jump", key: { kind: "all" } },
      placement: { key: { kind: "task" }, algorithm: "jump", missingKey: "one_place", replicas: 1 },
      topology: [{ fromMs: null, slots: names.map((name) => ({ name })) }],
      upstreams: names.map((name) => ({ name, writeRelabel: { dialect: "prometheus", rules: [] } })),
      retireAfterMs: 3_600_000,
    });
  });

  it("hashes name and number of the task by modulus, as the published code does, when told to", () => {
    const route = load("by-task.yaml", "hashmod").config?.routes[0]?.route;
    expect(route?.keyFormat).toBe("flat");
    expect(route?.tasks?.algorithm).toBe("hashmod");
    expect(route?.placement).toEqual({
      key: { kind: "by", names: ["stream_task_id"] },
      algorithm: "hashmod",
      missingKey: "one_place",
      replicas: 1,
    });
  });

  it("says what was converted, assumed and ignored", () => {
    const upstreams = [0, 1, 2].map((n) => `monitoring-vmagent-${n}.monitoring-vmagent.monitoring.svc:8429`);
    expect(problemsOf(load("by-task.yaml"))).toEqual([
      `by-task.yaml:2:1: ${CONVERTED}`,
      "by-task.yaml:3:11: warning: global.prefix: ignored: the metrics of this gateway have a prefix of their own",
      "by-task.yaml:5:5: warning: router_rules[0]: converted: 128 tasks by all labels, 3 upstreams by the task; by jump hash in place of the old modulus, so series move once (--legacy-hash hashmod: they stay)",
      `by-task.yaml:13:9: warning: router_rules[0].upstreams.upstream_urls: the upstreams are named ${upstreams.join(", ")}`,
    ]);
  });
});

describe("an old file with several rules", () => {
  it("keeps labels, names and order, and labels no task where there is one upstream", () => {
    const routes = load("by-labels.yaml").config?.routes ?? [];
    expect(
      routes.map(({ route }) => [route.name, route.keyFormat, route.tasks?.count, route.placement.key]),
    ).toEqual([
      ["per job", "flat", 100, { kind: "by", names: ["__name__", "job", "stream_task_id"] }],
      ["全量", "flat", 64, { kind: "all" }],
      ["archive", "flat", undefined, { kind: "all" }],
    ]);
  });

  it("names upstreams after their hosts, longer where a host has several urls", () => {
    const routes = load("by-labels.yaml").config?.routes ?? [];
    expect(routes.map(({ route }) => namesOf(route))).toEqual([
      ["vm-0:8429", "vm-1:8429"],
      ["vm-0:8429", "vm-1:8429/insert/7/prometheus/api/v1/write", "vm-2"],
      ["archive:9090"],
    ]);
  });

  it("turns user and password of a url into basic_auth", () => {
    const upstream = load("by-labels.yaml").config?.routes[1]?.upstreams[2];
    expect(upstream?.url.href).toBe("http://vm-2/api/v1/write");
    expect(upstream?.auth).toEqual({ kind: "basic", username: "reader", password: "s@fe" });
  });

  it("numbers a url that stands more than once, and gives one task where nothing was divided", () => {
    const { config } = load("replaced.yaml");
    expect(config?.routes.map(({ route }) => [route.name, route.tasks?.count, namesOf(route)])).toEqual([
      ["twice", 1, ["kept:8429", "kept:8429-2", "kept:8429-3"]],
    ]);
  });

  it("says which of two rules of one name counts, and what else the old gateway overlooked", () => {
    const problems = problemsOf(load("replaced.yaml"));
    expect(problems).toContain(
      "replaced.yaml:2:5: warning: router_rules[0]: ignored, as by the old gateway: the rule at line 6 has the same router_name",
    );
    expect(problems).toContain(
      "replaced.yaml:4:22: warning: router_rules[0].upstreams.upstream_type: taken for remotewriter, as by the old gateway",
    );
    expect(problems).toContain(
      "replaced.yaml:13:21: warning: router_rules[1].upstreams.kafka_config: ignored, as by the old gateway for remotewriter",
    );
  });
});

describe("an old file with relabel rules", () => {
  it("selects the series of a route by all of them", () => {
    const routes = load("rules.yaml").config?.routes ?? [];
    expect(routes.map(({ route }) => route.relabel.dialect)).toEqual(["prometheus", "prometheus"]);
    expect(routes.map(({ route }) => route.relabel.rules.map(({ action }) => action))).toEqual([
      ["keep", "LabelDrop", null, "hashmod", "drop", "dropequal"],
      ["drop"],
    ]);
    expect(routes[0]?.route.relabel.rules[2]).toMatchObject({
      separator: "",
      regex: "1.0",
      replacement: "1.0",
    });
    expect(routes[0]?.route.relabel.rules[3]?.modulus).toBe(16n);
  });

  it("warns of each that changes labels, and of no other", () => {
    const applied = (line: number, rule: number, action: string): string =>
      `rules.yaml:${line}:9: warning: router_rules[0].metric_relabel_configs[${rule - 1}]: rule ${rule}: applied: ${action} changes labels before they are hashed and sent; in the old gateway only the rules behind it saw that`;
    const problems = problemsOf(load("rules.yaml"));
    expect(problems.filter((problem) => problem.includes("metric_relabel_configs"))).toEqual([
      applied(9, 2, "labeldrop"),
      applied(11, 3, "replace"),
      applied(16, 4, "hashmod"),
    ]);
  });
});

describe("an old file that asks for what this gateway does not do", () => {
  it("is refused with places and paths of the old file", () => {
    const loaded = load("beyond.yaml");
    expect(loaded.origin).toBe("legacy");
    expect(loaded.config).toBeNull();
    const errors = problemsOf(loaded).filter((problem) => !problem.includes("warning"));
    expect(errors).toEqual([
      "beyond.yaml:6:13: router_rules[0].hash_labels.mode: want a whole number; got hashmod",
      "beyond.yaml:18:11: router_rules[0].upstreams.upstream_urls[1]: want a url as http://vmagent-0:8429/api/v1/write; got vm-1:8429",
      "beyond.yaml:21:22: router_rules[1].upstreams.upstream_type: this gateway writes to no Kafka, so what this rule sent there would stop flowing; remove the rule to go on without it",
    ]);
  });

  it.each([
    {
      name: "the keys of the old README",
      yaml: "router_rule: [{router_name: a}]",
      problems: [
        "1:1: router_rules: missing; want a list of rules",
        "1:1: router_rule: unknown key; did you mean router_rules?",
      ],
    },
    {
      name: "no rules",
      yaml: "router_rules: []",
      problems: ["1:15: router_rules: want at least one of the rules; got an empty list"],
    },
    {
      name: "no upstreams",
      yaml: "router_rules: [{router_name: a}]",
      problems: ["1:16: router_rules[0].upstreams.upstream_urls: missing; want a list of urls"],
    },
    {
      name: "a key of later days",
      yaml: "router_rules: [{router_name: a, up_streams: {}, upstreams: {upstream_urls: [http://a/w]}}]",
      problems: ["1:33: router_rules[0].up_streams: unknown key; did you mean upstreams?"],
    },
    {
      name: "more tasks than can be",
      yaml: "router_rules: [{router_name: a, hash_labels: {mode: 4294967296}, upstreams: {upstream_urls: [http://a/w, http://b/w]}}]",
      problems: [
        "1:53: router_rules[0].hash_labels.mode: want at most 2147483647, the most that jump hash can number; got 4294967296",
      ],
    },
    {
      name: "a label that was hashed twice",
      yaml: "router_rules: [{router_name: a, hash_labels: {labels: [job, job]}, upstreams: {upstream_urls: [http://a/w, http://b/w]}}]",
      problems: ["1:61: router_rules[0].hash_labels.labels[1]: want each once; got job again, as at line 1"],
    },
    {
      name: "relabel rules that are no list",
      yaml: "router_rules: [{router_name: a, metric_relabel_configs: {}, upstreams: {upstream_urls: [http://a/w]}}]",
      problems: ["1:57: router_rules[0].metric_relabel_configs: want a list of rules; got a map"],
    },
    {
      name: "relabel rules that the old gateway would not have taken",
      yaml: [
        "router_rules:",
        "  - upstreams: {upstream_urls: [http://a/w]}",
        "    metric_relabel_configs:",
        "      - {action: keep, regx: a}",
        "      - {action: keep_metrics, regex: a}",
        "      - {action: labeldrop, regex: 'a(?=b)'}",
        "      -",
      ].join("\n"),
      problems: [
        "4:24: router_rules[0].metric_relabel_configs[0].regx: rule 1: unknown key; did you mean regex?",
        `5:18: router_rules[0].metric_relabel_configs[1].action: rule 2: want one of ${ACTIONS}; got "keep_metrics", which is vmagent's and wants relabel_dialect: victoriametrics`,
        '6:36: router_rules[0].metric_relabel_configs[2].regex: rule 3: want a regular expression of RE2; invalid or unsupported Perl syntax: "(?="',
        "7:8: router_rules[0].metric_relabel_configs[3]: rule 4: want keys and values; got nothing",
      ],
    },
    {
      name: "user information that is no text",
      yaml: "router_rules: [{router_name: a, upstreams: {upstream_urls: ['http://%ff:hunter2@a/w']}}]",
      problems: [
        "1:61: router_rules[0].upstreams.upstream_urls[0]: want a url without user and password, which go into basic_auth; got one with them",
      ],
    },
  ])("is refused: $name", ({ yaml, problems }) => {
    const errors = problemsOf(parse(yaml)).filter((problem) => !problem.includes("warning"));
    expect(errors).toEqual(problems.map((problem) => `old.yaml:${problem}`));
  });
});

describe("which files are old", () => {
  it.each([
    { name: "rules", yaml: "router_rules: []", origin: "legacy" },
    { name: "rules as the old README spells them", yaml: "router_rule: []", origin: "legacy" },
    { name: "global alone", yaml: "global: {prefix: a}", origin: "legacy" },
    { name: "routes", yaml: "routes: []", origin: "native" },
    { name: "rules and routes", yaml: "routes: []\nrouter_rules: []", origin: "native" },
    { name: "nothing", yaml: "", origin: "native" },
  ])("is told by the keys at the top: $name", ({ yaml, origin }) => {
    expect(parse(yaml).origin).toBe(origin);
  });

  it("needs neither names nor hash labels", () => {
    const { config } = parse(
      "router_rules: [{upstreams: {upstream_urls: [http://a/w, http://b/w]}, metric_relabel_configs: }]",
    );
    expect(config?.routes[0]?.route).toMatchObject({
      name: "unnamed",
      tasks: { count: 1 },
      placement: { key: { kind: "all" } },
    });
  });
});
