/**
 * Which labels come through relabel rules for certain with the values that they had.
 *
 * It is a lower bound: a rule that may change a label, on some series or under some condition, is taken to change it. Rules
 * that keep or drop series change none.
 */
import type { RelabelDialect, RelabelRule, RelabelRuleList } from "../relabel/options.ts";
import { RelabelRules } from "../relabel/rules.ts";
import { allBut, difference, EVERY_LABEL, includes, type LabelNames, NO_LABEL, only } from "./labelNames.ts";

/** Labels that are certainly carried, and what took the others, in the order in which it did. */
export interface Carried {
  readonly names: LabelNames;
  readonly losses: readonly Loss[];
}

export interface Loss {
  readonly names: LabelNames;
  /** For a person, e.g. `changed by rule 2 (replace) of input_relabel_configs`. */
  readonly how: string;
}

export const ALL_CARRIED: Carried = { names: EVERY_LABEL, losses: [] };

export function lose(carried: Carried, names: LabelNames, how: string): Carried {
  const left = difference(carried.names, names);
  return { names: left, losses: [...carried.losses, { names, how }] };
}

/** What took a label; null when it is carried. */
export function lossOf({ names, losses }: Carried, name: string): string | null {
  if (includes(names, name)) return null;
  return losses.find((loss) => includes(loss.names, name))?.how ?? null;
}

/**
 * What is left after rules.
 *
 * @param where what the rules are called in messages
 * @param asked names that somebody will ask for: a regex that names no labels is tried on these, and taken to match all others
 */
export function carriedThrough(
  carried: Carried,
  { dialect, rules }: RelabelRuleList,
  where: string,
  asked: Iterable<string>,
): Carried {
  const names = [...asked];
  return rules.reduce((before, rule, index) => {
    const action = actionOf(rule);
    const verb = action === "labeldrop" || action === "labelkeep" ? "removed" : "changed";
    return lose(
      before,
      touchedBy(rule, dialect, names),
      `${verb} by rule ${index + 1} (${action}) of ${where}`,
    );
  }, carried);
}

/** What is left after a list that vmagent would end, in its dialect: labels for internal use are removed then. */
export function carriedThroughList(
  carried: Carried,
  list: RelabelRuleList,
  where: string,
  asked: readonly string[],
): Carried {
  const ruled = carriedThrough(carried, list, where, asked);
  if (list.dialect !== "victoriametrics" || list.rules.length === 0) return ruled;
  return lose(
    ruled,
    only(asked.filter(isHidden)),
    `removed after ${where}, as all that begin with two underscores`,
  );
}

/** Whether a label is for internal use. */
export function isHidden(name: string): boolean {
  return name.startsWith("__") && name !== "__name__";
}

export function actionOf({ action }: RelabelRule): string {
  return action === null || action === "" ? "replace" : action.toLowerCase();
}

/** Labels that a rule may change or remove. @param asked as for carriedThrough() */
export function touchedBy(rule: RelabelRule, dialect: RelabelDialect, asked: readonly string[]): LabelNames {
  const action = actionOf(rule);
  switch (action) {
    case "replace":
    case "replace_all":
    case "hashmod":
    case "lowercase":
    case "uppercase":
      return constantName(rule.targetLabel);
    case "labelmap":
      return constantName(rule.replacement);
    case "graphite":
      return only(rule.labels?.keys() ?? []);
    case "labeldrop":
    case "labelkeep":
      return removed(rule, dialect, asked);
    default:
      return FILTERS.has(action) ? NO_LABEL : EVERY_LABEL;
  }
}

/** Actions that keep or drop a series and leave its labels alone. */
export const FILTERS: ReadonlySet<string> = new Set([
  "keep",
  "drop",
  "keepequal",
  "dropequal",
  "keep_metrics",
  "drop_metrics",
  "keep_if_equal",
  "drop_if_equal",
  "keep_if_contains",
  "drop_if_contains",
]);

/** A rule of which nothing is written. */
export const NO_FIELDS: RelabelRule = {
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

/** A name that depends on the series may be any. */
function constantName(name: string | null): LabelNames {
  return name === null || name.includes("$") ? EVERY_LABEL : only([name]);
}

function removed(rule: RelabelRule, dialect: RelabelDialect, asked: readonly string[]): LabelNames {
  const isKeep = actionOf(rule) === "labelkeep";
  const named = literalNames(rule.regex);
  if (named !== null) return isKeep ? allBut(named) : only(named);
  const alone = new RelabelRules({ dialect, rules: [{ ...rule, if: null }] });
  const comeThrough = asked.filter((name) => {
    const outcome = alone.apply([[name, "value"]]);
    return outcome.kind === "kept" && outcome.labels.length > 0;
  });
  return allBut(comeThrough);
}

/** The texts that a regex matches, when it is a list of such; else null. */
export function literalNames(regex: string | null): string[] | null {
  return regex !== null && /^[\w:]+(\|[\w:]+)*$/.test(regex) ? regex.split("|") : null;
}
