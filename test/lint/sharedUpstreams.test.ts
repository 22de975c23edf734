/** Two routes into the same aggregators, against brute force over every series of a small universe. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Journeys } from "../../src/lint/journeys.ts";
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

const RULES = [
  { action: "keep", source_labels: ["a"], regex: "1" },
  { action: "keep", source_labels: ["a", "b"], regex: "1;.*" },
  { action: "keep", source_labels: ["b"], regex: "1|2" },
  { action: "drop", source_labels: ["c"], regex: "3" },
  { action: "labeldrop", regex: "a" },
  { target_label: "b", replacement: "x" },
  { source_labels: ["c"], target_label: "a" },
];

const names = fc.subarray(["a", "b", "c"], { minLength: 1 });
const rules = fc.array(fc.constantFrom(...RULES), { maxLength: 2 });
interface TwoRoutes {
  readonly keys: readonly [string[], string[]];
  readonly rules: readonly [object[], object[]];
  readonly final: boolean;
  /** Whether the second has the upstreams in the other order. */
  readonly isReversed: boolean;
}

const routes: fc.Arbitrary<TwoRoutes> = fc.record({
  keys: fc.tuple(names, names),
  rules: fc.tuple(rules, rules),
  final: fc.boolean(),
  isReversed: fc.boolean(),
});
const grouping = fc.oneof(
  names.map((by) => ({ by })),
  names.map((without) => ({ without })),
  fc.constant({}),
);

function configOf({ keys, rules: [first, second], final, isReversed }: TwoRoutes): string {
  const upstreams = ["u", "v"].map((name) => ({ name, url: `http://${name}/w` }));
  const [one, other] = keys.map((by) => ({ key: { by } }));
  return JSON.stringify({
    routes: [
      { name: "first", final, relabel_configs: first, placement: one, upstreams },
      {
        name: "second",
        relabel_configs: second,
        placement: other,
        upstreams: isReversed ? upstreams.toReversed() : upstreams,
      },
    ],
  });
}

/** Of the groups with series of a route: the most upstreams, and the most copies of one series. */
function mostIn(journeys: Journeys, route: number): { upstreams: number; copies: number } {
  const urls = new Map<string, Set<string>>();
  const copies = new Map<string, number>();
  const ours = new Set<string>();
  for (const series of UNIVERSE) {
    const here = new Map<string, number>();
    for (const arrival of journeys.arrivals(series)) {
      const { group, url } = arrival;
      if (arrival.route === route) ours.add(group);
      urls.set(group, (urls.get(group) ?? new Set()).add(url));
      here.set(group, (here.get(group) ?? 0) + 1);
      copies.set(group, Math.max(copies.get(group) ?? 0, here.get(group) ?? 0));
    }
  }
  const groups = [...ours];
  return {
    upstreams: Math.max(1, ...groups.map((group) => urls.get(group)?.size ?? 0)),
    copies: Math.max(1, ...groups.map((group) => copies.get(group) ?? 0)),
  };
}

describe("lint, of two routes into the same aggregators", { timeout: 60_000 }, () => {
  it("calls safe only what splits no group and counts no series twice", () => {
    const verdicts = { safe: 0, unsafe: 0, unknown: 0 };
    fc.assert(
      fc.property(routes, grouping, fc.constantFrom(0, 1), (written, groups, route) => {
        const config = readConfig(configOf(written));
        const [rule] = readAggregation(JSON.stringify([{ interval: "1m", outputs: ["avg"], ...groups }]));
        if (rule === undefined) throw new Error("no rule");
        const vmagentRules = readRelabel("[]");
        const { verdict, reason } = judge({ config, route, vmagentRules, rule });
        verdicts[verdict] += 1;
        if (verdict !== "safe") return;
        const most = mostIn(new Journeys(config, vmagentRules, rule), route);
        expect(most, reason).toEqual({ upstreams: 1, copies: 1 });
      }),
      { numRuns: 300 },
    );
    expect(Math.min(verdicts.safe, verdicts.unsafe)).toBeGreaterThan(20);
  });
});
