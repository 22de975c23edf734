import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { run } from "../../src/cli/program.ts";

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lint-"));
});

afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const UPSTREAMS = 'upstreams: [{name: a, url: "http://a/w"}, {name: b, url: "http://b/w"}]';
const GATEWAY = `routes:
  - {name: aggregation, tasks: {count: 64}, ${UPSTREAMS}}
  - {name: raw, ${UPSTREAMS.replaceAll(/name: |http:\/\//g, "$&raw-")}}
`;
const SUM = "{match: requests_total, interval: 1m, by: [job, stream_task_id], outputs: [sum_samples]}";
const AVERAGE = "{name: latency, match: seconds, interval: 1m, by: [job, stream_task_id], outputs: [avg]}";
const MAPPED =
  "{interval: 1m, by: [job], outputs: [max], input_relabel_configs: [{action: labelmap, regex: '(x)_.+'}]}";

interface Files {
  readonly gateway?: string;
  readonly aggregation?: string;
  readonly relabel?: string;
}

interface Outcome {
  readonly code: number;
  readonly printed: string;
  readonly errors: string;
}

/** Runs the command on files, whose folder is left out of what it prints. */
async function lint(files: Files, ...options: readonly string[]): Promise<Outcome> {
  const named = {
    config: ["gateway.yaml", files.gateway ?? GATEWAY],
    "stream-aggr": ["aggr.yaml", files.aggregation ?? `[${SUM}]`],
    ...(files.relabel === undefined ? {} : { relabel: ["vmagent.yaml", files.relabel] }),
  } as const;
  const given = Object.entries(named).flatMap(([option, [file = "", text = ""]]) => {
    writeFileSync(join(folder, file), text);
    return [`--${option}`, join(folder, file)];
  });
  return command(...given, ...options);
}

async function command(...options: readonly string[]): Promise<Outcome> {
  const texts = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    vi.spyOn(process[stream], "write").mockImplementation((text) => {
      texts[stream] += String(text);
      return true;
    });
  }
  const code = await run(["lint", ...options]);
  const shown = (text: string): string => text.replaceAll(`${folder}/`, "");
  return { code, printed: shown(texts.stdout), errors: shown(texts.stderr) };
}

const ONE = ["--route", "aggregation"];

