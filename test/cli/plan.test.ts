import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { yamlLines } from "../../src/cli/nodeYaml.ts";
import { plan, type PlanCommand } from "../../src/cli/plan.ts";
import { run as command } from "../../src/cli/program.ts";
import { proposedTopology } from "../../src/cli/topologyProposal.ts";
import { loadConfig } from "../../src/config/load.ts";
import { readDocument } from "../../src/config/document.ts";
import type { MapNode } from "../../src/config/node.ts";
import { ProblemList } from "../../src/config/problem.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import type { PlanAnswer, PlanRequest } from "../../src/plan/api.ts";
import type { PlanReport } from "../../src/plan/report.ts";
import { faultOf } from "../../src/relabel/rules.ts";
import { configOf, NOW, planOf, sampleOf } from "../plan/planned.ts";

const OPTIONS = { legacyHash: "jump", checkRule: faultOf, checkPlacement: placementFault } as const;
const REQUESTS = new URL("../fixtures/rw1_requests/", import.meta.url).pathname;
const LEGACY = new URL("../fixtures/legacy/by-task.yaml", import.meta.url).pathname;

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "plan-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function write(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

/** A file with one route of upstreams by their names; "-b" is a tombstone. */
function configFile(name: string, names: string, options = "tasks: {count: 128}", port = 8429): string {
  const list = names
    .split(" ")
    .map((each) =>
      each.startsWith("-")
        ? `{name: ${each.slice(1)}, removed: true}`
        : `{name: ${each}, url: "http://${each}:${port}/w"}`,
    );
  return write(name, `routes: [{name: r, ${options}, upstreams: [${list.join(", ")}]}]`);
}

function seriesFile(count: number): string {
  const lines = Array.from({ length: count }, (_, number) =>
    JSON.stringify({
      labels: [
        ["__name__", "up"],
        ["instance", `host-${number}`],
      ],
    }),
  );
  // One that comes twice is one series.
  return write("series.ndjson", `${[...lines, lines[0]].join("\n")}\n`);
}

interface Run {
  readonly code: number;
  readonly lines: readonly string[];
  readonly complaints: readonly string[];
}

async function run(options: Omit<PlanCommand, "json"> & { readonly json?: boolean }): Promise<Run> {
  const lines: string[] = [];
  const complaints: string[] = [];
  const code = await plan(
    { json: false, ...options },
    {
      fromOptions: OPTIONS,
      toOptions: OPTIONS,
      nowMs: NOW,
      print: (line) => lines.push(line),
      complain: (line) => complaints.push(line.replaceAll(folder, "")),
    },
  );
  return { code, lines, complaints };
}

async function jsonOf(options: Parameters<typeof run>[0]): Promise<PlanReport> {
  const { code, lines } = await run({ ...options, json: true });
  expect(code).toBe(0);
  return JSON.parse(lines.join("\n")) as PlanReport;
}

