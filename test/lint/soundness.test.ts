/**
 * Verdicts against brute force: every series of a small universe is placed by the code that routes, and grouped here, apart from
 * lint. What lint calls safe splits no group of the universe, and the series that it shows for unsafe are split here as well.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AggregationRule } from "../../src/config/aggregationFile.ts";
import type { Config } from "../../src/config/config.ts";
import type { Judgement } from "../../src/lint/judgement.ts";
import { Routing } from "../../src/lint/routing.ts";
import { judge } from "../../src/lint/verdict.ts";
import type { RelabelRuleList } from "../../src/relabel/options.ts";
import { type Label, RelabelRules } from "../../src/relabel/rules.ts";
import { compilePlacer, type Placer } from "../../src/route/place.ts";
import { spansOf } from "../route/exampleRoute.ts";
import { readAggregation, readConfig, readRelabel } from "./judged.ts";

const TASK = "stream_task_id";
const NAMES = ["a", "b", "c"];
const VALUES = ["", "1", "2", "3"];

const UNIVERSE: readonly Label[][] = ["m", "n"].flatMap((metric) =>
  VALUES.flatMap((a) =>
    VALUES.flatMap((b) =>
      VALUES.map((c) =>
        [["__name__", metric] as const, ["a", a] as const, ["b", b] as const, ["c", c] as const].filter(
          ([, value]) => value !== "",
        ),
      ),
    ),
  ),
);

/** A selector and what it says, said again. */
const MATCHES: readonly { selector: string | null; takes: (value: (name: string) => string) => boolean }[] = [
  { selector: null, takes: () => true },
  { selector: '{a="1"}', takes: (value) => value("a") === "1" },
  { selector: '{a=~"1|2"}', takes: (value) => /^(1|2)$/.test(value("a")) },
  { selector: '{b!=""}', takes: (value) => value("b") !== "" },
  { selector: '{c="2",b=~"2"}', takes: (value) => value("c") === "2" && value("b") === "2" },
  { selector: '{a="1" or a="1",b="3"}', takes: (value) => value("a") === "1" },
  { selector: '{a="1" or b="3"}', takes: (value) => value("a") === "1" || value("b") === "3" },
  { selector: '{__name__=~".+",a=""}', takes: (value) => value("a") === "" },
];

const RULES = [
  { action: "labeldrop", regex: "a" },
  { action: "labeldrop", regex: "b|c" },
  { action: "labeldrop", regex: "[ab]" },
  { action: "labelkeep", regex: "__name__|a|stream_task_id" },
  { action: "labelkeep", regex: "__name__|[bc]" },
  { target_label: "a", replacement: "1" },
  { source_labels: ["b"], target_label: "a" },
  { source_labels: ["a"], regex: "1|2", target_label: "c", replacement: "low" },
  { source_labels: ["a", "b"], target_label: "d" },
  { action: "labelmap", regex: "b", replacement: "c" },
  { action: "labelmap", regex: "(b)", replacement: "x_$1" },
  { action: "hashmod", source_labels: ["a"], modulus: 2, target_label: "b" },
  { action: "keep", source_labels: ["a"], regex: "1" },
  { action: "keep", source_labels: ["b"], regex: "1|2" },
  { action: "drop", source_labels: ["c"], regex: "3" },
  { action: "uppercase", source_labels: ["a"], target_label: "a" },
  { source_labels: ["a"], target_label: TASK },
  { source_labels: [TASK], target_label: "c" },
];

const names = (of: readonly string[]): fc.Arbitrary<string[]> => fc.subarray([...of], { minLength: 1 });
const rules = (most: number): fc.Arbitrary<object[]> =>
  fc.array(fc.constantFrom(...RULES), { maxLength: most });
const labelKey = fc.oneof(
  names([...NAMES, "__name__"]).map((by) => ({ by })),
  names([...NAMES, "__name__"]).map((without) => ({ without })),
);

const taskOptions = fc.tuple(fc.constantFrom(1, 2, 5, 64), fc.oneof(fc.constant({}), labelKey));
/** Only flat keys may have the task label. */
const flatKey = names([...NAMES, TASK]).map((by) => ({ by }));
const placementKey = fc.oneof(fc.constant("task"), fc.constant("series"), labelKey);

