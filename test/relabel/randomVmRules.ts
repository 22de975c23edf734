/** Random label sets and lists of rules in vmagent's dialect. */
import type { Labels } from "../../src/cli/seriesLines.ts";
import type { Random } from "../fuzz/random.ts";
import { randomRegex } from "./randomRegex.ts";
import {
  flawed,
  LABEL_NAMES,
  randomLabelSets,
  randomModulus,
  randomName,
  randomRule,
  randomTemplate,
  someText,
} from "./randomRules.ts";
import { randomText } from "./randomText.ts";
import { type FieldValue, Plain, rulesYaml, type WrittenRule } from "./ruleYaml.ts";

const OWN_ACTIONS = [
  ...[
    "keep_if_contains",
    "drop_if_contains",
    "keep_if_equal",
    "drop_if_equal",
    "keep_metrics",
    "drop_metrics",
  ],
  ...["replace_all", "labelmap_all", "graphite", "hashmod"],
] as const;
const METRIC_NAMES = ["foo.bar.baz", "a.b", "a.b.c-d", "foo..bar", ".a", "a.", "foo.bar.baz.x"] as const;

/** Distinct label sets as vmagent passes them on: in any order, some values empty, a few without a metric name. */
export function randomVmLabelSets(random: Random, count: number): Labels[] {
  return randomLabelSets(random, count).map((labels) => {
    const changed = labels.flatMap(([name, value]): [string, string][] => {
      if (name === "__name__" && random.once(2))
        return random.once(12) ? [] : [[name, random.pick(METRIC_NAMES)]];
      return [[name, random.once(20) ? "" : value]];
    });
    return random.once(2) ? changed : shuffled(random, changed);
  });
}

function shuffled<Item>(random: Random, items: readonly Item[]): Item[] {
  const rest = [...items];
  return items.flatMap(() => rest.splice(random.below(rest.length), 1));
}

/** YAML of a list of one to five rules, of which vmagent takes most. */
export function randomVmList(random: Random, sets: readonly Labels[]): string {
  const yaml = rulesYaml(Array.from({ length: 1 + random.below(5) }, () => randomVmRule(random, sets)));
  // In its files vmagent puts variables of its environment in the place of these.
  return yaml.includes("%{") ? randomVmList(random, sets) : yaml;
}

function randomVmRule(random: Random, sets: readonly Labels[]): WrittenRule {
  const rule: Record<string, FieldValue> = {
    ...(random.once(2) ? randomRule(random, sets) : ownRule(random, sets)),
  };
  const { regex, replacement } = rule;
  if (typeof regex === "string" && random.once(8))
    rule["regex"] = [regex, randomRegex(random, someText(random, sets))];
  if (typeof replacement === "string" && random.once(4))
    rule["replacement"] = withReferences(random, replacement);
  if (random.once(24))
    rule[random.pick(["separator", "regex", "replacement", "source_labels", "if"])] = new Plain("null");
  if (random.once(5))
    rule["if"] = random.once(4) ? listOfSelectors(random, sets) : randomSelector(random, sets);
  return rule;
}

/** YAML of a list that is often not valid: a field is missing or wrong, or fields do not go together. */
export function flawedVmList(random: Random, sets: readonly Labels[]): string {
  const rule: Record<string, FieldValue> = { ...flawed(random, randomVmRule(random, sets), sets) };
  if (rule["if"] instanceof Plain || random.once(4)) rule["if"] = flawedSelector(random, sets);
  if (random.once(8)) rule[random.pick(["match", "labels"])] = random.pick(FLAWED_GRAPHITE);
  if (random.once(8)) rule["regex"] = random.pick(FLAWED_REGEXES);
  if (random.once(8)) rule["action"] = random.pick(OWN_ACTIONS);
  return rulesYaml([rule]);
}

