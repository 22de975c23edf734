/**
 * Verdicts of lint against real vmagents. For every pair of a route and a rule the gateway's code shards the same series over two
 * vmagents, one vmagent gets all of them, and one gets them without the task label; all have the same file. What is called safe
 * is equal on two and on one, and after merging over tasks where lint says so; what is called unsafe is not.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { Explainer, type CopyOutcome } from "../../src/explain/explainer.ts";
import type { Config } from "../../src/config/config.ts";
import { judged, readConfig } from "../lint/judged.ts";
import { configText, type Pair, PAIRS, ruleText } from "../lint/pairs.ts";
import { type AggregatedSample, Aggregators, type SentSeries } from "../peers/aggregators.ts";
import { describeWithPeers } from "../peers/peers.ts";
import { Rig } from "../peers/rig.ts";
import { until } from "../peers/until.ts";

const TASK = "stream_task_id";
/** Long enough to write everything in one window. */
const INTERVAL_MS = 5000;
const INTERVAL = `${INTERVAL_MS / 1000}s`;
const VMAGENTS = ["a", "b", "whole", "plain"] as const;
type Name = (typeof VMAGENTS)[number];

const TRIED = PAIRS.filter(({ verdict, shown }) => verdict !== "unknown" && shown !== null).map(
  (pair, index) => ({
    ...pair,
    id: `p${index}`,
  }),
);
type TriedPair = (typeof TRIED)[number];

type Labels = readonly (readonly [string, string])[];

/**
 * Label sets that all pairs are tried on; some have neither job nor env. The values are such that a key of job and env parts the
 * series of a job and those of an env.
 */
function labelSets(id: string): Labels[] {
  const sets: Labels[] = [];
  for (const metric of ["m", "n"]) {
    const name = ["__name__", `${id}_${metric}`] as const;
    for (const instance of ["host-1:80", "host-2:80"]) {
      for (const le of ["1", "+Inf"]) {
        sets.push([name, ["instance", instance], ["le", le]]);
        for (const job of ["api", "auth"]) {
          for (const env of ["prod", "dev"]) {
            for (const replica of ["x", "y"]) {
              sets.push([
                name,
                ["env", env],
                ["instance", instance],
                ["job", job],
                ["le", le],
                ["replica", replica],
              ]);
            }
          }
        }
      }
    }
  }
  return sets;
}

function selectorOf(id: string): string {
  return `{__name__=~"${id}_.+"}`;
}

/** The rule of a pair as these vmagents have it: with short windows, and its pair in what it puts out. */
function ruleOf(pair: TriedPair): object {
  const [rule] = parse(ruleText(pair, selectorOf(pair.id))) as [Record<string, unknown>];
  const output = (rule["output_relabel_configs"] as object[] | undefined) ?? [];
  return {
    ...rule,
    interval: INTERVAL,
    ...(rule["dedup_interval"] === undefined ? {} : { dedup_interval: INTERVAL }),
    enable_windows: true,
    // Whatever the moment of the start, the first sample of a counter counts for nothing.
    ignore_first_sample_interval: "1h",
    output_relabel_configs: [...output, { target_label: "pair", replacement: pair.id }],
  };
}

function relabelRulesOf({ id, relabel = "[]" }: TriedPair): object[] {
  return (parse(relabel) as object[]).map((rule) => ({ ...rule, if: selectorOf(id) }));
}

interface Copy {
  readonly vmagent: "a" | "b";
  /** Where it takes the copy. */
  readonly path: string;
  readonly labels: Labels;
}

/** Where the gateway sends a series, by the routes that reach the vmagents a and b. */
function copiesOf(explainer: Explainer, config: Config, labels: Labels): Copy[] {
  const explained = explainer.explain(labels);
  if ("refused" in explained) throw new Error("a series was refused");
  return explained.routes.flatMap((route, index) => {
    const copies: readonly (CopyOutcome & { readonly upstream: string })[] = route.copies ?? [
      { ...route, upstream: route.upstreams?.[0] ?? "" },
    ];
    return copies.flatMap(({ upstream, labels: sent }) => {
      const url = config.routes[index]?.upstreams.find(({ name }) => name === upstream)?.url;
      const vmagent = url?.hostname;
      if (sent === undefined || (vmagent !== "a" && vmagent !== "b")) return [];
      return [{ vmagent, path: pathOf(url), labels: sent }];
    });
  });
}