function route(mostRules: number): fc.Arbitrary<object> {
  return fc
    .record({
      tasks: fc.option(taskOptions),
      key: placementKey,
      flat: flatKey,
      wholeSet: fc.boolean(),
      dialect: fc.constantFrom("prometheus", "victoriametrics"),
      format: fc.constantFrom("pairs", "flat"),
      upstreams: fc.constantFrom(1, 2, 3),
      rules: rules(mostRules),
      written: rules(mostRules),
    })
    .map(({ tasks, key: wanted, flat, wholeSet, dialect, format, upstreams, rules: relabel, written }) => {
      const key = tasks === null && wanted === "task" ? "series" : wanted;
      const isBy = typeof key === "object" && "by" in key;
      return {
        name: "judged",
        relabel_dialect: dialect,
        relabel_configs: relabel,
        key_format: format,
        ...(tasks === null ? {} : { tasks: { count: tasks[0], ...tasks[1] } }),
        placement: {
          key: isBy && format === "flat" ? flat : key,
          ...(isBy && wholeSet ? { missing_key: "whole_set" } : {}),
        },
        upstreams: Array.from({ length: upstreams }, (_, at) => ({
          name: `u${at}`,
          url: `http://u${at}/w`,
          ...(at === 0 ? { write_relabel_configs: written } : {}),
        })),
      };
    });
}

const OUTPUTS = [["sum_samples"], ["avg"], ["count_series"], ["max", "increase"]];

function aggregation(mostRules: number): fc.Arbitrary<{ rule: object; match: number }> {
  const grouping = fc.oneof(
    fc.constant({}),
    names([...NAMES, TASK]).map((by) => ({ by })),
    names([...NAMES, TASK, "__name__"]).map((without) => ({ without })),
  );
  return fc
    .record({
      grouping,
      match: fc.nat(MATCHES.length - 1),
      outputs: fc.constantFrom(...OUTPUTS),
      dropped: fc.oneof(fc.constant([]), fc.subarray([...NAMES, TASK])),
      input: rules(mostRules),
    })
    .map(({ grouping: group, match, outputs, dropped, input }) => ({
      match,
      rule: {
        interval: "1m",
        outputs,
        ...group,
        drop_input_labels: dropped,
        input_relabel_configs: input,
        ...(MATCHES[match]?.selector === null ? {} : { match: MATCHES[match]?.selector }),
      },
    }));
}

interface Trial {
  readonly config: Config;
  readonly rule: AggregationRule;
  readonly vmagent: RelabelRuleList;
  readonly oracle: Oracle;
  readonly judgement: Judgement;
}

function trials(mostRules: number): fc.Arbitrary<Trial> {
  return fc
    .tuple(route(mostRules), aggregation(mostRules), rules(mostRules))
    .map(([judged, { rule: written, match }, relabel]) => {
      const config = readConfig(JSON.stringify({ routes: [judged] }));
      const [rule] = readAggregation(JSON.stringify([written]));
      if (rule === undefined) throw new Error("no rule");
      const vmagent = readRelabel(JSON.stringify(relabel));
      const oracle = new Oracle(config, vmagent, rule, match);
      return {
        config,
        rule,
        vmagent,
        oracle,
        judgement: judgementOf(config, vmagent, rule),
      };
    });
}

function judgementOf(config: Config, vmagentRules: RelabelRuleList, rule: AggregationRule): Judgement {
  return judge({ routing: new Routing(config), route: 0, together: [0], vmagentRules, rule });
}

interface Place {
  readonly upstream: number;
  readonly task: number | null;
  readonly group: string;
  readonly groupWithoutTask: string;
  readonly inputWithoutTask: string;
  /** The group that it would be in without a task label; null where the rule would not take it. */
  readonly plainGroup: string | null;
}

interface Grouped {
  readonly group: readonly Label[];
  readonly input: readonly Label[];
}

/** Where series come together, worked out without lint. */
class Oracle {
  readonly #place: Placer;
  readonly #relabel: RelabelRules;
  readonly #written: readonly RelabelRules[];
  readonly #vmagent: RelabelRules;
  readonly #input: RelabelRules;
  readonly #rule: AggregationRule;
  readonly #takes: (value: (name: string) => string) => boolean;

