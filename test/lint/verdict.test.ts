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
