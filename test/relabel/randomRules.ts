/** Random label sets and lists of Prometheus' relabel rules that are likely to change or select them. */
import type { Labels } from "../../src/cli/seriesLines.ts";
import type { Random } from "../fuzz/random.ts";
import { flawedRegex, GROUP_NAMES, randomRegex } from "./randomRegex.ts";
import { randomCharacter, randomText } from "./randomText.ts";
import { type FieldValue, Plain, rulesYaml, type WrittenRule } from "./ruleYaml.ts";

export const LABEL_NAMES = [
  ...["__name__", "a", "b", "c", "ab", "aB", "a_1", "job", "instance"],
  ...["__tmp", "__meta_x", "é", "k", "\u212a", "\uff5e", "😀", "with space", "line\nfeed", "a.b"],
] as const;
const VALUES = [
  "a",
  "b",
  "ab",
  "10.0.0.1:9100",
  "node",
  "",
  "foo-bar_baz",
  "1",
  "00",
  "a;b",
  "$1",
  "a\nb",
] as const;
const ACTIONS = [
  ...["replace", "keep", "drop", "keepequal", "dropequal", "hashmod"],
  ...["labelmap", "labeldrop", "labelkeep", "lowercase", "uppercase"],
] as const;
/** One rule in so many is a replace, whatever else comes up: it is the action with the most corners. */
const REPLACE_SHARE = 3;
const MODULI = [
  1n,
  2n,
  7n,
  10n,
  128n,
  1000n,
  2n ** 32n,
  2n ** 53n - 1n,
  2n ** 53n + 1n,
  2n ** 63n,
  2n ** 64n - 1n,
] as const;

/**
 * Distinct label sets with a metric name and without empty values, sorted by the bytes of their names: what a store keeps as
 * it came.
 */
export function randomLabelSets(random: Random, count: number): Labels[] {
  const sets = new Map<string, Labels>();
  while (sets.size < count) {
    const labels = randomLabelSet(random);
    sets.set(JSON.stringify(labels), labels);
  }
  return [...sets.values()];
}