  constructor(config: Config, vmagent: RelabelRuleList, rule: AggregationRule, match: number) {
    const [judged] = config.routes;
    if (judged === undefined) throw new Error("no route");
    this.#place = compilePlacer(judged.route);
    this.#relabel = new RelabelRules(judged.route.relabel);
    this.#written = judged.route.upstreams.map(({ writeRelabel }) => new RelabelRules(writeRelabel));
    this.#vmagent = new RelabelRules(vmagent);
    this.#input = new RelabelRules(rule.inputRelabel);
    this.#rule = rule;
    this.#takes = MATCHES[match]?.takes ?? (() => false);
  }

  placeOf(series: readonly Label[]): Place | null {
    const routed = labelsAfter(this.#relabel, series);
    // The gateway drops what its rules leave without a name.
    if (routed === null || !routed.some(([name]) => name === "__name__")) return null;
    const { places, task } = this.#place(spansOf(routed));
    const upstream = places[0]?.upstreams[0] ?? -1;
    const others = task === null ? routed : routed.filter(([name]) => name !== TASK);
    // Such as no rule makes, to tell it from what a rule puts in its place.
    const value = `task-${task ?? 0}`;
    const grouped = this.#groupOf(task === null ? others : [...others, [TASK, value] as const], upstream);
    if (grouped === null) return null;
    const plain = this.#groupOf(others, upstream);
    const isOther = (label: Label): boolean => label[0] !== TASK || label[1] !== value;
    return {
      upstream,
      task,
      group: text(grouped.group),
      groupWithoutTask: text(grouped.group.filter(isOther)),
      inputWithoutTask: text(grouped.input.filter(isOther)),
      plainGroup: plain === null ? null : text(plain.group),
    };
  }

  #groupOf(labels: readonly Label[], upstream: number): Grouped | null {
    const written = labelsAfter(this.#written[upstream], labels);
    if (written === null || !written.some(([name]) => name === "__name__")) return null;
    const arriving = labelsAfter(this.#vmagent, written);
    const valueOf = (name: string): string => arriving?.find(([other]) => other === name)?.[1] ?? "";
    if (arriving === null || !this.#takes(valueOf)) return null;
    const left = arriving.filter(([name]) => !this.#rule.dropInputLabels.includes(name));
    const input = left.length === 0 ? null : labelsAfter(this.#input, left);
    if (input === null || input.length === 0) return null;
    const { by, without } = this.#rule;
    const group = input.filter(([name]) =>
      by.length > 0 ? name === "__name__" || by.includes(name) : !without.includes(name),
    );
    return { group, input };
  }
}

function labelsAfter(list: RelabelRules | undefined, labels: readonly Label[]): readonly Label[] | null {
  const outcome = list?.apply(labels);
  return outcome?.kind === "kept" ? outcome.labels : null;
}

function text(labels: readonly Label[]): string {
  return JSON.stringify([...labels].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** How many values of one thing come together under each value of another. */
function mostUnder(
  places: readonly Place[],
  key: (place: Place) => string,
  value: (place: Place) => unknown,
): number {
  const under = new Map<string, Set<unknown>>();
  for (const place of places) {
    const values = under.get(key(place)) ?? new Set();
    under.set(key(place), values.add(value(place)));
  }
  return Math.max(0, ...[...under.values()].map(({ size }) => size));
}

function placesIn(oracle: Oracle): Place[] {
  return UNIVERSE.map((series) => oracle.placeOf(series)).filter((place) => place !== null);
}

function expectSafe({ config, rule, oracle, judgement }: Trial): void {
  const places = placesIn(oracle);
  const { reason } = judgement;
  const upstreams = mostUnder(
    places,
    ({ group }) => group,
    ({ upstream }) => upstream,
  );
  expect(upstreams, reason).toBeLessThan(2);
  if ((config.routes[0]?.route.tasks ?? null) === null) return;
  // What is one group without the task label is one result, or several that nothing but the task label tells apart.
  const most = (key: (place: Place) => string, value: (place: Place) => unknown): number =>
    mostUnder(places, key, value);
  const whole = ({ group, plainGroup }: Place): string => plainGroup ?? group;
  const results = most(whole, ({ group }) => group);
  expect(
    most(whole, ({ groupWithoutTask }) => groupWithoutTask),
    reason,
  ).toBeLessThan(2);
  if (results < 2) return;
  expect(reason).toContain("merge over");
  expect(rule.outputs).not.toContain("avg");
  if (rule.outputs.includes("count_series") || rule.outputs.includes("increase")) {
    expect(
      most(
        ({ inputWithoutTask }) => inputWithoutTask,
        ({ task }) => task,
      ),
      reason,
    ).toBeLessThan(2);
  }
}

function expectUnsafe({ oracle, judgement }: Trial): void {
  const [one, other] = (judgement.witness?.series ?? []).map((series) => oracle.placeOf(series));
  if (!one || !other) throw new Error("a witness that does not arrive");
  const isSplit = one.group === other.group && one.upstream !== other.upstream;
  const isOfTasks = one.groupWithoutTask === other.groupWithoutTask && one.task !== other.task;
  expect(isSplit || isOfTasks, judgement.reason).toBe(true);
}

function check(trial: Trial): void {
  if (trial.judgement.verdict === "safe") expectSafe(trial);
  if (trial.judgement.verdict === "unsafe") expectUnsafe(trial);
}

// Hundreds of cases, each with a universe, on a machine that others use as well.
describe("lint, of any route and aggregation", { timeout: 60_000 }, () => {
  it("knows what the universe shows, where no rule changes a label on the way", () => {
    fc.assert(
      fc.property(trials(0), (trial) => {
        if (trial.judgement.verdict === "unknown") expectSafe(trial);
        check(trial);
      }),
      { numRuns: 200 },
    );
  });

  it("is right where rules change labels, or does not know", () => {
    const verdicts = { safe: 0, unsafe: 0, unknown: 0 };
    fc.assert(
      fc.property(trials(2), (trial) => {
        verdicts[trial.judgement.verdict] += 1;
        check(trial);
      }),
      { numRuns: 250 },
    );
    expect(Math.min(verdicts.safe, verdicts.unsafe)).toBeGreaterThan(30);
  });

  it("proposes keys with which the rule is safe", () => {
    fc.assert(
      fc.property(trials(1), ({ config, rule, vmagent, judgement }) => {
        for (const remedy of judgement.remedies) {
          const changed = remedied(config, rule, remedy);
          if (changed === null) continue;
          expect(judgementOf(changed.config, vmagent, changed.rule).verdict, remedy).toBe("safe");
        }
      }),
      { numRuns: 50 },
    );
  });
});

/** A route and a rule as a remedy wants them; null for remedies that are about something else. */
function remedied(
  config: Config,
  rule: AggregationRule,
  remedy: string,
): { readonly config: Config; readonly rule: AggregationRule } | null {
  const [judged] = config.routes;
  const [, key, instead] =
    /^placement: \{key: (series|\{.+?\})\}(?:, and in the rule (.+))?$/.exec(remedy) ?? [];
  const grouping = namesIn(instead ?? remedy);
  if (judged === undefined || (key === undefined && grouping === null)) return null;
  const { route } = judged;
  const keyed = namesIn(key ?? "");
  const placement = {
    ...route.placement,
    missingKey: "one_place" as const,
    key:
      keyed === null
        ? ({ kind: "all" } as const)
        : { kind: keyed.kind as "by" | "without", names: keyed.names },
  };
  return {
    config: {
      ...config,
      routes: [key === undefined ? judged : { ...judged, route: { ...route, placement } }],
    },
    rule: regrouped(rule, grouping),
  };
}

function namesIn(written: string): { readonly kind: string; readonly names: readonly string[] } | null {
  const [, kind, list = ""] = /^\{?(by|without|drop_input_labels): \[(.+)\]\}?$/.exec(written) ?? [];
  return kind === undefined ? null : { kind, names: list.split(", ") };
}

function regrouped(rule: AggregationRule, grouping: ReturnType<typeof namesIn>): AggregationRule {
  if (grouping === null) return rule;
  return {
    ...rule,
    [grouping.kind === "drop_input_labels" ? "dropInputLabels" : grouping.kind]: grouping.names,
  };
}
