import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RelabelRule } from "../../src/relabel/options.ts";
import { faultOf, type Label, RelabelRules, type RelabelOutcome } from "../../src/relabel/rules.ts";
import { ruleOf } from "./rule.ts";

function compile(rules: readonly RelabelRule[]): RelabelRules {
  return new RelabelRules({ dialect: "prometheus", rules });
}

function apply(rules: readonly RelabelRule[], labels: readonly Label[]): RelabelOutcome {
  return compile(rules).apply(labels);
}

const NODE: readonly Label[] = [
  ["__name__", "up"],
  ["job", "node"],
];

describe("rules that change nothing", () => {
  const unsorted: readonly Label[] = [
    ["job", "node"],
    ["__name__", "up"],
    ["empty", ""],
  ];

  it.each([
    { name: "no rules", rules: [] },
    { name: "a keep that keeps", rules: [ruleOf({ action: "keep", sourceLabels: ["job"], regex: "n.*" })] },
    { name: "a label set to the value it has", rules: [ruleOf({ targetLabel: "job", replacement: "node" })] },
    {
      name: "a label removed and set again",
      rules: [
        ruleOf({ targetLabel: "job", replacement: "" }),
        ruleOf({ targetLabel: "job", replacement: "node" }),
      ],
    },
    {
      name: "a label added and removed again",
      rules: [ruleOf({ targetLabel: "x", replacement: "1" }), ruleOf({ action: "labeldrop", regex: "x" })],
    },
    { name: "a label removed that was empty", rules: [ruleOf({ targetLabel: "empty", replacement: "" })] },
    { name: "a label removed that was not there", rules: [ruleOf({ targetLabel: "none", replacement: "" })] },
  ])("give the labels back as they came, unsorted: $name", ({ rules }) => {
    const outcome = apply(rules, unsorted);
    expect(outcome).toEqual({ kind: "kept", labels: unsorted, changed: false });
    expect(outcome.kind === "kept" && outcome.labels).toBe(unsorted);
  });
});

describe("rules that change labels", () => {
  it("give them sorted by bytes, without empty ones, and leave what came in alone", () => {
    const labels: readonly Label[] = Object.freeze([
      Object.freeze(["😀", "1"] as const),
      Object.freeze(["\uff5e", "2"] as const),
      Object.freeze(["a", ""] as const),
    ]);
    expect(apply([ruleOf({ targetLabel: "b", replacement: "3" })], labels)).toEqual({
      kind: "kept",
      changed: true,
      labels: [
        ["b", "3"],
        ["\uff5e", "2"],
        ["😀", "1"],
      ],
    });
  });

  it("may leave none", () => {
    expect(apply([ruleOf({ action: "labeldrop" })], NODE)).toEqual({
      kind: "kept",
      changed: true,
      labels: [],
    });
  });

  it("do not see what came in again after a rule removed it", () => {
    const rules = [
      ruleOf({ action: "labeldrop", regex: "job" }),
      ruleOf({ sourceLabels: ["job"], targetLabel: "x", replacement: "[$1]" }),
    ];
    expect(apply(rules, NODE)).toMatchObject({ labels: [NODE[0], ["x", "[]"]] });
  });

  it("let the label that was set last win a collision of labelmap, not the one with the greater name", () => {
    const rules = [
      ruleOf({ targetLabel: "k_b", replacement: "first" }),
      ruleOf({ targetLabel: "k_a", replacement: "second" }),
      ruleOf({ action: "labelmap", regex: "(k)_.", replacement: "$1" }),
    ];
    expect(apply(rules, [["k_z", "came in"]])).toMatchObject({
      labels: [
        ["k", "second"],
        ["k_a", "second"],
        ["k_b", "first"],
        ["k_z", "came in"],
      ],
    });
  });

  it("move a label that was removed and set again behind those set before it", () => {
    const rules = [
      ...["a", "b"].map((name) => ruleOf({ targetLabel: `k_${name}`, replacement: name })),
      ruleOf({ targetLabel: "k_a", replacement: "" }),
      ruleOf({ targetLabel: "k_a", replacement: "again" }),
      ruleOf({ action: "labelmap", regex: "(k)_.", replacement: "$1" }),
    ];
    expect(apply(rules, [])).toMatchObject({
      labels: [
        ["k", "again"],
        ["k_a", "again"],
        ["k_b", "b"],
      ],
    });
  });

  it("hash into a modulus of 64 bits", () => {
    const rules = [ruleOf({ action: "hashmod", targetLabel: "h", modulus: 2n ** 64n - 1n })];
    // The last eight bytes of the MD5 of nothing.
    expect(apply(rules, [])).toMatchObject({ labels: [["h", BigInt("0xe9800998ecf8427e").toString()]] });
  });

  it("map every match of a pattern that is not anchored as a whole", () => {
    const rules = [ruleOf({ action: "labelmap", regex: "a)|(?:b|😀|", replacement: "<$0>" })];
    expect(apply(rules, [["acb", "1"]])).toMatchObject({
      labels: [
        ["<a>c<b>", "1"],
        ["acb", "1"],
      ],
    });
    expect(apply(rules, [["c😀", "1"]])).toMatchObject({
      labels: [
        ["c<😀>", "1"],
        ["c😀", "1"],
      ],
    });
  });
});

