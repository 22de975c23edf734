/** The gateway among the real programs: what a Prometheus and a vmagent send arrives whole, and where it belongs. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";

import { Exporter } from "../peers/exporter.ts";
import { checkExporterRecord } from "../peers/exporterRecord.ts";
import type { Metrics } from "../peers/metrics.ts";
import { describeWithPeers } from "../peers/peers.ts";
import { Prometheus } from "../peers/prometheus.ts";
import { compareRecorded, type RecordedSeries, sampleTotal } from "../peers/recorded.ts";
import { Rig } from "../peers/rig.ts";
import { until } from "../peers/until.ts";
import { VictoriaMetrics } from "../peers/victoriaMetrics.ts";
import { Vmagent } from "../peers/vmagent.ts";
import { LABELS_ON_THE_WAY, scattered, seriesPerShard, VmagentGroup } from "../peers/vmagentGroup.ts";

const SCENE_TIMEOUT_MS = 100_000;
const SCRAPES_WITHIN_MS = 40_000;
const SENT_WITHIN_MS = 30_000;
/** Enough for every transient series of the exporter to go away and come back. */
const SCRAPES = 9;
/** The last one may be cut off, and on a busy machine one or two take longer than the second that they may. */
const FEWEST_RECORDED = SCRAPES - 3;

/** What a scene leaves behind to look at. */
interface Outcome {
  readonly rig: Rig;
  readonly group: VmagentGroup;
  /** Behind gateway and vmagents, and sent directly by the same sender. */
  readonly routed: RecordedSeries[];
  readonly direct: RecordedSeries[];
  readonly senderMetrics: Metrics;
}

describeWithPeers("a real Prometheus before the gateway, three real vmagents behind it", (peers) => {
  let rig: Rig;
  let outcome: Outcome;

  beforeAll(async () => {
    rig = await Rig.create();
    outcome = await rig.prepare(async () => {
      const exporter = await Exporter.start();
      rig.closeAtEnd(exporter);
      const directStore = await VictoriaMetrics.start(rig, peers, "store-direct");
      const group = await VmagentGroup.start(rig, peers);
      const prometheus = await Prometheus.start(rig, peers, {
        targets: { exporter: exporter.target },
        remoteWrites: [
          { name: "gateway", url: group.gateway.writeUrl },
          { name: "direct", url: directStore.writeUrl },
        ],
      });
      await until("the exporter to be scraped", SCRAPES_WITHIN_MS, () => exporter.scrapes >= SCRAPES);
      await prometheus.stopScraping();
      await prometheus.drained(SENT_WITHIN_MS);
      const senderMetrics = await prometheus.metrics();
      return {
        rig,
        group,
        routed: await group.recorded(),
        direct: await directStore.export(),
        senderMetrics,
      };
    });
  }, SCENE_TIMEOUT_MS);
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => {
      rig.showLogs();
    });
  });
  afterAll(() => rig.end(), SCENE_TIMEOUT_MS);

  it("brings every series to exactly one vmagent, under exactly one task", () => {
    expect(scattered(outcome.routed)).toEqual([]);
    expect(outcome.routed).toHaveLength(outcome.direct.length);
    // Prometheus' own series, the exporter's, and both targets' up and scrape_*.
    expect(outcome.routed.length).toBeGreaterThan(800);
    for (const series of seriesPerShard(outcome.routed)) expect(series).toBeGreaterThan(100);
  });

  it("brings each series to the task and the vmagent that explain names", async () => {
    expect(await outcome.group.misplaced(outcome.routed)).toEqual([]);
  });

  it("brings the samples, to the millisecond and the value, that the same Prometheus sends directly, each once", () => {
    expect(compareRecorded(outcome.direct, outcome.routed, LABELS_ON_THE_WAY)).toEqual({
      missing: [],
      unexpected: [],
      repeated: 0,
    });
    expect(sampleTotal(outcome.routed)).toBe(sampleTotal(outcome.direct));
  });

  it("brings what the exporter showed, with stale markers where series went away", () => {
    const record = checkExporterRecord(outcome.routed, LABELS_ON_THE_WAY);
    expect(record.wrong).toEqual([]);
    expect(record.scrapes).toBeGreaterThanOrEqual(FEWEST_RECORDED);
    expect(record.staleMarkers).toBeGreaterThan(0);
  });

  it("gives Prometheus no reason to retry or to drop anything, metadata included", () => {
    const toGateway = { remote_name: "gateway" };
    for (const kind of ["samples", "metadata"]) {
      for (const event of ["failed", "retried"]) {
        expect(outcome.senderMetrics.sum(`prometheus_remote_storage_${kind}_${event}_total`, toGateway)).toBe(
          0,
        );
      }
    }
    expect(outcome.senderMetrics.sum("prometheus_remote_storage_metadata_total", toGateway)).toBeGreaterThan(
      0,
    );
  });

  it("counts as delivered what each vmagent counts as received", async () => {
    const metrics = await outcome.group.gateway.metrics();
    const delivered = outcome.group.vmagents.map((_, shard) =>
      metrics.sum("stream_metrics_route_samples_delivered_total", { upstream: `vmagent-${shard}` }),
    );
    expect(delivered).toEqual(await outcome.group.rowsTaken());
  });

  it("ends with exit code 0 when it is asked to (SIGTERM)", async () => {
    expect(await outcome.group.gateway.program.stop()).toEqual({ code: 0, signal: null });
  });
});

