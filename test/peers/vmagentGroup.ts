/** The gateway before three real vmagents that write to one store, each marking its series with the label `shard`. */
import { Gateway } from "./gateway.ts";
import type { Peers } from "./installed.ts";
import { labelSetName, type RecordedSeries, withoutLabels } from "./recorded.ts";
import type { Rig } from "./rig.ts";
import { VictoriaMetrics } from "./victoriaMetrics.ts";
import { Vmagent } from "./vmagent.ts";

const SHARDS = 3;
const DRAINED_WITHIN_MS = 20_000;

/** The labels that series get on their way to the store. */
export const LABELS_ON_THE_WAY = ["stream_task_id", "shard"];

export class VmagentGroup {
  readonly gateway: Gateway;
  /** vmagent-0, vmagent-1, vmagent-2. */
  readonly vmagents: readonly Vmagent[];
  readonly store: VictoriaMetrics;

  private constructor(gateway: Gateway, vmagents: readonly Vmagent[], store: VictoriaMetrics) {
    this.gateway = gateway;
    this.vmagents = vmagents;
    this.store = store;
  }

  /** @param delivery value of the gateway's `delivery` */
  static async start(rig: Rig, peers: Peers, delivery?: string): Promise<VmagentGroup> {
    const store = await VictoriaMetrics.start(rig, peers, "store-behind-vmagents");
    const vmagents = await Promise.all(
      Array.from({ length: SHARDS }, (_, shard) =>
        Vmagent.start(rig, peers, {
          name: `vmagent-${shard}`,
          remoteWriteUrls: [store.writeUrl],
          labels: [`shard=${shard}`],
        }),
      ),
    );
    const gateway = await Gateway.start(
      rig,
      vmagents.map((vmagent) => vmagent.writeUrl),
      delivery,
    );
    return new VmagentGroup(gateway, vmagents, store);
  }

  /** Everything that the vmagents got, read from the store after they have sent it on. */
  async recorded(): Promise<RecordedSeries[]> {
    await this.drained();
    return this.store.export();
  }

  /** Waits until the vmagents have got nothing for a second and have sent on all they had. The sender must be done or held. */
  async drained(): Promise<void> {
    await Promise.all(this.vmagents.map((vmagent) => vmagent.drained(DRAINED_WITHIN_MS)));
  }

  /** Samples that each vmagent has got since it was started, by shard. */
  rowsTaken(): Promise<number[]> {
    return Promise.all(this.vmagents.map((vmagent) => vmagent.rowsTaken()));
  }

  /**
   * The series, as text, that are not where explain says that their label set belongs: another task or another shard than
   * its, or one of the two labels missing.
   */
  async misplaced(series: readonly RecordedSeries[]): Promise<string[]> {
    const explained = await this.gateway.explain(
      series.map(({ labels }) => withoutLabels(labels, LABELS_ON_THE_WAY)),
    );
    return series.flatMap(({ labels }, index) => {
      const place = explained[index];
      const task = labels["stream_task_id"] ?? "none";
      const shard = labels["shard"] ?? "none";
      const right =
        place !== undefined &&
        String(place.task) === task &&
        place.slots.join() === shard &&
        place.upstreams.join() === `vmagent-${shard}`;
      return right ? [] : [`${labelSetName(labels)}: explain says ${JSON.stringify(place)}`];
    });
  }
}

/** The label sets, as text, that were recorded under more than one shard or task. */
export function scattered(series: readonly RecordedSeries[]): string[] {
  const places = new Map<string, number>();
  for (const { labels } of series) {
    const name = labelSetName(withoutLabels(labels, LABELS_ON_THE_WAY));
    places.set(name, (places.get(name) ?? 0) + 1);
  }
  return [...places].filter(([, count]) => count > 1).map(([name, count]) => `${name}: in ${count} places`);
}

/** How many series each shard has, by the shard's number. */
export function seriesPerShard(series: readonly RecordedSeries[]): number[] {
  return Array.from(
    { length: SHARDS },
    (_, shard) => series.filter(({ labels }) => labels["shard"] === String(shard)).length,
  );
}