const FLAWED_GRAPHITE: readonly [FieldValue, ...FieldValue[]] = [
  "a.*",
  "",
  { a: "$1" },
  {},
  [],
  new Plain("null"),
  new Plain("1.0"),
];
const FLAWED_REGEXES: readonly [FieldValue, ...FieldValue[]] = [
  ...([[], ["a", "("], ["(", ")"], ["a", ["b"]], [["a"]], { a: "b" }, ""] as const),
  ...[
    "null",
    "~",
    "1.0",
    "010",
    "1e3",
    "yes",
    "True",
    "0x1F",
    "[1.0, 010, yes, null]",
    "[~]",
    "2001-01-01",
    ".inf",
    "-.Inf",
    ".NaN",
    "[a, .nan]",
  ].map((text) => new Plain(text)),
];

/** A selector with a character too many or too few, or another thing. */
function flawedSelector(random: Random, sets: readonly Labels[]): FieldValue {
  const selector = randomSelector(random, sets);
  const at = random.below(selector.length + 1);
  switch (random.below(5)) {
    case 0:
      return new Plain(
        random.pick([
          "null",
          "[]",
          "[null]",
          "1",
          "up",
          "{}",
          "[up, [m]]",
          ...TRUTH_VALUES,
          "{a: b}",
          "['']",
        ]),
      );
    case 1:
      return selector.slice(0, at) + selector.slice(at + 1);
    case 2:
      return [selector, random.pick(["{", "m", "", '{a="b"}'])];
    default:
      return selector.slice(0, at) + random.pick(STRAY) + selector.slice(at);
  }
}

const TRUTH_VALUES = ["yes", "Off", "true", "y", "[up, no]", "['yes']", "tRue"] as const;
const STRAY: readonly [string, ...string[]] = [
  ...([" or ", "or", "=~", "!=", "@", "offset", "+", "{{", "é", '"m"', " "] as const),
  ...Array.from("{}()[],=!~\"'`\\a1#\n:."),
];

function ownRule(random: Random, sets: readonly Labels[]): WrittenRule {
  const action = random.pick(OWN_ACTIONS);
  return { action: random.once(8) ? action.toUpperCase() : action, ...fieldsOf(random, action, sets) };
}

function fieldsOf(
  random: Random,
  action: (typeof OWN_ACTIONS)[number],
  sets: readonly Labels[],
): WrittenRule {
  const names = (fewest: number): string[] =>
    Array.from({ length: fewest + random.below(3) }, () => randomName(random));
  switch (action) {
    case "keep_if_contains":
    case "drop_if_contains": {
      const target = randomName(random);
      return { source_labels: random.once(2) ? [target] : names(1), target_label: target };
    }
    case "keep_if_equal":
    case "drop_if_equal": {
      const name = randomName(random);
      return { source_labels: random.once(2) ? [name, name] : names(2) };
    }
    case "keep_metrics":
    case "drop_metrics":
      return { regex: metricsRegex(random, sets) };
    case "replace_all":
      return {
        source_labels: names(1),
        ...(random.once(4) ? { separator: random.pick(["", "é", "::"]) } : {}),
        regex: searchedRegex(random, someText(random, sets)),
        target_label: random.once(6) ? randomTemplate(random) || "t" : randomName(random),
        ...(random.once(8) ? {} : { replacement: randomTemplate(random) }),
      };
    case "labelmap_all":
      return {
        regex: searchedRegex(random, randomName(random)),
        ...(random.once(8) ? {} : { replacement: randomTemplate(random) }),
      };
    case "graphite":
      return { match: graphiteMatch(random, sets), labels: graphiteLabels(random) };
    case "hashmod":
      return { source_labels: names(1), target_label: randomName(random), modulus: randomModulus(random) };
  }
}

/** Found anywhere in a text: short ones are found most. */
function searchedRegex(random: Random, text: string): string {
  const characters = Array.from(text);
  const from = random.below(characters.length + 1);
  const part = characters.slice(from, from + 1 + random.below(3)).join("");
  return random.once(4)
    ? random.pick(["-", "\\w", "[a-c]", "(.)", "", "x*", "^", "$", "\\b", "(a)|b", "a?"])
    : randomRegex(random, part);
}

