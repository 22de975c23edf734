/**
 * Lists of relabel_config, as Prometheus or as VictoriaMetrics writes them.
 *
 * Values keep the text that was written, as they do in Prometheus: a replacement of 1.0 is "1.0", and one of nothing, which
 * YAML calls null, is the empty text and not the default. For VictoriaMetrics nothing is the default, and its regex is a value
 * of any kind made text: 1.0 is 1 there.
 */
import type {
  RelabelCheck,
  RelabelDialect,
  RelabelField,
  RelabelRule,
  RelabelRuleList,
} from "../relabel/options.ts";
import { readTree } from "./document.ts";
import { listOf } from "./lists.ts";
import { shownKind } from "./node.ts";
import type { ConfigNode } from "./node.ts";
import { ProblemList } from "./problem.ts";
import type { Place, Problem } from "./problem.ts";
import { wrong } from "./scalars.ts";
import { sectionOf } from "./section.ts";
import type { Reader, Section } from "./section.ts";
import { readTextFile } from "./textFile.ts";
import { isTruthValue, resolvedScalar } from "./yamlScalar.ts";
import { MAX_FILE_BYTES } from "./yamlSyntax.ts";

const LIST_KEYS = ["relabel_configs", "metric_relabel_configs"];
/** Where rules stand: before all routes, which is never in vmagent's dialect, or in a route or a file for one. */
export type RuleScope = "global" | "route";

/** Said of what only vmagent knows. */
const FOREIGN: Readonly<Record<RuleScope, string>> = {
  global: "which is vmagent's, while rules before all routes are Prometheus'",
  route: "which is vmagent's and wants relabel_dialect: victoriametrics",
};

const MAX_MODULUS = 2n ** 64n - 1n;
/** What YAML's escapes can write and UTF-8 cannot. */
const LONE_SURROGATE = /\p{Surrogate}/u;

export interface LoadedRules {
  /** null if and only if there is a problem. */
  readonly rules: RelabelRuleList | null;
  /** In the order of the file. */
  readonly problems: readonly Problem[];
}

/** Reads a file of rules: a list, or a document with one under `relabel_configs` or `metric_relabel_configs`. Never throws. */
export function loadRelabelRules(file: string, dialect: RelabelDialect, check: RelabelCheck): LoadedRules {
  const read = readTextFile(file, MAX_FILE_BYTES);
  if (read.kind === "read") return parseRelabelRules(read.text, file, dialect, check);
  const problems = new ProblemList(file);
  problems.error({ line: read.line, column: 1, path: "" }, `cannot read the file: ${read.reason}`);
  return { rules: null, problems: problems.inOrder() };
}

/** As loadRelabelRules(), for the text of a file. @param file name for messages */
export function parseRelabelRules(
  source: string,
  file: string,
  dialect: RelabelDialect,
  check: RelabelCheck,
): LoadedRules {
  const problems = new ProblemList(file);
  const top = readTree(source, problems);
  const rules =
    top === null
      ? null
      : (readTop(top, relabelRules(dialect, check, "route"), problems) ?? { dialect, rules: [] });
  return { rules: problems.hasErrors ? null : rules, problems: problems.inOrder() };
}

function readTop(
  top: ConfigNode,
  read: Reader<RelabelRuleList>,
  problems: ProblemList,
): RelabelRuleList | null {
  if (top.kind === "list") return read(top, problems);
  if (top.kind === "nothing") return null;
  const keys = LIST_KEYS.join(" or ");
  if (top.kind === "text") return wrong(top, problems, `a list of rules, or one under ${keys}`, "text");
  return sectionOf((document) => {
    const given = LIST_KEYS.filter((key) => document.has(key));
    if (given.length > 1) document.problems.error(document.place, `want either ${keys}; got both`);
    return document.optional(given[0] ?? "relabel_configs", read, null);
  })(top, problems);
}

/**
 * A reader of a list of rules.
 *
 * @param dialect decides which values a field may have
 * @param check   what says whether the fields of a rule go together
 * @param scope   decides what is said of what only vmagent knows
 */
export function relabelRules(
  dialect: RelabelDialect,
  check: RelabelCheck,
  scope: RuleScope,
): Reader<RelabelRuleList> {
  const values = dialect === "prometheus" ? prometheusValues(scope) : VICTORIAMETRICS_VALUES;
  return (list, problems) => {
    let number = 0;
    const readRule: Reader<RelabelRule> = (node) => {
      number += 1;
      const ofRule = new RuleProblems(problems, number);
      const read = sectionOf((section) => ({ section, rule: fieldsOf(section, values) }))(node, ofRule);
      // A field that is wrong or misspelled would be told again as missing.
      if (read === null || ofRule.hasErrors) return null;
      const fault = check(read.rule, dialect);
      if (fault === null) return read.rule;
      const hint = fault.isForeign ? `, ${FOREIGN[scope]}` : "";
      ofRule.error(read.section.placeOf(fault.field), fault.reason + hint);
      return null;
    };
    const rules = listOf(readRule, "rules")(list, problems);
    return rules === null ? null : { dialect, rules };
  };
}

