/** Several routes with aggregators of their own or in common, against brute force over every series of a small universe. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Arrival, Journeys } from "../../src/lint/journeys.ts";
import type { Judgement } from "../../src/lint/judgement.ts";
import { Routing } from "../../src/lint/routing.ts";
import { judge } from "../../src/lint/verdict.ts";
import type { Label } from "../../src/relabel/rules.ts";
import { readAggregation, readConfig, readRelabel } from "./judged.ts";

const VALUES = ["", "1", "2", "3"];
const UNIVERSE: readonly Label[][] = VALUES.flatMap((a) =>
  VALUES.flatMap((b) =>
    VALUES.map((c) =>
      [["__name__", "m"] as const, ["a", a] as const, ["b", b] as const, ["c", c] as const].filter(
        ([, value]) => value !== "",
      ),
    ),
  ),
);

/** By name of an upstream: its url, and its vmagent where a proxy parts the paths of an address and where it does not. */
const UPSTREAMS: Readonly<
  Record<string, { readonly url: string; readonly vmagents: readonly [string, string] }>
> = {
  u: { url: "http://u:8429/api/v1/write", vmagents: ["u", "u"] },
  u_again: { url: "http://U:8429//prometheus/api/v1/push", vmagents: ["u", "u"] },
  v: { url: "https://v/api/v1/write", vmagents: ["v", "v"] },
  v_again: { url: "http://v:443/api/v1/push", vmagents: ["v", "v"] },
  w: { url: "http://w/insert/0/prometheus/api/v1/write", vmagents: ["w", "w"] },
  w_perhaps: { url: "http://w/insert/1/prometheus/api/v1/write", vmagents: ["w1", "w"] },
};
const WORLDS = [0, 1] as const;

const RULES = [
  { action: "keep", source_labels: ["a"], regex: "1" },
  { action: "keep", source_labels: ["a"], regex: "2|3" },
  { action: "drop", source_labels: ["a"], regex: "1" },
  { action: "keep", source_labels: ["a", "b"], regex: "1;.*" },
  { action: "keep", source_labels: ["b"], regex: "1|2" },
  { action: "keep", source_labels: ["b"], regex: "[23]" },
  { action: "drop", source_labels: ["b"], regex: "[23]" },
  { action: "drop", source_labels: ["c"], regex: "3" },
  { action: "keep", if: '{b="1",c!="2"}' },
  { action: "drop", if: '{b="1"}' },
  { action: "keep_metrics", regex: "m" },
  { action: "labeldrop", regex: "a" },
  { action: "labeldrop", regex: "[ab]" },
  { target_label: "b", replacement: "1" },
  { target_label: "b", replacement: "x" },
  { source_labels: ["c"], target_label: "a" },
];
const MATCHES = [null, '{a="1"}', '{b=~"1|2"}', '{a="2" or a="3"}', '{c!=""}'];

const names = fc.subarray(["a", "b", "c"], { minLength: 1 });
const route = fc.record({
  key: fc.oneof(
    names.map((by) => ({ by })),
    fc.constant("series"),
  ),
  tasks: fc.option(
    fc.oneof(
      names.map((by) => ({ count: 3, by })),
      fc.constant({ count: 3 }),
    ),
    { freq: 3 },
  ),
  rules: fc.array(fc.constantFrom(...RULES), { maxLength: 2 }),
  final: fc.boolean(),
  upstreams: fc.shuffledSubarray(Object.keys(UPSTREAMS), { minLength: 1, maxLength: 2 }),
});
type RouteTrial = typeof route extends fc.Arbitrary<infer Made> ? Made : never;

const aggregation = fc.record({
  grouping: fc.oneof(
    names.map((by) => ({ by })),
    names.map((by) => ({ by: [...by, "stream_task_id"] })),
    names.map((without) => ({ without })),
    fc.constant({}),
  ),
  output: fc.constantFrom("avg", "sum_samples"),
  match: fc.constantFrom(...MATCHES),
});

function configOf(routes: readonly RouteTrial[]): string {
  return JSON.stringify({
    routes: routes.map(({ key, tasks, rules, final, upstreams }, index) => ({
      name: `r${index}`,
      final,
      relabel_dialect: "victoriametrics",
      relabel_configs: rules,
      ...(tasks === null ? {} : { tasks }),
      placement: { key },
      upstreams: upstreams.map((name) => ({ name, url: UPSTREAMS[name]?.url ?? "" })),
    })),
  });
}

interface Copy extends Arrival {
  /** The series, by its number in the universe. */
  readonly series: number;
}

