import { describe, expect, it } from "vitest";
import type { RelabelRule } from "../../src/relabel/options.ts";
import { faultOf, type Label, RelabelRules, type RelabelOutcome } from "../../src/relabel/rules.ts";
import { ruleOf } from "./rule.ts";

type Fields = Partial<RelabelRule>;

function apply(rules: readonly Fields[], labels: readonly Label[]): RelabelOutcome {
  return new RelabelRules({ dialect: "victoriametrics", rules: rules.map(ruleOf) }).apply(labels);
}

/** What the target x gets of a value of a, null when nothing. */
function replaced(value: string, fields: Fields): string | null {
  const outcome = apply([{ sourceLabels: ["a"], targetLabel: "x", ...fields }], [["a", value]]);
  if (outcome.kind !== "kept") return null;
  return outcome.labels.find(([name]) => name === "x")?.[1] ?? null;
}

describe("replace of vmagent", () => {
  it.each<{ name: string; value: string; regex?: string; replacement?: string; x: string | null }>([
    { name: "the default copies", value: "a\nb", x: "a\nb" },
    {
      name: "`.*` is the default and has its group",
      value: "ab",
      regex: ".*",
      replacement: "[$1]",
      x: "[ab]",
    },
    { name: "so is it between anchors", value: "ab", regex: "^.*$", replacement: "[$1]", x: "[ab]" },
    { name: "so are groups in groups, as one", value: "ab", regex: "((.*))", replacement: "[$2]", x: "[]" },
    { name: "so is a named group", value: "ab", regex: "(?P<n>.*)", replacement: "[$1$n]", x: "[ab]" },
    {
      name: "so it is behind a group of nothing",
      value: "ab",
      regex: "(?P<n>(?-s)).*",
      replacement: "[$1]",
      x: "[ab]",
    },
    {
      name: "so it is behind one repeated",
      value: "ab",
      regex: "(|){2}(?i:.{0,})",
      replacement: "[$1]",
      x: "[ab]",
    },
    {
      name: "not where a dot is no line feed",
      value: "ab",
      regex: "()(?-s:.*)",
      replacement: "[$1]",
      x: "[]",
    },
    { name: "nor where it takes little", value: "ab", regex: "()(?U:.*)", replacement: "[$1]", x: "[]" },
    { name: "two of them are not", value: "ab", regex: ".*.*", replacement: "[$1]", x: "[]" },
    { name: "a match on lines, taken as it is", value: "a\nb", regex: "(a).b", replacement: "$1", x: "a\nb" },
    { name: "the default on lines, taken as it is", value: "a\nb", replacement: "[$1]", x: "a\nb" },
    { name: "a literal across lines", value: "a\nb", regex: "a\nb", replacement: "y", x: "y" },
    {
      name: "a dot behind a literal is no line feed",
      value: "foo\n",
      regex: "foo.",
      replacement: "y",
      x: null,
    },
    { name: "but with more behind it is", value: "foo\nb", regex: "foo.b", replacement: "y", x: "foo\nb" },
    {
      name: "no boundary seen behind a literal",
      value: "foobar",
      regex: "foo\\b.*",
      replacement: "y",
      x: "foobar",
    },
    { name: "nor one at its end", value: "foo", regex: "foo\\b.*", replacement: "y", x: null },
    {
      name: "a beginning seen behind a literal",
      value: "foobar",
      regex: "foo^bar",
      replacement: "y",
      x: "foobar",
    },
    { name: "anchors of its own", value: "a", regex: "^^a$$", replacement: "y", x: "y" },
    { name: "an escaped dollar sign at its end", value: "a$", regex: "a\\$", replacement: "y", x: "y" },
    { name: "a label in the replacement", value: "ab", replacement: "{{a}}-{{b}}", x: "ab-" },
    {
      name: "a label before a group's name",
      value: "2bar",
      regex: "(.)(.*)",
      replacement: "$2{{a}}",
      x: null,
    },
    { name: "a label beside a group", value: "ab", regex: "(.)(.*)", replacement: "${2}{{a}}", x: "bab" },
    { name: "a label that holds a reference", value: "a$1", regex: "(.)(.*)", replacement: "{{a}}", x: "aa" },
    { name: "one that holds it where the regex is the default", value: "$0", replacement: "{{a}}", x: "$0" },
    {
      name: "a label on lines, with empty groups",
      value: "a\nb",
      regex: "(.)(.*)",
      replacement: "[$1]{{a}}",
      x: "[]a\nb",
    },
    { name: "an open reference to a label", value: "ab", replacement: "{{a", x: "{{a" },
  ])("does what a real one does: $name", ({ value, regex, replacement, x }) => {
    expect(replaced(value, { regex: regex ?? null, replacement: replacement ?? null })).toBe(x);
  });

  it("does not check names that it makes, and forgets a label without one", () => {
    const rule = { sourceLabels: ["a"], targetLabel: "$1", regex: "(.*?)x?" };
    expect(apply([rule], [["a", "1 😀"]])).toMatchObject({
      labels: [
        ["1 😀", "1 😀"],
        ["a", "1 😀"],
      ],
    });
    expect(apply([rule], [["a", "x"]])).toEqual({ kind: "kept", labels: [["a", "x"]], changed: true });
  });
});

