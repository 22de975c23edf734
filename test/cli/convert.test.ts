import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { convert } from "../../src/cli/convert.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { LoadOptions } from "../../src/config/load.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";

const OPTIONS = { legacyHash: "jump", checkRule: faultOf, checkPlacement: placementFault } as const;
const FIXTURES = new URL("../fixtures/legacy/", import.meta.url).pathname;

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "convert-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

interface Run {
  readonly code: number;
  readonly printed: string;
  readonly errors: readonly string[];
}

function run(file: string, legacyHash: LoadOptions["legacyHash"] = "jump"): Run {
  const lines: string[] = [];
  const errors: string[] = [];
  const code = convert(
    file,
    { legacyHash, checkRule: faultOf, checkPlacement: placementFault },
    (line) => lines.push(line),
    (line) => errors.push(line),
  );
  return { code, printed: lines.map((line) => `${line}\n`).join(""), errors };
}

function write(yaml: string): string {
  const file = join(folder, "config.yaml");
  writeFileSync(file, yaml);
  return file;
}

const ODD_TEXTS = `router_rules:
  - router_name: 0123
    hash_labels: {mode: 7, labels: [yes, "null", 1, "a: b", 'line # no comment']}
    upstreams: {upstream_urls: ["http://me:0%0A7@a/w?x=%20y", "http://1/w"]}`;

describe("convert of an old file", () => {
  it.each(
    ["by-task.yaml", "by-labels.yaml", "replaced.yaml", "rules.yaml"].flatMap((name) => [
      { name, legacyHash: "jump" as const },
      { name, legacyHash: "hashmod" as const },
    ]),
  )("prints YAML that means the same: $name, $legacyHash", ({ name, legacyHash }) => {
    const { code, printed, errors } = run(FIXTURES + name, legacyHash);
    expect(code).toBe(0);
    expect(errors.length).toBeGreaterThan(0);
    const native = loadConfig(write(printed), OPTIONS);
    expect(native.problems.filter(({ severity }) => severity === "error")).toEqual([]);
    expect(native.origin).toBe("native");
    expect(native.config).toEqual(
      loadConfig(FIXTURES + name, { legacyHash, checkRule: faultOf, checkPlacement: placementFault }).config,
    );
  });

  it("keeps texts that look like something else", () => {
    const old = loadConfig(write(ODD_TEXTS), OPTIONS).config;
    expect(old?.routes[0]?.route.placement.key).toEqual({
      kind: "by",
      names: ["yes", "null", "1", "a: b", "line # no comment"],
    });
    const { printed } = run(write(ODD_TEXTS));
    expect(loadConfig(write(printed), OPTIONS).config).toEqual(old);
  });

  it("writes the scalars of rules as they stood", () => {
    const { printed } = run(`${FIXTURES}rules.yaml`);
    for (const text of [
      "separator: null",
      "regex: 1.0",
      "replacement: 1.0",
      "modulus: 0x10",
      'regex: "010"',
    ]) {
      expect(printed).toContain(`${text}\n`);
    }
  });

  it("keeps rules whatever their texts", () => {
    const odd = [
      "1.0",
      "010",
      "0x1F",
      "1_000",
      "yes",
      "true",
      "null",
      "~",
      "",
      " a",
      "a: b",
      "#a",
      "|",
      "é\n🙂",
      "\t",
    ];
    const texts = fc.oneof(fc.constantFrom(...odd), fc.string({ unit: "grapheme" }));
    const scalars = texts.chain((text) => {
      // Plain only where YAML reads the same text from it; the rest is quoted, as a person would have to.
      const plain = /^[\w.~]+$/.test(text) ? [text] : [];
      return fc.constantFrom(JSON.stringify(text), ...plain);
    });
    fc.assert(
      fc.property(fc.array(fc.tuple(scalars, scalars), { minLength: 1, maxLength: 5 }), (rules) => {
        const list = rules.map(([separator, replacement]) => {
          return `{target_label: a, separator: ${separator}, replacement: ${replacement}}`;
        });
        const upstreams = "upstreams: {upstream_urls: [http://a/w]}";
        const file = write(`router_rules: [{metric_relabel_configs: [${list.join(", ")}], ${upstreams}}]`);
        const old = loadConfig(file, OPTIONS).config;
        expect(old?.routes[0]?.route.relabel.rules.length).toBe(rules.length);
        expect(loadConfig(write(run(file).printed), OPTIONS).config).toEqual(old);
      }),
      { numRuns: 200, seed: 11 },
    );
  });

  it("says on top where it comes from", () => {
    const { printed } = run(`${FIXTURES}by-task.yaml`, "hashmod");
    expect(printed.split("\n")[0]).toBe(
      `# Converted from ${FIXTURES}by-task.yaml, a file of the old Go gateway, with --legacy-hash hashmod.`,
    );
  });

  it("prints nothing but problems when there are errors", () => {
    const { code, printed, errors } = run(`${FIXTURES}beyond.yaml`);
    expect(code).toBe(1);
    expect(printed).toBe("");
    expect(errors.join("\n")).toContain("writes to no Kafka");
  });
});

describe("convert of a native file", () => {
  it("says that there is nothing to do", () => {
    const file = write("routes: [{name: r, upstreams: [{name: a, url: http://a/w}]}]");
    expect(run(file)).toEqual({ code: 1, printed: "", errors: [`${file}: is a native file already`] });
  });
});
