/**
 * An exporter for the tests: some hundreds of series whose values are a known function of the number of the scrape, so that
 * a test can tell from the store alone whether a sample is the one that was shown.
 *
 * It has what a router may get wrong: labels in an order that is not theirs by name, text beyond ASCII, values that need
 * escaping, a histogram, and series that go away and come back (Prometheus then writes a stale marker).
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import type { Closable } from "./rig.ts";

export interface ExposedSeries {
  /** In the order in which the exporter writes them, without `__name__`. */
  readonly labels: readonly (readonly [name: string, value: string])[];
  readonly name: string;
  readonly value: number;
}

interface Family {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly series: readonly ExposedSeries[];
}

/** The metric whose only series tells the number of the scrape. */
export const SCRAPE_NUMBER = "exporter_scrapes_total";

const COUNTERS = 240;
const GAUGES = 80;
/** Binary fractions, so that sums of them are exact. None is whole: Prometheus writes the bound 5 as 5.0. */
const BOUNDS = [0.125, 0.25, 0.5, 2.5];
/** A transient series is there for this many scrapes, away for as many, and so on. */
const TRANSIENT_SCRAPES = 3;
const CITIES = [
  "Zürich",
  "東京",
  "Αθήνα",
  "satellite 🛰",
  'with "quotes"',
  "back\\slash",
  "two\nlines",
  "a,b=c{d}",
];

/** What the exporter shows at its scrape number `scrape` (the first is 1). */
export function familiesAt(scrape: number): readonly Family[] {
  return [
    {
      name: SCRAPE_NUMBER,
      type: "counter",
      help: "Scrapes answered, this one included.",
      series: [{ name: SCRAPE_NUMBER, labels: [], value: scrape }],
    },
    {
      name: "exporter_requests_total",
      type: "counter",
      help: "Grows by a step of its own in each series.",
      series: range(COUNTERS).map((index) => ({
        name: "exporter_requests_total",
        labels: [
          ["zone", `zone-${index % 5}`],
          ["method", index % 2 === 0 ? "GET" : "POST"],
          ["path", `/item/${index}`],
          ["app", `app-${index % 7}`],
        ],
        value: scrape * (index + 1),
      })),
    },
    {
      name: "exporter_temperature_celsius",
      type: "gauge",
      help: "Goes up and down, below zero too, with fractions.",
      series: range(GAUGES).map((index) => ({
        name: "exporter_temperature_celsius",
        labels: [
          ["sensor", String(index)],
          ["city", CITIES[index % CITIES.length] ?? ""],
          ["Building", `b${index % 3}`],
        ],
        value: ((scrape * 7 + index * 13) % 101) / 8 - 6,
      })),
    },
    {
      name: "exporter_latency_seconds",
      type: "histogram",
      help: "One observation of each kind per scrape.",
      series: ["read", "write"].flatMap((operation) => histogramAt(operation, scrape)),
    },
    {
      name: "exporter_transient",
      type: "gauge",
      help: "Series that go away and come back.",
      series: range(12)
        .filter((index) => Math.floor((scrape + index) / TRANSIENT_SCRAPES) % 2 === 0)
        .map((index) => ({
          name: "exporter_transient",
          labels: [["worker", String(index)]],
          value: scrape + index,
        })),
    },
  ];
}

/** Every observation of scrape n falls in the bucket of one bound, by turns. */
function histogramAt(operation: string, scrape: number): ExposedSeries[] {
  const name = "exporter_latency_seconds";
  const inBucket = BOUNDS.map((_, bucket) =>
    Math.floor((scrape + BOUNDS.length - 1 - bucket) / BOUNDS.length),
  );
  const buckets = BOUNDS.map((bound, bucket) => ({
    name: `${name}_bucket`,
    labels: [
      ["operation", operation],
      ["le", String(bound)],
    ] as const,
    value: sum(inBucket.slice(0, bucket + 1)),
  }));
  return [
    ...buckets,
    {
      name: `${name}_bucket`,
      labels: [
        ["operation", operation],
        ["le", "+Inf"],
      ],
      value: scrape,
    },
    {
      name: `${name}_sum`,
      labels: [["operation", operation]],
      value: sum(inBucket.map((n, i) => n * (BOUNDS[i] ?? 0))),
    },
    { name: `${name}_count`, labels: [["operation", operation]], value: scrape },
  ];
}

export class Exporter implements Closable {
  readonly #server: Server;
  #scrapes = 0;

  private constructor() {
    this.#server = createServer((request, response) => {
      request.resume();
      if (request.url !== "/metrics") {
        response.writeHead(404).end();
        return;
      }
      this.#scrapes += 1;
      response.writeHead(200, { "Content-Type": "text/plain; version=0.0.4; charset=utf-8" });
      response.end(exposition(familiesAt(this.#scrapes)));
    });
  }

  static async start(): Promise<Exporter> {
    const exporter = new Exporter();
    await new Promise<void>((resolve, reject) => {
      exporter.#server.once("error", reject);
      exporter.#server.listen(0, "127.0.0.1", resolve);
    });
    return exporter;
  }

  /** Host and port, as scrape configurations want it. */
  get target(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** How often it was scraped. */
  get scrapes(): number {
    return this.#scrapes;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
  }
}

function exposition(families: readonly Family[]): string {
  const lines = families.flatMap((family) => [
    `# HELP ${family.name} ${family.help}`,
    `# TYPE ${family.name} ${family.type}`,
    ...family.series.map(expositionLine),
  ]);
  return `${lines.join("\n")}\n`;
}

function expositionLine({ name, labels, value }: ExposedSeries): string {
  const text = labels.map(([label, content]) => `${label}="${escapeValue(content)}"`).join(",");
  return `${name}${text === "" ? "" : `{${text}}`} ${value}`;
}

function escapeValue(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
