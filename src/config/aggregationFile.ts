/**
 * Stream aggregation files of vmagent 1.145, the argument of -streamAggr.config and -remoteWrite.streamAggr.config: a list of
 * rules.
 *
 * What vmagent would not start with is an error here, with one exception: keys and outputs that this reader does not know may
 * be those of a newer vmagent, so they are warned about and stay in the rule, for whoever judges it.
 */
import type { RelabelCheck, RelabelRule, RelabelRuleList } from "../relabel/options.ts";
import { readTree } from "./document.ts";
import { listOf, setOf, someOf } from "./lists.ts";
import { shown } from "./node.ts";
import type { ConfigNode } from "./node.ts";
import { ProblemList } from "./problem.ts";
import type { Problem } from "./problem.ts";
import { relabelRules } from "./relabelSection.ts";
import { integer, text, wrong } from "./scalars.ts";
import { sectionOf } from "./section.ts";
import type { Reader, Section } from "./section.ts";
import { readTextFile } from "./textFile.ts";
import { resolvedScalar } from "./yamlScalar.ts";
import { MAX_FILE_BYTES } from "./yamlSyntax.ts";

export interface AggregationRule {
  /** Of the file, from 1. */
  readonly line: number;
  /** null when it has none. */
  readonly name: string | null;
  /** Series selectors of which one has to match; none of them takes all series. */
  readonly match: readonly string[];
  readonly interval: string;
  readonly dedupIntervalMs: number;
  /** At most one of the two has names. */
  readonly by: readonly string[];
  readonly without: readonly string[];
  readonly outputs: readonly string[];
  readonly dropInputLabels: readonly string[];
  /** In vmagent's dialect. */
  readonly inputRelabel: RelabelRuleList;
  readonly outputRelabel: RelabelRuleList;
  /** Keys, and placeholders of the environment, of which nobody here knows what they do. */
  readonly unknown: readonly string[];
}

export interface LoadedAggregation {
  /** null if and only if a problem is an error. */
  readonly rules: readonly AggregationRule[] | null;
  /** In the order of the file. */
  readonly problems: readonly Problem[];
}

const DIALECT = "victoriametrics";
const NO_RULES: RelabelRuleList = { dialect: DIALECT, rules: [] };
const NO_NAMES: readonly string[] = [];
const NAMES = listOf(text, "label names");
/** vmagent puts variables of its environment there before it reads the file. */
const PLACEHOLDER = /%\{[\w.]+\}/;

/**
 * Reads a file. Never throws.
 *
 * @param check what says whether the fields of a relabel rule go together: faultOf()
 */
export function loadAggregation(file: string, check: RelabelCheck): LoadedAggregation {
  const read = readTextFile(file, MAX_FILE_BYTES);
  if (read.kind === "read") return parseAggregation(read.text, file, check);
  const problems = new ProblemList(file);
  problems.error({ line: read.line, column: 1, path: "" }, `cannot read the file: ${read.reason}`);
  return { rules: null, problems: problems.inOrder() };
}

/** Reads the text of a file. @param file name for messages */
export function parseAggregation(source: string, file: string, check: RelabelCheck): LoadedAggregation {
  const problems = new ProblemList(file);
  const top = readTree(source, problems);
  const rules = top === null ? null : readTop(top, check, problems);
  return { rules: problems.hasErrors ? null : rules, problems: problems.inOrder() };
}

function readTop(
  top: ConfigNode,
  check: RelabelCheck,
  problems: ProblemList,
): readonly AggregationRule[] | null {
  if (top.kind === "nothing") return wrong(top, problems, "a list of aggregation rules");
  const read = sectionOf((rule) => readRule(rule, check));
  const readWithPlaceholders: Reader<AggregationRule> = (node, found) => {
    const rule = read(node, found);
    const placeholder = placeholderIn(node);
    if (rule === null || placeholder === null) return rule;
    const message = `${placeholder}: the environment of vmagent is not known here, so neither is what the rule does`;
    found.warning(node.place, message);
    return { ...rule, unknown: [...rule.unknown, placeholder] };
  };
  return someOf(listOf(readWithPlaceholders, "aggregation rules"), "aggregation rules")(top, problems);
}

function readRule(rule: Section, check: RelabelCheck): AggregationRule {
  const match = rule.optional("match", selectors(check), NO_NAMES);
  const by = rule.optional("by", NAMES, NO_NAMES);
  const without = rule.optional("without", NAMES, NO_NAMES);
  if (by.length > 0 && without.length > 0) {
    rule.problems.error(rule.placeOf("without"), "want either by or without; got both");
  }
  const outputList = someOf(setOf(text, "outputs"), "outputs");
  const outputs = rule.required("outputs", outputList, "a list of outputs such as [sum_samples]") ?? NO_NAMES;
  if (rule.optional("keep_metric_names", truth, false) && outputs.length > 1) {
    const message = "wants one output, since all have the same name with it";
    rule.problems.error(rule.placeOf("keep_metric_names"), message);
  }
  for (const key of ["ignore_old_samples", "flush_on_shutdown", "no_align_flush_to_interval"]) {
    rule.optional(key, truth, null);
  }
  rule.optional("enable_windows", truth, null);
  rule.optional("ignore_first_intervals", integer({ min: Number.MIN_SAFE_INTEGER }), null);
  rule.optional("ignore_first_sample_interval", goDuration, null);
  const list = relabelRules(DIALECT, check, "route");
  return {
    line: rule.place.line,
    name: rule.optional("name", text, null),
    match,
    by,
    without,
    outputs,
    dropInputLabels: rule.optional("drop_input_labels", NAMES, NO_NAMES),
    inputRelabel: rule.optional("input_relabel_configs", list, NO_RULES),
    outputRelabel: rule.optional("output_relabel_configs", list, NO_RULES),
    ...readIntervals(rule),
    unknown: readUnknown(rule),
  };
}

