import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { explainFile, explainText } from "../../src/cli/explain.ts";
import { Explainer, type Explanation, type RouteExplanation } from "../../src/explain/explainer.ts";
import { run } from "../../src/cli/program.ts";
import { configOf } from "../system/gatewayRig.ts";

const folder = mkdtempSync(join(tmpdir(), "explain-"));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const upstreams = (count: number): string =>
  `[${Array.from({ length: count }, (_, i) => `{name: vmagent-${i}, url: "http://127.0.0.1:${9000 + i}/"}`).join()}]`;
const DEFAULT = configOf(`routes: [{name: aggregation, tasks: {count: 128}, upstreams: ${upstreams(3)}}]`);

const routesOf = (explanation: Explanation): readonly RouteExplanation[] =>
  "routes" in explanation ? explanation.routes : [];

function linesOf(run: (print: (line: string) => void) => number): string[] {
  const lines: string[] = [];
  expect(run((line) => lines.push(line))).toBe(0);
  return lines;
}

describe("explain of one series", () => {
  it("shows a person key, task, slot, upstream and the labels that leave", () => {
    const lines = linesOf((print) =>
      explainText(DEFAULT, '{__name__="up",job="node"}', { tenant: null, json: false }, print),
    );
    expect(lines).toEqual([
      'up{job="node"}',
      "  route aggregation",
      "    key            1539516280",
      "    task           68",
      "    placement key  68",
      "    slot           1",
      "    upstream       vmagent-1",
      '    forwarded as   up{job="node",stream_task_id="68"}',
    ]);
  });

  it("says why a series is refused at the door", () => {
    expect(
      linesOf((print) => explainText(DEFAULT, '{a="1",a="2"}', { tenant: null, json: false }, print)),
    ).toEqual(['{a="1",a="2"} is refused as it comes in: duplicate_label_name']);
  });
});

describe("explain as JSON", () => {
  it("gives the empty label set task 94 of 128", () => {
    expect(new Explainer(DEFAULT).explain([])).toEqual({
      routes: [
        {
          route: "aggregation",
          labels: [["stream_task_id", "94"]],
          key: 2166136261,
          task: 94,
          placement_key: 94,
          slots: [2],
          upstreams: ["vmagent-2"],
        },
      ],
    });
  });

  it("leaves key and task out where a route has no tasks, and has an object for every route", () => {
    const config = configOf(`
routes:
  - {name: one, tasks: {count: 8}, upstreams: ${upstreams(2)}}
  - {name: two, placement: {key: {by: [job]}}, upstreams: ${upstreams(2)}}
`);
    const explanation = new Explainer(config).explain([["job", "node"]]);
    expect(explanation).toMatchObject({
      routes: [{ route: "one" }, { route: "two", labels: [["job", "node"]] }],
    });
    const second = "routes" in explanation ? explanation.routes[1] : undefined;
    expect(Object.keys(second ?? {})).toEqual(["route", "labels", "placement_key", "slots", "upstreams"]);
  });

  it("overwrites a task label that comes in, wherever it stands, and does not key by it", () => {
    const explainer = new Explainer(DEFAULT);
    const plain = explainer.explain([["__name__", "up"]]);
    expect(
      explainer.explain([
        ["stream_task_id", "5"],
        ["__name__", "up"],
      ]),
    ).toEqual(plain);
  });

  it.each([
    { name: "an empty name", labels: [["", "x"]], refused: "empty_label_name" },
    {
      name: "a name twice",
      labels: [
        ["b", "1"],
        ["a", "1"],
        ["b", "2"],
      ],
      refused: "duplicate_label_name",
    },
    { name: "a lone surrogate", labels: [["a", "\ud800"]], refused: "invalid_utf8" },
  ] as { name: string; labels: [string, string][]; refused: string }[])(
    "refuses $name",
    ({ labels, refused }) => {
      expect(new Explainer(DEFAULT).explain(labels)).toEqual({ refused });
    },
  );

  it("gives old gateway keys the tasks and upstreams of the fixed vectors", () => {
    const { vectors } = JSON.parse(
      readFileSync(new URL("../fixtures/series_key.json", import.meta.url), "utf8"),
    ) as {
      vectors: {
        labels: [string, string][];
        hash: number;
        task: Record<string, number>;
        upstream: Record<string, number>;
      }[];
    };
    const explainer = new Explainer(
      configOf(`
routes: [{name: old, key_format: flat, tasks: {count: 128}, placement: {key: series}, upstreams: ${upstreams(10)}}]
`),
    );
    let explained = 0;
    for (const { labels, hash, task, upstream } of vectors) {
      const explanation = explainer.explain(labels);
      // The vectors also hold label sets that are refused at the door, such as names that occur twice, and a task label,
      // which is no part of a key here.
      if ("refused" in explanation || labels.some(([name]) => name === "stream_task_id")) continue;
      explained += 1;
      expect(explanation.routes[0], JSON.stringify(labels)).toMatchObject({
        key: hash,
        task: task["128"],
        placement_key: hash,
        slots: [upstream["10"]],
      });
    }
    expect(explained).toBeGreaterThan(vectors.length / 2);
  });
});