/** What arrives at aggregators in one of the worlds, by the group but for the task. */
class World {
  readonly #vmagents: ReadonlyMap<string, string>;
  readonly #aggregators: ReadonlySet<string>;

  constructor(world: 0 | 1, routes: readonly RouteTrial[], together: readonly number[]) {
    this.#vmagents = new Map(
      Object.entries(UPSTREAMS).map(([name, { vmagents }]) => [name, vmagents[world]]),
    );
    const judged = together.flatMap((index) => routes[index]?.upstreams ?? []);
    this.#aggregators = new Set(judged.map((name) => this.vmagentOf(name)));
  }

  vmagentOf(upstream: string): string {
    return this.#vmagents.get(upstream) ?? "";
  }

  aggregated<Some extends Arrival>(copies: readonly Some[]): Some[] {
    return copies.filter(({ upstream }) => this.#aggregators.has(this.vmagentOf(upstream)));
  }

  /** What is wrong with the groups that have series of a route. */
  faults(copies: readonly Copy[], judged: number, output: string): string[] {
    const groups = new Map<string, Copy[]>();
    for (const copy of this.aggregated(copies)) {
      groups.set(copy.groupWithoutTask, [...(groups.get(copy.groupWithoutTask) ?? []), copy]);
    }
    const ofRoute = [...groups].filter(([, members]) => members.some((copy) => copy.route === judged));
    return ofRoute.flatMap(([name, members]) => {
      const places = members.map(({ group, upstream }) => `${group} ${this.vmagentOf(upstream)}`);
      const isTwice = new Set(members.map(({ series }) => series)).size < members.length;
      const isSplit = new Set(places).size > new Set(members.map(({ group }) => group)).size;
      const isOfTasks = output === "avg" && new Set(members.map(({ task }) => task)).size > 1;
      return isTwice || isSplit || isOfTasks ? [name] : [];
    });
  }

  /** Whether two series, or one twice, show that something is wrong. */
  isShown(journeys: Journeys, witness: Judgement["witness"], judged: number): boolean {
    const [first, second] = witness?.series ?? [[], []];
    const [ones, others] = [first, second].map((labels) => this.aggregated(journeys.arrivals(labels)));
    return (ones ?? []).some((one, at) =>
      (others ?? []).some((other, otherAt) => {
        if (one.route !== judged && other.route !== judged) return false;
        if (one.groupWithoutTask !== other.groupWithoutTask) return false;
        const isTwice = first === second && at !== otherAt;
        const isSplit =
          one.group === other.group && this.vmagentOf(one.upstream) !== this.vmagentOf(other.upstream);
        return isTwice || isSplit || (first !== second && one.task !== other.task);
      }),
    );
  }
}

// Hundreds of cases, each with a universe, on a machine that others use as well.
describe("lint, of several routes", { timeout: 60_000 }, () => {
  it("calls safe only what splits no group and counts no series twice, and proves what it calls unsafe", () => {
    const verdicts = { safe: 0, unsafe: 0, unknown: 0 };
    fc.assert(
      fc.property(
        fc.array(route, { minLength: 2, maxLength: 3 }),
        aggregation,
        fc.constantFrom(0, 1),
        fc.boolean(),
        (routes, { grouping, output, match }, judged, isAlone) => {
          const routing = new Routing(readConfig(configOf(routes)));
          const written = {
            interval: "1m",
            outputs: [output],
            ...grouping,
            ...(match === null ? {} : { match }),
          };
          const [rule] = readAggregation(JSON.stringify([written]));
          if (rule === undefined) throw new Error("no rule");
          const vmagentRules = readRelabel("[]");
          const together = isAlone ? [judged] : [...routes.keys()];
          const { verdict, reason, witness } = judge({
            routing,
            route: judged,
            together,
            vmagentRules,
            rule,
          });
          verdicts[verdict] += 1;
          const journeys = new Journeys(routing, vmagentRules, rule);
          const copies = UNIVERSE.flatMap((series, number) =>
            journeys.arrivals(series).map((arrival) => ({ ...arrival, series: number })),
          );
          for (const each of WORLDS) {
            const world = new World(each, routes, together);
            if (verdict === "safe") expect(world.faults(copies, judged, output), reason).toEqual([]);
            if (verdict === "unsafe") expect(world.isShown(journeys, witness, judged), reason).toBe(true);
          }
        },
      ),
      { numRuns: 150 },
    );
    expect(Math.min(verdicts.safe, verdicts.unsafe)).toBeGreaterThan(20);
  });
});
