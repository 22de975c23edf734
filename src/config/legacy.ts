/**
 * Files of the old Go gateway, turned into native documents.
 *
 * The result is read and checked as a native file is, so there is one way to a Config; its values keep the places of the
 * old file. What was converted, assumed or ignored is said in warnings. What this gateway cannot do is an error: data
 * that went somewhere would go there no longer, or other data would.
 *
 * Its format: `global: {prefix}` and `router_rules[]` with `router_name`, `upstreams: {upstream_type, upstream_urls,
 * kafka_config}`, `hash_labels: {mode, labels}` and `metric_relabel_configs`.
 */
import { LegacyUpstreams } from "./legacyUpstreams.ts";
import { listOf, setOf, someOf } from "./lists.ts";
import { listNode, mapNode, numberNode, textNode } from "./node.ts";
import type { ConfigNode, MapNode } from "./node.ts";
import type { Place, ProblemList } from "./problem.ts";
import { integer, text } from "./scalars.ts";
import { sectionOf } from "./section.ts";
import type { Reader, Section } from "./section.ts";

/** Whether tasks and upstreams are picked by jump hash, or by the modulus of the code that was published. */
export type LegacyHash = "jump" | "hashmod";

/** `router_rule` stands in the old gateway's examples, though its code never took it. */
const LEGACY_KEYS = ["router_rules", "router_rule", "global"];
const NATIVE_KEYS = [
  "listen",
  "limits",
  "memory",
  "shutdown",
  "max_connection_age",
  "spool",
  "relabel_configs",
  "routes",
];

const TASK_LABEL = "stream_task_id";
const NO_LABELS: readonly string[] = [];
const CHANGING_ACTIONS = [
  "replace",
  "hashmod",
  "labelmap",
  "labeldrop",
  "labelkeep",
  "lowercase",
  "uppercase",
];

export function isLegacy(top: MapNode): boolean {
  return LEGACY_KEYS.some((key) => top.entries.has(key)) && !NATIVE_KEYS.some((key) => top.entries.has(key));
}

/** @returns the native document, or null when no rule could be converted; what is wrong is then in `problems` */
export function convertLegacy(top: MapNode, legacyHash: LegacyHash, problems: ProblemList): MapNode | null {
  const message =
    "a file of the old Go gateway, converted: it listens on :8080, and has the limits and the delivery of this " +
    "gateway's defaults; the command convert writes it natively";
  problems.warning(top.place, message);
  return sectionOf((section) => convertTop(section, legacyHash))(top, problems);
}

function convertTop(top: Section, legacyHash: LegacyHash): MapNode | null {
  top.section("global", (global) => {
    if (global.has("prefix"))
      global.problems.warning(
        global.placeOf("prefix"),
        "ignored: the metrics of this gateway have a prefix of their own",
      );
  });
  const rules = new RuleConverter(legacyHash);
  const list = someOf(listOf(rules.convert, "rules"), "rules");
  const converted = top.required("router_rules", list, "a list of rules") ?? [];
  const routes = withoutReplaced(converted, top.problems);
  if (routes.length === 0) return null;
  const listen = textNode(":8080", top.place);
  return mapNode({ listen, routes: listNode(routes, top.placeOf("router_rules")) }, top.place);
}

interface ConvertedRule {
  readonly name: string;
  readonly place: Place;
  readonly route: MapNode;
}

/** The old gateway kept its rules by name, so of equal names the last one counted. */
function withoutReplaced(rules: readonly ConvertedRule[], problems: ProblemList): MapNode[] {
  const last = new Map(rules.map((rule) => [rule.name, rule]));
  return rules.flatMap((rule) => {
    const winner = last.get(rule.name);
    if (winner === rule || winner === undefined) return [rule.route];
    const message = `ignored, as by the old gateway: the rule at line ${winner.place.line} has the same router_name`;
    problems.warning(rule.place, message);
    return [];
  });
}

interface HashLabels {
  /** 1 or more; null when it was wrong. */
  readonly tasks: number | null;
  readonly tasksPlace: Place;
  readonly labels: readonly string[];
  readonly labelsPlace: Place;
}

class RuleConverter {
  readonly #hash: LegacyHash;
  readonly #upstreams = new LegacyUpstreams();

  constructor(legacyHash: LegacyHash) {
    this.#hash = legacyHash;
  }

