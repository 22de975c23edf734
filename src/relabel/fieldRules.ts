/** Which fields an action needs and which it does not take. */
import { RelabelError } from "./errors.ts";
import type { RelabelField } from "./options.ts";

export interface FieldRules {
  readonly needs?: readonly RelabelField[];
  /** Needed only where there is no `if`. */
  readonly needsOrIf?: RelabelField;
  readonly refuses?: readonly RelabelField[];
}

/** What a dialect says of the fields of one rule. */
export interface GivenFields {
  /** Whether a field that the action needs is missing. */
  lacks(field: RelabelField): boolean;
  /** Whether a field is there that the action does not take. */
  has(field: RelabelField): boolean;
}

/** @throws {RelabelError} naming the field that is missing or too much */
export function checkFields(action: string, rules: FieldRules, given: GivenFields): void {
  const missing = rules.needs?.find((field) => given.lacks(field));
  if (missing !== undefined) {
    throw new RelabelError("RELABEL_MISSING", missing, `${action} wants ${whatIsNeeded(missing)}`);
  }
  const either = rules.needsOrIf;
  if (either !== undefined && given.lacks(either) && given.lacks("if")) {
    throw new RelabelError("RELABEL_MISSING", either, `${action} wants ${whatIsNeeded(either)}, or an if`);
  }
  const extra = rules.refuses?.find((field) => given.has(field));
  if (extra !== undefined) {
    throw new RelabelError("RELABEL_EXTRA", extra, `${action} takes no ${extra}`);
  }
}

function whatIsNeeded(field: RelabelField): string {
  if (field === "modulus") return "a modulus above 0";
  if (field === "source_labels" || field === "labels") return field;
  return `a ${field} that is not empty`;
}
