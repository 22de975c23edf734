import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LONGEST_REMEMBERED, rememberLast } from "../../src/relabel/lastAnswer.ts";
import { RelabelRules } from "../../src/relabel/rules.ts";
import type { Label } from "../../src/relabel/workingLabels.ts";
import { ruleOf } from "./rule.ts";

describe("the answer to the last text", () => {
  it("is given without asking again, also when it is null, and forgotten with the next text", () => {
    const asked: string[] = [];
    const answer = rememberLast((text) => {
      asked.push(text);
      return text === "none" ? null : text.length;
    });
    expect(["none", "none", "a", "a", "none"].map(answer)).toEqual([null, null, 1, 1, null]);
    expect(asked).toEqual(["none", "a", "none"]);
  });

  it("is asked for each time when the text is long, and that of the text before stays", () => {
    const asked: string[] = [];
    const answer = rememberLast((text) => asked.push(text));
    const long = "a".repeat(LONGEST_REMEMBERED + 1);
    for (const text of ["a", long, long, "a"]) answer(text);
    expect(asked).toEqual(["a", long, long]);
  });
});

describe.each(["prometheus", "victoriametrics"] as const)(
  "rules of %s that went through other series before",
  (dialect) => {
    it("make of a series what new ones make of it", () => {
      const rules = [
        ruleOf({ action: "drop", sourceLabels: ["a", "b"], regex: "x;y+" }),
        ruleOf({ action: "keep", sourceLabels: ["a", "b", "c"], separator: "", regex: "[^z]*z?" }),
        ruleOf({ sourceLabels: ["a", "b"], regex: "(x*);(.+)", targetLabel: "to_$1", replacement: "$2" }),
        ruleOf({ sourceLabels: ["c"], regex: "[xy]+", targetLabel: "d", replacement: "constant" }),
      ];
      const value = fc.constantFrom("", "x", "y", "yy", "z", "xz", "x".repeat(300));
      const labels = fc
        .record({ a: value, b: value, c: value })
        .map((values) => Object.entries(values).filter(([, text]) => text !== "") as Label[]);
      fc.assert(
        fc.property(fc.array(labels, { maxLength: 12 }), (sets) => {
          const used = new RelabelRules({ dialect, rules });
          for (const set of sets) {
            expect(used.apply(set)).toEqual(new RelabelRules({ dialect, rules }).apply(set));
          }
        }),
        { seed: 1, numRuns: 300 },
      );
    });
  },
);
