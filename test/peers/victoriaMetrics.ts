/** A real victoria-metrics: where samples end up, and where tests read them from. */
import { Metrics } from "./metrics.ts";
import type { Peers } from "./installed.ts";
import { freePort, type Program } from "./program.ts";
import { type RecordedSeries, sampleTotal } from "./recorded.ts";
import type { Rig } from "./rig.ts";
import { until } from "./until.ts";

const FOUND_WITHIN_MS = 20_000;

export class VictoriaMetrics {
  readonly program: Program;
  readonly #address: string;

  private constructor(program: Program, address: string) {
    this.program = program;
    this.#address = address;
  }

  /** Starts it without deduplication, so that a sample which arrives twice is there twice. */
  static async start(rig: Rig, peers: Peers, name: string): Promise<VictoriaMetrics> {
    const address = `127.0.0.1:${await freePort()}`;
    const program = await rig.start({
      name,
      command: peers["victoria-metrics"],
      args: [
        `-httpListenAddr=${address}`,
        "-storageDataPath=data",
        "-retentionPeriod=1d",
        "-dedup.minScrapeInterval=0",
        "-memory.allowedBytes=128MiB",
        // The tests need little room; they must not fail on a full machine that still has it.
        "-storage.minFreeDiskSpaceBytes=1MB",
      ],
      readyUrl: `http://${address}/health`,
    });
    return new VictoriaMetrics(program, address);
  }

  get writeUrl(): string {
    return `http://${this.#address}/api/v1/write`;
  }

  /** As they are now, which takes up to a second. */
  metrics(): Promise<Metrics> {
    return Metrics.fetchNew(`http://${this.#address}/metrics`);
  }

  /** Everything that was recorded, what came in a moment ago included. */
  async export(): Promise<RecordedSeries[]> {
    // Unlike vm_rows_inserted_total this leaves out what is not kept: samples that are not a number, as a quantile of nothing
    // is. Stale markers are kept.
    const kept = (await this.metrics()).sum("vm_rows_added_to_storage_total");
    return until(
      `${this.program.name} to find the ${kept} samples that it has`,
      FOUND_WITHIN_MS,
      async () => {
        // Fresh samples are not searched before they are flushed; new series may take a little longer.
        await this.#get("/internal/force_flush");
        const series = await this.#exportFlushed();
        const found = sampleTotal(series);
        if (found < kept) throw new Error(`it finds ${found}`);
        return series;
      },
    );
  }

  async #exportFlushed(): Promise<RecordedSeries[]> {
    const text = await this.#get(
      `/api/v1/export?${new URLSearchParams({ "match[]": '{__name__!=""}' }).toString()}`,
    );
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map(parseExported);
  }

  async #get(path: string): Promise<string> {
    const response = await fetch(`http://${this.#address}${path}`);
    const text = await response.text();
    if (response.status !== 200) {
      throw new Error(`${this.program.name} answered ${response.status} to ${path}: ${text.slice(0, 200)}`);
    }
    return text;
  }
}

/** A line of /api/v1/export: `{"metric":{...},"values":[...],"timestamps":[...]}`. */
function parseExported(line: string): RecordedSeries {
  const { metric, values, timestamps } = JSON.parse(line) as {
    metric: Record<string, string>;
    values: (number | string | null)[];
    timestamps: number[];
  };
  return {
    labels: metric,
    samples: timestamps.map((timestampMs, index) => ({ timestampMs, value: values[index] ?? null })),
  };
}
