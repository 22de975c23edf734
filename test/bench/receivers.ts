/** The upstreams: one process that listens on as many ports, see native/sink.c. */
import { join } from "node:path";
import { Child } from "./child.ts";
import { readCounters } from "./counters.ts";
import type { Tools } from "./tools.ts";

// In the order of enum counter in sink.c.
const COUNTERS = ["requests", "series", "samples", "errors"] as const;
export type ReceiverCounters = Readonly<Record<(typeof COUNTERS)[number], number>>;

export class Receivers {
  /** Write addresses. */
  readonly urls: readonly string[];
  readonly #child: Child;
  readonly #countersFile: string;

  private constructor(child: Child, countersFile: string) {
    const ports = JSON.parse(child.output()) as number[];
    this.urls = ports.map((port) => `http://127.0.0.1:${port}/api/v1/write`);
    this.#child = child;
    this.#countersFile = countersFile;
  }

  static async start(tools: Tools, count: number, folder: string): Promise<Receivers> {
    const countersFile = join(folder, "receivers.counters");
    const child = new Child("receivers", tools.sink, [String(count), countersFile], folder);
    await child.ready(() => child.output().endsWith("\n"));
    return new Receivers(child, countersFile);
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** Of all of them together. */
  counters(): ReceiverCounters {
    const sums = { requests: 0, series: 0, samples: 0, errors: 0 };
    for (const row of readCounters(this.#countersFile, COUNTERS)) {
      for (const name of COUNTERS) sums[name] += row[name];
    }
    return sums;
  }

  /** Samples that arrived at each, in the order of the urls. */
  samplesByPort(): number[] {
    return readCounters(this.#countersFile, COUNTERS).map(({ samples }) => samples);
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }
}
