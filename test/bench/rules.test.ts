import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { RelabelRules } from "../../src/relabel/rules.ts";
import { Mulberry } from "./corpus/mulberry.ts";
import { corpusSeries } from "./corpus/targets.ts";
import { indentedRules, readRules } from "./rules.ts";

const FILE = join(import.meta.dirname, "rules.yaml");
const SERIES = 20_000;

describe("the rules of the bench", () => {
  it("are two that keep, three that drop and five that replace", () => {
    const actions = readRules(FILE).rules.map(({ action }) => action);
    expect(actions).toEqual([
      ...["keep", "keep", "drop", "drop", "drop"],
      ...["replace", "replace", "replace", "replace", "replace"],
    ]);
  });

  it("keep every series of the corpus and change each", () => {
    const rules = new RelabelRules(readRules(FILE));
    const all = corpusSeries(new Mulberry(1));
    const unlike = Array.from({ length: SERIES }, () => Object.entries(all.next().value.labels))
      .map((labels) => rules.apply(labels))
      .filter((outcome) => outcome.kind !== "kept" || !outcome.changed);
    expect(unlike).toEqual([]);
  });

  it.each(
    readRules(FILE)
      .rules.map((rule, index) => ({ name: index + 1, rule }))
      .slice(5),
  )("change something with rule $name alone", ({ rule }) => {
    const rules = new RelabelRules({ dialect: "prometheus", rules: [rule] });
    const all = corpusSeries(new Mulberry(1));
    const changed = Array.from({ length: SERIES }, () => Object.entries(all.next().value.labels))
      .map((labels) => rules.apply(labels))
      .filter((outcome) => outcome.kind === "kept" && outcome.changed);
    expect(changed.length).toBeGreaterThan(SERIES / 10);
  });
});

describe("rules within another YAML document", () => {
  it("are indented, but for empty lines", () => {
    const lines = indentedRules(FILE, 6).split("\n");
    expect(lines.filter((line) => line !== "" && !line.startsWith("      "))).toEqual([]);
    expect(lines.some((line) => line === "")).toBe(true);
  });
});