/** Tells the problems of one rule with its number, which is how people count rules: from 1. */
class RuleProblems extends ProblemList {
  readonly #all: ProblemList;
  readonly #number: number;

  constructor(all: ProblemList, number: number) {
    super("");
    this.#all = all;
    this.#number = number;
  }

  override error(place: Place, message: string): void {
    super.error(place, message);
    this.#all.error(place, `rule ${this.#number}: ${message}`);
  }
}

/** What a dialect takes for values of fields. */
interface FieldValues {
  /** Whether nothing written behind a key is an empty value, as for Prometheus; for vmagent it is no value. */
  readonly nothingIsEmpty: boolean;
  readonly labelName: Reader<string>;
  readonly regex: Reader<string>;
  readonly selector: Reader<string>;
}

function fieldsOf(rule: Section, read: FieldValues): RelabelRule {
  const given = <T>(field: RelabelField, reader: Reader<T>, empty: T): T | null => {
    const isEmptyValue = read.nothingIsEmpty && rule.isEmpty(field);
    return rule.optional(field, reader, null) ?? (isEmptyValue ? empty : null);
  };
  return {
    sourceLabels: rule.optional("source_labels", listOf(read.labelName, "label names"), null),
    separator: given("separator", anyText, ""),
    targetLabel: given("target_label", anyText, ""),
    regex: given("regex", read.regex, ""),
    modulus: rule.optional("modulus", modulus, null),
    replacement: given("replacement", anyText, ""),
    action: given("action", anyText, ""),
    if: given("if", oneOrMore(read.selector), []),
    match: given("match", anyText, ""),
    labels: given("labels", textMap, new Map<string, string>()),
  };
}

const anyText: Reader<string> = (node, problems) => {
  if (node.kind !== "text") return wrong(node, problems, "text", shownKind(node));
  return LONE_SURROGATE.test(node.text) ? wrong(node, problems, "Unicode text") : node.text;
};

const labelName: Reader<string> = (node, problems) => {
  if (node.kind === "text" && node.text === "") return wrong(node, problems, "a label name");
  return anyText(node, problems);
};

const textOrNothing: Reader<string> = (node, problems) => {
  return node.kind === "nothing" ? "" : anyText(node, problems);
};

function oneRegex(scope: RuleScope): Reader<string> {
  return (node, problems) => {
    if (node.kind !== "list") return anyText(node, problems);
    return wrong(node, problems, "text", `${shownKind(node)}, ${FOREIGN[scope]}`);
  };
}

/** Text, or a list of alternatives, which may be lists; numbers and truth values as vmagent writes them. */
const regexOrList: Reader<string> = (node, problems) => {
  if (node.kind === "list") {
    const alternatives = node.items.map((item) =>
      item.kind === "nothing" ? "null" : regexOrList(item, problems),
    );
    return alternatives.includes(null) ? null : alternatives.join("|");
  }
  const written = anyText(node, problems);
  if (written === null || node.kind !== "text" || !node.plain) return written;
  return resolvedScalar(written) ?? wrong(node, problems, "a number below 2^63, or text in quotes");
};

function oneOrMore(read: Reader<string>): Reader<readonly string[]> {
  return (node, problems) => {
    if (node.kind === "list") return listOf(read, "series selectors")(node, problems);
    const selector = read(node, problems);
    return selector === null ? null : [selector];
  };
}

/** vmagent takes `yes` for true, and no truth value for a selector. */
const selectorText: Reader<string> = (node, problems) => {
  if (node.kind !== "text" || !node.plain || !isTruthValue(node.text)) return anyText(node, problems);
  return wrong(node, problems, "a series selector", `${node.text}, a truth value when it has no quotes`);
};

const textMap: Reader<ReadonlyMap<string, string>> = sectionOf((section) => {
  const texts = new Map<string, string>();
  for (const [key, { value }] of section.entries())
    texts.set(key, textOrNothing(value, section.problems) ?? "");
  return texts;
});

function prometheusValues(scope: RuleScope): FieldValues {
  return { nothingIsEmpty: true, labelName, regex: oneRegex(scope), selector: anyText };
}

const VICTORIAMETRICS_VALUES: FieldValues = {
  nothingIsEmpty: false,
  labelName: textOrNothing,
  regex: regexOrList,
  selector: selectorText,
};

/** A whole number as YAML 1.1 writes them: `16`, `0x10`, `0b1_0000`, `020`, `0o20`. */
const modulus: Reader<bigint> = (node, problems) => {
  const digits = node.kind === "text" && node.plain ? node.text.replaceAll(/(?<=.)_/g, "") : "";
  const octal = /^0[0-7]+$/.test(digits);
  const isNumber = octal || /^\+?(0|[1-9][0-9]*|0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+)$/.test(digits);
  const value = isNumber ? BigInt(octal ? `0o${digits}` : digits.replace("+", "")) : -1n;
  if (value >= 0n && value <= MAX_MODULUS) return value;
  return wrong(node, problems, `a whole number from 1 to ${MAX_MODULUS.toString()}`);
};
