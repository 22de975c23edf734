import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { excludeEachOther, type Values, valuesAfterRules } from "../../src/lint/labelValues.ts";
import { type Label, RelabelRules } from "../../src/relabel/rules.ts";
import { readConfig } from "./judged.ts";

const VALUES = ["", "api", "auth", "web", "api\nx"];
const UNIVERSE: readonly Label[][] = VALUES.flatMap((a) =>
  VALUES.map((b) =>
    [["__name__", "m"] as const, ["a", a] as const, ["b", b] as const].filter(([, value]) => value !== ""),
  ),
);

const REGEXES = ["api", "api|auth", "a.+", "", "(api|web)", "[^w]*", "(?i)API"];
const label = fc.constantFrom("a", "b");
const either = fc.oneof(
  fc.record({
    action: fc.constantFrom("keep", "drop"),
    source_labels: label.map((name) => [name]),
    regex: fc.constantFrom(...REGEXES),
  }),
  fc.constantFrom(
    { action: "keep", source_labels: ["a", "b"], regex: "api;.*" },
    { action: "keepequal", source_labels: ["a"], target_label: "b" },
    { action: "labeldrop", regex: "a" },
    { action: "labelmap", regex: "a", replacement: "b" },
    { target_label: "a", replacement: "api" },
    { target_label: "a", replacement: "", source_labels: ["b"] },
    { target_label: "a", replacement: "api", source_labels: ["b"], regex: "web" },
    { source_labels: ["a"], target_label: "b" },
  ),
);
const selecting = fc.record({
  action: fc.constantFrom("keep", "drop"),
  if: fc.constantFrom(
    '{a="api"}',
    '{a!="api"}',
    '{a=~"api|web"}',
    '{a!~"a.+"}',
    '{a="api",b="web"}',
    '{a="api" or b=""}',
  ),
});

const trial = fc.oneof(
  fc.tuple(fc.constant("prometheus"), fc.array(either, { maxLength: 3 })),
  fc.tuple(fc.constant("victoriametrics"), fc.array(fc.oneof(either, selecting), { maxLength: 3 })),
);

function valuesAndSeries([dialect, rules]: readonly [string, object[]]): {
  readonly values: ReadonlyMap<string, Values>;
  readonly left: readonly (readonly Label[])[];
} {
  const written = {
    name: "r",
    relabel_dialect: dialect,
    relabel_configs: rules,
    upstreams: [{ name: "u", url: "http://u" }],
  };
  const config = readConfig(JSON.stringify({ routes: [written] }));
  const [route] = config.routes;
  if (route === undefined) throw new Error("no route");
  const applied = new RelabelRules(route.route.relabel);
  const left = UNIVERSE.map((series) => applied.apply(series)).flatMap((outcome) =>
    outcome.kind === "kept" ? [outcome.labels] : [],
  );
  return { values: valuesAfterRules(config, route.route), left };
}

function valueIn(labels: readonly Label[], name: string): string {
  return labels.find(([other]) => other === name)?.[1] ?? "";
}

describe("values of labels, as rules allow them", () => {
  it("are all that come through the rules", () => {
    fc.assert(
      fc.property(trial, (given) => {
        const { values, left } = valuesAndSeries(given);
        for (const [name, allowed] of values) {
          for (const labels of left) {
            const one: Values = { texts: [valueIn(labels, name)], tests: [] };
            expect(excludeEachOther(allowed, one), `${name} of ${JSON.stringify(labels)}`).toBe(false);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it("exclude each other only where no value comes through the rules of both", () => {
    let exclusive = 0;
    fc.assert(
      fc.property(trial, trial, (...both) => {
        const [one, other] = both.map(valuesAndSeries);
        if (one === undefined || other === undefined) throw new Error("no trials");
        for (const [name, values] of one.values) {
          const others = other.values.get(name);
          if (others === undefined || !excludeEachOther(values, others)) continue;
          exclusive += 1;
          const seen = new Set(one.left.map((labels) => valueIn(labels, name)));
          expect(other.left.filter((labels) => seen.has(valueIn(labels, name)))).toEqual([]);
        }
      }),
      { numRuns: 500 },
    );
    expect(exclusive).toBeGreaterThan(20);
  });
});