/** Rules at every place that takes them, and a route for each way to lose a series. */
const WITH_RULES = configOf(`
limits: {max_labels: 3, max_label_name_bytes: 20, max_label_value_bytes: 20}
relabel_configs:
  - {source_labels: [job], regex: unwanted, action: DROP}
  - {source_labels: [job], regex: api-.*, target_label: job, replacement: api}
routes:
  - name: aggregation
    tenant: {label: tenant}
    relabel_configs:
      - {source_labels: [job], regex: api, action: keep}
      - {regex: pod, action: labeldrop}
    tasks: {count: 16, label: task}
    upstreams:
      - name: one
        url: http://127.0.0.1:1/
        write_relabel_configs:
          - {source_labels: [tenant], regex: secret, action: drop}
          - {source_labels: [__name__], regex: nameless, target_label: __name__, replacement: ""}
          - {source_labels: [tenant], regex: (.+), target_label: team}
  - name: lossy
    relabel_configs:
      - {source_labels: [job], regex: lossy-.*, action: keep}
      - {source_labels: [job], regex: lossy-name, target_label: __name__, replacement: ""}
      - {source_labels: [job], regex: lossy-value, target_label: v, replacement: 123456789012345678901}
      - {source_labels: [job], regex: lossy-label, target_label: a123456789012345678901, replacement: x}
      - {source_labels: [job], regex: lossy-many, target_label: v1, replacement: x}
      - {source_labels: [job], regex: lossy-many, target_label: v2, replacement: x}
    upstreams: [{name: two, url: "http://127.0.0.1:2/"}]
  - name: bare
    relabel_configs:
      - {source_labels: [job], regex: bare, action: keep}
      - {regex: none, action: labelkeep}
    upstreams: [{name: three, url: "http://127.0.0.1:3/"}]
`);

