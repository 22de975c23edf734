import { beforeEach, describe, expect, it } from "vitest";
import { Metrics, type UpstreamMetrics } from "../../src/telemetry/metrics.ts";

const REASONS = {
  refusal: ["too_long"],
  drop: ["no_labels"],
  unrouted: ["no_route"],
  delivery: ["outage"],
};
const ONE = { samples: 1, histograms: 0, exemplars: 0 };
const LABELS = 'route="r",upstream="a"';

let metrics: Metrics;
beforeEach(() => {
  metrics = new Metrics("1.0", REASONS);
});

/** The gateway's own series, as `name{labels} value`, without the prefix and those of the process. */
async function series(): Promise<string[]> {
  const { text } = await metrics.exposition();
  const lines = text.split("\n").filter((line) => line.startsWith("stream_metrics_route_"));
  return lines.map((line) => line.slice("stream_metrics_route_".length));
}

async function seriesOf(name: string): Promise<string[]> {
  return (await series()).filter((line) => line.split(/[ {]/u)[0] === name);
}

/** As the gateway would with a sender that has just begun. */
function watchAll(upstream: UpstreamMetrics, refusals = 0): void {
  upstream.watchLanes({ inFlight: () => ONE, lanesBehind: 2 });
  upstream.watchAge(() => 3_000);
  upstream.watchMemory(() => ({ heldBytes: 4, refusals }));
  upstream.watchSpool(() => ({ bytes: 5, oldestAtMs: null, maxBytes: 6, all: { bytes: 5, maxBytes: 6 } }));
}

/** What vanishes with the sender. */
const GAUGES = [
  "lanes_behind",
  "in_flight_oldest_age_seconds",
  "upstream_in_flight_bytes",
  "spool_bytes",
  "spool_oldest_age_seconds",
  "delivered_lag_seconds",
  "breaker_state",
];

describe("an upstream whose sender has closed", () => {
  it.each(GAUGES)("has no %s any more, until it has a sender again", async (gauge) => {
    const upstream = metrics.upstream("r", "a", 1);
    watchAll(upstream);
    upstream.delivered(Date.now());
    expect(await seriesOf(gauge)).not.toEqual([]);
    upstream.close();
    expect(await seriesOf(gauge)).toEqual([]);
    const again = metrics.upstream("r", "a", 1);
    watchAll(again);
    again.delivered(Date.now());
    expect(await seriesOf(gauge)).not.toEqual([]);
  });

  it("keeps its counters, which go on when it comes back", async () => {
    const upstream = metrics.upstream("r", "a", 1);
    watchAll(upstream, 7);
    upstream.routed(0, 1, ONE);
    upstream.settled(0, "delivered", "in_flight", ONE);
    upstream.attempted("delivered", 0.1);
    upstream.close();
    const counters = async (): Promise<string[]> => [
      ...(await seriesOf("samples_routed_total")),
      ...(await seriesOf("samples_delivered_total")),
      ...(await seriesOf("upstream_requests_total")),
      ...(await seriesOf("upstream_refused_for_memory_total")),
      ...(await seriesOf("samples_in_flight")),
    ];
    const copy = `{${LABELS},copy="0"}`;
    expect((await counters()).filter((line) => line.includes('upstream="a"'))).toEqual([
      `samples_routed_total${copy} 1`,
      `samples_delivered_total${copy} 1`,
      `upstream_requests_total{${LABELS},result="delivered"} 1`,
      `upstream_refused_for_memory_total{${LABELS}} 7`,
      `samples_in_flight${copy} 0`,
    ]);
    const again = metrics.upstream("r", "a", 1);
    watchAll(again, 2);
    again.routed(0, 1, ONE);
    expect(await counters()).toContain(`samples_routed_total${copy} 2`);
    expect(await counters()).toContain(`upstream_refused_for_memory_total{${LABELS}} 9`);
  });

  it("and comes back a thousand times, leaves the metrics as they were", async () => {
    watchAll(metrics.upstream("r", "a", 2));
    const before = (await series()).length;
    for (let round = 0; round < 1_000; round++) {
      const upstream = metrics.upstream("r", "a", 1 + (round % 2));
      upstream.close();
      watchAll(metrics.upstream("r", "a", 2));
    }
    expect((await series()).length).toBe(before);
  });
});

describe("an upstream that is asked for again while it has a sender", () => {
  it("is the same one: its state stays, and nothing is there twice", async () => {
    const upstream = metrics.upstream("r", "a", 1);
    watchAll(upstream);
    upstream.breaker("open");
    const before = await series();
    expect(metrics.upstream("r", "a", 1)).toBe(upstream);
    expect(await series()).toEqual(before);
    expect(await seriesOf("breaker_state")).toContain(`breaker_state{${LABELS},state="open"} 1`);
  });

  it("has copies for more replicas than before", async () => {
    metrics.upstream("r", "a", 1).routed(0, 1, ONE);
    metrics.upstream("r", "a", 2);
    const routed = await seriesOf("samples_routed_total");
    expect(routed).toContain(`samples_routed_total{${LABELS},copy="0"} 1`);
    expect(routed).toContain(`samples_routed_total{${LABELS},copy="1"} 0`);
    expect(await seriesOf("series_dropped_total")).toContain(
      'series_dropped_total{route="r",reason="no_labels",copy="1"} 0',
    );
  });

  it("has orphans in the spool as long as it does not spool", async () => {
    metrics.orphans("r", "a", 3, 4, false);
    const upstream = metrics.upstream("r", "a", 1);
    expect(await seriesOf("spool_orphan_bytes")).toHaveLength(1);
    watchAll(upstream);
    expect(await seriesOf("spool_orphan_bytes")).toEqual([]);
  });
});

describe("the configuration", () => {
  it("is known by its hash, the last one only, and by when it was put into force", async () => {
    metrics.configured("aa", 1_000);
    metrics.reloaded("applied");
    metrics.configured("bb", 2_500);
    expect(await seriesOf("config_info")).toEqual(['config_info{hash="bb"} 1']);
    expect(await seriesOf("config_last_reload_success_timestamp_seconds")).toEqual([
      "config_last_reload_success_timestamp_seconds 2.5",
    ]);
  });

  it("says whether the last reload was successful, and how many ended how", async () => {
    metrics.configured("aa", 1_000);
    metrics.reloaded("invalid");
    expect(await seriesOf("config_last_reload_successful")).toEqual(["config_last_reload_successful 0"]);
    metrics.reloaded("applied");
    expect(await seriesOf("config_last_reload_successful")).toEqual(["config_last_reload_successful 1"]);
    expect(await seriesOf("reloads_total")).toEqual([
      'reloads_total{result="applied"} 1',
      'reloads_total{result="invalid"} 1',
      'reloads_total{result="refused"} 0',
      'reloads_total{result="failed"} 0',
    ]);
  });

  it("says how much the last reload has moved, of its routes only", async () => {
    metrics.moved([
      { route: "a", moved: 0.25, retasked: 1 },
      { route: "b", moved: 0, retasked: 0 },
    ]);
    metrics.moved([{ route: "a", moved: 0.5, retasked: 0.75 }]);
    expect(await seriesOf("reload_moved_ratio")).toEqual(['reload_moved_ratio{route="a"} 0.5']);
    expect(await seriesOf("reload_retasked_ratio")).toEqual(['reload_retasked_ratio{route="a"} 0.75']);
  });
});
