import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { check } from "../../src/cli/check.ts";
import { keepKnown } from "../../src/cli/knownTopology.ts";
import { run as command } from "../../src/cli/program.ts";
import { loadConfig } from "../../src/config/load.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";

const EXAMPLES = new URL("../../config/examples/", import.meta.url).pathname;
const OPTIONS = {
  legacyHash: "jump",
  checkRule: faultOf,
  checkPlacement: placementFault,
  against: null,
  nowMs: Date.UTC(2026, 5, 1),
} as const;

let folder = "";

// The spool's folder, in which a start keeps what it runs with, is in the one that the command runs in.
const REPOSITORY = process.cwd();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "check-"));
  process.chdir(folder);
});

afterEach(() => {
  process.chdir(REPOSITORY);
  rmSync(folder, { recursive: true });
});

/** Exit code and printed lines, in which FILE stands for the file, and OLD for the one that ran before. */
function run(yaml: string, before: string | null = null): { code: number; lines: string[] } {
  const [file, old] = [join(folder, "config.yaml"), join(folder, "before.yaml")];
  writeFileSync(file, yaml);
  if (before !== null) writeFileSync(old, before);
  const lines: string[] = [];
  const code = check(file, { ...OPTIONS, against: before === null ? null : old }, (line) =>
    lines.push(line.replaceAll(file, "FILE").replaceAll(old, "OLD")),
  );
  return { code, lines };
}

/** A file with a route of upstreams by their names: "-b" is a tombstone, "c*2" has a weight. */
function routeOver(names: string, options = "placement: {algorithm: jump}"): string {
  const list = names.split(" ").map((text) => {
    const [, removed = "", name = "", weight] = /^(-?)([\w-]+)(?:\*(\d+))?$/.exec(text) ?? [];
    const state = removed === "" ? "" : ", removed: true";
    return `{name: "${name}", url: "http://${name}/w"${state}${weight === undefined ? "" : `, weight: ${weight}`}}`;
  });
  return `routes: [{name: r, ${options}, upstreams: [${list.join(", ")}]}]`;
}

