/** What a store has recorded, and how two stores differ. */

/** A sample as a store exports it: null stands for a stale marker. */
export interface RecordedSample {
  readonly timestampMs: number;
  readonly value: number | string | null;
}

export interface RecordedSeries {
  readonly labels: Readonly<Record<string, string>>;
  /** In the order of their timestamps. */
  readonly samples: readonly RecordedSample[];
}

export interface Difference {
  /** Samples, as text, that only the expected store has, and that only the other one has. */
  readonly missing: string[];
  readonly unexpected: string[];
  /** Samples of the other store that are there more than once, each time after the first. */
  readonly repeated: number;
}

/** One name for a label set, whatever the order of its labels. */
export function labelSetName(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${pairs.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(",")}}`;
}

export function withoutLabels(
  labels: Readonly<Record<string, string>>,
  names: readonly string[],
): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !names.includes(name)));
}

/**
 * Compares all samples of two stores: label set, timestamp and value.
 * @param ignoredLabels labels of `actual` that are left out of the comparison
 */
export function compareRecorded(
  expected: readonly RecordedSeries[],
  actual: readonly RecordedSeries[],
  ignoredLabels: readonly string[],
): Difference {
  const wanted = sampleCounts(expected, []);
  const found = sampleCounts(actual, ignoredLabels);
  let repeated = 0;
  for (const count of found.values()) repeated += count - 1;
  return {
    missing: [...wanted.keys()].filter((sample) => !found.has(sample)),
    unexpected: [...found.keys()].filter((sample) => !wanted.has(sample)),
    repeated,
  };
}

export function sampleTotal(series: readonly RecordedSeries[]): number {
  return series.reduce((sum, { samples }) => sum + samples.length, 0);
}

/**
 * VictoriaMetrics keeps decimals with as many digits as the other values of their block leave room for, so that the last digits
 * of huge values, such as the smallest 64-bit integer, differ from store to store.
 */
function comparable(value: number | string): string {
  const isExact = typeof value === "string" || Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  return isExact ? String(value) : value.toPrecision(14);
}

function sampleCounts(
  series: readonly RecordedSeries[],
  ignoredLabels: readonly string[],
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { labels, samples } of series) {
    const name = labelSetName(withoutLabels(labels, ignoredLabels));
    for (const { timestampMs, value } of samples) {
      const sample = `${name} ${value === null ? "stale" : comparable(value)} @${timestampMs}`;
      counts.set(sample, (counts.get(sample) ?? 0) + 1);
    }
  }
  return counts;
}
