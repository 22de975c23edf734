import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Explainer } from "../../src/explain/explainer.ts";
import { loadConfig, parseConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";

const CONFIG = new URL("../../config/", import.meta.url).pathname;
const OPTIONS = { legacyHash: "jump", checkRule: faultOf, checkPlacement: placementFault } as const;

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "config-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

describe("a file that cannot be read", () => {
  it.each([
    { name: "none", content: null, problem: "1:1: cannot read the file: no such file" },
    {
      name: "not UTF-8",
      content: Buffer.from("a: 1\nb: \xff\n", "latin1"),
      problem: "2:1: cannot read the file: it is not UTF-8 text",
    },
    {
      name: "too large",
      content: Buffer.alloc(1048577, "#"),
      problem: "1:1: cannot read the file: it has 1048577 bytes; want at most 1048576",
    },
  ])("is a problem: $name", ({ content, problem }) => {
    const file = join(folder, "config.yaml");
    if (content !== null) writeFileSync(file, content);
    const { config, problems } = loadConfig(file, OPTIONS);
    expect(problems.map(formatProblem)).toEqual([`${file}:${problem}`]);
    expect(config).toBeNull();
  });

  it("is a problem: a folder", () => {
    expect(loadConfig(folder, OPTIONS).problems.map(formatProblem)).toEqual([
      `${folder}:1:1: cannot read the file: it is not a regular file`,
    ]);
  });
});

describe("the files in config/", () => {
  it("default.yaml is the route of the first start", () => {
    const { config, problems, origin } = loadConfig(join(CONFIG, "default.yaml"), OPTIONS);
    expect(problems).toEqual([]);
    expect(origin).toBe("native");
    expect(config?.listen).toEqual({ host: "127.0.0.1", port: 8080 });
    expect(config?.routes.map(({ route }) => route)).toEqual([
      {
        name: "aggregation",
        tenant: { header: "x-scope-orgid", label: null, pass: false },
        relabel: { dialect: "prometheus", rules: [] },
        final: false,
        keyFormat: "pairs",
        tasks: { count: 128, label: "stream_task_id", algorithm: "jump", key: { kind: "all" } },
        placement: { key: { kind: "task" }, algorithm: "jump", missingKey: "one_place", replicas: 1 },
        topology: [{ fromMs: null, slots: [{ name: "sink-0" }, { name: "sink-1" }, { name: "sink-2" }] }],
        upstreams: ["sink-0", "sink-1", "sink-2"].map((name) => ({
          name,
          writeRelabel: { dialect: "prometheus", rules: [] },
        })),
        retireAfterMs: 3_600_000,
      },
    ]);
    expect(config?.routes[0]?.upstreams.map(({ url }) => url.href)).toEqual([
      "http://127.0.0.1:9201/api/v1/write",
      "http://127.0.0.1:9202/api/v1/write",
      "http://127.0.0.1:9203/api/v1/write",
    ]);
  });

  it("examples/all-options.yaml writes out the defaults", () => {
    const upstream = "upstreams: [{name: vmagent-0, url: http://vmagent-0.vmagent:8429/api/v1/write}]";
    const least = parseConfig(
      `routes: [{name: aggregation, tasks: {}, ${upstream}}]`,
      "least.yaml",
      OPTIONS,
    ).config;
    const { config, problems } = loadConfig(join(CONFIG, "examples/all-options.yaml"), OPTIONS);
    expect(problems).toEqual([]);
    expect({ ...config, routes: [] }).toEqual({ ...least, routes: [] });
    const [full, short] = [config?.routes[0], least?.routes[0]];
    const rest = { topology: [], upstreams: [] };
    expect({ ...full?.route, ...rest }).toEqual({ ...short?.route, ...rest });
    expect(full?.delivery).toEqual(short?.delivery);
  });

  it.each([
    { name: "by-labels.yaml", origin: "native", key: { kind: "by", names: ["cluster", "job"] } },
    { name: "old-gateway.yaml", origin: "legacy", key: { kind: "task" } },
    { name: "migration-before.yaml", origin: "legacy", key: { kind: "task" } },
    { name: "migration-after.yaml", origin: "native", key: { kind: "task" } },
    { name: "migration-next.yaml", origin: "native", key: { kind: "task" } },
    { name: "rule-selected-groups.yaml", origin: "native", key: { kind: "all" } },
    { name: "replicate-to-groups.yaml", origin: "native", key: { kind: "task" } },
  ])("examples/$name is valid", ({ name, origin, key }) => {
    const loaded = loadConfig(join(CONFIG, "examples", name), OPTIONS);
    expect(loaded.origin).toBe(origin);
    expect(loaded.config?.routes[0]?.route.placement.key).toEqual(key);
  });

  it("examples/replicate-to-groups.yaml gives two groups the same series, each placed on its own", () => {
    const { config, problems } = loadConfig(join(CONFIG, "examples/replicate-to-groups.yaml"), OPTIONS);
    expect(problems).toEqual([]);
    if (config === null) throw new Error("no configuration");
    const explainer = new Explainer(config);
    const outcomes = Array.from({ length: 100 }, (_, number) => {
      const series = { __name__: "http_requests_total", instance: `host-${number}`, pod: "p" };
      const explanation = explainer.explain(Object.entries(series));
      const routes = "routes" in explanation ? explanation.routes : [];
      return routes.map(({ labels, task, upstreams = [] }) => ({ labels, task, upstreams }));
    });
    for (const [one, other, ...more] of outcomes) {
      expect(more).toEqual([]);
      expect(one?.labels?.map(([name]) => name)).toEqual(["__name__", "instance", "stream_task_id"]);
      expect({ ...other, upstreams: [] }).toEqual({ ...one, upstreams: [] });
      expect(one?.upstreams).toEqual([expect.stringMatching(/^zone-a-/)]);
      expect(other?.upstreams).toEqual([expect.stringMatching(/^zone-b-/)]);
    }
    const used = new Set(outcomes.flat().flatMap(({ upstreams }) => upstreams));
    expect([...used].sort()).toEqual(["zone-a-0", "zone-a-1", "zone-a-2", "zone-b-0", "zone-b-1"]);
    expect(explainer.explain([["__name__", "up"]])).toMatchObject({ dropped: "no_route" });
  });

  it("examples/rule-selected-groups.yaml gives a tenant, an aggregation and the rest a group each", () => {
    const { config, problems } = loadConfig(join(CONFIG, "examples/rule-selected-groups.yaml"), OPTIONS);
    expect(problems).toEqual([]);
    expect(
      config?.routes.map(({ route }) => [
        route.name,
        route.final,
        route.tenant.label,
        route.tasks?.count,
        route.relabel.rules.map(({ action }) => action),
      ]),
    ).toEqual([
      ["team-a", true, "tenant", undefined, ["keep"]],
      ["aggregation", true, null, 128, ["keep", "labeldrop"]],
      ["raw", false, null, undefined, []],
    ]);
  });
});
