/**
 * What becomes of a rule's outputs when the series of one group are aggregated in several tasks, each of which gives a result
 * of its own: how the results of the tasks are merged into the one that the whole group would have.
 */

/** `series`: exact while all samples of one input series are in one task; `samples`: wherever they are. */
interface Merge {
  readonly by: "sum" | "min" | "max";
  readonly needs: "series" | "samples";
}

/** Stands for `quantiles(0.5, 0.9)` with any arguments. */
const QUANTILES = "quantiles(...)";

/** Outputs of vmagent 1.145; null where the results of the tasks do not determine that of the whole. */
const MERGES: Readonly<Record<string, Merge | null>> = {
  avg: null,
  count_samples: { by: "sum", needs: "samples" },
  count_series: { by: "sum", needs: "series" },
  histogram_bucket: { by: "sum", needs: "samples" },
  increase: { by: "sum", needs: "series" },
  increase_prometheus: { by: "sum", needs: "series" },
  last: null,
  max: { by: "max", needs: "samples" },
  min: { by: "min", needs: "samples" },
  [QUANTILES]: null,
  rate_avg: null,
  rate_sum: { by: "sum", needs: "series" },
  stddev: null,
  stdvar: null,
  sum_samples: { by: "sum", needs: "samples" },
  total: { by: "sum", needs: "series" },
  total_prometheus: { by: "sum", needs: "series" },
  unique_samples: null,
};

export function isKnownOutput(output: string): boolean {
  return Object.hasOwn(MERGES, functionOf(output));
}

/** Those of the outputs that cannot be merged over tasks. */
export function unmergeable(outputs: readonly string[]): string[] {
  return outputs.filter((output) => mergeOf(output) === null);
}

/** Those of the outputs that are wrong after merging where tasks share the samples of one input series. */
export function needingWholeSeries(outputs: readonly string[], deduplicates: boolean): string[] {
  // Of several samples of a series deduplication keeps the last, and each task its own.
  return outputs.filter((output) => deduplicates || mergeOf(output)?.needs === "series");
}

/** How to merge, e.g. `sum of increase, max of max`. */
export function mergeText(outputs: readonly string[]): string {
  return outputs.map((output) => `${mergeOf(output)?.by ?? "nothing"} of ${output}`).join(", ");
}

function mergeOf(output: string): Merge | null {
  return MERGES[functionOf(output)] ?? null;
}

function functionOf(output: string): string {
  return /^quantiles\([\d., ]+\)$/.test(output) ? QUANTILES : output;
}