describe("whether a text matches, in vmagent", () => {
  it.each([
    { regex: "(prod|staging).*eu.*", text: "dev-eu-1", matches: true },
    { regex: "(prod|staging)-.+eu.+", text: "dev-eu-1", matches: true },
    { regex: "[a-f]\\d.*(\\.eu).*", text: "x.eu", matches: true },
    { regex: "prod.*eu.*", text: "dev-eu-1", matches: false },
    { regex: "z(a|b).*eu.*", text: "dev-eu-1", matches: false },
    { regex: "[^p].*eu.*", text: "pp-eu-1", matches: false },
    { regex: "(prod|staging).*eu.+", text: "dev-eu-1", matches: false },
    { regex: "(prod|staging).*(eu|us).*", text: "dev-eu-1", matches: false },
    { regex: "prod1|prod2.*eu.*", text: "dev-eu-1", matches: false },
    { regex: ".+eu.+", text: "-eu-", matches: true },
    { regex: ".+eu.+", text: "eu-eu-", matches: false },
  ])("is $matches for $text and $regex", ({ regex, text, matches }) => {
    const rule = { action: "keep", sourceLabels: ["a"], regex };
    expect(apply([rule], [["a", text]]).kind).toBe(matches ? "kept" : "dropped");
  });
});

describe("the actions that only vmagent has", () => {
  const labels: readonly Label[] = [
    ["__name__", "m"],
    ["a", "foo"],
    ["b", "foobar"],
  ];

  it.each<{ name: string; rule: Fields; kept: boolean }>([
    {
      name: "all contained",
      rule: { action: "keep_if_contains", sourceLabels: ["a", "z"], targetLabel: "b" },
      kept: true,
    },
    {
      name: "not all contained",
      rule: { action: "keep_if_contains", sourceLabels: ["a", "b"], targetLabel: "a" },
      kept: false,
    },
    {
      name: "dropped as contained",
      rule: { action: "drop_if_contains", sourceLabels: ["a"], targetLabel: "b" },
      kept: false,
    },
    { name: "all equal", rule: { action: "keep_if_equal", sourceLabels: ["a", "a"] }, kept: true },
    {
      name: "one of three differs",
      rule: { action: "keep_if_equal", sourceLabels: ["a", "a", "b"] },
      kept: false,
    },
    { name: "both missing, equal", rule: { action: "drop_if_equal", sourceLabels: ["y", "z"] }, kept: false },
    { name: "a metric to keep", rule: { action: "keep_metrics", regex: "m|n" }, kept: true },
    { name: "no metric to keep", rule: { action: "keep_metrics", regex: "n" }, kept: false },
    { name: "a metric to drop", rule: { action: "Drop_Metrics", regex: "m" }, kept: false },
    { name: "keep, and an if that does not match", rule: { action: "keep", if: ["n"] }, kept: false },
    {
      name: "keep_metrics, and an if that does not",
      rule: { action: "keep_metrics", regex: "m", if: ["n"] },
      kept: false,
    },
    { name: "keep, and an if that matches", rule: { action: "keep", if: ["m"] }, kept: true },
    { name: "drop, and an if that does not match", rule: { action: "drop", if: ["n"] }, kept: true },
    { name: "drop, and an if that matches", rule: { action: "drop", if: ["m"] }, kept: false },
    { name: "drop, and an empty list of ifs", rule: { action: "drop", if: [] }, kept: false },
  ])("keep or drop: $name", ({ rule, kept }) => {
    expect(apply([rule], labels)).toEqual(
      kept ? { kind: "kept", labels, changed: false } : { kind: "dropped", rule: 0 },
    );
  });

  it.each<{ name: string; rule: Fields; expected: readonly Label[] }>([
    {
      name: "replace_all of every match",
      rule: { action: "replace_all", sourceLabels: ["a"], regex: "o", replacement: "<$0>", targetLabel: "a" },
      expected: [
        ["__name__", "m"],
        ["a", "f<o><o>"],
        ["b", "foobar"],
      ],
    },
    {
      name: "replace_all of the default in other words, which has no groups",
      rule: {
        action: "replace_all",
        sourceLabels: ["a"],
        regex: "(?s-i:)(.*)",
        replacement: "<$1>",
        targetLabel: "a",
      },
      expected: [
        ["__name__", "m"],
        ["a", "<>"],
        ["b", "foobar"],
      ],
    },
    {
      name: "replace_all of a quote without an end",
      rule: {
        action: "replace_all",
        sourceLabels: ["b"],
        regex: "x|\\Qoo",
        replacement: "-",
        targetLabel: "b",
      },
      expected: [
        ["__name__", "m"],
        ["a", "foo"],
        ["b", "f-bar"],
      ],
    },
    {
      name: "replace_all that finds nothing sets nothing",
      rule: { action: "replace_all", sourceLabels: ["a"], regex: "x", targetLabel: "y" },
      expected: labels,
    },
    {
      name: "replace_all keeps its anchors",
      rule: { action: "replace_all", sourceLabels: ["a"], regex: "^f", replacement: "F", targetLabel: "a" },
      expected: [
        ["__name__", "m"],
        ["a", "Foo"],
        ["b", "foobar"],
      ],
    },
    {
      name: "and in capitals it does not",
      rule: { action: "REPLACE_ALL", sourceLabels: ["a"], regex: "^o", replacement: "0", targetLabel: "a" },
      expected: [
        ["__name__", "m"],
        ["a", "f00"],
        ["b", "foobar"],
      ],
    },
    {
      name: "labelmap_all renames",
      rule: { action: "labelmap_all", regex: "^[ab]$", replacement: "x_$0" },
      expected: [
        ["__name__", "m"],
        ["x_a", "foo"],
        ["x_b", "foobar"],
      ],
    },
    {
      name: "labelmap_all may give two labels one name",
      rule: { action: "labelmap_all", regex: "^a$", replacement: "b" },
      expected: [
        ["__name__", "m"],
        ["b", "foo"],
        ["b", "foobar"],
      ],
    },
    {
      name: "graphite",
      rule: {
        action: "graphite",
        match: "*",
        labels: new Map([
          ["x", "$1"],
          ["a", ""],
        ]),
      },
      expected: [
        ["__name__", "m"],
        ["b", "foobar"],
        ["x", "m"],
      ],
    },
    {
      name: "graphite that does not match",
      rule: { action: "graphite", match: "x", labels: new Map([["x", "$1"]]) },
      expected: labels,
    },
    {
      name: "an if that does not match skips the rule",
      rule: { if: ['{a="x"}', "n"], targetLabel: "x", replacement: "y" },
      expected: labels,
    },
  ])("change labels: $name", ({ rule, expected }) => {
    expect(apply([rule], labels)).toMatchObject({ kind: "kept", labels: expected });
  });
});