const PATH = "/api/v1/write";

/** Pairs that are not about paths write theirs as short as can be; behind a proxy there is another path. */
function pathOf(url: URL | undefined): string {
  return url?.pathname.includes("/api/v1/") === true ? url.pathname : PATH;
}

/** A series of a pair, by its number among those of the pair. */
interface Routed {
  readonly index: number;
  readonly labels: Labels;
  readonly path: string;
}

/** What each vmagent gets of all pairs. */
function routeAll(): Record<Name, Routed[]> {
  const sent: Record<Name, Routed[]> = { a: [], b: [], whole: [], plain: [] };
  for (const pair of TRIED) {
    const config = readConfig(configText(pair));
    const explainer = new Explainer(config);
    labelSets(pair.id).forEach((set, index) => {
      const copies = copiesOf(explainer, config, set);
      for (const { vmagent, labels, path } of copies) sent[vmagent].push({ index, labels, path });
      const [first] = copies;
      if (first === undefined) return;
      sent.whole.push({ index, labels: first.labels, path: PATH });
      sent.plain.push({ index, labels: first.labels.filter(([name]) => name !== TASK), path: PATH });
    });
  }
  return sent;
}

/** No two series of a pair have a sample at one moment: which is the last of several is certain then. */
function withSamples({ index, labels }: Omit<Routed, "path">, windowMs: number): SentSeries {
  const value = 1 + ((index * 5) % 7);
  const samples = [
    { value, timestampMs: windowMs + 100 + index },
    { value: value + 1 + (index % 3), timestampMs: windowMs + 500 + 2 * index },
  ];
  return { labels, samples };
}

/** What was put out for one pair in its window: a name for the labels, and the value as far as sums in any order agree. */
class PutOut {
  readonly samples: readonly AggregatedSample[];

  constructor(samples: readonly AggregatedSample[], { id }: TriedPair, windowEndMs: number) {
    this.samples = samples.filter(
      ({ labels, timestampMs }) => labels.get("pair") === id && timestampMs === windowEndMs,
    );
  }

  get lines(): string[] {
    return this.samples.map(({ labels, value }) => `${nameOf(labels)} ${rounded(value)}`).sort();
  }

  /** Values by labels without the task. */
  byGroup(): Map<string, number[]> {
    const groups = new Map<string, number[]>();
    for (const { labels, value } of this.samples) {
      const name = nameOf(new Map([...labels].filter(([label]) => label !== TASK)));
      groups.set(name, [...(groups.get(name) ?? []), value]);
    }
    return groups;
  }

  /** As lines, the results of tasks merged as the output wants it. */
  get merged(): string[] {
    return [...this.byGroup()].map(([name, values]) => `${name} ${rounded(mergeOf(name)(values))}`).sort();
  }
}

