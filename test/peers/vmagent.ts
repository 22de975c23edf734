/** A real vmagent: behind the gateway as an aggregator is, or before it as a sender. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { Metrics } from "./metrics.ts";
import type { Peers } from "./installed.ts";
import { freePort, type Program } from "./program.ts";
import type { Rig } from "./rig.ts";
import { until, untilSettled } from "./until.ts";

export interface VmagentOptions {
  readonly name: string;
  /** Everything it gets is sent to each of these. */
  readonly remoteWriteUrls: readonly string[];
  /** Labels it adds to every series, "name=value". */
  readonly labels?: readonly string[];
  /** Hosts and ports that it scrapes, every second. */
  readonly scrapeTargets?: readonly string[];
}

/** How soon it sends on what it got; its default is 1s. */
const FLUSH_INTERVAL = "100ms";

export class Vmagent {
  readonly #rig: Rig;
  readonly #peers: Peers;
  readonly #options: VmagentOptions;
  readonly #port: number;
  readonly #scrapeConfig: string;
  #program: Program;

  private constructor(rig: Rig, peers: Peers, options: VmagentOptions, start: Started) {
    this.#rig = rig;
    this.#peers = peers;
    this.#options = options;
    this.#port = start.port;
    this.#scrapeConfig = start.scrapeConfig;
    this.#program = start.program;
  }

  static async start(rig: Rig, peers: Peers, options: VmagentOptions): Promise<Vmagent> {
    const port = await freePort();
    const scrapeConfig = join(rig.folder, `${options.name}-scrape.yml`);
    await writeFile(scrapeConfig, scrapeConfigText(options.scrapeTargets ?? []));
    const program = await run(rig, peers, options, port, scrapeConfig);
    return new Vmagent(rig, peers, options, { port, scrapeConfig, program });
  }

  /** Starts it again after its process has ended, at the same address and on the same data. */
  async startAgain(): Promise<void> {
    this.#program = await run(this.#rig, this.#peers, this.#options, this.#port, this.#scrapeConfig);
  }

  get program(): Program {
    return this.#program;
  }

  get writeUrl(): string {
    return `http://127.0.0.1:${this.#port}/api/v1/write`;
  }

  /** As they are now, which takes up to a second. */
  metrics(): Promise<Metrics> {
    return Metrics.fetchNew(`http://127.0.0.1:${this.#port}/metrics`);
  }

  /** Samples that this process got by remote write. */
  async rowsTaken(): Promise<number> {
    return (await this.metrics()).sum("vmagent_rows_inserted_total", { type: "promremotewrite" });
  }

  /**
   * Waits until everything that this process ever got was accepted by all its receivers, and nothing more has come in for a
   * second.
   */
  async drained(deadlineMs: number): Promise<void> {
    await untilSettled(`${this.#options.name} to have sent on what it got`, deadlineMs, async () => {
      const metrics = await this.metrics();
      const rows = metrics.sumOrZero("vmagent_remotewrite_rows_pushed_after_relabel_total");
      const done =
        rows === metrics.sumOrZero("vmagent_remotewrite_block_size_rows_sum") &&
        // It sends blocks, too, that a process before it has left on disk.
        metrics.sumOrZero("vmagent_remotewrite_block_size_rows_count") <=
          metrics.sumOrZero("vmagent_remotewrite_blocks_sent_total") &&
        metrics.sumOrZero("vmagent_remotewrite_pending_inmemory_blocks") === 0 &&
        metrics.sumOrZero("vmagent_remotewrite_pending_data_bytes") === 0;
      return done ? rows : undefined;
    });
  }

  /** Takes all scrape targets away; a scrape under way is finished. */
  async stopScraping(): Promise<void> {
    await writeFile(this.#scrapeConfig, scrapeConfigText([]));
    this.#program.signal("SIGHUP");
    await until(`${this.#options.name} to have no scrape targets`, 10_000, async () => {
      const metrics = await this.metrics();
      return metrics.sum("vm_promscrape_targets", { status: "up" }) === 0;
    });
  }
}

interface Started {
  readonly port: number;
  readonly scrapeConfig: string;
  readonly program: Program;
}

function run(
  rig: Rig,
  peers: Peers,
  options: VmagentOptions,
  port: number,
  scrapeConfig: string,
): Promise<Program> {
  return rig.start({
    name: options.name,
    command: peers.vmagent,
    args: [
      `-httpListenAddr=127.0.0.1:${port}`,
      ...options.remoteWriteUrls.map((url) => `-remoteWrite.url=${url}`),
      ...(options.labels ?? []).map((label) => `-remoteWrite.label=${label}`),
      `-remoteWrite.flushInterval=${FLUSH_INTERVAL}`,
      "-remoteWrite.tmpDataPath=queue",
      "-remoteWrite.showURL",
      "-memory.allowedBytes=64MiB",
      `-promscrape.config=${scrapeConfig}`,
    ],
    readyUrl: `http://127.0.0.1:${port}/health`,
  });
}

function scrapeConfigText(targets: readonly string[]): string {
  const jobs = targets.map((target) => ({ job_name: "exporter", static_configs: [{ targets: [target] }] }));
  // JSON is YAML.
  return JSON.stringify({ global: { scrape_interval: "1s", scrape_timeout: "1s" }, scrape_configs: jobs });
}
