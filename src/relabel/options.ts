/** What a relabel rule says, as it was written: the shape that configuration produces and RelabelRules takes. */

/** One rule; null where nothing was written, which is not always the same as the default written out. */
export interface RelabelRule {
  /** In any case: Prometheus takes `Keep` for `keep`. */
  readonly action: string | null;
  readonly sourceLabels: readonly string[] | null;
  readonly separator: string | null;
  /** What was written as a list is joined with `|`. */
  readonly regex: string | null;
  readonly targetLabel: string | null;
  readonly replacement: string | null;
  /** Below 2^64. */
  readonly modulus: bigint | null;
  /** Series selectors of which one has to match. VictoriaMetrics only, as are the fields below. */
  readonly if: readonly string[] | null;
  /** What names of Graphite metrics have to look like. */
  readonly match: string | null;
  /** Labels that are made of the parts of a Graphite name, with their templates. */
  readonly labels: ReadonlyMap<string, string> | null;
}

/** Whose reading a list of rules has: Prometheus', or vmagent's, which has more actions and other corners. */
export type RelabelDialect = "prometheus" | "victoriametrics";

/** Rules that are applied one after another. */
export interface RelabelRuleList {
  readonly dialect: RelabelDialect;
  readonly rules: readonly RelabelRule[];
}

/** The fields of a rule as they are spelled in files. */
export type RelabelField =
  | "action"
  | "source_labels"
  | "separator"
  | "regex"
  | "target_label"
  | "replacement"
  | "modulus"
  | "if"
  | "match"
  | "labels";

export interface RelabelFault {
  /** The field that is wrong, or missing. */
  readonly field: RelabelField;
  /** For a person. */
  readonly reason: string;
  /** Whether VictoriaMetrics knows what Prometheus, whose dialect the rule is read in, does not. */
  readonly isForeign: boolean;
}

/** Says what is wrong with a rule, null when nothing is: for readers of files, which know where each field stands. */
export type RelabelCheck = (rule: RelabelRule, dialect: RelabelDialect) => RelabelFault | null;