/** What is said of the change from one file to another. */
function change(before: string, now: string): string[] {
  const { code, lines } = run(now, before);
  expect(code).toBe(0);
  return lines.slice(lines.findIndex((line) => line.includes("against OLD")));
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

describe("check of placement", () => {
  const evenness = "how even this is depends on the series";

  it.each([
    { name: "jump", options: "algorithm: jump", text: "jump" },
    { name: "rendezvous", options: "algorithm: rendezvous", text: "rendezvous" },
    { name: "ring", options: "algorithm: ring, ring: {hash: fnv1a}", text: "ring, 160 points of fnv1a" },
    { name: "maglev", options: "algorithm: maglev", text: "maglev, a table of 65537" },
    { name: "multi_probe", options: "algorithm: multi_probe", text: "multi_probe, 21 probes" },
    {
      name: "multi_probe of one probe",
      options: "algorithm: multi_probe, multi_probe: {probes: 1}",
      text: "multi_probe, 1 probe",
    },
  ])("says the algorithm with its options: $name", ({ options, text }) => {
    const { lines } = run(routeOver("a b", `placement: {${options}}`));
    expect(lines.at(-1)).toBe(
      `route r: pairs keys; no tasks; 2 upstreams by all labels (${text}); ${evenness}`,
    );
  });

  it("says weights and tombstones", () => {
    const { lines } = run(routeOver("a*2 -b c -d*3", "placement: {algorithm: ring}"));
    expect(lines.at(-1)).toBe(
      "route r: pairs keys; no tasks; 2 upstreams by all labels (ring, 160 points of md5); weights: a 2, d 3; " +
        `2 of 4 upstreams removed: b, d; ${evenness}`,
    );
  });

  it.each([
    { algorithm: "jump", text: "the fullest has 1.33 times the average, none without tasks" },
    { algorithm: "balanced", text: "the fullest has 1.02 times the average, none without tasks" },
    { algorithm: "hashmod", text: "the fullest has 1.02 times the average, none without tasks" },
  ])("says how even the tasks are: $algorithm", ({ algorithm, text }) => {
    const names = "a b c d e f g h i j";
    const { lines } = run(routeOver(names, `tasks: {}, placement: {algorithm: ${algorithm}}`));
    expect(lines.find((line) => line.startsWith("route r"))).toContain(text);
  });

  it.each(["ring", "maglev", "rendezvous", "multi_probe"])("says how even the tasks are: %s", (algorithm) => {
    const { lines } = run(routeOver("a b c", `tasks: {count: 10000}, placement: {algorithm: ${algorithm}}`));
    expect(lines.at(-1)).toMatch(/the fullest has 1\.\d\d times the average, none without tasks$/);
  });

  it("has a line for each period of a topology, and what moves at each border", () => {
    const grown = [
      "routes:",
      "  - name: r",
      "    tasks: {count: 128}",
      "    topology:",
      '      - upstreams: [{name: a, url: "http://a/w"}, {name: b, url: "http://b/w"}, {name: c, url: "http://c/w"}]',
      '      - {from: 2026-12-01T12:00:00Z, upstreams: [name: a, name: b, name: c, {name: d, url: "http://d/w"}]}',
      "      - {from: 2026-12-02T12:00:00Z, upstreams: [name: b, name: c, name: d]}",
    ].join("\n");
    const { code, lines } = run(grown);
    expect(code).toBe(0);
    const [, route, first, second, third, border, renumbered, remedy, ...more] = lines;
    expect(more).toEqual([]);
    expect(route).toBe(
      "route r: pairs keys; 128 tasks in label stream_task_id by all labels (jump); 3 periods",
    );
    expect(first).toBe(
      "  until 2026-12-01T12:00:00Z: 3 upstreams by the task (jump); the fullest has 1.05 times the average, none without tasks",
    );
    expect(second).toMatch(
      /^ {2}from 2026-12-01T12:00:00Z until 2026-12-02T12:00:00Z: 4 upstreams by the task/,
    );
    expect(third).toMatch(/^ {2}from 2026-12-02T12:00:00Z: 3 upstreams by the task/);
    expect(border).toMatch(
      /^route r against the period before, from 2026-12-01T12:00:00Z on: added d; \d\d\.\d % of its tasks move; only keys of these/,
    );
    expect(renumbered).toMatch(
      /^warning: route r against the period before, from 2026-12-02T12:00:00Z on: taken out a; jump goes by number/,
    );
    expect(remedy).toMatch(/^ {2}write at the top of the list/);
  });

  it("warns of a new period that begins before now, and not of one to come", () => {
    const before = 'routes: [{name: r, upstreams: [{name: a, url: "http://a/w"}]}]';
    const since = (from: string): string =>
      `routes: [{name: r, topology: [{upstreams: [{name: a, url: "http://a/w"}]}, {from: ${from}, upstreams: [name: a, {name: b, url: "http://b/w"}]}]}]`;
    const warnings = (from: string): string[] =>
      run(since(from), before).lines.filter((line) => line.startsWith("warning: "));
    expect(warnings("2026-06-02T00:00:00Z")).toEqual([]);
    expect(warnings("2026-05-31T00:00:00Z")).toEqual([
      "warning: route r: the period from 2026-05-31T00:00:00Z is new and begins in the past: what was sent since then stays where it is, so aggregation windows between then and now are split; want a time to come",
    ]);
  });

  it("counts tasks and live upstreams, not tombstones", () => {
    const { lines } = run(routeOver("a -b", "tasks: {count: 60}"));
    expect(lines.at(-1)).toContain(
      "1 of 2 upstreams removed: b; the fullest has 1.00 times the average, none without tasks",
    );
    const { lines: ofTwo } = run(routeOver("a -b c", "tasks: {count: 60}"));
    expect(ofTwo.at(-1)).toBe(
      "warning: route r: 30.0 tasks for each upstream spread unevenly; want at least 40, here 80 tasks",
    );
  });

  it("says how many upstreams each series has, and how even all copies are", () => {
    const { lines } = run(routeOver("a b c d -e", "tasks: {count: 80}, placement: {replicas: 2}"));
    expect(lines.at(-1)).toMatch(
      /; each series on 2 of 4 upstreams by the task \(jump\); 1 of 5 upstreams removed: e; the fullest has 1\.\d\d times the average, none without tasks$/,
    );
    const { lines: untasked } = run(routeOver("a b c", "placement: {algorithm: ring, replicas: 2}"));
    expect(untasked.at(-1)).toContain(
      "each series on 2 of 3 upstreams by all labels (ring, 160 points of md5)",
    );
  });

  it("counts the copies where it warns of few tasks, but not where every upstream has all of them", () => {
    const of = (names: string, algorithm: string, count: number, replicas: number): string | undefined =>
      run(
        routeOver(
          names,
          `tasks: {count: ${count}}, placement: {algorithm: ${algorithm}, replicas: ${replicas}}`,
        ),
      ).lines.at(-1);
    for (const algorithm of ["jump", "balanced"]) {
      expect(of("a b c d", algorithm, 79, 2)).toBe(
        "warning: route r: 39.5 tasks for each upstream spread unevenly; want at least 40, here 80 tasks",
      );
      expect(of("a b c d", algorithm, 80, 2)).toContain("none without tasks");
      expect(of("a b", algorithm, 2, 2)).toContain(
        "the fullest has 1.00 times the average, none without tasks",
      );
    }
    expect(of("a b c d e f g h i j k l", "rendezvous", 8, 2)).toBe(
      "warning: route r: 8 tasks spread unevenly over these 12 upstreams; want more tasks",
    );
  });

  it("does not count two thousand million copies of tasks", () => {
    const { lines } = run(routeOver("a b c", "tasks: {count: 600000}, placement: {replicas: 2}"));
    expect(lines.at(-1)).toContain("balance not counted, more than 1000000 copies of tasks");
  });

  it("refuses more replicas than upstreams, with the place in the file", () => {
    const yaml = routeOver("a b -c", "placement: {replicas: 3}");
    const { code, lines } = run(yaml);
    expect(code).toBe(1);
    expect(lines[0]).toBe(
      `FILE:1:${yaml.indexOf("3}") + 1}: routes[0].placement.replicas: 3 replicas of each key want as many live slots, and there are 2: add slots or lower replicas`,
    );
  });

  it("warns of fewer than ten tasks for each upstream under balanced", () => {
    const balanced = (count: number): string | undefined =>
      run(routeOver("a b c", `tasks: {count: ${count}}, placement: {algorithm: balanced}`)).lines.at(-1);
    expect(balanced(29)).toBe(
      "warning: route r: 9.7 tasks for each upstream spread unevenly; want at least 10, here 30 tasks",
    );
    expect(balanced(30)).toContain("the fullest has 1.00 times the average");
  });

  it("warns of upstreams that get much more than others by their names", () => {
    const rendezvous = (names: string, count: number): string | undefined =>
      run(routeOver(names, `tasks: {count: ${count}}, placement: {algorithm: rendezvous}`)).lines.at(-1);
    expect(rendezvous("a b c d e f g h", 16)).toBe(
      "warning: route r: 16 tasks spread unevenly over these 8 upstreams; want more tasks, or algorithm: balanced, which gives every upstream as many",
    );
    expect(rendezvous("a b c d e f g h", 4096)).not.toContain("warning");
    expect(rendezvous("a*30 b c d e f g h", 4096)).not.toContain("warning");
  });
});

describe("check against the file that ran before", () => {
  it("says that nothing moves", () => {
    expect(change(routeOver("a b c"), routeOver("a b c"))).toEqual(["route r against OLD: nothing moves"]);
  });

  it("warns of numbers that change, and says how to write the tombstone", () => {
    expect(change(routeOver("a b c d"), routeOver("a c d"))).toEqual([
      expect.stringMatching(
        /^warning: route r against OLD: taken out b; jump goes by number, and numbers change: c is 1 and was 2, d is 2 and was 3; \d\d\.\d % of its keys move$/,
      ),
      "  write behind a in the list, so that those behind it keep their numbers: - {name: b, removed: true}",
    ]);
  });

  it("says what else to write: a tombstone at the top, what is new at the end, the old order", () => {
    const lines = change(routeOver("a null b c d"), routeOver("x d c").replace('"x"', "x:1"));
    expect(lines.slice(1)).toEqual([
      "  write in this order, as before: x:1, c, d",
      '  write behind x:1 in the list, so that those behind it keep their numbers: - {name: "null", removed: true}',
      "  write behind null in the list, so that those behind it keep their numbers: - {name: b, removed: true}",
    ]);
    expect(change(routeOver("a b"), routeOver("b")).slice(1)).toEqual([
      "  write at the top of the list, so that those behind it keep their numbers: - {name: a, removed: true}",
    ]);
    expect(change(routeOver("a b"), routeOver("a x b")).slice(1)).toEqual([
      "  write at the end of the list: x",
    ]);
  });

  it("has remedies that are valid, and move less", () => {
    const before = routeOver("a b c d");
    const [, remedy = ""] = change(before, routeOver("a c d"));
    const line = /- (\{.*\})$/.exec(remedy)?.[1] ?? "";
    const remedied = before.replace(/\{name: "b"[^}]*\}/, line);
    expect(change(before, remedied)).toEqual([
      expect.stringMatching(
        /^route r against OLD: removed b; 2[45]\.\d % of its keys move; only keys of these upstreams do, since no number changes$/,
      ),
    ]);
  });

  it.each(["jump", "hashmod", "balanced"])("warns of numbers under %s", (algorithm) => {
    const options = `tasks: {}, placement: {algorithm: ${algorithm}}`;
    const [line] = change(routeOver("a b c", options), routeOver("b c", options));
    expect(line).toContain(`warning: route r against OLD: taken out a; ${algorithm} goes by number`);
    expect(line).toMatch(/ % of its tasks move$/);
  });

  it.each(["ring", "rendezvous", "multi_probe"])(
    "says that only keys of named upstreams move: %s",
    (algorithm) => {
      const options = `placement: {algorithm: ${algorithm}}`;
      expect(change(routeOver("a b c d", options), routeOver("x c a -d", options))).toEqual([
        expect.stringMatching(
          new RegExp(
            `^route r against OLD: added x; taken out b; removed d; [\\d.]+ % of its keys move; only keys of these upstreams do, since ${algorithm} goes by name$`,
          ),
        ),
      ]);
    },
  );

  it("says that maglev moves a few others", () => {
    const options = "placement: {algorithm: maglev}";
    expect(change(routeOver("a b c d", options), routeOver("a c d", options))[0]).toMatch(
      /only keys of these upstreams, and a few others, do, since maglev goes by name$/,
    );
  });

  it("warns that hashmod goes by how many there are", () => {
    const options = "placement: {algorithm: hashmod}";
    expect(change(routeOver("a b c", options), routeOver("a b c d", options))).toEqual([
      "warning: route r against OLD: added d; hashmod goes by how many there are, 4 now and 3 before, where jump moves few; 75.0 % of its keys move",
    ]);
  });

  it("tells replaced names, other weights and another algorithm", () => {
    const [replaced] = change(routeOver("a b"), routeOver("a x"));
    expect(replaced).toMatch(
      /^route r against OLD: replaced b by x; (49|50)\.\d % of its keys move; only keys of these upstreams do, since no number changes; one that is only at another url keeps them by keeping its name$/,
    );
    const ring = "placement: {algorithm: ring}";
    expect(change(routeOver("a b", ring), routeOver("a b*3", ring))[0]).toContain("another weight for b");
    const points = "placement: {algorithm: ring, ring: {points: 16}}";
    expect(change(routeOver("a b", ring), routeOver("a b", points))[0]).toMatch(
      /^route r against OLD: other options of ring; [\d.]+ % of its keys move$/,
    );
    expect(change(routeOver("a b"), routeOver("b a", ring))).toEqual([
      expect.stringMatching(/^route r against OLD: ring in the place of jump; \d\d\.\d % of its keys move$/),
    ]);
  });

  it("counts copies where a route has replicas, in whatever order", () => {
    const replicas = (count: number): string => `placement: {algorithm: rendezvous, replicas: ${count}}`;
    expect(change(routeOver("a b c", replicas(2)), routeOver("c b a", replicas(2)))).toEqual([
      "route r against OLD: nothing moves",
    ]);
    expect(change(routeOver("a b c d", replicas(2)), routeOver("a b c -d", replicas(2)))).toEqual([
      expect.stringMatching(
        /^route r against OLD: removed d; 2\d\.\d % of its copies of keys move; only keys of these upstreams do, since rendezvous goes by name$/,
      ),
    ]);
    expect(change(routeOver("a b c", replicas(1)), routeOver("a b c", replicas(2)))).toEqual([
      "route r against OLD: 2 replicas in the place of 1; 50.0 % of its copies of keys move",
    ]);
    expect(change(routeOver("a b c", replicas(3)), routeOver("a b c", replicas(1)))).toEqual([
      "route r against OLD: 1 replica in the place of 3; nothing moves",
    ]);
  });

  it("says of a tombstone with a new name that it is one, since no upstream is added", () => {
    expect(change(routeOver("a b"), routeOver("a b -c d"))).toEqual([
      expect.stringMatching(/^route r against OLD: added d; added as tombstone c; /),
    ]);
  });

  it("says when keys are made otherwise", () => {
    const [line] = change(routeOver("a b", "tasks: {count: 100}"), routeOver("a b", "tasks: {count: 200}"));
    expect(line).toBe("route r against OLD: keys are others than before, so nearly all series move");
  });

  it("names routes that only one of the files has", () => {
    const lines = change(routeOver("a b"), routeOver("a b").replace("name: r", "name: s"));
    expect(lines).toEqual(["route s against OLD: new", "route r against OLD: gone"]);
  });

  it("says that a file of the old gateway has no tombstones", () => {
    const old = (urls: string): string =>
      `router_rules: [{router_name: r, upstreams: {upstream_urls: [${urls}]}}]`;
    const lines = change(old("http://a/w, http://b/w, http://c/w"), old("http://b/w, http://c/w"));
    expect(lines.at(-1)).toBe(
      "  this takes a native file: files of the old Go gateway have no tombstones; see the command convert",
    );
  });

  it("is done by the command line's --against", async () => {
    const [now, before] = [join(folder, "now.yaml"), join(folder, "before.yaml")];
    writeFileSync(now, routeOver("b"));
    writeFileSync(before, routeOver("a b"));
    const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    try {
      expect(await command(["check", "--config", now, "--against", before])).toBe(0);
      const printed = write.mock.calls.map(([text]) => text.toString()).join("");
      expect(printed).toContain(`warning: route r against ${before}: taken out a;`);
    } finally {
      write.mockRestore();
    }
  });

  it("compares with nothing that is invalid, and exits 1", () => {
    const { code, lines } = run(routeOver("a b"), "routes: []");
    expect(code).toBe(1);
    expect(lines.slice(-2)).toEqual([
      "OLD:1:9: routes: want at least one of the routes; got an empty list",
      "OLD: invalid, 1 error; nothing is compared with it",
    ]);
  });
});

