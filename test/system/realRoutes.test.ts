/** Routes that select series by rules, among the real programs: every series is where explain says, and nowhere else. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";

import { Explainer } from "../../src/explain/explainer.ts";
import { Exporter } from "../peers/exporter.ts";
import type { Peers } from "../peers/installed.ts";
import { describeWithPeers } from "../peers/peers.ts";
import { Prometheus } from "../peers/prometheus.ts";
import { compareRecorded, type RecordedSeries } from "../peers/recorded.ts";
import { Rig } from "../peers/rig.ts";
import { until } from "../peers/until.ts";
import { VictoriaMetrics } from "../peers/victoriaMetrics.ts";
import { Vmagent } from "../peers/vmagent.ts";
import { GatewayRig } from "./gatewayRig.ts";
import { ledgerGaps } from "./ledger.ts";

const SCENE_TIMEOUT_MS = 100_000;
const WITHIN_MS = 30_000;
const SCRAPES = 3;
const VMAGENTS = 3;
const DIGITS = 9;

describeWithPeers("a real Prometheus before two routes, three real vmagents behind them", (peers) => {
  let rig: Rig;
  let gateway: GatewayRig;
  /** What the same Prometheus sends directly, and what comes of it behind gateway and vmagents, each with its `shard`. */
  let direct: RecordedSeries[];
  let routed: RecordedSeries[];

  beforeAll(async () => {
    rig = await Rig.create();
    await rig.prepare(async () => {
      const exporter = await Exporter.start();
      rig.closeAtEnd(exporter);
      const [directStore, store] = await Promise.all([
        VictoriaMetrics.start(rig, peers, "store-direct"),
        VictoriaMetrics.start(rig, peers, "store-behind-vmagents"),
      ]);
      const vmagents = await startVmagents(rig, peers, store);
      gateway = await GatewayRig.start(0, () => routesTo(vmagents));
      const prometheus = await Prometheus.start(rig, peers, {
        targets: { exporter: exporter.target },
        remoteWrites: [
          { name: "gateway", url: `${gateway.origin}/api/v1/write` },
          { name: "direct", url: directStore.writeUrl },
        ],
      });
      await until("the exporter to be scraped", WITHIN_MS, () => exporter.scrapes >= SCRAPES);
      await prometheus.stopScraping();
      await prometheus.drained(WITHIN_MS);
      await Promise.all(vmagents.map((vmagent) => vmagent.drained(WITHIN_MS)));
      [direct, routed] = await Promise.all([recorded(directStore), recorded(store)]);
    });
  }, SCENE_TIMEOUT_MS);
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => {
      rig.showLogs();
    });
  });
  afterAll(async () => {
    await gateway.stop();
    await rig.end();
  }, SCENE_TIMEOUT_MS);

  it("brings every sample to the routes and vmagents, and under the labels, that explain names, and nowhere else", () => {
    expect(compareRecorded(explained(direct), routed, [])).toEqual({
      missing: [],
      unexpected: [],
      repeated: 0,
    });
    for (let shard = 0; shard < VMAGENTS; shard++) {
      const there = routed.filter(({ labels }) => labels["shard"] === String(shard));
      expect(there.length, `series of vmagent-${shard}`).toBeGreaterThan(50);
    }
  });

  it("counts what rules leave out, and the ledger adds up", async () => {
    const metrics = await gateway.metrics();
    expect(ledgerGaps(metrics, ["requests", "others"])).toEqual([]);
    for (const reason of ["relabel_configs", "no_route"]) {
      expect(
        metrics.sum("stream_metrics_route_samples_dropped_total", { route: "", reason }),
      ).toBeGreaterThan(0);
    }
    expect(metrics.sum("stream_metrics_route_samples_refused_total")).toBe(0);
  });

  /** What is to be recorded behind the vmagents of series that come in so. */
  function explained(series: readonly RecordedSeries[]): RecordedSeries[] {
    const explainer = new Explainer(gateway.config);
    return series.flatMap(({ labels, samples }) => {
      const explanation = explainer.explain(Object.entries(labels));
      if ("refused" in explanation) return [];
      return explanation.routes.flatMap((route) => {
        if (route.labels === undefined) return [];
        const shard = (route.upstreams ?? []).join().replace("vmagent-", "");
        return [{ labels: { ...Object.fromEntries(route.labels), shard }, samples }];
      });
    });
  }
});

/**
 * What a store has. It keeps only as many digits of a value as those that are stored beside it leave room for, and what is
 * beside it differs between two stores: what is left here all of them keep.
 */
async function recorded(store: VictoriaMetrics): Promise<RecordedSeries[]> {
  return (await store.export()).map(({ labels, samples }) => ({
    labels,
    samples: samples.map(({ timestampMs, value }) => {
      return { timestampMs, value: typeof value === "number" ? Number(value.toPrecision(DIGITS)) : value };
    }),
  }));
}

function startVmagents(rig: Rig, peers: Peers, store: VictoriaMetrics): Promise<Vmagent[]> {
  return Promise.all(
    Array.from({ length: VMAGENTS }, (_, shard) =>
      Vmagent.start(rig, peers, {
        name: `vmagent-${shard}`,
        remoteWriteUrls: [store.writeUrl],
        labels: [`shard=${shard}`],
      }),
    ),
  );
}

/** The exporter's series of two families for one group, most of all others for another one. */
function routesTo(vmagents: readonly Vmagent[]): string {
  const upstream = (shard: number): string => `name: vmagent-${shard}, url: "${vmagents[shard]?.writeUrl}"`;
  return `
relabel_configs:
  - {source_labels: [__name__], regex: scrape_.*, action: drop}
routes:
  - name: requests
    final: true
    relabel_configs:
      - {source_labels: [job, __name__], regex: exporter;exporter_(requests_total|latency_.*), action: keep}
      - {source_labels: [instance], regex: "(.*):.*", target_label: host}
      - {source_labels: [zone], modulus: 3, target_label: cell, action: hashmod}
    tasks: {count: 16}
    upstreams: [{${upstream(0)}}, {${upstream(1)}}]
  - name: others
    relabel_configs:
      - {source_labels: [__name__], regex: go_.*, action: drop}
    upstreams:
      - {${upstream(1)}, write_relabel_configs: [{target_label: written_by, replacement: others-1}]}
      - {${upstream(2)}}
`;
}