describe("rules that drop", () => {
  const rules = [
    ruleOf({ targetLabel: "x", replacement: "1" }),
    ruleOf({ action: "drop", sourceLabels: ["x"], regex: "1" }),
    ruleOf({ targetLabel: "y", replacement: "2" }),
  ];

  it("say which one did, and stop", () => {
    const seen: number[] = [];
    const outcome = compile(rules).apply(NODE, (rule) => seen.push(rule));
    expect(outcome).toEqual({ kind: "dropped", rule: 1 });
    expect(seen).toEqual([0]);
  });
});

describe("rules that are watched", () => {
  it("tell the labels after each, and come to the same end", () => {
    const rules = compile([
      ruleOf({ targetLabel: "x", replacement: "1" }),
      ruleOf({ action: "labelkeep", regex: "x" }),
    ]);
    const steps: (readonly Label[])[] = [];
    const outcome = rules.apply(NODE, (_, labels) => steps.push(labels));
    expect(steps).toEqual([[...NODE, ["x", "1"]], [["x", "1"]]]);
    expect(outcome).toEqual(rules.apply(NODE));
  });
});

describe("compiled rules, used for many series", () => {
  it("remember nothing of one series for another", () => {
    const name = fc.constantFrom("a", "b", "c", "__name__", "é");
    const value = fc.string({ unit: fc.constantFrom("a", "b", ";", "😀"), maxLength: 3 });
    const labelSet = fc
      .uniqueArray(fc.tuple(name, value), { selector: ([label]) => label })
      .map((labels): readonly Label[] => labels);
    const list = [
      ruleOf({
        sourceLabels: ["a", "b"],
        regex: "(a*)(;|b)+(?P<n>.*)",
        targetLabel: "c",
        replacement: "$n$1",
      }),
      ruleOf({ action: "labelmap", regex: "(?i)([a-b])|é", replacement: "x$1" }),
      ruleOf({ action: "drop", sourceLabels: ["c"], regex: ".*b|a" }),
      ruleOf({ action: "hashmod", sourceLabels: ["c"], targetLabel: "h", modulus: 7n }),
    ];
    const shared = compile(list);
    fc.assert(
      fc.property(labelSet, (labels) => {
        expect(shared.apply(labels)).toEqual(apply(list, labels));
      }),
    );
  });
});

describe("hostile patterns", () => {
  it.each([
    { name: "nested repetition", regex: "(a+)+b", text: "a".repeat(30) },
    { name: "a text of 64 KiB", regex: "(x+x+)+y", text: "x".repeat(65_536) },
  ])("take no time to speak of: $name", ({ regex, text }) => {
    const rules = compile([
      ruleOf({ action: "drop", sourceLabels: ["a"], regex }),
      ruleOf({ sourceLabels: ["a"], regex, targetLabel: "b" }),
    ]);
    const started = performance.now();
    expect(rules.apply([["a", text]])).toMatchObject({ kind: "kept", changed: false });
    // A backtracking engine needs years for either.
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

describe("faults of rules", () => {
  it.each<{ name: string; rule: Partial<RelabelRule>; field: string; reason: RegExp }>([
    { name: "an unknown action", rule: { action: "kep" }, field: "action", reason: /^want one of replace,/ },
    { name: "an inherited name", rule: { action: "toString" }, field: "action", reason: /got "toString"/ },
    { name: "no target", rule: {}, field: "target_label", reason: /^replace wants a target_label/ },
    {
      name: "no modulus",
      rule: { action: "hashmod", targetLabel: "a" },
      field: "modulus",
      reason: /^hashmod wants a modulus above 0/,
    },
    {
      name: "a regex where none is used, even the default",
      rule: { action: "keepequal", targetLabel: "a", regex: "(.*)" },
      field: "regex",
      reason: /^keepequal takes no regex/,
    },
    {
      name: "source labels where none are used, even no names",
      rule: { action: "labeldrop", sourceLabels: [] },
      field: "source_labels",
      reason: /^labeldrop takes no source_labels/,
    },
    {
      name: "a replacement where none is used",
      rule: { action: "Uppercase", targetLabel: "a", replacement: "x" },
      field: "replacement",
      reason: /^uppercase takes no replacement/,
    },
    {
      name: "a bad regex, used or not",
      rule: { action: "hashmod", targetLabel: "a", modulus: 1n, regex: "a(?=b)" },
      field: "regex",
      reason: /RE2; invalid or unsupported Perl syntax: "\(\?="$/,
    },
  ])("name the field and the reason: $name", ({ rule, field, reason }) => {
    const fault = faultOf(ruleOf(rule), "prometheus");
    expect(fault?.field).toBe(field);
    expect(fault?.reason).toMatch(reason);
    expect(() => compile([ruleOf(rule)])).toThrow(fault?.reason);
  });

  it.each<{ name: string; rule: Partial<RelabelRule> }>([
    { name: "an action in capitals", rule: { action: "KEEP" } },
    {
      name: "the default separator and replacement written out",
      rule: { action: "dropequal", targetLabel: "a", separator: ";", replacement: "$1" },
    },
    {
      name: "a modulus of 0 where none is used",
      rule: { action: "labelkeep", modulus: 0n, targetLabel: "" },
    },
  ])("are none: $name", ({ rule }) => {
    expect(faultOf(ruleOf(rule), "prometheus")).toBeNull();
  });
});