function nameOf(labels: ReadonlyMap<string, string>): string {
  return JSON.stringify([...labels].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function rounded(value: number): string {
  return value.toPrecision(9);
}

type Merge = (values: readonly number[]) => number;
const sum: Merge = (values) => values.reduce((total, value) => total + value, 0);
const MERGES: readonly Merge[] = [
  sum,
  (values) => Math.min(...values),
  (values) => Math.max(...values),
  (values) => sum(values) / values.length,
];

/** The name ends with the output. */
function mergeOf(name: string): Merge {
  const extreme = /_(min|max)"/.exec(name)?.[1];
  if (extreme === undefined) return sum;
  return extreme === "min" ? (values) => Math.min(...values) : (values) => Math.max(...values);
}

describeWithPeers("verdicts of lint, against real vmagents", (peers) => {
  let rig: Rig;
  let aggregators: Aggregators<Name>;
  let windowEndMs = 0;

  beforeAll(async () => {
    rig = await Rig.create();
    await rig.prepare(async () => {
      const files = { aggregation: TRIED.map(ruleOf), relabel: TRIED.flatMap(relabelRulesOf) };
      aggregators = await Aggregators.start(rig, peers, VMAGENTS, files, INTERVAL);
      await aggregateInOneWindow();
    });
  });
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => {
      rig.showLogs();
    });
  });
  afterAll(() => rig.end());

  async function aggregateInOneWindow(): Promise<void> {
    const routed = routeAll();
    // A vmagent's first window begins after its start, and making the requests takes a while.
    const windowMs = Math.ceil(Date.now() / INTERVAL_MS + 1) * INTERVAL_MS;
    const bodies = VMAGENTS.flatMap((name) => {
      const paths = [...new Set(routed[name].map(({ path }) => path))];
      return paths.map((path) => {
        const series = routed[name].filter((each) => each.path === path);
        return [name, path, aggregators.encode(series.map((each) => withSamples(each, windowMs)))] as const;
      });
    });
    if (Date.now() > windowMs) throw new Error("the requests were not ready before their window began");
    await until("the window to begin", 3 * INTERVAL_MS, () => Date.now() > windowMs);
    await Promise.all(bodies.map(([name, path, requests]) => aggregators.write(name, requests, path)));
    windowEndMs = windowMs + INTERVAL_MS;
    if (Date.now() > windowEndMs) throw new Error("the window ended before everything was written");
    await aggregators.putOut(windowEndMs);
  }

  function putOut(pair: TriedPair, ...names: readonly Name[]): PutOut {
    const samples = names.flatMap((name) => aggregators.samples(name));
    return new PutOut(samples, pair, windowEndMs);
  }

  function judgedNow(pair: TriedPair): ReturnType<typeof judged> {
    const together = pair.alone && [0];
    return judged(configText(pair), ruleText(pair, selectorOf(pair.id)), pair.relabel, 0, together);
  }

  describe("safe", () => {
    it.each(TRIED.filter(({ verdict }) => verdict === "safe"))("$name: two are as one", (pair) => {
      const { verdict, reason } = judgedNow(pair);
      expect(verdict).toBe("safe");
      const [two, one] = [putOut(pair, "a", "b"), putOut(pair, "whole")];
      expect(one.lines).not.toEqual([]);
      expect(two.lines).toEqual(one.lines);
      if (reason.includes("merge over")) expect(two.merged).toEqual(putOut(pair, "plain").lines);
    });
  });

  describe("unsafe", () => {
    const unsafe = TRIED.filter(({ verdict }) => verdict === "unsafe");
    const shown = (how: Pair["shown"]): TriedPair[] =>
      unsafe.filter((pair) => (pair.shown ?? "differs") === how);

    it.each(shown("differs"))("$name: two are not as one", (pair) => {
      expect(judgedNow(pair).verdict).toBe("unsafe");
      const one = putOut(pair, "whole").lines;
      expect(one).not.toEqual([]);
      expect(putOut(pair, "a", "b").lines).not.toEqual(one);
    });

    it.each(shown("unmergeable"))("$name: results of tasks cannot be merged", (pair) => {
      expect(judgedNow(pair).verdict).toBe("unsafe");
      const whole = putOut(pair, "plain").byGroup();
      const ofTasks = putOut(pair, "a", "b").byGroup();
      expect([...ofTasks.keys()].sort()).toEqual([...whole.keys()].sort());
      const wrong = [...ofTasks].filter(([name, values]) => {
        const right = rounded(whole.get(name)?.[0] ?? NaN);
        return MERGES.every((merge) => rounded(merge(values)) !== right);
      });
      expect(wrong).not.toEqual([]);
    });

    it.each(shown("merged_wrong"))("$name: merged, they are wrong", (pair) => {
      expect(judgedNow(pair).verdict).toBe("unsafe");
      const right = putOut(pair, "plain").lines;
      expect(right).not.toEqual([]);
      expect(putOut(pair, "a", "b").merged).not.toEqual(right);
    });

    it.each(shown("collides"))("$name: one series has several samples at a time", (pair) => {
      expect(judgedNow(pair).verdict).toBe("unsafe");
      const most = (groups: Map<string, number[]>): number =>
        Math.max(...[...groups.values()].map(({ length }) => length));
      expect(most(putOut(pair, "plain").byGroup())).toBe(1);
      expect(most(putOut(pair, "a", "b").byGroup())).toBeGreaterThan(1);
    });
  });
});