describe("explain under a configuration with rules", () => {
  const explainer = new Explainer(WITH_RULES);
  const series = (labels: Record<string, string>): [string, string][] => Object.entries(labels);

  it("tells what each rule did, where the tenant and the task come in, and what leaves", () => {
    expect(explainer.explain(series({ __name__: "up", job: "api-1", pod: "p" }), "team-a")).toEqual({
      relabel_configs: [
        { rule: 1, action: "drop", labels: series({ __name__: "up", job: "api-1", pod: "p" }) },
        { rule: 2, action: "replace", labels: series({ __name__: "up", job: "api", pod: "p" }) },
      ],
      routes: [
        {
          route: "aggregation",
          tenant_label: series({ __name__: "up", job: "api", pod: "p", tenant: "team-a" }),
          relabel_configs: [
            {
              rule: 1,
              action: "keep",
              labels: series({ __name__: "up", job: "api", pod: "p", tenant: "team-a" }),
            },
            {
              rule: 2,
              action: "labeldrop",
              labels: series({ __name__: "up", job: "api", tenant: "team-a" }),
            },
          ],
          write_relabel_configs: [1, 2, 3].map((rule) => ({
            rule,
            action: rule === 1 ? "drop" : "replace",
            labels: series({
              __name__: "up",
              job: "api",
              task: "3",
              ...(rule === 3 ? { team: "team-a" } : {}),
              tenant: "team-a",
            }),
          })),
          labels: series({ __name__: "up", job: "api", task: "3", team: "team-a", tenant: "team-a" }),
          key: 226049569,
          task: 3,
          placement_key: 3,
          slots: [0],
          upstreams: ["one"],
        },
        {
          route: "lossy",
          relabel_configs: [{ rule: 1, action: "keep", dropped: true }],
          selected: false,
        },
        {
          route: "bare",
          relabel_configs: [{ rule: 1, action: "keep", dropped: true }],
          selected: false,
        },
      ],
    });
  });

  it("shows all of it to a person", () => {
    const text = '{__name__="up",job="api-1",pod="p"}';
    expect(
      linesOf((print) => explainText(WITH_RULES, text, { tenant: "team-a", json: false }, print)),
    ).toEqual([
      'up{job="api-1",pod="p"}',
      "  global rule 1 drop     changes nothing",
      '  global rule 2 replace  up{job="api",pod="p"}',
      "  route aggregation",
      '    tenant label   up{job="api",pod="p",tenant="team-a"}',
      "    rule 1 keep       changes nothing",
      '    rule 2 labeldrop  up{job="api",tenant="team-a"}',
      "    key            226049569",
      "    task           3",
      "    placement key  3",
      "    slot           0",
      "    upstream       one",
      '    write rule 1 drop     up{job="api",task="3",tenant="team-a"}',
      "    write rule 2 replace  changes nothing",
      '    write rule 3 replace  up{job="api",task="3",team="team-a",tenant="team-a"}',
      '    forwarded as   up{job="api",task="3",team="team-a",tenant="team-a"}',
      "  route lossy",
      "    rule 1 keep  drops the series",
      "    not selected",
      "  route bare",
      "    rule 1 keep  drops the series",
      "    not selected",
    ]);
  });

  it("takes the tenant's label away where the request names none", () => {
    const labels = series({ __name__: "up", job: "api", tenant: "forged" });
    const [route] = routesOf(explainer.explain(labels));
    expect(route?.tenant_label).toEqual(series({ __name__: "up", job: "api" }));
    expect(route?.labels?.map(([name]) => name)).toEqual(["__name__", "job", "task"]);
  });

  it.each([
    {
      name: "dropped by a global rule",
      job: "unwanted",
      dropped: "relabel_configs",
      step: /global rule 1 drop\s+drops/,
    },
    {
      name: "kept by no route",
      job: "stranger",
      dropped: "no_route",
      step: /rule 1 keep {2}drops the series/,
    },
  ])("says of a series that it is $name", ({ job, dropped, step }) => {
    const labels = series({ __name__: "up", job });
    expect(explainer.explain(labels)).toMatchObject({ dropped });
    const lines = linesOf((print) =>
      explainText(WITH_RULES, `up{job="${job}"}`, { tenant: null, json: false }, print),
    );
    expect(lines.at(-1)).toBe(`  dropped: ${dropped}`);
    expect(lines.join("\n")).toMatch(step);
  });

  const DROPS = [
    { labels: { __name__: "up", job: "lossy-name" }, dropped: "no_metric_name", isPlaced: false },
    { labels: { __name__: "up", job: "lossy-value" }, dropped: "label_value_too_long", isPlaced: false },
    { labels: { __name__: "up", job: "lossy-label" }, dropped: "label_name_too_long", isPlaced: false },
    { labels: { __name__: "up", job: "lossy-many" }, dropped: "too_many_labels", isPlaced: false },
    { labels: { __name__: "up", job: "bare" }, dropped: "no_labels", isPlaced: false },
    { labels: { __name__: "nameless", job: "api" }, dropped: "no_metric_name", isPlaced: true },
    {
      labels: { __name__: "up", job: "api" },
      tenant: "secret",
      dropped: "write_relabel_configs",
      isPlaced: true,
    },
  ].map((each) => ({ tenant: null, ...each, name: `${each.dropped}, placed before: ${each.isPlaced}` }));

  it.each(DROPS)(
    "says why a route drops what it has selected: $name",
    ({ labels, tenant, dropped, isPlaced }) => {
      const found = routesOf(explainer.explain(series(labels), tenant)).filter(
        (route) => route.selected !== false,
      );
      expect(found).toHaveLength(1);
      expect(found[0]).toMatchObject({ dropped });
      expect(found[0]).not.toHaveProperty("labels");
      expect(found[0]?.upstreams !== undefined).toBe(isPlaced);
      const text = `{${series(labels)
        .map(([name, value]) => `${name}="${value}"`)
        .join()}}`;
      const lines = linesOf((print) => explainText(WITH_RULES, text, { tenant, json: false }, print));
      expect(lines).toContain(`    dropped: ${dropped}`);
      expect(lines.filter((line) => line.includes("forwarded as"))).toEqual([]);
    },
  );

  const WITH_FINAL = configOf(`
routes:
  - {name: others, final: true, relabel_configs: [{source_labels: [job], regex: z, action: keep}], upstreams: ${upstreams(1)}}
  - name: first
    final: true
    relabel_configs:
      - {source_labels: [job], regex: "a|lost", action: keep}
      - {source_labels: [job], regex: lost, target_label: __name__, replacement: ""}
    upstreams: ${upstreams(1)}
  - {name: second, final: true, relabel_configs: [{target_label: x, replacement: y}], upstreams: ${upstreams(1)}}
  - {name: third, upstreams: ${upstreams(1)}}
`);

  it.each([
    { name: "sends on", job: "a" },
    { name: "then drops for what its rules made of it", job: "lost" },
  ])("names the final route behind which none is asked for a series that it $name", ({ job }) => {
    const routes = routesOf(new Explainer(WITH_FINAL).explain(series({ __name__: "up", job })));
    expect(routes.map(({ final }) => final)).toEqual([undefined, undefined, "first", "first"]);
    expect(routes.slice(2)).toEqual([
      { route: "second", selected: false, final: "first" },
      { route: "third", selected: false, final: "first" },
    ]);
    const lines = linesOf((print) =>
      explainText(WITH_FINAL, `up{job="${job}"}`, { tenant: null, json: false }, print),
    );
    expect(lines.slice(-4)).toEqual([
      "  route second",
      "    not selected: route first is final and kept it",
      "  route third",
      "    not selected: route first is final and kept it",
    ]);
    expect(lines).toContain("    not selected");
  });

  it("asks the routes behind a final one that does not select the series", () => {
    const routes = routesOf(new Explainer(WITH_FINAL).explain(series({ job: "b" })));
    expect(routes[2]?.labels).toEqual(series({ job: "b", x: "y" }));
    expect(routes.map(({ final }) => final)).toEqual([undefined, undefined, undefined, "second"]);
  });

  it("gives the same as JSON on the command line", () => {
    const [line = ""] = linesOf((print) =>
      explainText(WITH_RULES, 'up{job="api"}', { tenant: "team-a", json: true }, print),
    );
    const explanation = explainer.explain(series({ __name__: "up", job: "api" }), "team-a");
    expect(JSON.parse(line)).toEqual(explanation);
  });
});

