/**
 * A rule with its defaults filled in, after the checks that Prometheus makes when it loads one.
 *
 * An action refuses fields where Prometheus does: a rule that looks as if it did more than it does is a mistake. What only
 * VictoriaMetrics knows is refused as foreign.
 */
import { RelabelError } from "./errors.ts";
import { checkFields, type FieldRules } from "./fieldRules.ts";
import type { RelabelField, RelabelRule } from "./options.ts";
import { compilePattern, type Pattern } from "./pattern.ts";
import { isVictoriaMetricsAction } from "./victoriaMetricsRule.ts";

export type PrometheusAction = keyof typeof FIELDS;

export interface PrometheusRule {
  readonly action: PrometheusAction;
  readonly sourceLabels: readonly string[];
  readonly separator: string;
  readonly pattern: Pattern;
  readonly targetLabel: string;
  readonly replacement: string;
  readonly modulus: bigint;
}

const ALL_BUT_LABELS: readonly RelabelField[] = ["regex", "modulus", "separator", "replacement"];
const ALL_BUT_REGEX: readonly RelabelField[] = [
  "source_labels",
  "target_label",
  "modulus",
  "separator",
  "replacement",
];

const FIELDS = {
  replace: { needs: ["target_label"] },
  keep: {},
  drop: {},
  keepequal: { needs: ["target_label"], refuses: ALL_BUT_LABELS },
  dropequal: { needs: ["target_label"], refuses: ALL_BUT_LABELS },
  hashmod: { needs: ["modulus", "target_label"] },
  labelmap: { needs: ["replacement"] },
  labeldrop: { refuses: ALL_BUT_REGEX },
  labelkeep: { refuses: ALL_BUT_REGEX },
  lowercase: { needs: ["target_label"], refuses: ["replacement"] },
  uppercase: { needs: ["target_label"], refuses: ["replacement"] },
} satisfies Record<string, FieldRules>;

const DEFAULT_SEPARATOR = ";";
const DEFAULT_REGEX = "(.*)";
const DEFAULT_REPLACEMENT = "$1";

/** @throws {RelabelError} naming the field that is wrong */
export function checkPrometheusRule(rule: RelabelRule): PrometheusRule {
  refuseForeignFields(rule);
  const action = actionOf(rule.action);
  const checked = {
    action,
    sourceLabels: rule.sourceLabels ?? [],
    separator: rule.separator ?? DEFAULT_SEPARATOR,
    pattern: compilePattern(rule.regex ?? DEFAULT_REGEX),
    targetLabel: rule.targetLabel ?? "",
    replacement: rule.replacement ?? DEFAULT_REPLACEMENT,
    modulus: rule.modulus ?? 0n,
  };
  checkFields(action, FIELDS[action], {
    lacks: (field) => isEmpty(checked, field),
    has: (field) => isGiven(rule, checked, field),
  });
  return checked;
}

function refuseForeignFields(rule: RelabelRule): void {
  const foreign = (["if", "match", "labels"] as const).find((field) => rule[field] !== null);
  if (foreign !== undefined) {
    throw new RelabelError("RELABEL_FOREIGN", foreign, `Prometheus knows no ${foreign}`);
  }
}

function actionOf(written: string | null): PrometheusAction {
  const action = (written ?? "replace").toLowerCase();
  if (Object.hasOwn(FIELDS, action)) return action as PrometheusAction;
  const known = Object.keys(FIELDS).join(", ");
  const code = isVictoriaMetricsAction(action) ? "RELABEL_FOREIGN" : "RELABEL_ACTION";
  throw new RelabelError(code, "action", `want one of ${known}; got ${JSON.stringify(written)}`);
}

function isEmpty(rule: PrometheusRule, field: RelabelField): boolean {
  if (field === "modulus") return rule.modulus === 0n;
  return (field === "target_label" ? rule.targetLabel : rule.replacement) === "";
}

/** All but regex and source_labels may be written out as their default. */
function isGiven(written: RelabelRule, rule: PrometheusRule, field: RelabelField): boolean {
  switch (field) {
    case "source_labels":
      return written.sourceLabels !== null;
    case "regex":
      return written.regex !== null;
    case "separator":
      return rule.separator !== DEFAULT_SEPARATOR;
    case "replacement":
      return rule.replacement !== DEFAULT_REPLACEMENT;
    case "target_label":
      return rule.targetLabel !== "";
    case "modulus":
      return rule.modulus !== 0n;
    default:
      return false;
  }
}