function randomLabelSet(random: Random): Labels {
  const labels = new Map([
    ["__name__", random.once(3) ? randomValue(random) || "m" : random.pick(["m", "up", "a:b"])],
  ]);
  for (const name of LABEL_NAMES.slice(1)) {
    if (!random.once(2)) continue;
    const value = randomValue(random);
    if (value !== "") labels.set(name, value);
  }
  return [...labels].toSorted(([one], [other]) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
}

function randomValue(random: Random): string {
  if (random.once(60)) return randomText(random, 3000);
  return random.once(2) ? random.pick(VALUES) : randomText(random, 8);
}

/** YAML of a list of one to five rules. */
export function randomList(random: Random, sets: readonly Labels[]): string {
  return rulesYaml(Array.from({ length: 1 + random.below(5) }, () => randomRule(random, sets)));
}

/** A rule that is valid, unless its random pattern is not. */
export function randomRule(random: Random, sets: readonly Labels[]): WrittenRule {
  const action = random.once(REPLACE_SHARE) ? "replace" : random.pick(ACTIONS);
  const written = action === "replace" && random.once(2) ? {} : { action: inSomeCase(random, action) };
  return { ...written, ...fieldsOf(random, action, sets) };
}

/** YAML of a list that is often not valid: a field is missing or wrong, or fields do not go together. */
export function flawedList(random: Random, sets: readonly Labels[]): string {
  return random.once(30) ? random.pick(FLAWED_YAML) : rulesYaml([flawedRule(random, sets)]);
}

const FLAWED_YAML = [
  ...["- null\n", "-\n", "- {}\n", "- []\n", "- keep\n", "keep\n", "- action: keep\n  action: drop\n"],
  ...[
    "- action: keep\n   regex: a\n",
    "- action: keep\n  regex: [a]\n",
    "- &rule {action: keep}\n- *rule\n",
    "- - action: keep\n",
  ],
] as const;

function flawedRule(random: Random, sets: readonly Labels[]): WrittenRule {
  return flawed(random, randomRule(random, sets), sets);
}

/** The rule with one field left out or written otherwise. */
export function flawed(random: Random, valid: WrittenRule, sets: readonly Labels[]): WrittenRule {
  const rule: Record<string, FieldValue> = { ...valid };
  const fields = Object.keys(rule);
  switch (random.below(6)) {
    case 0:
      Reflect.deleteProperty(rule, fields[random.below(fields.length)] ?? "");
      break;
    case 1:
    case 2:
      rule["regex"] = flawedRegex(random, someText(random, sets));
      break;
    case 3:
      rule["action"] = random.pick([
        "",
        "Replace",
        "keep_if_equal",
        "none",
        new Plain("null"),
        new Plain("true"),
        "KEEP",
      ]);
      break;
    default:
      rule[random.pick(FLAWED_FIELDS)] = random.pick(FLAWED_VALUES);
  }
  return rule;
}

const FLAWED_FIELDS = [
  ...["source_labels", "separator", "regex", "modulus", "target_label", "replacement"],
  ...["sourceLabels", "if", "Action"],
] as const;
const FLAWED_VALUES: readonly [FieldValue, ...FieldValue[]] = [
  ...([
    "",
    ";",
    "$1",
    "(.*)",
    "a",
    "1",
    "${1}",
    ["a"],
    [],
    [""],
    ["a", new Plain("null")],
    { a: "b" },
  ] as const),
  ...[
    "null",
    "~",
    "0",
    "1",
    "-1",
    "1.5",
    "010",
    "0x10",
    "1_000",
    "yes",
    "1.0",
    "2020-01-01",
    "18446744073709551616",
  ].map((text) => new Plain(text)),
];

function inSomeCase(random: Random, action: string): string {
  if (!random.once(8)) return action;
  return random.once(2) ? action.toUpperCase() : action.slice(0, 1).toUpperCase() + action.slice(1);
}

function fieldsOf(random: Random, action: (typeof ACTIONS)[number], sets: readonly Labels[]): WrittenRule {
  switch (action) {
    case "replace":
      return {
        ...(random.once(10) ? {} : sourceOf(random)),
        ...(random.once(6) ? {} : { regex: randomRegex(random, someText(random, sets)) }),
        target_label: random.once(4) ? randomTemplate(random) || "t" : randomName(random),
        ...(random.once(6)
          ? {}
          : { replacement: random.once(12) ? plainScalar(random) : randomTemplate(random) }),
      };
    case "keep":
    case "drop":
      return { ...sourceOf(random), ...(random.once(10) ? {} : { regex: selectingRegex(random, sets) }) };
    case "keepequal":
    case "dropequal": {
      const target = randomName(random);
      const source = random.once(2) ? target : randomName(random);
      return {
        source_labels: random.once(6) ? [source, randomName(random)] : [source],
        ...(random.once(6) ? { separator: ";" } : {}),
        target_label: target,
      };
    }
    case "hashmod":
      return {
        ...sourceOf(random),
        target_label: randomName(random),
        modulus: randomModulus(random),
        // Neither is looked at.
        ...(random.once(6) ? { regex: "a", replacement: "b" } : {}),
      };
    case "labelmap":
      return {
        ...(random.once(8) ? {} : { regex: randomRegex(random, randomName(random)) }),
        ...(random.once(6) ? {} : { replacement: randomTemplate(random) || "$1" }),
      };
    case "labeldrop":
      return { regex: randomRegex(random, randomName(random)) };
    case "labelkeep":
      return {
        regex: random.once(4)
          ? randomRegex(random, randomName(random))
          : `__name__|.*a.*|${randomRegex(random, randomName(random))}`,
      };
    case "lowercase":
    case "uppercase":
      return { ...sourceOf(random), target_label: randomName(random) };
  }
}

/** Most rules that select should keep most series, for the sake of the rules behind them. */
function selectingRegex(random: Random, sets: readonly Labels[]): string {
  const regex = randomRegex(random, someText(random, sets));
  return random.once(2) ? `${random.pick([".*|", ".*[^1]|", "(?s).{2,}|"])}${regex}` : regex;
}

function sourceOf(random: Random): WrittenRule {
  const names = Array.from({ length: random.once(12) ? 0 : 1 + random.below(3) }, () => randomName(random));
  const separator: FieldValue[] = [
    "",
    "::",
    "é",
    "😀",
    "\n",
    "$1",
    ";",
    ",",
    new Plain("null"),
    new Plain("1.0"),
  ];
  return {
    source_labels: names,
    ...(random.once(3) ? { separator: separator[random.below(separator.length)] ?? "" } : {}),
  };
}

export function randomName(random: Random): string {
  return random.once(16) ? randomText(random, 6) || "t" : random.pick(LABEL_NAMES);
}

/** A value of one of the sets, or two joined as a rule would join them. */
export function someText(random: Random, sets: readonly Labels[]): string {
  const one = (): string => {
    const labels = sets[random.below(sets.length)] ?? [];
    return labels[random.below(labels.length)]?.[1] ?? "";
  };
  return random.once(4) ? `${one()};${one()}` : one();
}

const TEMPLATE_PARTS = [
  ...[
    "$1",
    "${1}",
    "$0",
    "${0}",
    "$2",
    "${2}",
    "$9",
    "${10}",
    "$1x",
    "${1}x",
    "$1_",
    "$01",
    "$é",
    "${é}",
    "$1é",
  ],
  ...["$$", "$", "$$1", "$ ", "${", "${}", "${1", "${1 }", "${-}", "$-", "$.", "$_", "$}", "{{a}}", "\\1"],
] as const;

/** What `$` may refer to, well spelled or not, among characters that stand for themselves. */
export function randomTemplate(random: Random): string {
  if (random.once(16)) return "";
  return Array.from({ length: 1 + random.below(3) }, () => {
    switch (random.below(5)) {
      case 0:
        return random.pick([`$${random.pick(GROUP_NAMES)}`, `\${${random.pick(GROUP_NAMES)}}`]);
      case 1:
        return randomCharacter(random);
      case 2:
        return random.pick(TEMPLATE_PARTS);
      default:
        return random.pick(["$1", "${1}", "$2", "a", "x_"]);
    }
  }).join("");
}

export function randomModulus(random: Random): Plain {
  if (random.once(8)) return new Plain(random.pick(["0x10", "1_000", "010", "0o17", "0b101", "+7"]));
  const modulus = random.once(3) ? 1n + BigInt(random.below(2 ** 31)) : random.pick(MODULI);
  return new Plain(modulus.toString());
}

function plainScalar(random: Random): Plain {
  return new Plain(
    random.pick([
      "1.0",
      "010",
      "1e3",
      "yes",
      "True",
      "null",
      "~",
      "",
      "0x1F",
      "2001-01-01",
      ".inf",
      "off",
      "1_000",
      "a b",
    ]),
  );
}
