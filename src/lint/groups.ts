/** Which labels tell the output groups of a rule apart. */
import type { AggregationRule } from "../config/aggregationFile.ts";
import { allBut, EVERY_LABEL, type LabelNames, only } from "./labelNames.ts";

const METRIC_NAME = "__name__";

/** Of the labels that input relabeling leaves. A `by` has the metric name in it, whether it is written there or not. */
export function groupLabels({ by, without }: Pick<AggregationRule, "by" | "without">): LabelNames {
  if (by.length > 0) return only([METRIC_NAME, ...by]);
  return without.length > 0 ? allBut(without) : EVERY_LABEL;
}

/** Why a label is not in the group. */
export function groupText({ by, without }: Pick<AggregationRule, "by" | "without">): string {
  if (by.length > 0) return `not in by: [${by.join(", ")}]`;
  return `in without: [${without.join(", ")}]`;
}
