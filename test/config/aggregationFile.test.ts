import { describe, expect, it } from "vitest";
import { parseAggregation } from "../../src/config/aggregationFile.ts";
import { formatProblem } from "../../src/config/problem.ts";
import { faultOf } from "../../src/relabel/rules.ts";
import { BAD_AGGREGATIONS, EVERY_KEY } from "./aggregations.ts";

function read(text: string): { rules: unknown; problems: string[] } {
  const { rules, problems } = parseAggregation(text, "aggr.yaml", faultOf);
  return { rules, problems: problems.map(formatProblem) };
}

describe("a file of stream aggregation", () => {
  it("may have every key of vmagent 1.145", () => {
    const { rules, problems } = read(EVERY_KEY);
    expect(problems).toEqual([]);
    expect(rules).toMatchObject([
      {
        line: 1,
        name: "requests",
        match: ['{job="a"}', "up"],
        interval: "1m30s",
        dedupIntervalMs: 30_000,
        by: ["job", "env"],
        without: [],
        outputs: ["sum_samples", "quantiles(0.5, 0.9)"],
        dropInputLabels: ["replica"],
        inputRelabel: { dialect: "victoriametrics", rules: [{ action: "labeldrop", regex: "pod" }] },
        outputRelabel: { dialect: "victoriametrics", rules: [{ targetLabel: "tier", replacement: "one" }] },
        unknown: [],
      },
      { line: 20, name: null, match: ["up"], without: ["instance"], dedupIntervalMs: 0 },
    ]);
  });

  it("is warned about for keys and outputs that may be of a newer vmagent, which stay in the rule", () => {
    const { rules, problems } = read("[{interval: 1m, outputs: [median], shard: 1}]");
    expect(rules).toMatchObject([{ outputs: ["median"], unknown: ["shard"] }]);
    expect(problems).toEqual([
      "aggr.yaml:1:36: warning: [0].shard: a key that vmagent 1.145 does not have; what it does is not known here",
    ]);
  });

  it("is warned about for what comes from the environment", () => {
    const { rules, problems } = read("- {interval: 1m, outputs: [avg], by: [job, '%{GROUP}']}");
    expect(rules).toMatchObject([{ unknown: ["%{GROUP}"] }]);
    expect(problems).toEqual([
      "aggr.yaml:1:3: warning: [0]: %{GROUP}: the environment of vmagent is not known here, so neither is what the rule does",
    ]);
  });

  it.each(BAD_AGGREGATIONS)("is refused for $name, with its place", ({ text, message }) => {
    const { rules, problems } = read(text);
    expect(rules).toBeNull();
    expect(problems.join("\n")).toContain(message);
  });
});
