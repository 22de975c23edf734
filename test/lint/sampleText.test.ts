import { describe, expect, it } from "vitest";
import { sampleText } from "../../src/lint/sampleText.ts";
import { compilePattern } from "../../src/relabel/pattern.ts";

const REGEXES = [
  "api",
  "api|web|db",
  "(http|grpc)_.+_(total|bucket)",
  "host-\\d+:(.+)",
  "node_.*",
  "[a-z]+_[0-9]{3}",
  "a\\.b\\.c",
  "(?:prod|dev)-eu",
  "x?yz",
  "[^:]+:.+",
  "[23]",
  "[ab.]x|[a-f\\d]+",
  "(?P<name>a|b)c",
  "..",
];

describe("a text for a regular expression", () => {
  it.each(REGEXES)("matches %s", (regex) => {
    const pattern = compilePattern(regex);
    for (let variant = 0; variant < 20; variant++) {
      const text = sampleText(regex, variant);
      expect(text === null ? "none" : pattern.matches(text), `${regex} ${text ?? ""}`).toBe(true);
    }
  });

  it("is another where the expression leaves a choice, one choice at a time", () => {
    const texts = [0, 1, 8].map((variant) => sampleText("(a|b)_.+", variant));
    expect(texts).toEqual(["a_v0", "b_v0", "a_v1"]);
    expect([0, 1, 2].map((variant) => sampleText("[23]", variant))).toEqual(["2", "3", "2"]);
  });

  it.each(["(", "a**", "\\b", "(?i)a"])("is none for %s, which it does not know", (regex) => {
    expect(sampleText(regex, 0)).toBeNull();
  });
});