function metricsRegex(random: Random, sets: readonly Labels[]): FieldValue {
  const one = (): string => {
    const labels = sets[random.below(sets.length)] ?? [];
    const name = labels.find(([label]) => label === "__name__")?.[1] ?? "m";
    return random.once(2) ? name : randomRegex(random, name);
  };
  return random.once(3) ? [one(), one(), "m|up|.*bar.*"] : random.once(2) ? `.*o.*|m|${one()}` : one();
}

function graphiteMatch(random: Random, sets: readonly Labels[]): string {
  if (random.once(6)) return random.pick(["*", "**", "a*", "*.*", "*.*.*", "", ".", "*a*", "$1", "é*"]);
  const labels = sets[random.below(sets.length)] ?? [];
  const name = labels.find(([label]) => label === "__name__")?.[1] ?? "m";
  return name
    .split(/([.-])/)
    .map((part) =>
      /^[.-]$/.test(part) || random.once(2) ? part : random.pick(["*", "*", "*", `${part.slice(0, 1)}*`]),
    )
    .join("");
}

function graphiteLabels(random: Random): Record<string, FieldValue> {
  const entries = Array.from({ length: 1 + random.below(3) }, (): [string, string] => [
    randomName(random),
    random.once(2)
      ? random.pick(["$1", "${1}", "$2x", "$0", "${0}-$1", "$9", "${9}", "$$", "$", "a", "${a}", "$10"])
      : randomTemplate(random),
  ]);
  return Object.fromEntries(entries);
}

function withReferences(random: Random, replacement: string): string {
  const name = random.once(6) ? random.pick(["", " a", "missing", "{a", "a}"]) : randomName(random);
  const reference = random.once(12)
    ? random.pick(["{{", "}}", "{{a", "a}}", "{{a}", "{{{a}}}"])
    : `{{${name}}}`;
  return random.once(2) ? replacement + reference : reference + replacement;
}

function listOfSelectors(random: Random, sets: readonly Labels[]): FieldValue {
  return Array.from({ length: random.below(4) }, () => randomSelector(random, sets));
}

const PLAIN_NAMES = LABEL_NAMES.filter((name) => /^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name));

/** A selector of series, in the spelling of the query language. */
function randomSelector(random: Random, sets: readonly Labels[]): string {
  const filters = (): string =>
    Array.from({ length: 1 + random.below(3) }, () => randomFilter(random, sets)).join(
      random.pick([",", ", ", " ,\n"]),
    );
  const alternatives = Array.from({ length: random.once(4) ? 2 : 1 }, filters).join(
    random.pick([" or ", " OR "]),
  );
  switch (random.below(12)) {
    case 0:
      return random.pick(["m", "up", "a:b", "foo.bar.baz", "{}", "m{}", "é", '{"m"}', "'m'"]);
    case 1:
      return `${random.pick(["m", "up", "a:b"])}{${alternatives}}`;
    case 2:
      return `{"${random.pick(["m", "up"])}",${alternatives}}`;
    case 3:
      return `{${alternatives},}`;
    default:
      return `{${alternatives}}`;
  }
}

function randomFilter(random: Random, sets: readonly Labels[]): string {
  const operator = random.once(40) ? "==" : random.pick(["=", "!=", "=~", "!~", " = "]);
  const name = random.once(10)
    ? random.pick(["missing", "a.b", '"a.b"', "é", "a\\.b", "__name__", "'é'", "with\\ space"])
    : (PLAIN_NAMES[random.below(PLAIN_NAMES.length)] ?? "a");
  const labels = sets[random.below(sets.length)] ?? [];
  const value = labels.find(([label]) => label === name)?.[1] ?? someText(random, sets);
  const text = operator.includes("~")
    ? randomRegex(random, value)
    : random.once(6)
      ? randomText(random, 4)
      : value;
  return `${name}${operator}${quoted(random, Array.from(text).slice(0, 200).join(""))}`;
}

/** In one of the three kinds of quotes. */
function quoted(random: Random, text: string): string {
  const escaped = text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  switch (random.below(8)) {
    case 0:
      return `'${escaped.replaceAll("'", "\\'")}'`;
    case 1:
      return `\`${text.replaceAll("`", "")}\``;
    default:
      return `"${escaped.replaceAll('"', '\\"')}"`;
  }
}