describe("plan over a file of series", () => {
  it("tells a person what moves, from where to where, and what to do about it", async () => {
    const [from, to] = [configFile("a.yaml", "v0 v1 v2 v3"), configFile("b.yaml", "v0 v2 v3")];
    const { code, lines } = await run({ from, to, series: seriesFile(2000) });
    expect(code).toBe(0);
    expect(lines[0]).toMatch(/^moves 6\d\.\d % of the copies of route r \(exact, over all 2000 series\)$/);
    expect(lines).toContain("  no longer live: v1");
    expect(lines).toContain("  under another number: v2, v3");
    expect(lines).toContainEqual(expect.stringMatching(/^ {2}v1 -> v2: 2\d\.\d %$/));
    expect(lines).toContain("  128 tasks: 83 of 128 numbers go to another upstream");
    expect(lines).toContainEqual(
      "  to move less, write behind v0 in the list, so that those behind it keep their numbers: - {name: v1, removed: true}",
    );
    expect(lines).toContainEqual(
      expect.stringMatching(/copies 1\.\d\d before, 1\.\d\d after; tasks 1\.06 before, 1\.05 after/),
    );
  });

  it("prints the whole report as JSON", async () => {
    const report = await jsonOf({
      from: configFile("a.yaml", "v0 v1 v2"),
      to: configFile("b.yaml", "v0 v1 v2", undefined, 9000),
      series: seriesFile(1500),
    });
    expect(report).toMatchObject({ basis: "all", series: 1500, changed: { share: 0, standard_error: 0 } });
    expect(report.routes[0]?.list.readdressed).toEqual(["v0", "v1", "v2"]);
  });

  it("puts them under the tenant that is given", async () => {
    const rules = "relabel_configs: [{source_labels: [t], regex: red, action: keep}]";
    const [from, to] = [
      configFile("a.yaml", "v0 v1", "tenant: {label: t}"),
      configFile("b.yaml", "v0 v1", `tenant: {label: t}, ${rules}`),
    ];
    const series = seriesFile(1000);
    expect((await jsonOf({ from, to, series, tenant: "red" })).changed.share).toBe(0);
    expect((await jsonOf({ from, to, series, tenant: "blue" })).changed.share).toBe(1);
  });

  it("names the line that it cannot read", async () => {
    const [from, to] = [configFile("a.yaml", "v0"), configFile("b.yaml", "v0 v1")];
    const series = write("bad.ndjson", '{"labels":[["a","b"]]}\n{"labels":[["a"]]}\n');
    await expect(run({ from, to, series })).rejects.toThrow("bad.ndjson:2: want");
  });
});

describe("plan over recorded requests", () => {
  it("takes each distinct series of all bodies in the folder once, and passes over what is none", async () => {
    const [from, to] = [configFile("a.yaml", "v0 v1 v2"), configFile("b.yaml", "v0 v1 v2 v3")];
    const report = await jsonOf({ from, to, requests: REQUESTS });
    expect(report.basis).toBe("all");
    expect(report.series).toBeGreaterThan(1400);
    const { complaints } = await run({ from, to, requests: REQUESTS });
    expect(complaints).toEqual([
      expect.stringMatching(
        /passes over 17 of 34 files, which are no bodies of write requests, such as default-2000\.json: no snappy/,
      ),
    ]);
  });

  it("says when there is none", async () => {
    const [from, to] = [configFile("a.yaml", "v0"), configFile("b.yaml", "v0 v1")];
    await expect(run({ from, to, requests: folder })).rejects.toThrow("want bodies of write requests in it");
  });
});

describe("plan without series", () => {
  it("tells what placement does, and that it is that alone", async () => {
    const { code, lines } = await run({
      from: configFile("a.yaml", "v0 v1 v2"),
      to: configFile("b.yaml", "v0 v1 v2 v3"),
    });
    expect(code).toBe(0);
    expect(lines[0]).toMatch(
      /^moves 23\.\d % ± 0\.04 % of the copies of route r \(by made-up keys, as no series are known\)$/,
    );
    expect(lines).toContain(
      "  too few series are known for figures, so these are of made-up keys, which tell nothing of rules",
    );
  });

  it("reads files of the old Go gateway, each with its hash", async () => {
    const old = { ...OPTIONS, legacyHash: "hashmod" } as const;
    const lines: string[] = [];
    const tools = { fromOptions: old, toOptions: OPTIONS, nowMs: NOW, complain: () => undefined };
    const print = (line: string): unknown => lines.push(line);
    expect(await plan({ from: LEGACY, to: LEGACY, json: false }, { ...tools, print })).toBe(0);
    expect(lines[0]).toMatch(/^moves 99\.\d % ± /);
  });
});