function readIntervals(rule: Section): Pick<AggregationRule, "interval" | "dedupIntervalMs"> {
  const written = rule.node("interval");
  const interval = rule.required("interval", goDuration, "a duration such as 1m");
  const dedup = rule.optional("dedup_interval", goDuration, 0);
  const staleness = rule.optional("staleness_interval", goDuration, null);
  const refuse = (key: string, want: string): void => {
    rule.problems.error(rule.placeOf(key), `want ${want}`);
  };
  if (interval !== null) {
    if (interval < 1000) refuse("interval", "at least 1s");
    else if (dedup > interval) refuse("dedup_interval", "at most the interval");
    else if (dedup > 0 && interval % dedup !== 0) refuse("dedup_interval", "a divisor of the interval");
    if (staleness !== null && staleness < interval) refuse("staleness_interval", "at least the interval");
  }
  return { interval: written?.kind === "text" ? written.text : "", dedupIntervalMs: dedup };
}

const KNOWN: ReadonlySet<string> = new Set([
  "name",
  "match",
  "interval",
  "no_align_flush_to_interval",
  "flush_on_shutdown",
  "dedup_interval",
  "staleness_interval",
  "ignore_first_sample_interval",
  "outputs",
  "keep_metric_names",
  "ignore_old_samples",
  "ignore_first_intervals",
  "by",
  "without",
  "drop_input_labels",
  "input_relabel_configs",
  "output_relabel_configs",
  "enable_windows",
]);

function readUnknown(rule: Section): string[] {
  const unknown: string[] = [];
  for (const [key, entry] of rule.entries()) {
    if (KNOWN.has(key)) continue;
    unknown.push(key);
    rule.problems.warning(
      entry.key,
      "a key that vmagent 1.145 does not have; what it does is not known here",
    );
  }
  return unknown;
}

/** One selector, or a list of them. */
function selectors(check: RelabelCheck): Reader<readonly string[]> {
  const one: Reader<string> = (node, problems) => {
    const selector = text(node, problems);
    if (selector === null) return null;
    const fault = check({ ...NOTHING_WRITTEN, action: "keep", if: [selector] }, DIALECT);
    return fault === null
      ? selector
      : wrong(node, problems, "a series selector", `${shown(node)}: ${fault.reason}`);
  };
  return (node, problems) => {
    if (node.kind === "list") return listOf(one, "series selectors")(node, problems);
    const selector = one(node, problems);
    return selector === null ? null : [selector];
  };
}

const NOTHING_WRITTEN: RelabelRule = {
  action: null,
  sourceLabels: null,
  separator: null,
  regex: null,
  targetLabel: null,
  replacement: null,
  modulus: null,
  if: null,
  match: null,
  labels: null,
};

/** `yes` and `on` are true for vmagent. */
const truth: Reader<boolean> = (node, problems) => {
  const value = node.kind === "text" && node.plain ? resolvedScalar(node.text) : null;
  return value === "true" || value === "false" ? value === "true" : wrong(node, problems, "true or false");
};

const GO_UNITS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  ns: 1e-6,
};

/** A duration as Go writes them, e.g. `1h30m` or `1.5s`, in milliseconds. */
const goDuration: Reader<number> = (node, problems) => {
  const written = node.kind === "text" ? node.text : "";
  if (written === "0") return 0;
  if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:h|ms|m|s|us|µs|ns))+$/.test(written)) {
    return wrong(node, problems, "a duration as 1h30m, 15s or 500ms");
  }
  let milliseconds = 0;
  for (const [, number, unit = ""] of written.matchAll(/([\d.]+)(h|ms|m|s|us|µs|ns)/g)) {
    milliseconds += Number(number) * (GO_UNITS[unit] ?? 0);
  }
  return milliseconds;
};

function placeholderIn(node: ConfigNode): string | null {
  switch (node.kind) {
    case "nothing":
      return null;
    case "text":
      return PLACEHOLDER.exec(node.text)?.[0] ?? null;
    case "list":
      return firstOf(node.items.map(placeholderIn));
    case "map":
      return firstOf(
        [...node.entries].map(([key, { value }]) => PLACEHOLDER.exec(key)?.[0] ?? placeholderIn(value)),
      );
  }
}

function firstOf(found: readonly (string | null)[]): string | null {
  return found.find((text) => text !== null) ?? null;
}
