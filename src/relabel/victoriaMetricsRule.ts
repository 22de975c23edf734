/**
 * A rule with its defaults filled in, after the checks that vmagent makes when it loads one.
 *
 * vmagent asks for other fields than Prometheus and mostly ignores those that an action does not use.
 */
import { RelabelError } from "./errors.ts";
import { checkFields, type FieldRules } from "./fieldRules.ts";
import {
  type GraphiteLabel,
  type GraphiteMatch,
  parseGraphiteLabels,
  parseGraphiteMatch,
} from "./graphite.ts";
import type { RelabelField, RelabelRule } from "./options.ts";
import { type Condition, parseCondition } from "./selector.ts";
import {
  compileVictoriaMetricsPattern,
  type VictoriaMetricsPattern,
  withoutAnchors,
  withQuoteEnded,
} from "./victoriaMetricsPattern.ts";

export type VictoriaMetricsAction = keyof typeof FIELDS;

export interface VictoriaMetricsRule {
  readonly action: VictoriaMetricsAction;
  readonly condition: Condition;
  readonly sourceLabels: readonly string[];
  readonly separator: string;
  /** null where none was written. */
  readonly regex: string | null;
  readonly pattern: VictoriaMetricsPattern;
  readonly targetLabel: string;
  readonly replacement: string;
  readonly modulus: bigint;
  readonly graphiteMatch: GraphiteMatch;
  readonly graphiteLabels: readonly GraphiteLabel[];
}

const CONTAINS: FieldRules = {
  needs: ["target_label", "source_labels"],
  refuses: ["regex", "match", "labels"],
};
const EQUAL_VALUES: FieldRules = {
  needs: ["source_labels"],
  refuses: ["target_label", "regex", "match", "labels"],
};
const EQUAL_TARGET: FieldRules = { needs: ["target_label"], refuses: ["regex", "match", "labels"] };
const SELECTING: FieldRules = { needsOrIf: "source_labels", refuses: ["match", "labels"] };
const SELECTING_NAMES: FieldRules = { needsOrIf: "regex", refuses: ["source_labels", "match", "labels"] };
const SETTING: FieldRules = { needs: ["source_labels", "target_label"], refuses: ["match", "labels"] };
const ON_NAMES: FieldRules = { refuses: ["match", "labels"] };

const FIELDS = {
  replace: { needs: ["target_label"], refuses: ["match", "labels"] },
  replace_all: SETTING,
  keep: SELECTING,
  drop: SELECTING,
  keep_metrics: SELECTING_NAMES,
  drop_metrics: SELECTING_NAMES,
  keep_if_contains: CONTAINS,
  drop_if_contains: CONTAINS,
  keep_if_equal: EQUAL_VALUES,
  drop_if_equal: EQUAL_VALUES,
  keepequal: EQUAL_TARGET,
  dropequal: EQUAL_TARGET,
  hashmod: { needs: ["source_labels", "target_label", "modulus"], refuses: ["match", "labels"] },
  lowercase: SETTING,
  uppercase: SETTING,
  labelmap: ON_NAMES,
  labelmap_all: ON_NAMES,
  labeldrop: ON_NAMES,
  labelkeep: ON_NAMES,
  graphite: {
    needs: ["match", "labels"],
    refuses: ["source_labels", "target_label", "replacement", "regex"],
  },
} satisfies Record<string, FieldRules>;

/** Those whose regex vmagent takes as it is written, when the action is in lower case as well. */
const UNANCHORED: readonly (string | null)[] = ["replace_all", "labelmap_all"];

export function isVictoriaMetricsAction(action: string): boolean {
  return Object.hasOwn(FIELDS, action);
}

/** @throws {RelabelError} naming the field that is wrong */
export function checkVictoriaMetricsRule(rule: RelabelRule): VictoriaMetricsRule {
  const action = actionOf(rule.action);
  checkFields(action, FIELDS[action], {
    lacks: (field) => isEmpty(rule, field),
    has: (field) => (field === "regex" ? rule.regex !== null : !isEmpty(rule, field)),
  });
  const sources = rule.sourceLabels ?? [];
  if ((action === "keep_if_equal" || action === "drop_if_equal") && sources.length < 2) {
    throw new RelabelError("RELABEL_MISSING", "source_labels", `${action} wants two source_labels or more`);
  }
  const regex = UNANCHORED.includes(rule.action) ? withQuoteEnded(rule.regex) : withoutAnchors(rule.regex);
  return {
    action,
    condition: parseCondition(rule.if ?? []),
    sourceLabels: FIELDS[action] === SELECTING_NAMES ? ["__name__"] : sources,
    separator: rule.separator ?? ";",
    regex,
    pattern: compileVictoriaMetricsPattern(regex),
    targetLabel: rule.targetLabel ?? "",
    replacement: rule.replacement ?? "$1",
    modulus: rule.modulus ?? 0n,
    graphiteMatch: parseGraphiteMatch(rule.match ?? ""),
    graphiteLabels: parseGraphiteLabels(rule.labels ?? new Map()),
  };
}

function actionOf(written: string | null): VictoriaMetricsAction {
  const action = (written ?? "").toLowerCase();
  if (action === "") return "replace";
  if (Object.hasOwn(FIELDS, action)) return action as VictoriaMetricsAction;
  const known = Object.keys(FIELDS).join(", ");
  throw new RelabelError("RELABEL_ACTION", "action", `want one of ${known}; got ${JSON.stringify(written)}`);
}

function isEmpty(rule: RelabelRule, field: RelabelField): boolean {
  switch (field) {
    case "action":
    case "separator":
      return false;
    case "source_labels":
      return (rule.sourceLabels ?? []).length === 0;
    case "target_label":
      return (rule.targetLabel ?? "") === "";
    case "regex":
      return (rule.regex ?? "") === "";
    case "replacement":
      return rule.replacement === null;
    case "modulus":
      return (rule.modulus ?? 0n) === 0n;
    case "if":
      return rule.if === null;
    case "match":
      return (rule.match ?? "") === "";
    case "labels":
      return (rule.labels?.size ?? 0) === 0;
  }
}