describe("plan of a change that is to take effect later", () => {
  const auth = "basic_auth: {username: u, password_file: secret.txt}";

  it("prints both lists as periods, each upstream described once, and nothing out of other files", async () => {
    write("secret.txt", "hunter2");
    const from = configFile("a.yaml", "v0 v1 v2");
    const text = readFileSync(configFile("b.yaml", "v0 -v1 v2 v3"), "utf8");
    const to = write("b.yaml", text.replace('"http://v3:8429/w"', `"http://v3:8429/w", ${auth}`));
    const { code, lines } = await run({ from, to, series: seriesFile(1000), effective: "10m", round: "1m" });
    expect(code).toBe(0);
    const yaml = lines.slice(lines.findIndex((line) => line.startsWith("# route r"))).join("\n");
    expect(`${yaml}\n`).toBe(
      `# route r, in the place of its upstreams or topology; reload every replica before 2026-06-01T12:10:00Z

topology:
  - upstreams:
      - name: v0
        url: http://v0:8429/w
      - name: v1
        url: http://v1:8429/w
      - name: v2
        url: http://v2:8429/w
  - from: 2026-06-01T12:10:00Z
    upstreams:
      - name: v0
      - name: v1
        removed: true
      - name: v2
      - name: v3
        url: http://v3:8429/w
        basic_auth:
          username: u
          password_file: secret.txt
`,
    );
  });

  it("is valid as it is printed, moves nothing now, and from its moment on what the change would move at once", async () => {
    const [from, to] = [configFile("a.yaml", "v0 v1 v2"), configFile("b.yaml", "v0 v1 v2 v3")];
    const series = seriesFile(1000);
    const { lines } = await run({ from, to, series, effective: "10m", round: "1m" });
    const topology = lines
      .slice(lines.findIndex((line) => line.startsWith("# route r")))
      .map((line) => `    ${line}`);
    const planned = write(
      "c.yaml",
      ["routes:", "  - name: r", "    tasks: {count: 128}", ...topology, ""].join("\n"),
    );
    const { problems } = loadConfig(planned, OPTIONS);
    expect(problems.filter(({ severity }) => severity === "error")).toEqual([]);
    const [atOnce, later] = [await jsonOf({ from, to, series }), await jsonOf({ from, to: planned, series })];
    expect(atOnce.changed.share).toBeGreaterThan(0.2);
    expect(later.routes[0]).toMatchObject({
      changed: atOnce.routes[0]?.changed,
      eras: [
        { from: null, changed: { share: 0, standard_error: 0 } },
        { from: "2026-06-01T12:10:00Z", changed: atOnce.routes[0]?.changed },
      ],
      windows: { kind: "at_border", from: "2026-06-01T12:10:00Z" },
    });
    expect(atOnce.routes[0]?.windows.kind).toBe("at_reload");
  });

  it("rounds its moment up to the interval", async () => {
    const [from, to] = [configFile("a.yaml", "v0"), configFile("b.yaml", "v0 v1")];
    const { lines } = await run({ from, to, series: seriesFile(1000), effective: "90s", round: "5m" });
    expect(lines).toContainEqual(expect.stringContaining("from: 2026-06-01T12:05:00Z"));
  });

  it("appends to a topology that has periods, with urls and weights as they are to be", () => {
    const documentOf = (upstreams: string): MapNode => {
      const periods =
        "[{upstreams: [{name: a, url: 'http://a/w'}]}, {from: 2026-01-01T00:00:00Z, upstreams: ";
      const text = `routes: [{name: other, upstreams: []}, {name: r, topology: ${periods}[${upstreams}]}]}]`;
      const document = readDocument(text, new ProblemList("f"));
      if (document === null) throw new Error("not read");
      return document;
    };
    const before = documentOf("{name: a}, {name: b, url: 'http://b/w', weight: 2}");
    const after = documentOf(
      "{name: a}, {name: b, url: 'http://new/w', weight: 3}, {name: c, url: 'http://c/w'}",
    );
    const proposed = proposedTopology(before, after, "r", Date.parse("2027-01-01T00:00:00Z"));
    expect(proposed === null ? [] : yamlLines(proposed, "c")).toEqual(
      `# c

topology:
  - upstreams:
      - name: a
        url: http://a/w
  - from: 2026-01-01T00:00:00Z
    upstreams:
      - name: a
      - name: b
        weight: 2
        url: http://new/w
  - from: 2027-01-01T00:00:00Z
    upstreams:
      - name: a
      - name: b
        weight: 3
      - name: c
        url: http://c/w`.split("\n"),
    );
    expect(proposedTopology(before, after, "another", 0)).toBeNull();
  });

  it("prints no YAML when a period is there that begins later, and says so with its place", async () => {
    const text = (names: string): string => {
      const lists = names.split(" ").map((name) => `{name: ${name}, url: "http://${name}/w"}`);
      return `routes: [{name: r, topology: [{upstreams: [${lists[0] ?? ""}]}, {from: 2026-06-01T13:00:00Z, upstreams: [${lists.join()}]}]}]`;
    };
    const [from, to] = [write("a.yaml", text("v0 v1")), write("b.yaml", text("v0 v1 v2"))];
    const series = seriesFile(1000);
    const early = await run({ from, to, series, effective: "1h", round: "1m" });
    expect(early.code).toBe(1);
    expect(early.complaints).toEqual([
      expect.stringMatching(
        /^\/a\.yaml:1:\d+: routes\[0\]\.topology\[1\]\.from: want a period that begins before 2026-06-01T13:00:00Z/,
      ),
    ]);
    expect(early.lines[0]).toContain("of the copies of route r");
    expect(early.lines.some((line) => line.includes("topology:"))).toBe(false);
    const late = await run({ from, to, series, effective: "2h", round: "1m" });
    expect(late).toMatchObject({ code: 0, complaints: [] });
    expect(late.lines).toContain("  - from: 2026-06-01T14:00:00Z");
  });

  it("says when there is nothing that a period could hold", async () => {
    const [from, to] = [configFile("a.yaml", "v0"), configFile("b.yaml", "v0", "tasks: {count: 16}")];
    const { complaints } = await run({ from, to, series: seriesFile(1000), effective: "1m", round: "1m" });
    expect(complaints).toEqual([
      "no route differs in its list of upstreams alone, so there is no period to propose",
    ]);
  });
});