describe("lint, for a person", () => {
  it("says of each rule why it is safe, and ends with 0 when all are", async () => {
    const { code, printed, errors } = await lint({}, ...ONE);
    expect({ code, errors }).toEqual({ code: 0, errors: "" });
    expect(printed.split("\n")).toEqual([
      "route aggregation, rule 1 (aggr.yaml:1; by job, stream_task_id; sum_samples): safe",
      "  stream_task_id is in the group, so each result is of one task on one upstream; merge over stream_task_id: sum of sum_samples",
      "1 safe, 0 unsafe, 0 unknown",
      "",
    ]);
  });

  it("shows two series that prove a rule unsafe, says what to write instead, and ends with 1", async () => {
    const { code, printed } = await lint({ aggregation: `- ${SUM}\n- ${AVERAGE}\n- ${MAPPED}` }, ...ONE);
    expect(code).toBe(1);
    const [title, ...block] = printed.split("\n").slice(2, 7);
    expect(title).toBe(
      "route aggregation, rule 2 (latency; aggr.yaml:2; by job, stream_task_id; avg): unsafe",
    );
    expect(block[0]).toContain("results of tasks cannot be merged for avg");
    expect(block[1]).toMatch(
      /^ {2}proof: seconds\{.+\} goes to [ab] as task \d+, seconds\{.+\} to [ab] as task \d+; both are of seconds\{job="job-\d"\}$/,
    );
    expect(block.slice(2)).toEqual([
      "  write: tasks: {by: [job]}, so that each group is of one task",
      "  or: placement: {key: {by: [job]}}, and in the rule by: [job]",
    ]);
    expect(printed).toMatch(/1 safe, 2 unsafe, 0 unknown\n$/);
  });

  it("ends with 2 when one is unknown and none unsafe", async () => {
    const gateway = `routes: [{name: r, placement: {key: {by: [job]}}, ${UPSTREAMS}}]`;
    const { code, printed } = await lint({ gateway, aggregation: `[${MAPPED}]` });
    expect(code).toBe(2);
    expect(printed).toContain("unknown\n  not proved safe: ");
  });

  it("judges every route without --route", async () => {
    const { code, printed } = await lint({});
    expect(code).toBe(1);
    expect(printed).toContain("route aggregation, rule 1");
    expect(printed).toMatch(/route raw, rule 1 .+: unsafe/);
  });

  it("judges routes together without --route, and says how they meet", async () => {
    const raw = UPSTREAMS.replaceAll(/name: |http:\/\//g, "$&raw-");
    const gateway = `routes: [{name: one, placement: {key: {by: [job]}}, ${UPSTREAMS}}, {name: other, placement: {key: {by: [job]}}, ${raw}}]`;
    const aggregation = "[{match: m, interval: 1m, by: [job], outputs: [avg]}]";
    const { code, printed } = await lint({ gateway, aggregation });
    expect(code).toBe(1);
    const [title, reason, proof, ...instead] = printed.split("\n").slice(0, 5);
    expect(title).toBe("route one, rule 1 (aggr.yaml:1; by job; avg): unsafe");
    expect(reason).toBe(
      "  the routes one and other are judged together and lead to different vmagents, and each result of what both select is there twice",
    );
    expect(proof).toMatch(/^ {2}proof: m\{job="job-0"\} is aggregated by [ab] and by raw-[ab]$/);
    expect(instead).toEqual([
      "  write: --route one or --route other, where only one of them leads to vmagents with this file",
      "  or: final: true at one, if it selects its series by labels that the groups have (__name__, job)",
    ]);
    const alone = await lint({ gateway, aggregation }, "--route", "one");
    expect(alone.code).toBe(0);
  });

  it("says why routes that are judged together are apart", async () => {
    const kept = (job: string, name: string): string =>
      `{name: ${name}, relabel_configs: [{action: keep, source_labels: [job], regex: ${job}}], upstreams: [{name: ${name}-0, url: "http://${name}"}]}`;
    const gateway = `routes: [${kept("api", "one")}, ${kept("web", "other")}]`;
    const { code, printed } = await lint({
      gateway,
      aggregation: "[{interval: 1m, by: [job], outputs: [avg]}]",
    });
    expect(code).toBe(0);
    expect(printed.split("\n").slice(0, 2)).toEqual([
      "route one, rule 1 (aggr.yaml:1; by job; avg): safe",
      "  the route has one upstream, which gets all series; no group has series of other too, which has other values of job",
    ]);
  });

  it("takes vmagent's rules before the aggregation into account", async () => {
    const gateway = `routes: [{name: r, placement: {key: {by: [job]}}, ${UPSTREAMS}}]`;
    const aggregation = "[{interval: 1m, by: [job], outputs: [avg]}]";
    expect((await lint({ gateway, aggregation })).code).toBe(0);
    const { code, printed } = await lint({
      gateway,
      aggregation,
      relabel: "- {target_label: job, replacement: all}",
    });
    expect(code).toBe(1);
    expect(printed).toContain("job is changed by rule 1 (replace) of vmagent's relabelConfig");
  });

  it("warns of keys that it does not know, and calls the rule unknown", async () => {
    const { code, printed, errors } = await lint(
      { aggregation: `[${SUM.replace("{", "{shard: 1, ")}]` },
      ...ONE,
    );
    expect(code).toBe(2);
    expect(errors).toBe(
      "aggr.yaml:1:3: warning: [0].shard: a key that vmagent 1.145 does not have; what it does is not known here\n",
    );
    expect(printed).toContain("what shard does is not known here");
  });

  it("reads files of the old Go gateway", async () => {
    const gateway = readFileSync(new URL("../fixtures/legacy/by-task.yaml", import.meta.url), "utf8");
    const { code, printed } = await lint({ gateway }, "--legacy-hash", "hashmod");
    expect(code).toBe(0);
    expect(printed).toContain("merge over stream_task_id");
  });
});

describe("lint --json", () => {
  it("prints one document with the labels at fault and the proof", async () => {
    const { code, printed } = await lint({ aggregation: `- ${SUM}\n- ${AVERAGE}` }, ...ONE, "--json");
    expect(code).toBe(1);
    expect(JSON.parse(printed)).toMatchObject({
      verdict: "unsafe",
      judgements: [
        { route: "aggregation", rule: 1, line: 1, verdict: "safe", labels: [] },
        {
          route: "aggregation",
          rule: 2,
          name: "latency",
          line: 2,
          verdict: "unsafe",
          labels: ["stream_task_id"],
          proof: {
            group: [
              ["__name__", "seconds"],
              ["job", "job-0"],
            ],
            series: [
              {
                labels: [
                  ["__name__", "seconds"],
                  ["job", "job-0"],
                  ["instance", "instance-0"],
                ],
              },
              {},
            ],
          },
          write_instead: [
            "tasks: {by: [job]}, so that each group is of one task",
            "placement: {key: {by: [job]}}, and in the rule by: [job]",
          ],
        },
      ],
    });
  });
});

describe("lint, of what cannot be read", () => {
  const bad: readonly (Files & { readonly name: string; readonly message: string })[] = [
    {
      name: "a configuration with an error",
      gateway: "routes: []",
      message: "gateway.yaml:1:9: routes: want at least one",
    },
    {
      name: "an empty aggregation",
      aggregation: "",
      message: "aggr.yaml:1:1: want a list of aggregation rules; got nothing",
    },
    {
      name: "an aggregation without rules",
      aggregation: "[]",
      message: "aggr.yaml:1:1: want at least one of the aggregation rules",
    },
    {
      name: "an aggregation with an error",
      aggregation: "- {interval: 1d, outputs: [avg]}",
      message: "aggr.yaml:1:14: [0].interval: want a duration as 1h30m",
    },
    {
      name: "vmagent's rules with an error",
      relabel: "- {action: nothing}",
      message: "vmagent.yaml:1:12: [0].action: rule 1: want one of",
    },
  ];

  it.each(bad)("says where, of $name, and ends with 3", async ({ message, ...files }) => {
    const { code, printed, errors } = await lint(files);
    expect({ code, printed }).toEqual({ code: 3, printed: "" });
    expect(errors).toContain(message);
  });

  it("ends with 3 for a file that is not there", async () => {
    const { code, errors } = await command(
      "--config",
      join(folder, "no.yaml"),
      "--stream-aggr",
      join(folder, "no.yaml"),
    );
    expect(code).toBe(3);
    expect(errors).toContain("no.yaml:1:1: cannot read the file: no such file");
  });

  it("ends with 3 for a route that is not there, and names those that are", async () => {
    const { code, errors } = await lint({}, "--route", "metrics");
    expect(code).toBe(3);
    expect(errors).toBe("gateway.yaml: no route metrics; want one of: aggregation, raw\n");
  });

  it("ends with 3 without an aggregation", async () => {
    const { code, errors } = await command("--config", "gateway.yaml");
    expect(code).toBe(3);
    expect(errors).toContain("required option '--stream-aggr <file>'");
  });
});
