/** A real Prometheus: scrapes, and sends what it scraped to several receivers by remote write. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { Metrics } from "./metrics.ts";
import type { Peers } from "./installed.ts";
import { freePort, type Program } from "./program.ts";
import type { Rig } from "./rig.ts";
import { untilSettled } from "./until.ts";

export interface RemoteWrite {
  /** Tells the receivers apart in Prometheus' own metrics. */
  readonly name: string;
  readonly url: string;
}

export interface PrometheusOptions {
  /** Job names and the hosts and ports that they scrape, every second. Prometheus scrapes itself besides. */
  readonly targets: Readonly<Record<string, string>>;
  readonly remoteWrites: readonly RemoteWrite[];
}

export class Prometheus {
  readonly program: Program;
  readonly #address: string;
  readonly #configFile: string;
  readonly #remoteWrites: readonly RemoteWrite[];

  private constructor(
    program: Program,
    address: string,
    configFile: string,
    remoteWrites: readonly RemoteWrite[],
  ) {
    this.program = program;
    this.#address = address;
    this.#configFile = configFile;
    this.#remoteWrites = remoteWrites;
  }

  static async start(
    rig: Rig,
    peers: Peers,
    { targets, remoteWrites }: PrometheusOptions,
  ): Promise<Prometheus> {
    const address = `127.0.0.1:${await freePort()}`;
    const configFile = join(rig.folder, "prometheus.yml");
    await writeFile(configFile, configText({ prometheus: address, ...targets }, remoteWrites));
    const program = await rig.start({
      name: "prometheus",
      command: peers.prometheus,
      args: [
        `--config.file=${configFile}`,
        `--web.listen-address=${address}`,
        "--web.enable-lifecycle",
        "--storage.tsdb.path=data",
      ],
      readyUrl: `http://${address}/-/ready`,
    });
    return new Prometheus(program, address, configFile, remoteWrites);
  }

  metrics(): Promise<Metrics> {
    return Metrics.fetch(`http://${this.#address}/metrics`);
  }

  /**
   * Takes all scrape targets away and goes on sending what it has. That leaves all receivers with the same samples in the
   * end, which a Prometheus that is stopped does not: it may end with its newest samples sent to one of them only.
   */
  async stopScraping(): Promise<void> {
    await writeFile(this.#configFile, configText({}, this.#remoteWrites));
    const response = await fetch(`http://${this.#address}/-/reload`, { method: "POST" });
    const text = await response.text();
    if (response.status !== 200)
      throw new Error(`Prometheus answered ${response.status} to a reload: ${text}`);
  }

  /** Waits until every receiver has accepted, or for good refused, every sample there is. Scraping must have stopped. */
  async drained(deadlineMs: number): Promise<void> {
    await untilSettled("Prometheus to have sent all samples to all receivers", deadlineMs, async () => {
      const metrics = await this.metrics();
      const collected = metrics.sum("prometheus_remote_storage_samples_in_total");
      const done = this.#remoteWrites.every(({ name }) => {
        const of = { remote_name: name };
        // Every attempt counts as sent, and does so when it begins; what has no answer yet is pending. So the first look may
        // have read "pending" before samples were queued and "sent" after, but the second sees them pending.
        const sent =
          metrics.sum("prometheus_remote_storage_samples_total", of) -
          metrics.sum("prometheus_remote_storage_samples_retried_total", of);
        return metrics.sum("prometheus_remote_storage_samples_pending", of) === 0 && sent === collected;
      });
      return done ? collected : undefined;
    });
  }
}

function configText(targets: Readonly<Record<string, string>>, remoteWrites: readonly RemoteWrite[]): string {
  // JSON is YAML.
  return JSON.stringify({
    global: { scrape_interval: "1s", scrape_timeout: "1s" },
    scrape_configs: Object.entries(targets).map(([job, target]) => ({
      job_name: job,
      static_configs: [{ targets: [target] }],
    })),
    remote_write: remoteWrites.map(({ name, url }) => ({
      name,
      url,
      queue_config: { batch_send_deadline: "100ms" },
      // Often enough that requests of metadata alone are part of every test.
      metadata_config: { send_interval: "2s" },
    })),
  });
}
