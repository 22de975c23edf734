/** What a receiver has seen since it started, in bounded memory. */
import { createHash } from "node:crypto";
import { seriesLines, viewSeries } from "./captureText.ts";
import { bytesOf, textOf } from "./exactValue.ts";
import type { RawLabel, RawSeries, RawWriteRequest } from "./referenceDecoder.ts";

/** Counts of one receiver; `GET /stats` answers it as JSON. */
export interface SinkStats {
  /** HOST:PORT. */
  readonly listen: string;
  /** Requests answered with 2xx. */
  readonly requests: number;
  /** Requests answered with 4xx. */
  readonly refused: number;
  readonly last_refusal: string | null;
  /** When the last request came, RFC 3339. */
  readonly last_request: string | null;
  /** User-Agent of the last request. */
  readonly last_sender: string | null;
  readonly body_bytes: number;
  readonly plain_bytes: number;
  /** Different label sets. */
  readonly series: number;
  /** False: there are more label sets than are kept apart, `series` of them at least. */
  readonly series_exact: boolean;
  readonly samples: number;
  readonly histograms: number;
  readonly exemplars: number;
  readonly metadata: number;
  /** Values of the label stream_task_id, in numeric order. */
  readonly tasks: readonly string[];
  /** Metric names with the most items (samples, histograms, exemplars), the busiest first. */
  readonly busiest: readonly { readonly name: string; readonly items: number }[];
  /** The last series that came, the latest last: a line with the label set, then one for each item. */
  readonly recent: readonly (readonly string[])[];
}

export interface SinkLimits {
  /** Label sets that are kept apart. */
  readonly maxSeries: number;
  /** Metric names, and tasks, that are counted one by one. */
  readonly maxNames: number;
}

export const SINK_LIMITS: SinkLimits = { maxSeries: 1_000_000, maxNames: 10_000 };

const TASK_LABEL = "stream_task_id";
const METRIC_NAME = "__name__";
const BUSIEST = 10;
const RECENT = 5;
const MAX_RECENT_LINES = 10;
const MAX_LINE_CHARACTERS = 500;

export class SinkCounts {
  readonly #listen: string;
  readonly #limits: SinkLimits;
  #requests = 0;
  #refused = 0;
  #lastRefusal: string | null = null;
  #lastRequestAt: number | null = null;
  #lastSender: string | null = null;
  #bodyBytes = 0;
  #plainBytes = 0;
  readonly #seriesIds = new Set<number>();
  #seriesExact = true;
  #samples = 0;
  #histograms = 0;
  #exemplars = 0;
  #metadata = 0;
  readonly #tasks = new Set<string>();
  readonly #itemsByName = new Map<string, number>();
  #recent: readonly (readonly string[])[] = [];

  constructor(listen: string, limits: SinkLimits = SINK_LIMITS) {
    this.#listen = listen;
    this.#limits = limits;
  }

  /** Counts a request that was accepted. */
  accept(request: RawWriteRequest, bodyBytes: number, plainBytes: number): void {
    this.#requests += 1;
    this.#bodyBytes += bodyBytes;
    this.#plainBytes += plainBytes;
    this.#metadata += request.metadata.length;
    for (const series of request.timeseries) this.#count(series);
    // Kept as text: the series themselves would hold on to the whole request.
    const latest = request.timeseries.slice(-RECENT).map(recentLines);
    this.#recent = [...this.#recent, ...latest].slice(-RECENT);
  }

  /** Counts a request that was refused. */
  refuse(status: number, reason: string): void {
    this.#refused += 1;
    this.#lastRefusal = `${status}: ${reason}`;
  }

  /** Notes who sends, whatever becomes of the request. */
  seen(sender: string | undefined, now: number): void {
    this.#lastRequestAt = now;
    this.#lastSender = sender ?? null;
  }

  stats(): SinkStats {
    return {
      listen: this.#listen,
      requests: this.#requests,
      refused: this.#refused,
      last_refusal: this.#lastRefusal,
      last_request: this.#lastRequestAt === null ? null : new Date(this.#lastRequestAt).toISOString(),
      last_sender: this.#lastSender,
      body_bytes: this.#bodyBytes,
      plain_bytes: this.#plainBytes,
      series: this.#seriesIds.size,
      series_exact: this.#seriesExact,
      samples: this.#samples,
      histograms: this.#histograms,
      exemplars: this.#exemplars,
      metadata: this.#metadata,
      tasks: [...this.#tasks].sort((a, b) => Number(a) - Number(b)),
      busiest: [...this.#itemsByName]
        .map(([name, items]) => ({ name, items }))
        .sort((a, b) => b.items - a.items)
        .slice(0, BUSIEST),
      recent: this.#recent,
    };
  }

  #count(series: RawSeries): void {
    this.#samples += series.samples.length;
    this.#histograms += series.histograms.length;
    this.#exemplars += series.exemplars.length;
    const items = series.samples.length + series.histograms.length + series.exemplars.length;
    const id = seriesId(series.labels);
    if (this.#seriesIds.size < this.#limits.maxSeries) this.#seriesIds.add(id);
    else if (!this.#seriesIds.has(id)) this.#seriesExact = false;
    for (const label of series.labels) {
      const name = textOf(label.name);
      if (name === TASK_LABEL && this.#tasks.size < this.#limits.maxNames)
        this.#tasks.add(textOf(label.value));
      if (name === METRIC_NAME) this.#countName(textOf(label.value), items);
    }
  }

  #countName(name: string, items: number): void {
    const before = this.#itemsByName.get(name);
    if (before === undefined && this.#itemsByName.size >= this.#limits.maxNames) return;
    this.#itemsByName.set(name, (before ?? 0) + items);
  }
}

/** 48 bits of a hash of the label set, whatever the order of its labels: among a million series, two meet once in 500 times. */
function seriesId(labels: readonly RawLabel[]): number {
  const sorted = labels
    .map(({ name, value }) => `${latin1(bytesOf(name))}\xff${latin1(bytesOf(value))}\xff`)
    .sort();
  return createHash("sha1").update(sorted.join(""), "latin1").digest().readUIntBE(0, 6);
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}

function recentLines(series: RawSeries): string[] {
  const samples = series.samples.slice(0, MAX_RECENT_LINES);
  const histograms = series.histograms.slice(0, MAX_RECENT_LINES);
  const exemplars = series.exemplars.slice(0, MAX_RECENT_LINES);
  const lines = seriesLines(viewSeries({ ...series, labels: series.labels, samples, histograms, exemplars }));
  return lines.slice(0, MAX_RECENT_LINES).map(cut);
}

function cut(line: string): string {
  return line.length <= MAX_LINE_CHARACTERS ? line : `${line.slice(0, MAX_LINE_CHARACTERS - 1)}…`;
}
