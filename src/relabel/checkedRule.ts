/**
 * A rule with its defaults filled in, after the checks that Prometheus makes when it loads one.
 *
 * An action refuses fields where Prometheus does: a rule that looks as if it did more than it does is a mistake.
 */
import { RelabelError } from "./errors.ts";
import type { RelabelField, RelabelRule } from "./options.ts";
import { compilePattern, type Pattern } from "./pattern.ts";

export type RelabelAction = keyof typeof FIELDS;

export interface CheckedRule {
  readonly action: RelabelAction;
  readonly sourceLabels: readonly string[];
  readonly separator: string;
  readonly pattern: Pattern;
  readonly targetLabel: string;
  readonly replacement: string;
  readonly modulus: bigint;
}

interface Fields {
  readonly needs?: readonly RelabelField[];
  /** May not be given; all but regex and source_labels may be as the default, written out. */
  readonly refuses?: readonly RelabelField[];
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
} satisfies Record<string, Fields>;

const DEFAULT_SEPARATOR = ";";
const DEFAULT_REGEX = "(.*)";
const DEFAULT_REPLACEMENT = "$1";

/** @throws {RelabelError} naming the field that is wrong */
export function checkRule(rule: RelabelRule): CheckedRule {
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
  const { needs = [], refuses = [] }: Fields = FIELDS[action];
  const missing = needs.find((field) => isEmpty(checked, field));
  if (missing !== undefined) {
    const what = missing === "modulus" ? "a modulus above 0" : `a ${missing} that is not empty`;
    throw new RelabelError("RELABEL_MISSING", missing, `${action} wants ${what}`);
  }
  const extra = refuses.find((field) => isGiven(rule, checked, field));
  if (extra !== undefined) {
    throw new RelabelError("RELABEL_EXTRA", extra, `${action} takes no ${extra}`);
  }
  return checked;
}

function actionOf(written: string | null): RelabelAction {
  const action = (written ?? "replace").toLowerCase();
  if (Object.hasOwn(FIELDS, action)) return action as RelabelAction;
  const known = Object.keys(FIELDS).join(", ");
  throw new RelabelError("RELABEL_ACTION", "action", `want one of ${known}; got ${JSON.stringify(written)}`);
}

function isEmpty(rule: CheckedRule, field: RelabelField): boolean {
  if (field === "modulus") return rule.modulus === 0n;
  return (field === "target_label" ? rule.targetLabel : rule.replacement) === "";
}

function isGiven(written: RelabelRule, rule: CheckedRule, field: RelabelField): boolean {
  switch (field) {
    case "action":
      return false;
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
  }
}
