import { describe, expect, it } from "vitest";
import { judged } from "./judged.ts";
import { configText, PAIRS, ruleText } from "./pairs.ts";

/** Selects the metrics that all pairs are about, without saying which: no label is fixed by it. */
const SOME = '{__name__=~"metric_.+"}';

describe("a route and an aggregation rule", () => {
  it.each(PAIRS)("$name: $verdict", (pair) => {
    const { verdict, reason, labels, witness, remedies } = judged(
      configText(pair),
      ruleText(pair, SOME),
      pair.relabel,
      0,
      pair.alone && [0],
    );
    expect({ verdict, reason }).toEqual({ verdict: pair.verdict, reason });
    if (pair.label !== undefined) {
      expect(labels).toContain(pair.label);
      expect(reason).toContain(pair.label);
    }
    expect(witness !== null).toBe(verdict === "unsafe");
    if (verdict === "safe") expect(remedies).toEqual([]);
  });
});

describe("a route behind another", () => {
  const upstreams = (name: string): string =>
    `upstreams: [{name: ${name}-0, url: "http://${name}-0/w"}, {name: ${name}-1, url: "http://${name}-1/w"}]`;
  const raw = `{name: raw, final: true, relabel_configs: [{action: keep, source_labels: [env], regex: dev}], ${upstreams("raw")}}`;
  const second = (key: string, rules = "[]"): string =>
    `routes: [${raw}, {name: second, placement: {key: ${key}}, relabel_configs: ${rules}, ${upstreams("second")}}]`;
  const rule = (by: string): string => `[{interval: 1m, by: [${by}], outputs: [avg]}]`;

  it("is judged by the series that the other leaves it", () => {
    expect(judged(second("{by: [env, job]}"), rule("job"), "[]", 1)).toMatchObject({
      verdict: "unsafe",
      labels: ["env"],
    });
    expect(judged(second("{by: [env, job]}"), rule("job, env"), "[]", 1).verdict).toBe("safe");
  });

  it("is not known to be right where the other leaves it none", () => {
    const kept = "[{action: keep, source_labels: [env], regex: dev}]";
    expect(judged(second("{by: [env, job]}", kept), rule("env"), "[]", 1).verdict).toBe("unknown");
  });
});
