/** A real Prometheus as the judge of relabel rules: what it accepts, and what it makes of label sets. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import type { Labels } from "../../src/cli/seriesLines.ts";
import type { Outcomes } from "../relabel/differences.ts";
import { Metrics } from "./metrics.ts";
import type { Peers } from "./installed.ts";
import { freePort } from "./program.ts";
import { OutcomeReceiver, writeLabelSets } from "./relabelTrial.ts";
import type { Rig } from "./rig.ts";
import { until } from "./until.ts";

/** It makes a queue for each of hundreds of lists. */
const READY_WITHIN_MS = 60_000;
const DONE_WITHIN_MS = 60_000;
/** Samples older than the start of a sender are not sent. */
const AHEAD_MS = 60_000;

/**
 * Applies every list to every label set, all at once: each is the write_relabel_configs of a remote_write of its own.
 *
 * @param name tells several runs of one rig apart
 * @param lists valid ones: Prometheus does not start with others
 * @param sets  such as Prometheus stores as they come
 */
export async function relabelWithPrometheus(
  rig: Rig,
  peers: Peers,
  name: string,
  lists: readonly string[],
  sets: readonly Labels[],
): Promise<Outcomes[]> {
  const receiver = await OutcomeReceiver.start(lists.length);
  rig.closeAtEnd(receiver);
  const address = `127.0.0.1:${await freePort()}`;
  const configFile = join(rig.folder, `${name}.yml`);
  await writeFile(
    configFile,
    senderConfig(lists, (list) => receiver.url(list), sets.length),
  );
  const program = await rig.start({
    name,
    command: peers.prometheus,
    args: [
      `--config.file=${configFile}`,
      `--web.listen-address=${address}`,
      "--web.enable-remote-write-receiver",
      "--storage.tsdb.path=data",
      "--log.level=warn",
    ],
    readyUrl: `http://${address}/-/ready`,
    readyWithinMs: READY_WITHIN_MS,
  });
  const writeUrl = `http://${address}/api/v1/write`;
  await writeLabelSets(writeUrl, sets, Date.now() + AHEAD_MS);
  await until(`${name} to have sent or dropped every series of every list`, DONE_WITHIN_MS, async () => {
    // Senders are told of a write, and those that are busy then look again after 15 s or after the next write.
    await writeLabelSets(writeUrl, [], 0);
    const { arrived } = receiver;
    const metrics = await Metrics.fetch(`http://${address}/metrics`);
    // A series that Prometheus does not send for another reason is counted under another one, and is waited for in vain.
    const byRules = { reason: "dropped_series" };
    const dropped = metrics.sumOrZero("prometheus_remote_storage_samples_dropped_total", byRules);
    return arrived + dropped === lists.length * sets.length;
  });
  const outcomes = receiver.outcomes(sets.length);
  await program.kill();
  return outcomes;
}

function senderConfig(
  lists: readonly string[],
  urlOf: (list: number) => string,
  samplesPerSend: number,
): string {
  const settings = [
    "  metadata_config: {send: false}",
    `  queue_config: {max_shards: 1, max_samples_per_send: ${samplesPerSend}, capacity: ${2 * samplesPerSend}, batch_send_deadline: 100ms}`,
  ];
  return [
    "remote_write:",
    ...lists.map((list, index) =>
      [
        `- name: list-${index}`,
        `  url: ${urlOf(index)}`,
        ...settings,
        "  write_relabel_configs:",
        indented(list, "  "),
      ].join("\n"),
    ),
  ].join("\n");
}

/** Says of single lists whether Prometheus would load them: one process, told to load one configuration after another. */
export class PrometheusLoader {
  readonly #address: string;
  readonly #configFile: string;

  private constructor(address: string, configFile: string) {
    this.#address = address;
    this.#configFile = configFile;
  }

  static async start(rig: Rig, peers: Peers, name: string): Promise<PrometheusLoader> {
    const address = `127.0.0.1:${await freePort()}`;
    const configFile = join(rig.folder, `${name}.yml`);
    await writeFile(configFile, "{}\n");
    await rig.start({
      name,
      command: peers.prometheus,
      args: [
        "--agent",
        `--config.file=${configFile}`,
        `--web.listen-address=${address}`,
        "--web.enable-lifecycle",
        "--storage.agent.path=data",
        // It logs every configuration that it refuses.
        "--log.level=error",
      ],
      readyUrl: `http://${address}/-/ready`,
    });
    return new PrometheusLoader(address, configFile);
  }

  /** What Prometheus has against a list, null when it takes it. */
  async problemOf(list: string): Promise<string | null> {
    await writeFile(
      this.#configFile,
      `scrape_configs:\n- job_name: x\n  metric_relabel_configs:\n${indented(list, "  ")}`,
    );
    const response = await fetch(`http://${this.#address}/-/reload`, { method: "POST" });
    const text = await response.text();
    if (response.status === 200) return null;
    if (!text.startsWith("failed to reload config")) {
      throw new Error(`Prometheus answered ${response.status} to a reload: ${text}`);
    }
    return text.trim();
  }
}

function indented(text: string, indent: string): string {
  return text.replaceAll(/^(?=.)/gm, indent);
}
