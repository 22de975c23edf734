import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { explainFile, explainText, Explainer } from "../../src/cli/explain.ts";
import { configOf } from "../system/gatewayRig.ts";

const folder = mkdtempSync(join(tmpdir(), "explain-"));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const upstreams = (count: number): string =>
  `[${Array.from({ length: count }, (_, i) => `{name: vmagent-${i}, url: "http://127.0.0.1:${9000 + i}/"}`).join()}]`;
const DEFAULT = configOf(`routes: [{name: aggregation, tasks: {count: 128}, upstreams: ${upstreams(3)}}]`);

function linesOf(run: (print: (line: string) => void) => number): string[] {
  const lines: string[] = [];
  expect(run((line) => lines.push(line))).toBe(0);
  return lines;
}

describe("explain of one series", () => {
  it("shows a person key, task, slot, upstream and the labels that leave", () => {
    const lines = linesOf((print) => explainText(DEFAULT, '{__name__="up",job="node"}', false, print));
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
    expect(linesOf((print) => explainText(DEFAULT, '{a="1",a="2"}', false, print))).toEqual([
      '{a="1",a="2"} is refused as it comes in: duplicate_label_name',
    ]);
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

describe("explain of a file", () => {
  it("prints a JSON line for each line", async () => {
    const file = join(folder, "series.ndjson");
    writeFileSync(file, '{"labels":[["__name__","up"]]}\n\n{"labels":[["",""]]}\n');
    const lines: string[] = [];
    expect(await explainFile(DEFAULT, file, (line) => lines.push(line))).toBe(0);
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
    await expect(explainFile(DEFAULT, file, () => undefined)).rejects.toThrow(message);
  });
});