describe("labels in the order of vmagent", () => {
  it("let the last in the series win a collision of labelmap, not the one with the greater name", () => {
    const rule = { action: "labelmap", regex: "(k)_.", replacement: "$1" };
    expect(
      apply(
        [rule],
        [
          ["k_z", "1"],
          ["k_a", "2"],
        ],
      ),
    ).toMatchObject({
      labels: [
        ["k", "2"],
        ["k_a", "2"],
        ["k_z", "1"],
      ],
    });
  });

  it("let labelmap copy on what it has just overwritten, but not what it has added", () => {
    const rule = { action: "labelmap", regex: "(a+)", replacement: "${1}a" };
    const labels: readonly Label[] = [
      ["a", "1"],
      ["aa", "2"],
    ];
    expect(apply([rule], labels)).toMatchObject({
      labels: [
        ["a", "1"],
        ["aa", "1"],
        ["aaa", "1"],
      ],
    });
  });
});

describe("the end of a list of vmagent", () => {
  it("removes labels with two underscores, those of the rules and those that came in, and empty ones", () => {
    const labels: readonly Label[] = [
      ["__x", "1"],
      ["__name__", "m"],
      ["a", ""],
      ["_b", "2"],
    ];
    expect(apply([{ targetLabel: "__y", replacement: "3" }], labels)).toEqual({
      kind: "kept",
      labels: [
        ["__name__", "m"],
        ["_b", "2"],
      ],
      changed: true,
    });
  });

  it("shows labels with two underscores to every rule", () => {
    const rules = [
      { targetLabel: "__tmp", replacement: "1" },
      { sourceLabels: ["__tmp"], targetLabel: "a" },
    ];
    expect(apply(rules, [])).toMatchObject({ labels: [["a", "1"]] });
  });

  it("drops a series that has no labels left", () => {
    expect(apply([{ targetLabel: "__tmp", replacement: "1" }], [["__x", "1"]])).toEqual({
      kind: "dropped",
      rule: 0,
    });
  });

  it("comes with the rule that removes the last label", () => {
    const rules = [{ action: "labeldrop" }, { targetLabel: "x", replacement: "1" }];
    expect(apply(rules, [["a", "1"]])).toEqual({ kind: "dropped", rule: 0 });
  });

  it("is not there without rules", () => {
    const labels: readonly Label[] = [["__x", ""]];
    expect(apply([], labels)).toEqual({ kind: "kept", labels, changed: false });
  });
});