describe("explain under a configuration with replicas", () => {
  const config = configOf(`
routes:
  - name: twice
    placement: {replicas: 2}
    upstreams:
      - name: a
        url: http://127.0.0.1:1/
        write_relabel_configs:
          - {source_labels: [job], regex: secret, action: drop}
          - {target_label: at, replacement: a}
      - {name: b, url: "http://127.0.0.1:2/"}
`);
  const explainer = new Explainer(config);
  const labelled = (job: string, at?: string): [string, string][] => [
    ["__name__", "up"],
    ...(at === undefined ? [] : [["at", at] as [string, string]]),
    ["job", job],
  ];
  const stepsAt = (job: string): object[] =>
    job === "secret"
      ? [{ rule: 1, action: "drop", dropped: true }]
      : [
          { rule: 1, action: "drop", labels: labelled(job) },
          { rule: 2, action: "replace", labels: labelled(job, "a") },
        ];

  it.each(["api", "secret"])("shows all upstreams, and what becomes of the copy for each: %s", (job) => {
    const [route] = routesOf(explainer.explain(labelled(job)));
    const { slots = [], upstreams: names = [] } = route ?? {};
    expect(slots.toSorted()).toEqual([0, 1]);
    expect(names).toEqual(slots.map((slot) => (slot === 0 ? "a" : "b")));
    const copies = [
      {
        slot: 0,
        upstream: "a",
        write_relabel_configs: stepsAt(job),
        ...(job === "secret" ? { dropped: "write_relabel_configs" } : { labels: labelled(job, "a") }),
      },
      { slot: 1, upstream: "b", labels: labelled(job) },
    ];
    expect(route?.copies).toEqual(slots.map((slot) => copies[slot]));
    expect(route).not.toHaveProperty("labels");
    expect(route).not.toHaveProperty("dropped");
  });

  it("shows them to a person", () => {
    const first = routesOf(explainer.explain(labelled("api")))[0]?.slots?.[0];
    const lines = linesOf((print) =>
      explainText(config, 'up{job="api"}', { tenant: null, json: false }, print),
    );
    const copies = [
      [
        "    copy for a",
        '      write rule 1 drop     up{job="api"}',
        '      write rule 2 replace  up{at="a",job="api"}',
        '      forwarded as   up{at="a",job="api"}',
      ],
      ["    copy for b", '      forwarded as   up{job="api"}'],
    ];
    expect(lines.slice(3)).toEqual([
      `    slots          ${first === 0 ? "0, 1" : "1, 0"}`,
      `    upstreams      ${first === 0 ? "a, b" : "b, a"}`,
      ...(first === 0 ? copies : copies.toReversed()).flat(),
    ]);
  });
});

