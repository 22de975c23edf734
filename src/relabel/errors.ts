import type { RelabelField } from "./options.ts";

/** Why a rule cannot be used. */
export type RelabelErrorCode =
  | "RELABEL_ACTION" // an action that nobody knows
  | "RELABEL_FOREIGN" // an action or a field that only the other dialect knows
  | "RELABEL_MISSING" // a field that the action needs
  | "RELABEL_EXTRA" // a field that the action does not take
  | "RELABEL_SELECTOR" // no series selector
  | "RELABEL_REGEX"; // no regular expression of RE2, or one that this engine would read otherwise

/** Thrown when rules are compiled; applying compiled rules throws nothing. */
export class RelabelError extends Error {
  readonly code: RelabelErrorCode;
  readonly field: RelabelField;

  constructor(code: RelabelErrorCode, field: RelabelField, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "RelabelError";
    this.code = code;
    this.field = field;
  }
}