describe("faults of rules in the dialect of VictoriaMetrics", () => {
  it.each<{ name: string; rule: Fields; field: string; reason: RegExp }>([
    {
      name: "an unknown action",
      rule: { action: "keepp" },
      field: "action",
      reason: /^want one of replace, replace_all,/,
    },
    { name: "no target", rule: {}, field: "target_label", reason: /^replace wants a target_label/ },
    {
      name: "keep of nothing",
      rule: { action: "keep" },
      field: "source_labels",
      reason: /^keep wants source_labels, or an if$/,
    },
    {
      name: "keep_metrics of nothing",
      rule: { action: "keep_metrics", regex: "" },
      field: "regex",
      reason: /or an if$/,
    },
    {
      name: "hashmod of nothing",
      rule: { action: "hashmod", targetLabel: "h", modulus: 1n },
      field: "source_labels",
      reason: /^hashmod wants source_labels$/,
    },
    {
      name: "uppercase of nothing",
      rule: { action: "uppercase", targetLabel: "h" },
      field: "source_labels",
      reason: /^uppercase wants/,
    },
    {
      name: "one label that equals itself",
      rule: { action: "drop_if_equal", sourceLabels: ["a"] },
      field: "source_labels",
      reason: /two source_labels or more$/,
    },
    {
      name: "a target of labels that are equal",
      rule: { action: "keep_if_equal", sourceLabels: ["a", "b"], targetLabel: "a" },
      field: "target_label",
      reason: /takes no target_label$/,
    },
    {
      name: "a regex of what is contained",
      rule: { action: "keep_if_contains", sourceLabels: ["a"], targetLabel: "b", regex: ".*" },
      field: "regex",
      reason: /takes no regex$/,
    },
    {
      name: "sources of keep_metrics",
      rule: { action: "keep_metrics", sourceLabels: ["a"], regex: "x" },
      field: "source_labels",
      reason: /takes no source_labels$/,
    },
    {
      name: "a match without graphite",
      rule: { targetLabel: "a", match: "x" },
      field: "match",
      reason: /^replace takes no match$/,
    },
    {
      name: "graphite without labels",
      rule: { action: "graphite", match: "x" },
      field: "labels",
      reason: /^graphite wants labels$/,
    },
    {
      name: "graphite without a match",
      rule: { action: "graphite", labels: new Map([["a", "b"]]) },
      field: "match",
      reason: /^graphite wants a match/,
    },
    {
      name: "a replacement of graphite",
      rule: { action: "graphite", match: "x", labels: new Map([["a", "b"]]), replacement: "$1" },
      field: "replacement",
      reason: /takes no replacement$/,
    },
    {
      name: "a regex that ends its group",
      rule: { targetLabel: "a", regex: "a)|(?:b" },
      field: "regex",
      reason: /RE2; unexpected \)/,
    },
    {
      name: "a lookahead",
      rule: { targetLabel: "a", regex: "a(?=b)" },
      field: "regex",
      reason: /RE2; invalid or unsupported Perl syntax/,
    },
    {
      name: "a selector that is none",
      rule: { targetLabel: "a", if: ["m", "{"] },
      field: "if",
      reason: /^want a series selector; got the end where/,
    },
  ])("name the field and the reason: $name", ({ rule, field, reason }) => {
    const fault = faultOf(ruleOf(rule), "victoriametrics");
    expect(fault?.field).toBe(field);
    expect(fault?.reason).toMatch(reason);
    expect(() => apply([rule], [])).toThrow(fault?.reason);
  });

  it.each<{ name: string; rule: Fields }>([
    { name: "an empty action", rule: { action: "", targetLabel: "a" } },
    { name: "an empty replacement of labelmap", rule: { action: "labelmap", replacement: "" } },
    {
      name: "fields that labeldrop ignores",
      rule: { action: "labeldrop", sourceLabels: ["a"], targetLabel: "b", modulus: 1n },
    },
    {
      name: "a replacement that uppercase ignores",
      rule: { action: "uppercase", sourceLabels: ["a"], targetLabel: "b", replacement: "x" },
    },
    { name: "keepequal without sources", rule: { action: "keepequal", targetLabel: "b", separator: "x" } },
    { name: "an empty match and no labels", rule: { targetLabel: "a", match: "", labels: new Map() } },
  ])("are none: $name", ({ rule }) => {
    expect(faultOf(ruleOf(rule), "victoriametrics")).toBeNull();
  });
});

describe("what only VictoriaMetrics knows, in rules of Prometheus", () => {
  it.each<{ name: string; rule: Fields; field: string }>([
    { name: "an action", rule: { action: "keep_metrics", regex: "x" }, field: "action" },
    { name: "an if", rule: { targetLabel: "a", if: ["m"] }, field: "if" },
    { name: "a match", rule: { targetLabel: "a", match: "" }, field: "match" },
    { name: "labels", rule: { targetLabel: "a", labels: new Map() }, field: "labels" },
  ])("is foreign: $name", ({ rule, field }) => {
    expect(faultOf(ruleOf(rule), "prometheus")).toMatchObject({ field, isForeign: true });
  });

  it("is not what nobody knows", () => {
    expect(faultOf(ruleOf({ action: "kep" }), "prometheus")).toMatchObject({ isForeign: false });
  });
});
