/** What a relabel rule says, as it was written: the shape that configuration produces and compileRules() takes. */

/** One rule; null where nothing was written, which is not always the same as the default written out. */
export interface RelabelRule {
  /** In any case: Prometheus takes `Keep` for `keep`. */
  readonly action: string | null;
  readonly sourceLabels: readonly string[] | null;
  readonly separator: string | null;
  readonly regex: string | null;
  readonly targetLabel: string | null;
  readonly replacement: string | null;
  /** Below 2^64. */
  readonly modulus: bigint | null;
}

/** The fields of a rule as they are spelled in files. */
export type RelabelField =
  "action" | "source_labels" | "separator" | "regex" | "target_label" | "replacement" | "modulus";

export interface RelabelFault {
  /** The field that is wrong, or missing. */
  readonly field: RelabelField;
  /** For a person. */
  readonly reason: string;
}

/** Says what is wrong with a rule, null when nothing is: for readers of files, which know where each field stands. */
export type RelabelCheck = (rule: RelabelRule) => RelabelFault | null;
