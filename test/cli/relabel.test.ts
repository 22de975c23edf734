import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import { run as command } from "../../src/cli/program.ts";
import { relabel } from "../../src/cli/relabel.ts";
import type { RelabelDialect } from "../../src/relabel/options.ts";

const folder = mkdtempSync(join(tmpdir(), "relabel-"));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

type Labels = [string, string][];

interface Rules {
  readonly rules?: readonly unknown[];
  readonly rules_yaml?: string;
}

interface Vector extends Rules {
  readonly id: string;
  readonly note?: string;
  readonly labels: Labels;
  /** null: dropped. */
  readonly expected: Labels | null;
}

interface ConfigVector extends Rules {
  readonly id: string;
  readonly note?: string;
  readonly valid: boolean;
}

const {
  vectors,
  configs,
  vm: vmVectors,
} = JSON.parse(readFileSync(new URL("../fixtures/relabel.json", import.meta.url), "utf8")) as {
  vectors: Vector[];
  configs: ConfigVector[];
  vm: Vector[];
};

/** A file of rules as Prometheus' own users write them. */
function yamlOf({ rules, rules_yaml: text }: Rules): string {
  return text ?? stringify(rules, { lineWidth: 0 });
}

function fileOf(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

/** Runs the command as a user does. */
async function printedBy(argv: readonly string[]): Promise<{ code: number; lines: readonly string[] }> {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  try {
    const code = await command(argv);
    return { code, lines: write.mock.calls.map(([text]) => text.toString().trimEnd()) };
  } finally {
    write.mockRestore();
  }
}

interface Run {
  readonly code: number;
  readonly lines: readonly string[];
  readonly errors: readonly string[];
}

async function run(
  rules: string,
  {
    series,
    input,
    json = false,
    dialect = "prometheus",
  }: { series?: string; input?: string; json?: boolean; dialect?: RelabelDialect },
): Promise<Run> {
  const lines: string[] = [];
  const errors: string[] = [];
  const options = {
    rules: fileOf("rules.yaml", rules),
    dialect,
    json,
    ...(input === undefined ? {} : { input: fileOf("series.ndjson", input) }),
  };
  const code = await relabel(
    series,
    options,
    (line) => lines.push(line),
    (line) => errors.push(line.replace(`${folder}/`, "")),
  );
  return { code, lines, errors };
}

const named = <T extends { id: string; note?: string }>(rows: T[]): (T & { name: string })[] =>
  rows.map((row) => ({ ...row, name: `${row.id} ${row.note ?? ""}` }));

describe("relabel of series that a real Prometheus relabeled", () => {
  it.each(named(vectors))("gives the labels of $name", async (vector) => {
    const input = `${JSON.stringify({ labels: vector.labels })}\n`;
    const { code, lines, errors } = await run(yamlOf(vector), { input, json: true });
    expect({ code, errors }).toEqual({ code: 0, errors: [] });
    const outcomes = lines.map((line) => JSON.parse(line) as unknown);
    if (vector.expected === null) expect(outcomes).toMatchObject([{ dropped: true }]);
    else expect(outcomes).toEqual([{ labels: vector.expected }]);
  });
});

describe("relabel of series that a real vmagent relabeled", () => {
  it.each(named(vmVectors))("gives the labels of $name", async ({ id, labels, expected, ...rules }) => {
    const args = ["--rules", fileOf(`${id}.yaml`, yamlOf(rules)), "--dialect", "victoriametrics", "--json"];
    const input = fileOf(`${id}.ndjson`, `${JSON.stringify({ labels })}\n`);
    const { code, lines } = await printedBy(["relabel", ...args, "--input", input]);
    expect(code).toBe(0);
    const outcomes = lines.map((line) => JSON.parse(line) as unknown);
    expect(outcomes).toEqual([expected === null ? { dropped: true, rule: 1 } : { labels: expected }]);
  });
});

describe("relabel with rules that a real Prometheus loaded or refused", () => {
  it.each(named(configs))("judges as it did: $name", async (vector) => {
    const { code, errors } = await run(yamlOf(vector), { series: "up" });
    expect(code).toBe(vector.valid ? 0 : 1);
    if (vector.valid) expect(errors).toEqual([]);
    else expect(errors).toEqual([expect.stringMatching(/^rules\.yaml:\d+:\d+: \[0\]\S*: rule 1: ./)]);
  });
});

const RULES = `
- source_labels: [job]
  regex: node
  action: Keep
- source_labels: [instance]
  regex: ([^:]+):\\d+
  target_label: host
- regex: instance
  action: labeldrop
- source_labels: [host]
  regex: bad
  action: drop
`;

describe("relabel of one series, for a person", () => {
  it("shows the labels after every rule", async () => {
    const { code, lines } = await run(RULES, { series: 'up{job="node",instance="good:1"}' });
    expect(code).toBe(0);
    expect(lines).toEqual([
      'up{job="node",instance="good:1"}',
      "  rule 1 keep       changes nothing",
      '  rule 2 replace    up{host="good",instance="good:1",job="node"}',
      '  rule 3 labeldrop  up{host="good",job="node"}',
      "  rule 4 drop       changes nothing",
    ]);
  });

  it("ends with the rule that drops the series", async () => {
    const { lines } = await run(RULES, { series: 'up{job="other"}' });
    expect(lines).toEqual(['up{job="other"}', "  rule 1 keep  drops the series"]);
  });
});

describe("relabel in the dialect of VictoriaMetrics, for a person", () => {
  const dialect = "victoriametrics";

  it("shows what comes behind the last rule", async () => {
    const rules = "- {target_label: __tmp, replacement: 1.0}\n- {source_labels: [__tmp], target_label: a}";
    const { lines } = await run(rules, { series: "up", dialect });
    expect(lines).toEqual([
      "up",
      '  rule 1 replace  up{__tmp="1.0"}',
      '  rule 2 replace  up{__tmp="1.0",a="1.0"}',
      '  the end         up{a="1.0"}',
    ]);
  });

  it("says when that drops the series", async () => {
    const { lines } = await run("- {target_label: __b, replacement: x}", { series: '{__a="1"}', dialect });
    expect(lines.slice(1)).toEqual([
      '  rule 1 replace  {__a="1",__b="x"}',
      "  the end         drops the series",
    ]);
  });

  it("shows labels of one name beside each other", async () => {
    const { lines } = await run("- {action: labelmap_all, regex: a, replacement: b}", {
      series: '{a="1",b="2"}',
      dialect,
      json: true,
    });
    expect(lines).toEqual(['{"labels":[["b","1"],["b","2"]]}']);
  });
});

describe("values of rules in the dialect of VictoriaMetrics", () => {
  it.each([
    { name: "nothing, which is the default", regex: "", value: "any", matches: true },
    { name: "null, the same", regex: "null", value: "any", matches: true },
    { name: "text in quotes", regex: '"1.0"', value: "1.0", matches: true },
    { name: "a fraction", regex: "1.0", value: "1", matches: true },
    { name: "a fraction as it was written", regex: "1.0", value: "1.0", matches: false },
    { name: "an octal number", regex: "010", value: "8", matches: true },
    { name: "a hexadecimal number", regex: "0x1_0", value: "16", matches: true },
    { name: "a negative number", regex: "-1", value: "-1", matches: true },
    { name: "an exponent", regex: "1e3", value: "1000", matches: true },
    { name: "a small number", regex: "1e-7", value: "0.0000001", matches: true },
    { name: "a large number", regex: "1.5e22", value: "15000000000000000000000", matches: true },
    { name: "a number beyond those", regex: "1e400", value: "1e400", matches: true },
    { name: "infinity below", regex: "-.inf", value: "-Inf", matches: true },
    { name: "no number", regex: "[a, .NaN]", value: "NaN", matches: true },
    { name: "no number as it was written", regex: ".nan", value: ".nan", matches: false },
    { name: "no number with a sign, which is text", regex: "-.nan", value: "-.nan", matches: true },
    { name: "no number in mixed case, which is text", regex: ".nAn", value: ".nAn", matches: true },
    { name: "no number in quotes", regex: '".nan"', value: ".nan", matches: true },
    { name: "yes", regex: "yes", value: "true", matches: true },
    { name: "Off", regex: "Off", value: "false", matches: true },
    { name: "a date", regex: "2020-01-01", value: "2020-01-01", matches: true },
    { name: "a list", regex: "[foo, b.*]", value: "bar", matches: true },
    { name: "a list of lists, numbers and nothing", regex: "[[x, 2.0], ~]", value: "null", matches: true },
    { name: "an empty list", regex: "[]", value: "", matches: true },
    { name: "an empty list and a value", regex: "[]", value: "x", matches: false },
  ])("make a regex as they do in vmagent: $name", async ({ regex, value, matches }) => {
    const rules = `- {source_labels: [a], regex: ${regex}, target_label: x, replacement: y}`;
    const input = JSON.stringify({
      labels: [
        ["a", value],
        ["b", "1"],
      ],
    });
    const { lines, errors } = await run(rules, { input, dialect: "victoriametrics", json: true });
    expect(errors).toEqual([]);
    expect(lines[0]?.includes('["x","y"]')).toBe(matches);
  });

  it("are not given where nothing stands", async () => {
    const rules = [
      "- {source_labels: [a, b], separator: , regex: , replacement: , action: , target_label: x, if: , match: }",
      "- {action: graphite, match: up, labels: {y: , z: 1.0}, regex: , replacement: }",
    ].join("\n");
    const { lines } = await run(rules, { series: 'up{a="1"}', dialect: "victoriametrics", json: true });
    expect(lines).toEqual(['{"labels":[["__name__","up"],["a","1"],["x","1;"],["z","1.0"]]}']);
  });

  it("are errors with their place", async () => {
    const rules = [
      "- {target_label: a, if: {b: c}}",
      "- {target_label: a, if: [up, 'sum(up)']}",
      "- {target_label: a, regex: 18446744073709551615}",
      "- {target_label: a, regex: [a, {b: c}]}",
      "- {action: graphite, match: up, labels: [a]}",
      "- {action: keep_if_equal, source_labels: [a]}",
      "- {target_label: a, regex: .inf}",
      "- {target_label: a, if: yes}",
      "- {target_label: a, if: [up, True]}",
    ].join("\n");
    const { code, errors } = await run(rules, { series: "up", dialect: "victoriametrics" });
    expect(code).toBe(1);
    expect(errors).toEqual([
      "rules.yaml:1:25: [0].if: rule 1: want text; got a map",
      "rules.yaml:2:25: [1].if: rule 2: want a series selector; got ( where the end should be",
      "rules.yaml:3:28: [2].regex: rule 3: want a number below 2^63, or text in quotes; got 18446744073709551615",
      "rules.yaml:4:32: [3].regex[1]: rule 4: want text; got a map",
      "rules.yaml:5:41: [4].labels: rule 5: want keys and values; got a list",
      "rules.yaml:6:42: [5].source_labels: rule 6: keep_if_equal wants two source_labels or more",
      'rules.yaml:7:28: [6].regex: rule 7: want a regular expression of RE2; missing argument to repetition operator: "+"',
      "rules.yaml:8:25: [7].if: rule 8: want a series selector; got yes, a truth value when it has no quotes",
      "rules.yaml:9:30: [8].if[1]: rule 9: want a series selector; got True, a truth value when it has no quotes",
    ]);
  });

  it("are selectors where they only look like truth values", async () => {
    const rules = `- {target_label: a, replacement: b, if: ["yes", '{__name__="true"}', tRue]}`;
    const { lines } = await run(rules, { series: "yes", dialect: "victoriametrics", json: true });
    expect(lines).toEqual(['{"labels":[["__name__","yes"],["a","b"]]}']);
  });

  it("that are deeper than recursion can go are errors with their place", async () => {
    const rules = `- {action: drop, if: "${"(".repeat(20_000)}"}`;
    const { code, errors } = await run(rules, { series: "up", dialect: "victoriametrics" });
    expect(code).toBe(1);
    expect(errors).toEqual([
      "rules.yaml:1:22: [0].if: rule 1: want a series selector; got the end where a metric name or a { should be",
    ]);
  });
});

describe("rules of VictoriaMetrics, read as Prometheus'", () => {
  it("are errors with their place that name the option", async () => {
    const rules = [
      "- {action: keep_metrics, regex: up}",
      "- {target_label: a, if: up}",
      "- {target_label: a, if: }",
      "- {action: labeldrop, regex: [a, b]}",
      "- {action: graphite, match: a, labels: {a: b}}",
    ].join("\n");
    const { code, errors } = await run(rules, { series: "up" });
    expect(code).toBe(1);
    expect(errors).toHaveLength(5);
    for (const [index, error] of errors.entries()) {
      const place = ["1:12: [0].action", "2:25: [1].if", "3:", "4:30: [3].regex", "5:"][index] ?? "";
      expect(error).toMatch(
        new RegExp(`^rules\\.yaml:${place.replaceAll(/[[\].]/g, "\\$&")}.*rule ${index + 1}: `),
      );
      expect(error).toContain("relabel_dialect: victoriametrics");
    }
  });
});

describe("relabel of a file of series", () => {
  const input = '{"labels":[["job","node"],["instance","bad:1"]]}\n\n{"labels":[["job","node"],["a",""]]}\n';

  it("prints a JSON line for each, rules counted from 1", async () => {
    const { code, lines } = await run(RULES, { input, json: true });
    expect(code).toBe(0);
    expect(lines).toEqual(['{"dropped":true,"rule":4}', '{"labels":[["job","node"],["a",""]]}']);
  });

  it("shows the steps of each without --json", async () => {
    const { lines } = await run(RULES, { input });
    expect(lines.filter((line) => !line.startsWith(" "))).toEqual([
      '{job="node",instance="bad:1"}',
      '{job="node",a=""}',
    ]);
  });

  it.each([
    { name: "no JSON", line: "{labels}", message: /series\.ndjson:2: not JSON/ },
    {
      name: "a name twice",
      line: '{"labels":[["a","1"],["a","2"]]}',
      message: /series\.ndjson:2: want a label set; got the label a twice$/,
    },
    {
      name: "no name",
      line: '{"labels":[["","1"]]}',
      message: /series\.ndjson:2: want a label set; got a label without a name$/,
    },
    {
      name: "half a character",
      line: '{"labels":[["a","\\ud83d"]]}',
      message: /series\.ndjson:2: .*label a that is no Unicode text$/,
    },
  ])("stops at a line with $name", async ({ line, message }) => {
    await expect(run("[]", { input: `{"labels":[]}\n${line}\n` })).rejects.toThrow(message);
  });
});

describe("relabel with a file of another shape", () => {
  const rule = "{target_label: x, replacement: 1.0}";

  it.each([
    { name: "a list", yaml: `- ${rule}` },
    { name: "relabel_configs", yaml: `relabel_configs: [${rule}]` },
    { name: "metric_relabel_configs", yaml: `metric_relabel_configs:\n- ${rule}` },
  ])("finds the rules: $name", async ({ yaml }) => {
    expect(await run(yaml, { series: "up", json: true })).toEqual({
      code: 0,
      errors: [],
      lines: ['{"labels":[["__name__","up"],["x","1.0"]]}'],
    });
  });

  it.each([
    { name: "nothing", yaml: "" },
    { name: "an empty list", yaml: "[]" },
    { name: "a key with nothing behind it", yaml: "relabel_configs:" },
  ])("has no rules: $name", async ({ yaml }) => {
    expect(await run(yaml, { series: "up", json: true })).toMatchObject({
      code: 0,
      lines: ['{"labels":[["__name__","up"]]}'],
    });
  });
});

describe("relabel with invalid rules", () => {
  it.each([
    {
      name: "every problem, each with its rule",
      yaml: [
        "- regx: a",
        "-",
        "- {target_label: a, regex: '(?=a)'}",
        "- {action: hashmod, target_label: a}",
        "- {source_labels: [''], target_label: a}",
        "- {action: lowercase, target_label: a, replacement:}",
        "- text",
      ].join("\n"),
      errors: [
        "1:3: [0].regx: rule 1: unknown key; did you mean regex?",
        "2:2: [1]: rule 2: want keys and values; got nothing",
        '3:28: [2].regex: rule 3: want a regular expression of RE2; invalid or unsupported Perl syntax: "(?="',
        "4:3: [3].modulus: rule 4: hashmod wants a modulus above 0",
        '5:20: [4].source_labels[0]: rule 5: want a label name; got ""',
        "6:52: [5].replacement: rule 6: lowercase takes no replacement",
        "7:3: [6]: rule 7: want keys and values; got text",
      ],
    },
    {
      name: "values of another kind",
      yaml: "- {source_labels: a, target_label: [b], regex: {c: d}, modulus: '1'}",
      errors: [
        "1:19: [0].source_labels: rule 1: want a list of label names; got text",
        "1:36: [0].target_label: rule 1: want text; got a list",
        "1:48: [0].regex: rule 1: want text; got a map",
        '1:65: [0].modulus: rule 1: want a whole number from 1 to 18446744073709551615; got "1"',
      ],
    },
    {
      name: "half a character in an escape",
      yaml: '- {target_label: a, replacement: "\\ud83d"}',
      errors: ['1:34: [0].replacement: rule 1: want Unicode text; got "\\ud83d"'],
    },
    {
      name: "a list under two keys",
      yaml: "relabel_configs: []\nmetric_relabel_configs: []",
      errors: ["1:1: want either relabel_configs or metric_relabel_configs; got both"],
    },
    {
      name: "another key beside the list",
      yaml: "relabel_configs: []\nrelabel_config: []",
      errors: ["2:1: relabel_config: unknown key; did you mean relabel_configs?"],
    },
    {
      name: "no list",
      yaml: "text",
      errors: ["1:1: want a list of rules, or one under relabel_configs or metric_relabel_configs; got text"],
    },
  ])("tells $name", async ({ yaml, errors }) => {
    const outcome = await run(yaml, { series: "up" });
    expect(outcome).toEqual({ code: 1, lines: [], errors: errors.map((error) => `rules.yaml:${error}`) });
  });

  it("says so when there is no file", async () => {
    const errors: string[] = [];
    const code = await relabel(
      "up",
      { rules: join(folder, "none.yaml"), dialect: "prometheus", json: false },
      () => undefined,
      (line) => errors.push(line),
    );
    expect(code).toBe(1);
    expect(errors).toEqual([`${join(folder, "none.yaml")}:1:1: cannot read the file: no such file`]);
  });
});

describe("a modulus in YAML's notations", () => {
  it.each([
    { text: "16", valid: true },
    { text: "+16", valid: true },
    { text: "0x1F", valid: true },
    { text: "0b1_1", valid: true },
    { text: "0o17", valid: true },
    { text: "010", valid: true },
    { text: "18446744073709551615", valid: true },
    { text: "18446744073709551616", valid: false },
    { text: "_1", valid: false },
    { text: "0x", valid: false },
    { text: "09", valid: false },
    { text: "1.5", valid: false },
    { text: "-1", valid: false },
    { text: "0", valid: false },
  ])("is a number or none: $text", async ({ text, valid }) => {
    const { code } = await run(`- {action: hashmod, target_label: h, modulus: ${text}}`, { series: "up" });
    expect(code).toBe(valid ? 0 : 1);
  });

  it("counts a leading zero as octal", async () => {
    const octal = await run("- {action: hashmod, target_label: h, modulus: 010}", {
      series: "up",
      json: true,
    });
    const decimal = await run("- {action: hashmod, target_label: h, modulus: 8}", {
      series: "up",
      json: true,
    });
    expect(octal.lines).toEqual(decimal.lines);
  });
});

describe("the command relabel", () => {
  it.each([
    { name: "neither series nor input", args: [] },
    { name: "both", args: ["up", "--input", "x"] },
    { name: "an option that is none", args: ["up", "--rule", "x"] },
    { name: "a dialect that is none", args: ["up", "--dialect", "thanos"] },
  ])("is wrong usage with $name", async ({ args }) => {
    expect(await command(["relabel", "--rules", fileOf("rules.yaml", "[]"), ...args])).toBe(2);
  });

  it("exits 1 for series that it cannot read", async () => {
    expect(await command(["relabel", "--rules", fileOf("rules.yaml", "[]"), "up{"])).toBe(1);
  });
});
