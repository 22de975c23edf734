/** A real vmagent as the judge of relabel rules in its dialect: what it accepts, and what it makes of label sets. */
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

/**
 * Applies every list to every label set, all at once: each is the urlRelabelConfig of a remoteWrite.url of its own.
 *
 * @param name tells several runs of one rig apart
 * @param lists valid ones: vmagent does not start with others
 */
export async function relabelWithVmagent(
  rig: Rig,
  peers: Peers,
  name: string,
  lists: readonly string[],
  sets: readonly Labels[],
): Promise<Outcomes[]> {
  const receiver = await OutcomeReceiver.start(lists.length);
  rig.closeAtEnd(receiver);
  const folder = await rig.subfolder(name);
  const files = lists.map((_, list) => join(folder, `list-${list}.yml`));
  for (const [list, file] of files.entries()) await writeFile(file, lists[list] ?? "");
  const address = `127.0.0.1:${await freePort()}`;
  const program = await rig.start({
    name,
    command: peers.vmagent,
    args: [
      `-httpListenAddr=${address}`,
      ...lists.map((_, list) => `-remoteWrite.url=${receiver.url(list)}`),
      ...files.map((file) => `-remoteWrite.urlRelabelConfig=${file}`),
      "-remoteWrite.forcePromProto",
      "-remoteWrite.queues=1",
      "-remoteWrite.flushInterval=100ms",
      "-remoteWrite.tmpDataPath=queue",
      "-memory.allowedBytes=1GiB",
      "-loggerLevel=WARN",
    ],
    readyUrl: `http://${address}/health`,
    readyWithinMs: READY_WITHIN_MS,
  });
  await writeLabelSets(`http://${address}/api/v1/write`, sets, Date.now());
  await until(`${name} to have sent or dropped every series of every list`, DONE_WITHIN_MS, async () => {
    const { arrived } = receiver;
    const metrics = await Metrics.fetchNew(`http://${address}/metrics`);
    const dropped = metrics.sum("vmagent_remotewrite_relabel_metrics_dropped_total");
    return arrived + dropped === lists.length * sets.length;
  });
  const outcomes = receiver.outcomes(sets.length);
  await program.kill();
  return outcomes;
}

/** Says of single lists whether vmagent would load them. */
export class VmagentLoader {
  readonly #address: string;

  private constructor(address: string) {
    this.#address = address;
  }

  static async start(rig: Rig, peers: Peers, name: string): Promise<VmagentLoader> {
    const address = `127.0.0.1:${await freePort()}`;
    await rig.start({
      name,
      command: peers.vmagent,
      args: [
        `-httpListenAddr=${address}`,
        "-remoteWrite.url=http://127.0.0.1:1/",
        "-remoteWrite.tmpDataPath=queue",
        "-memory.allowedBytes=64MiB",
      ],
      readyUrl: `http://${address}/health`,
    });
    return new VmagentLoader(address);
  }

  /** What vmagent has against a list, null when it takes it. Its page for trying rules out reads them as its files are read. */
  async problemOf(list: string): Promise<string | null> {
    const response = await fetch(`http://${this.#address}/metric-relabel-debug`, {
      method: "POST",
      body: new URLSearchParams({ relabel_configs: list, metric: '{a="b"}', format: "json" }),
    });
    const answer = JSON.parse(await response.text()) as { readonly status: string; readonly error?: string };
    return answer.status === "success" ? null : (answer.error ?? answer.status);
  }
}