/** A gateway's admin listener. */
async function withGateway(
  answer: (request: PlanRequest, headers: IncomingMessage["headers"]) => { status: number; body: string },
  use: (url: string) => Promise<void>,
): Promise<void> {
  const serve = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    let body = "";
    incoming.setEncoding("utf8");
    incoming.on("data", (chunk: string) => {
      body += chunk;
    });
    incoming.on("end", () => {
      const isPlan = incoming.method === "POST" && incoming.url === "/api/v1/plan";
      const reply = isPlan
        ? answer(JSON.parse(body) as PlanRequest, incoming.headers)
        : { status: 404, body: "no" };
      outgoing.writeHead(reply.status).end(reply.body);
    });
  };
  const server = createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  } finally {
    server.close();
  }
}

describe("plan at a gateway", () => {
  const report = planOf(configOf([{}]), configOf([{ tasks: null, name: "new" }]), sampleOf([]));
  const success: PlanAnswer = { status: "success", data: report };

  it("sends the texts of the files and the token, and prints what it answers", async () => {
    const to = configFile("b.yaml", "v0 v1");
    const tokenFile = write("token", "s3cret\n");
    const seen: unknown[] = [];
    await withGateway(
      (request, { authorization }) => {
        seen.push([request, authorization]);
        return { status: 200, body: JSON.stringify(success) };
      },
      async (gateway) => {
        expect(await jsonOf({ to, gateway, tokenFile })).toEqual(JSON.parse(JSON.stringify(report)));
        const { lines } = await run({ from: to, to, gateway });
        expect(lines[0]).toContain("moves 100.0 % of the copies of route aggregation");
      },
    );
    const text = readFileSync(to, "utf8");
    expect(seen).toEqual([
      [{ to: text }, "Bearer s3cret"],
      [{ from: text, to: text }, undefined],
    ]);
  });

  it.each([
    {
      name: "problems of the file",
      status: 400,
      body: JSON.stringify({ status: "error", error: "new:1:1: want routes\nsecond\u001b[2J" }),
      complaint: "new:1:1: want routes\nsecond\\u001b[2J",
    },
    {
      name: "something else",
      status: 401,
      body: "who are you?",
      complaint: "/api/v1/plan: 401 who are you?",
    },
    {
      name: "that it has no plans",
      status: 404,
      body: "",
      complaint: "404 ; the gateway has it on its admin_listen",
    },
  ])("tells $name, and fails", async ({ status, body, complaint }) => {
    const to = configFile("b.yaml", "v0 v1");
    await withGateway(
      () => ({ status, body }),
      async (gateway) => {
        const { code, complaints } = await run({ to, gateway });
        expect(code).toBe(1);
        expect(complaints[0]).toContain(complaint);
      },
    );
  });

  it("tells that there is none", async () => {
    const { code, complaints } = await run({ to: configFile("b.yaml", "v0"), gateway: "http://127.0.0.1:1" });
    expect(code).toBe(1);
    expect(complaints[0]).toMatch(/^http:\/\/127\.0\.0\.1:1\/api\/v1\/plan: .+/);
  });
});

