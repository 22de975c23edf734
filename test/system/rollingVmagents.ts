/** Real vmagents behind the gateway, restarted one after the other while a real Prometheus sends. */
import { setTimeout as pause } from "node:timers/promises";
import { Exporter } from "../peers/exporter.ts";
import { checkExporterRecord } from "../peers/exporterRecord.ts";
import type { Peers } from "../peers/installed.ts";
import { Prometheus } from "../peers/prometheus.ts";
import { compareRecorded, sampleTotal } from "../peers/recorded.ts";
import type { Rig } from "../peers/rig.ts";
import { until, untilSettled } from "../peers/until.ts";
import { VictoriaMetrics } from "../peers/victoriaMetrics.ts";
import { LABELS_ON_THE_WAY, scattered, VmagentGroup } from "../peers/vmagentGroup.ts";
import { ledgerGaps } from "./ledger.ts";

const WITHIN_MS = 40_000;
const SCRAPES_BETWEEN = 2;
/** In one request at most: so many samples are in flight to an upstream. */
const SAMPLES_IN_FLIGHT = 1_000;
const DELIVERY = `{spool_after: 500ms, breaker: {reset_after: 1s}, queue_config: {max_samples_per_send: ${SAMPLES_IN_FLIGHT}, max_backoff: 1s}}`;

export interface RollingEnd {
  readonly samples: number;
  /** As text: samples that only one of the two stores has, the one that Prometheus sends to directly or the other. */
  readonly missing: readonly string[];
  readonly unexpected: readonly string[];
  /** Samples that the exporter did not show so, and series that were at several vmagents. */
  readonly wrong: readonly string[];
  readonly ledgerGaps: readonly string[];
  /** Samples that were stored once more than they should, and how many that may be. */
  readonly repeated: number;
  readonly mostRepeated: number;
  /** Attempts of the gateway that it made again. */
  readonly retries: number;
  /** Samples that Prometheus had to send again. */
  readonly sentAgain: number;
}

/**
 * @param rounds how often each vmagent is restarted
 * @param awayMs how long it is away each time
 */
export async function rollingRestart(
  rig: Rig,
  peers: Peers,
  { rounds, awayMs }: { readonly rounds: number; readonly awayMs: number },
): Promise<RollingEnd> {
  const exporter = await Exporter.start();
  rig.closeAtEnd(exporter);
  const directStore = await VictoriaMetrics.start(rig, peers, "store-direct");
  const group = await VmagentGroup.start(rig, peers, DELIVERY);
  const prometheus = await Prometheus.start(rig, peers, {
    targets: { exporter: exporter.target },
    remoteWrites: [
      { name: "gateway", url: group.gateway.writeUrl },
      { name: "direct", url: directStore.writeUrl },
    ],
  });
  const scrapedAgain = async (): Promise<void> => {
    const wanted = exporter.scrapes + SCRAPES_BETWEEN;
    await until(`${SCRAPES_BETWEEN} more scrapes`, WITHIN_MS, () => exporter.scrapes >= wanted);
  };
  for (let round = 0; round < rounds; round++) {
    for (const vmagent of group.vmagents) {
      await scrapedAgain();
      await vmagent.program.stop();
      await pause(awayMs);
      await vmagent.startAgain();
    }
  }
  await scrapedAgain();
  await prometheus.stopScraping();
  await prometheus.drained(WITHIN_MS);
  await gatewayEmpty(group);
  const gatewayMetrics = await group.gateway.metrics();
  const sentAgain = (await prometheus.metrics()).sum("prometheus_remote_storage_samples_retried_total", {
    remote_name: "gateway",
  });
  const routed = await group.recorded();
  const direct = await directStore.export();
  const { missing, unexpected, repeated } = compareRecorded(direct, routed, LABELS_ON_THE_WAY);
  return {
    samples: sampleTotal(direct),
    missing,
    unexpected,
    wrong: [...scattered(routed), ...checkExporterRecord(routed, LABELS_ON_THE_WAY).wrong],
    ledgerGaps: ledgerGaps(gatewayMetrics, ["aggregation"]),
    repeated,
    mostRepeated: rounds * group.vmagents.length * SAMPLES_IN_FLIGHT,
    retries: gatewayMetrics.sumOrZero("stream_metrics_route_upstream_requests_total", { result: "retry" }),
    sentAgain,
  };
}

/** Waits until the gateway has nothing in memory and nothing in its spool. */
async function gatewayEmpty({ gateway }: VmagentGroup): Promise<void> {
  await untilSettled("the gateway to hold nothing", WITHIN_MS, async () => {
    const metrics = await gateway.metrics();
    const count = (name: string): number => metrics.sum(`stream_metrics_route_samples_${name}`);
    return count("spooled") + count("in_flight") === 0 ? count("delivered_total") : undefined;
  });
}
