import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { check } from "../../src/cli/check.ts";
import { faultOf } from "../../src/relabel/rules.ts";

const EXAMPLES = new URL("../../config/examples/", import.meta.url).pathname;
const OPTIONS = { legacyHash: "jump", checkRule: faultOf } as const;

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "check-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Exit code and printed lines, in which FILE stands for the file. */
function run(yaml: string): { code: number; lines: string[] } {
  const file = join(folder, "config.yaml");
  writeFileSync(file, yaml);
  const lines: string[] = [];
  const code = check(file, OPTIONS, (line) => lines.push(line.replaceAll(file, "FILE")));
  return { code, lines };
}

function upstreams(count: number): string {
  const list = Array.from({ length: count }, (_, i) => `{name: u${i}, url: "http://u${i}/w"}`);
  return `upstreams: [${list.join(", ")}]`;
}

describe("check of a valid file", () => {
  it("says what every route does and how even that is", () => {
    const yaml = [
      'listen: "[::1]:8080"',
      "routes:",
      `  - {name: one, tasks: {count: 128}, ${upstreams(3)}}`,
      `  - {name: two, placement: {key: {by: [job, env]}}, ${upstreams(2)}}`,
      `  - {name: three, tasks: {count: 1, without: [pod]}, placement: {key: series, algorithm: hashmod}, ${upstreams(1)}}`,
    ];
    expect(run(yaml.join("\n"))).toEqual({
      code: 0,
      lines: [
        "FILE: valid; listens on [::1]:8080",
        "route one: pairs keys; 128 tasks in label stream_task_id by all labels (jump); 3 upstreams by the task (jump); the fullest has 1.05 times the average, none without tasks",
        "route two: pairs keys; no tasks; 2 upstreams by labels job, env (jump); how even this is depends on the series",
        "route three: pairs keys; 1 task in label stream_task_id by all labels without pod (jump); 1 upstream by all labels (hashmod); how even this is depends on the series",
      ],
    });
  });

  it("says what rules, final routes and tenants do", () => {
    const keep = "{action: keep, source_labels: [job], regex: a}";
    const yaml = [
      `relabel_configs: [${keep}, ${keep}]`,
      "routes:",
      `  - {name: one, relabel_configs: [${keep}], final: true, tenant: {label: team, pass: true}, ${upstreams(1)}}`,
      "  - name: two",
      "    relabel_dialect: victoriametrics",
      `    metric_relabel_configs: [${keep}, ${keep}]`,
      "    tenant: {header: X-Team, label: team}",
      "    upstreams:",
      `      - {name: a, url: http://a/w, write_relabel_configs: [${keep}]}`,
      "      - {name: b, url: http://b/w}",
      `      - {name: c, url: http://c/w, write_relabel_configs: [${keep}, ${keep}]}`,
      `  - {name: three, tenant: {pass: true}, ${upstreams(1)}}`,
    ];
    const hashed =
      "pairs keys; no tasks; 1 upstream by all labels (jump); how even this is depends on the series";
    expect(run(yaml.join("\n"))).toEqual({
      code: 0,
      lines: [
        "FILE: valid; listens on 127.0.0.1:8080",
        "before all routes: 2 relabel rules (prometheus)",
        `route one: 1 relabel rule (prometheus); final; tenant of header x-scope-orgid in label team and passed to upstreams; ${hashed}`,
        `route two: 2 relabel rules (victoriametrics); tenant of header x-team in label team; write rules: 1 for a, 2 for c; ${hashed.replace("1 upstream", "3 upstreams")}`,
        `route three: tenant of header x-scope-orgid passed to upstreams; ${hashed}`,
      ],
    });
  });

  it("warns of few tasks for each upstream", () => {
    const { code, lines } = run(`routes: [{name: r, tasks: {count: 16}, ${upstreams(3)}}]`);
    expect(code).toBe(0);
    expect(lines.at(-2)).toContain("the fullest has 1.50 times the average");
    expect(lines.at(-1)).toBe(
      "warning: route r: 5.3 tasks for each upstream spread unevenly; want at least 40, here 120 tasks",
    );
  });

  it("does not warn where there is nothing to spread, or no jump hash", () => {
    const { lines } = run(
      `routes: [{name: r, tasks: {count: 2}, ${upstreams(1)}}, {name: s, tasks: {count: 2}, placement: {algorithm: hashmod}, ${upstreams(2)}}]`,
    );
    expect(lines.filter((line) => line.includes("warning"))).toEqual([]);
  });

  it("names upstreams without tasks", () => {
    const { lines } = run(
      `routes: [{name: r, tasks: {count: 2}, placement: {algorithm: hashmod}, ${upstreams(4)}}]`,
    );
    expect(lines.at(-1)).toContain("the fullest has 2.00 times the average, 2 without tasks: u2, u3");
  });

  it("names only some of many upstreams without tasks", () => {
    const { lines } = run(`routes: [{name: r, tasks: {count: 128}, ${upstreams(100)}}]`);
    expect(lines.at(-2)).toMatch(/3\.91 times the average, 24 without tasks: u\d+(, u\d+){9} and 14 more$/);
    expect(lines.at(-1)).toContain("1.3 tasks for each upstream");
  });

  it("does not count two thousand million tasks", () => {
    const { code, lines } = run(`routes: [{name: r, tasks: {count: 2147483647}, ${upstreams(3)}}]`);
    expect(code).toBe(0);
    expect(lines.at(-1)).toContain("balance not counted, more than 1000000 tasks");
  });

  it("says that a file is the old gateway's, with the warnings of its conversion", () => {
    const { code, lines } = run("router_rules: [{router_name: r, upstreams: {upstream_urls: [http://a/w]}}]");
    expect(code).toBe(0);
    expect(lines[0]).toContain("FILE:1:1: warning: a file of the old Go gateway, converted");
    expect(lines.at(-2)).toBe("FILE: valid, a file of the old Go gateway; listens on :8080");
  });
});

describe("check of an example", () => {
  it.each(["all-options.yaml", "by-labels.yaml", "rule-selected-groups.yaml"])(
    "has no warnings: %s",
    (name) => {
      const lines: string[] = [];
      expect(check(EXAMPLES + name, OPTIONS, (line) => lines.push(line))).toBe(0);
      expect(lines.filter((line) => line.includes("warning"))).toEqual([]);
    },
  );
});

describe("check of an invalid file", () => {
  it("prints all problems and exits 1", () => {
    expect(
      run("listen: 1\nshutdown: {grace: 1}\nroutes: [{name: r, upstreams: [], tasks: {count: 0}}]"),
    ).toEqual({
      code: 1,
      lines: [
        "FILE:1:9: listen: want an address as 127.0.0.1:8080, [::1]:8080, or :8080 for all addresses; got 1",
        "FILE:2:19: shutdown.grace: want a duration as 1h30m, 15s or 20ms; got 1",
        "FILE:3:31: routes[0].upstreams: want at least one of the upstreams; got an empty list",
        "FILE:3:50: routes[0].tasks.count: want at least 1; got 0",
        "FILE: invalid, 4 errors",
      ],
    });
  });

  it("does not stumble over a file that is not there", () => {
    const lines: string[] = [];
    expect(check(join(folder, "none.yaml"), OPTIONS, (line) => lines.push(line))).toBe(1);
    expect(lines.at(-1)).toMatch(/none\.yaml: invalid, 1 error$/);
  });
});