describeWithPeers("a real vmagent before the gateway, which speaks zstd first", (peers) => {
  let rig: Rig;
  let outcome: Outcome;
  let sender: Vmagent;
  let gatewayUrl: string;

  beforeAll(async () => {
    rig = await Rig.create();
    outcome = await rig.prepare(async () => {
      const exporter = await Exporter.start();
      rig.closeAtEnd(exporter);
      const directStore = await VictoriaMetrics.start(rig, peers, "store-direct");
      const group = await VmagentGroup.start(rig, peers);
      gatewayUrl = group.gateway.writeUrl;
      sender = await Vmagent.start(rig, peers, {
        name: "vmagent-sender",
        remoteWriteUrls: [gatewayUrl, directStore.writeUrl],
        scrapeTargets: [exporter.target],
      });
      await until("the exporter to be scraped", SCRAPES_WITHIN_MS, () => exporter.scrapes >= SCRAPES);
      await sender.stopScraping();
      await sender.drained(SENT_WITHIN_MS);
      const senderMetrics = await sender.metrics();
      return {
        rig,
        group,
        routed: await group.recorded(),
        direct: await directStore.export(),
        senderMetrics,
      };
    });
  }, SCENE_TIMEOUT_MS);
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => {
      rig.showLogs();
    });
  });
  afterAll(() => rig.end(), SCENE_TIMEOUT_MS);

  it("answers zstd with 415, whereupon the vmagent sends snappy and is accepted", () => {
    const requests = "vmagent_remotewrite_requests_total";
    const refused = outcome.senderMetrics.sumOrZero(requests, { status_code: "415" });
    const accepted = outcome.senderMetrics.sumOrZero(requests, { status_code: "2XX" });
    expect(refused).toBeGreaterThan(0);
    expect(accepted).toBeGreaterThan(refused);
  });

  it("loses none of its samples", () => {
    expect(outcome.senderMetrics.sum("vmagent_remotewrite_packets_dropped_total")).toBe(0);
    expect(compareRecorded(outcome.direct, outcome.routed, LABELS_ON_THE_WAY)).toEqual({
      missing: [],
      unexpected: [],
      repeated: 0,
    });
    const record = checkExporterRecord(outcome.routed, LABELS_ON_THE_WAY);
    expect(record.wrong).toEqual([]);
    expect(record.scrapes).toBeGreaterThanOrEqual(FEWEST_RECORDED);
  });

  it("brings each of its series, whose labels are not sorted, to the one place that explain names", async () => {
    expect(scattered(outcome.routed)).toEqual([]);
    expect(await outcome.group.misplaced(outcome.routed)).toEqual([]);
    for (const series of seriesPerShard(outcome.routed)) expect(series).toBeGreaterThan(50);
  });
});