describe("explain under a configuration with topology periods", () => {
  const NOON = Date.UTC(2026, 11, 1, 12);
  const config = configOf(`
routes:
  - name: growing
    tasks: {count: 128}
    topology:
      - upstreams: ${upstreams(3)}
      - {from: 2026-12-01T12:00:00Z, upstreams: [name: vmagent-0, {name: vmagent-1, removed: true}, name: vmagent-2, {name: vmagent-3, url: "http://127.0.0.1:9003/"}]}
      - {from: 2026-12-02T12:00:00Z, upstreams: [name: vmagent-0]}
  - {name: steady, tasks: {count: 128}, upstreams: ${upstreams(3)}}
`);
  const labels = [
    ["__name__", "up"],
    ["job", "node"],
  ] as const;

  it.each([
    { name: "long ago", at: 0, from: null, until: "2026-12-01T12:00:00Z", upstream: "vmagent-1" },
    {
      name: "just before a border",
      at: NOON - 1,
      from: null,
      until: "2026-12-01T12:00:00Z",
      upstream: "vmagent-1",
    },
    {
      name: "at it",
      at: NOON,
      from: "2026-12-01T12:00:00Z",
      until: "2026-12-02T12:00:00Z",
      upstream: "vmagent-2",
    },
    {
      name: "by default, in the newest period",
      at: undefined,
      from: "2026-12-02T12:00:00Z",
      until: null,
      upstream: "vmagent-0",
    },
  ])("tells the period of the time that is asked about: $name", ({ at, from, until, upstream }) => {
    const [growing, steady] = routesOf(new Explainer(config).explain(labels, null, at));
    expect(growing).toMatchObject({ task: 68, period: { from, until }, upstreams: [upstream] });
    expect(steady).toMatchObject({ task: 68, upstreams: ["vmagent-1"] });
    expect(steady).not.toHaveProperty("period");
  });

  it.each([
    { name: "as long as it is sent what is late", now: NOON + 3_600_000 - 1, dropped: undefined },
    { name: "when retire_after is over", now: NOON + 3_600_000, dropped: "period_retired" },
  ])("tells of an upstream of past periods, $name", ({ now, dropped }) => {
    const [growing] = routesOf(new Explainer(config, now).explain(labels, null, 0));
    expect([growing?.upstreams, growing?.dropped]).toEqual([["vmagent-1"], dropped]);
    expect(growing?.labels === undefined).toBe(dropped !== undefined);
  });

  it("shows a person that what comes now for an upstream of past periods is dropped", () => {
    const past = configOf(`
routes:
  - name: r
    topology:
      - upstreams: ${upstreams(1)}
      - {from: 2020-01-01T00:00:00Z, upstreams: [{name: z, url: "http://127.0.0.1:9009/"}]}
`);
    const lines = linesOf((print) => explainText(past, "up", { tenant: null, atMs: 0, json: false }, print));
    expect(lines.slice(-2)).toEqual(["    upstream       vmagent-0", "    dropped: period_retired"]);
  });

  it("shows a person its slots, and that of the command line's time", async () => {
    const lines = linesOf((print) =>
      explainText(config, '{__name__="up",job="node"}', { tenant: null, atMs: NOON, json: false }, print),
    );
    expect(lines.slice(0, 8)).toEqual([
      'up{job="node"}',
      "  route growing",
      "    key            1539516280",
      "    task           68",
      "    period         from 2026-12-01T12:00:00Z until 2026-12-02T12:00:00Z: vmagent-0, -vmagent-1, vmagent-2, vmagent-3",
      "    placement key  68",
      "    slot           2",
      "    upstream       vmagent-2",
    ]);
    const file = join(folder, "periods.yaml");
    writeFileSync(
      file,
      `routes: [{name: r, topology: [{upstreams: ${upstreams(1)}}, {from: 2026-12-01T12:00:00Z, upstreams: [{name: z, url: "http://z/w"}]}]}]`,
    );
    const printed: string[] = [];
    const write = vi
      .spyOn(process.stdout, "write")
      .mockImplementation((text) => printed.push(String(text)) > 0);
    const codes = [];
    for (const at of ["2026-12-01T11:59:59.999Z", "2026-12-01T12:00:00Z"]) {
      codes.push(await run(["explain", "--config", file, "--json", "--at", at, "up"]));
    }
    write.mockRestore();
    expect(codes).toEqual([0, 0]);
    expect(printed.map((line) => routesOf(JSON.parse(line) as Explanation)[0]?.upstreams)).toEqual([
      ["vmagent-0"],
      ["z"],
    ]);
  });
});