describe("plan's exit code", () => {
  it.each([
    {
      name: "of two sources",
      options: { series: "s", requests: "r" },
      what: "wants one of --gateway, --requests and --series",
    },
    {
      name: "of a token for nobody",
      options: { tokenFile: "t" },
      what: "has a use for --token-file with --gateway alone",
    },
    {
      name: "of a tenant for a gateway",
      options: { gateway: "http://127.0.0.1:1", tenant: "t" },
      what: "has no use for --tenant with --gateway",
    },
    {
      name: "of half a moment",
      options: { effective: "1m" },
      what: "wants --effective and --round together",
    },
    {
      name: "of YAML in JSON",
      options: { effective: "1m", round: "1m", json: true },
      what: "prints YAML for --effective",
    },
    {
      name: "of no duration",
      options: { effective: "soon", round: "1m" },
      what: "wants --effective as a duration",
    },
    {
      name: "of a moment that no year of four digits has",
      options: { effective: "9000y", round: "1m" },
      what: "wants --effective as a duration",
    },
    { name: "of no interval", options: { effective: "1m", round: "0" }, what: "wants --round as a duration" },
  ])("is 2 because $name", async ({ options, what }) => {
    const { code, complaints } = await run({ from: "a.yaml", to: "b.yaml", ...options });
    expect(code).toBe(2);
    expect(complaints[0]).toContain(`plan ${what}`);
  });

  it("is 2 without what is changed", async () => {
    expect(await run({ to: "b.yaml" })).toMatchObject({
      code: 2,
      complaints: [expect.stringContaining("wants --from FILE")],
    });
  });

  it("is 1 for a file that is invalid, with its problems", async () => {
    const bad = write("bad.yaml", "routes: []");
    const good = configFile("a.yaml", "v0");
    for (const options of [
      { from: bad, to: good },
      { from: good, to: bad },
      { from: good, to: join(folder, "none") },
    ]) {
      const { code, lines, complaints } = await run(options);
      expect({ code, lines }).toEqual({ code: 1, lines: [] });
      expect(complaints[0]).toMatch(/^\/(bad\.yaml|none):1:\d+: /);
    }
  });

  it("is 0 on the command line, 1 for a bad series file, and 2 without --to", async () => {
    const [from, to] = [configFile("a.yaml", "v0"), configFile("b.yaml", "v0 v1")];
    const written: string[] = [];
    const stdout = vi
      .spyOn(process.stdout, "write")
      .mockImplementation((text) => written.push(String(text)) > 0);
    const stderr = vi.spyOn(process.stderr, "write").mockImplementation(() => true);
    try {
      expect(await command(["plan", "--from", from, "--to", to, "--series", seriesFile(1200)])).toBe(0);
      expect(written.join("")).toContain("over all 1200 series");
      expect(await command(["plan", "--from", from, "--to", to, "--series", join(folder, "none")])).toBe(1);
      expect(await command(["plan", "--from", from])).toBe(2);
    } finally {
      stdout.mockRestore();
      stderr.mockRestore();
    }
  });
});
