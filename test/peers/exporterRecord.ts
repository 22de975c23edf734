/** Holds what a store recorded of the exporter against what the exporter showed. */
import { type ExposedSeries, familiesAt, SCRAPE_NUMBER } from "./exporter.ts";
import { labelSetName, type RecordedSeries, withoutLabels } from "./recorded.ts";

/** The labels that a scrape adds. */
const TARGET_LABELS = ["job", "instance"];

export interface ExporterRecord {
  /** Scrapes that were recorded. */
  readonly scrapes: number;
  readonly staleMarkers: number;
  /** As text: samples that the exporter did not show so, and scrapes of which not everything was recorded. */
  readonly wrong: string[];
}

/**
 * @param series      all series of the store
 * @param addedLabels labels that the series got after they were scraped
 */
export function checkExporterRecord(
  series: readonly RecordedSeries[],
  addedLabels: readonly string[],
): ExporterRecord {
  const ours = series.filter(({ labels }) => labels["__name__"]?.startsWith("exporter_"));
  const scrapeAt = scrapeNumbers(ours);
  const shownAtTime = new Map([...scrapeAt].map(([timestampMs, scrape]) => [timestampMs, shownAt(scrape)]));
  const missing = new Map(
    [...shownAtTime].map(([timestampMs, shown]) => [timestampMs, new Set(shown.keys())]),
  );
  const wrong: string[] = [];
  let staleMarkers = 0;

  for (const { labels, samples } of ours) {
    const name = labelSetName(withoutLabels(labels, [...TARGET_LABELS, ...addedLabels]));
    for (const { timestampMs, value } of samples) {
      const scrape = scrapeAt.get(timestampMs);
      const shown = shownAtTime.get(timestampMs)?.get(name);
      missing.get(timestampMs)?.delete(name);
      if (value === null) {
        staleMarkers += 1;
        // A scrape that failed marks all its series stale and has no number.
        if (shown !== undefined)
          wrong.push(`${name} @${timestampMs}: stale, but scrape ${scrape ?? "?"} had it`);
      } else if (value !== shown) {
        wrong.push(
          `${name} @${timestampMs}: ${value}, but scrape ${scrape ?? "none"} showed ${shown ?? "nothing"}`,
        );
      }
    }
  }
  for (const [timestampMs, names] of missing) {
    for (const name of names) wrong.push(`${name} @${timestampMs}: shown, but not recorded`);
  }
  return { scrapes: scrapeAt.size, staleMarkers, wrong };
}

/** From the timestamps of the scrapes to their numbers. */
function scrapeNumbers(series: readonly RecordedSeries[]): Map<number, number> {
  const counts = series.filter(({ labels }) => labels["__name__"] === SCRAPE_NUMBER);
  const numbers = new Map<number, number>();
  for (const { timestampMs, value } of counts.flatMap(({ samples }) => samples)) {
    if (typeof value === "number") numbers.set(timestampMs, value);
  }
  return numbers;
}

/** Everything shown at a scrape: label sets as text, and values. */
function shownAt(scrape: number): Map<string, number> {
  const series = familiesAt(scrape).flatMap((family): readonly ExposedSeries[] => family.series);
  return new Map(
    series.map(({ name, labels, value }) => [
      labelSetName({ __name__: name, ...Object.fromEntries(labels) }),
      value,
    ]),
  );
}