describe("explain of a file", () => {
  it("takes the tenant for all its lines", async () => {
    const file = join(folder, "tenants.ndjson");
    const line = '{"labels":[["__name__","up"],["job","api"]]}';
    writeFileSync(file, `${line}\n${line}\n`);
    const lines: string[] = [];
    expect(await explainFile(WITH_RULES, file, { tenant: "team-a" }, (text) => lines.push(text))).toBe(0);
    const explanation = new Explainer(WITH_RULES).explain(
      [
        ["__name__", "up"],
        ["job", "api"],
      ],
      "team-a",
    );
    expect(lines.map((text) => JSON.parse(text) as unknown)).toEqual([explanation, explanation]);
  });

  it("prints a JSON line for each line", async () => {
    const file = join(folder, "series.ndjson");
    writeFileSync(file, '{"labels":[["__name__","up"]]}\n\n{"labels":[["",""]]}\n');
    const lines: string[] = [];
    expect(await explainFile(DEFAULT, file, { tenant: null }, (line) => lines.push(line))).toBe(0);
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      new Explainer(DEFAULT).explain([["__name__", "up"]]),
      { refused: "empty_label_name" },
    ]);
  });

  it.each([
    { name: "no JSON", line: "{labels}", message: /:2: not JSON/ },
    {
      name: "another shape",
      line: '{"labels":{"a":"b"}}',
      message: /:2: want {"labels":\[\["name","value"\],...\]}, got/,
    },
  ])("names the line with $name", async ({ line, message }) => {
    const file = join(folder, "bad.ndjson");
    writeFileSync(file, `{"labels":[]}\n${line}\n`);
    await expect(explainFile(DEFAULT, file, { tenant: null }, () => undefined)).rejects.toThrow(message);
  });
});
