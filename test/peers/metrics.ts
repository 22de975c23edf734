/** Reads the counters that a program shows at /metrics. */
import { until } from "./until.ts";

const NEW_PAGE_WITHIN_MS = 10_000;

interface MetricLine {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

export class Metrics {
  readonly #lines: readonly MetricLine[];

  private constructor(lines: readonly MetricLine[]) {
    this.#lines = lines;
  }

  /** @param url address of the metrics page */
  static async fetch(url: string): Promise<Metrics> {
    return Metrics.parse(await fetchText(url));
  }

  /**
   * As fetch(), for vmagent and victoria-metrics: they show the same page for a second before they make a new one, so it may
   * tell of a moment before something that the caller already knows. Waits for a page that was made after the call.
   */
  static async fetchNew(url: string): Promise<Metrics> {
    // No two pages are equal: each counts the requests for it.
    const old = await fetchText(url);
    const text = await until(`a new page at ${url}`, NEW_PAGE_WITHIN_MS, async () => {
      const page = await fetchText(url);
      return page !== old && page;
    });
    return Metrics.parse(text);
  }

  /** @param text Prometheus text format without timestamps; comments are left out */
  static parse(text: string): Metrics {
    const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    return new Metrics(lines.map(parseLine));
  }

  /**
   * The sum of all series of a metric that carry these labels.
   * @throws {Error} when there is no such series: a misspelt name must not pass for 0
   */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    const found = this.#select(name, labels);
    if (found.length === 0) throw new Error(`no series ${name}${JSON.stringify(labels)} among the metrics`);
    return total(found);
  }

  /** As sum(), for series that do not exist before they first count: 0 then. */
  sumOrZero(name: string, labels: Readonly<Record<string, string>> = {}): number {
    return total(this.#select(name, labels));
  }

  #select(name: string, labels: Readonly<Record<string, string>>): MetricLine[] {
    const wanted = Object.entries(labels);
    return this.#lines.filter(
      (line) => line.name === name && wanted.every(([label, value]) => line.labels.get(label) === value),
    );
  }
}

async function fetchText(url: string): Promise<string> {
  const response = await fetch(url);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 200)}`);
  return text;
}

function total(lines: readonly MetricLine[]): number {
  return lines.reduce((sum, line) => sum + line.value, 0);
}

function parseLine(line: string): MetricLine {
  const parts = /^([^\s{]+)(?:\{(.*)\})?\s+(\S+)$/.exec(line);
  const [, name, labels = "", value] = parts ?? [];
  if (name === undefined || value === undefined) throw new Error(`not a line of Prometheus text: ${line}`);
  const pairs = labels.matchAll(/([^\s,={]+)="((?:[^"\\]|\\.)*)"/g);
  return {
    name,
    labels: new Map(Array.from(pairs, ([, label = "", text = ""]) => [label, text])),
    value: Number(value.replace("Inf", "Infinity")),
  };
}