  readonly convert: Reader<ConvertedRule> = (node, problems) =>
    sectionOf((rule) => this.#rule(rule))(node, problems);

  #rule(rule: Section): ConvertedRule | null {
    const routerName = rule.optional("router_name", text, "");
    const relabel = convertRelabelling(rule);
    const hashLabels = rule.section("hash_labels", readHashLabels);
    const upstreams = rule.section("upstreams", (section) => this.#upstreams.convert(section));
    if (upstreams === null) return null;
    const name = textNode(routerName === "" ? "unnamed" : routerName, rule.placeOf("router_name"));
    const keys = upstreams.length === 1 ? {} : this.#keys(rule, hashLabels, upstreams.length);
    if (upstreams.length === 1) warnOfSingle(rule);
    const list = listNode(upstreams, rule.placeOf("upstreams"));
    const keyFormat = textNode("flat", rule.place);
    const route = mapNode({ name, ...relabel, key_format: keyFormat, ...keys, upstreams: list }, rule.place);
    return { name: routerName, place: rule.place, route };
  }

  #keys(rule: Section, hashLabels: HashLabels, slots: number): Record<string, ConfigNode> {
    const { tasks, tasksPlace, labels, labelsPlace } = hashLabels;
    const byTask = this.#hash === "jump" && labels.length === 1 && labels[0] === TASK_LABEL;
    if (tasks !== null)
      rule.problems.warning(rule.place, this.#summary(tasks, slots, byTask ? ["the task"] : labels));
    const algorithm = textNode(this.#hash, rule.place);
    const key = byTask ? textNode("task", labelsPlace) : labelKey(labels, labelsPlace);
    const label = textNode(TASK_LABEL, rule.place);
    return {
      tasks: mapNode({ count: numberNode(tasks ?? 1, tasksPlace), label, algorithm }, rule.place),
      placement: mapNode({ key, algorithm }, rule.place),
    };
  }

  #summary(tasks: number, slots: number, labels: readonly string[]): string {
    const by = labels.length === 0 ? "all labels" : labels.join(", ");
    const what = `${tasks} ${tasks === 1 ? "task" : "tasks"} by all labels, ${slots} upstreams by ${by}`;
    return this.#hash === "jump"
      ? `converted: ${what}; by jump hash in place of the old modulus, so series move once (--legacy-hash hashmod: they stay)`
      : `converted: ${what}; by modulus, so nearly all series move whenever a count changes`;
  }
}

function labelKey(labels: readonly string[], place: Place): ConfigNode {
  if (labels.length === 0) return textNode("series", place);
  const names = labels.map((label) => textNode(label, place));
  return mapNode({ by: listNode(names, place) }, place);
}

function readHashLabels(section: Section): HashLabels {
  const mode = section.node("mode");
  const divisor = mode === null ? 0 : integer({ min: -(2 ** 31) })(mode, section.problems);
  return {
    // The old gateway numbered all series 0 when there was nothing to divide by.
    tasks: divisor === null ? null : Math.max(divisor, 1),
    tasksPlace: section.placeOf("mode"),
    labels: section.optional("labels", setOf(text, "label names"), NO_LABELS),
    labelsPlace: section.placeOf("labels"),
  };
}

/** The old gateway gave no task label when it had nothing to choose. */
function warnOfSingle(rule: Section): void {
  const ignored = rule.has("hash_labels") ? "; hash_labels ignored" : "";
  rule.problems.warning(
    rule.place,
    `converted: one upstream, so no ${TASK_LABEL} label, as in the old gateway${ignored}`,
  );
}

/**
 * Rules are taken as they are. The old gateway ran them to select series, which it then sent as they had come; here a rule
 * that changes labels changes what is sent.
 */
function convertRelabelling(rule: Section): Record<string, ConfigNode> {
  const rules = rule.node("metric_relabel_configs");
  if (rules === null) return {};
  for (const [index, node] of (rules.kind === "list" ? rules.items : []).entries()) {
    const action = actionOf(node);
    if (!CHANGING_ACTIONS.includes(action)) continue;
    const message = `rule ${index + 1}: applied: ${action} changes labels before they are hashed and sent; in the old gateway only the rules behind it saw that`;
    rule.problems.warning(node.place, message);
  }
  return { relabel_configs: rules };
}

function actionOf(rule: ConfigNode): string {
  const action = rule.kind === "map" ? rule.entries.get("action")?.value : null;
  if (action === undefined) return "replace";
  return action?.kind === "text" ? action.text.toLowerCase() : "";
}
