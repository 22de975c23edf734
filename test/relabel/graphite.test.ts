import { describe, expect, it } from "vitest";
import {
  expandGraphite,
  matchGraphite,
  parseGraphiteLabels,
  parseGraphiteMatch,
} from "../../src/relabel/graphite.ts";

describe("a Graphite pattern", () => {
  it.each<{ name: string; pattern: string; metric: string; found: string[] | null }>([
    { name: "no star", pattern: "a.b", metric: "a.b", found: ["a.b"] },
    { name: "no star, and more behind", pattern: "a.b", metric: "a.bc", found: null },
    { name: "a star for a part", pattern: "a.*.c", metric: "a.b.c", found: ["a.b.c", "b"] },
    { name: "a star for nothing", pattern: "a.*.c", metric: "a..c", found: ["a..c", ""] },
    { name: "a star across a dot", pattern: "a.*.d", metric: "a.b.c.d", found: null },
    { name: "a star at the end", pattern: "a.*", metric: "a.b", found: ["a.b", "b"] },
    { name: "a star at the end, and a dot more", pattern: "a.*", metric: "a.b.c", found: null },
    {
      name: "the first place of what is behind a star",
      pattern: "*b*",
      metric: "abab",
      found: ["abab", "a", "ab"],
    },
    { name: "the first place, though another would do", pattern: "*b", metric: "abab", found: null },
    { name: "a star behind a star, which is text", pattern: "**", metric: "ab", found: null },
    { name: "the same, found", pattern: "**", metric: "ab*", found: ["ab*", "ab"] },
  ])("is matched as vmagent does: $name", ({ pattern, metric, found }) => {
    expect(matchGraphite(parseGraphiteMatch(pattern), metric)).toEqual(found);
  });
});

describe("a Graphite label", () => {
  it.each([
    { template: "$1/$2", text: "x/y" },
    { template: "${1}0$0", text: "x0x.y" },
    { template: "$3 ${3} $12", text: "$3 ${3} $12" },
    { template: "$ $$ $a ${a} ${}", text: "$ $$ $a ${a} ${}" },
    { template: "$1 ${2 $1", text: "x ${2 $1" },
  ])("is $text for $template", ({ template, text }) => {
    const [label] = parseGraphiteLabels(new Map([["l", template]]));
    expect(label?.name).toBe("l");
    expect(expandGraphite(label?.template ?? [], ["x.y", "x", "y"])).toBe(text);
  });
});