describe("check against what the last start kept", () => {
  /** As the gateway starts with a file. */
  async function started(yaml: string): Promise<string> {
    const stateFolder = "data/spool";
    const file = join(folder, "config.yaml");
    writeFileSync(file, yaml);
    const { config } = loadConfig(file, OPTIONS);
    if (config === null) throw new Error("the configuration is invalid");
    expect(await keepKnown(stateFolder, config)).toBeNull();
    return stateFolder;
  }

  /** Exit code, and the lines about the change, in which KEPT stands for what is kept. */
  function checked(yaml: string, stateFolder: string, against: string | null = null): [number, string[]] {
    const file = join(folder, "config.yaml");
    writeFileSync(file, yaml);
    const lines: string[] = [];
    const code = check(file, { ...OPTIONS, against }, (line) =>
      lines.push(line.replaceAll(join(stateFolder, "topology.json"), "KEPT")),
    );
    return [code, lines.slice(2)];
  }

  it("names the file that it compares with, warns, and says how to write the tombstone", async () => {
    const stateFolder = await started(routeOver("a b c"));
    expect(checked(routeOver("a b c"), stateFolder)).toEqual([0, ["route r against KEPT: nothing moves"]]);
    expect(checked(routeOver("b c"), stateFolder)).toEqual([
      0,
      [
        expect.stringMatching(/^warning: route r against KEPT: taken out a; jump goes by number/),
        "  write at the top of the list, so that those behind it keep their numbers: - {name: a, removed: true}",
      ],
    ]);
  });

  it("names routes that are new or gone", async () => {
    const stateFolder = await started(routeOver("a b"));
    expect(checked(routeOver("a b").replace("name: r", "name: s"), stateFolder)).toEqual([
      0,
      ["route s against KEPT: new", "route r against KEPT: gone"],
    ]);
  });

  it("gives way to --against", async () => {
    const stateFolder = await started(routeOver("a b c"));
    const old = join(folder, "before.yaml");
    writeFileSync(old, routeOver("b c"));
    expect(checked(routeOver("b c"), stateFolder, old)).toEqual([
      0,
      [`route r against ${old}: nothing moves`],
    ]);
  });

  it("is what --against names, be it of another place", async () => {
    const elsewhere = join(folder, "kept-elsewhere.json");
    renameSync(join(await started(routeOver("a b c")), "topology.json"), elsewhere);
    const [code, lines] = checked(routeOver("b c"), "data/spool", elsewhere);
    expect(code).toBe(0);
    expect(lines[0]).toContain(`warning: route r against ${elsewhere}: taken out a; jump goes by number`);
  });

  it("exits 1 where --against names one of another version", async () => {
    const file = join(await started(routeOver("a b c")), "topology.json");
    writeFileSync(file, readFileSync(file, "utf8").replace(/"version": \d+/, '"version": 99'));
    expect(checked(routeOver("b c"), "data/spool", file)).toEqual([
      1,
      [
        expect.stringMatching(
          /^KEPT: cannot be used: its format is not \d+, .*; nothing is compared with it$/,
        ),
      ],
    ]);
  });

  it("warns of a file that cannot be used, and leaves it as it is", async () => {
    const stateFolder = await started(routeOver("a b"));
    writeFileSync(join(stateFolder, "topology.json"), "{");
    expect(checked(routeOver("b"), stateFolder)).toEqual([
      0,
      ["warning: KEPT cannot be used: it is no JSON; nothing is compared with it"],
    ]);
    expect(readFileSync(join(stateFolder, "topology.json"), "utf8")).toBe("{");
  });

  it("says nothing, and makes nothing, where nothing is kept", () => {
    const stateFolder = "data/spool";
    expect(checked(routeOver("a b"), stateFolder)).toEqual([0, []]);
    expect(existsSync(stateFolder)).toBe(false);
  });
});

describe("check of an example", () => {
  it.each(["all-options.yaml", "by-labels.yaml", "rule-selected-groups.yaml", "replicate-to-groups.yaml"])(
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
