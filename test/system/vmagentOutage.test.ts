/** One of three real vmagents is killed while a real Prometheus sends, and comes back: nothing may be missing afterwards. */
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
import { LABELS_ON_THE_WAY, scattered, VmagentGroup } from "../peers/vmagentGroup.ts";

const SCENE_TIMEOUT_MS = 150_000;
const SCRAPED_WITHIN_MS = 40_000;
const SENT_WITHIN_MS = 60_000;
const REACHED_WITHIN_MS = 20_000;
const DOWN_MS = 20_000;
const SCRAPES_BEFORE = 4;
const SCRAPES_WHILE_DOWN = 10;
const SCRAPES_AFTER = 5;
const KILLED = 1;

interface Outcome {
  readonly group: VmagentGroup;
  /** Behind gateway and vmagents, and sent directly by the same Prometheus. */
  readonly routed: RecordedSeries[];
  readonly direct: RecordedSeries[];
  readonly downForMs: number;
  readonly prometheusMetrics: Metrics;
}

describeWithPeers("one of three vmagents killed (SIGKILL) for 20 s while Prometheus sends", (peers) => {
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
      await scrapedAgain(exporter, SCRAPES_BEFORE);
      await until("samples to reach all vmagents", REACHED_WITHIN_MS, async () =>
        (await group.rowsTaken()).every((rows) => rows > 0),
      );

      const killedAt = await killWithoutLossOfItsOwn(prometheus, group);
      await scrapedAgain(exporter, SCRAPES_WHILE_DOWN);
      await until(
        "the vmagent to have been down long enough",
        2 * DOWN_MS,
        () => Date.now() - killedAt >= DOWN_MS,
      );
      await group.vmagents[KILLED]?.startAgain();
      const downForMs = Date.now() - killedAt;

      await scrapedAgain(exporter, SCRAPES_AFTER);
      await prometheus.stopScraping();
      await prometheus.drained(SENT_WITHIN_MS);
      const prometheusMetrics = await prometheus.metrics();
      const routed = await group.recorded();
      return { group, routed, direct: await directStore.export(), downForMs, prometheusMetrics };
    });
  }, SCENE_TIMEOUT_MS);
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => {
      rig.showLogs();
    });
  });
  afterAll(() => rig.end(), SCENE_TIMEOUT_MS);

  it("lets Prometheus neither retry nor drop anything, since the gateway spools", () => {
    const toGateway = { remote_name: "gateway" };
    const { prometheusMetrics } = outcome;
    expect(prometheusMetrics.sum("prometheus_remote_storage_samples_retried_total", toGateway)).toBe(0);
    expect(prometheusMetrics.sum("prometheus_remote_storage_samples_failed_total", toGateway)).toBe(0);
  });

  it("misses nothing afterwards, and counts what arrived twice", () => {
    const { missing, unexpected, repeated } = compareRecorded(
      outcome.direct,
      outcome.routed,
      LABELS_ON_THE_WAY,
    );
    process.stdout.write(
      `vmagent-${KILLED} was down for ${(outcome.downForMs / 1000).toFixed(1)} s: of ${sampleTotal(outcome.direct)} samples ` +
        `${missing.length} are missing, and ${repeated} arrived once more than they should\n`,
    );
    expect({ missing, unexpected }).toEqual({ missing: [], unexpected: [] });
    expect(sampleTotal(outcome.routed)).toBe(sampleTotal(outcome.direct) + repeated);
    expect(checkExporterRecord(outcome.routed, LABELS_ON_THE_WAY).wrong).toEqual([]);
  });

  it("sends no series to another vmagent in the meantime", async () => {
    expect(scattered(outcome.routed)).toEqual([]);
    expect(await outcome.group.misplaced(outcome.routed)).toEqual([]);
  });
});

async function scrapedAgain(exporter: Exporter, times: number): Promise<void> {
  const wanted = exporter.scrapes + times;
  await until(`${times} more scrapes of the exporter`, SCRAPED_WITHIN_MS, () => exporter.scrapes >= wanted);
}

/**
 * Kills the vmagent while the gateway waits for its answer, and at a moment when it holds nothing of its own.
 *
 * A vmagent answers 204 before it has sent a sample on, so one that is killed at any moment loses what it had accepted, and
 * no gateway can know. So Prometheus is held (SIGSTOP) until the vmagents have sent on all they took; then the vmagent is
 * held instead, so that what the gateway sends it now stays unanswered; and only then it is killed.
 *
 * @returns when it was killed, in ms since the epoch
 */
async function killWithoutLossOfItsOwn(prometheus: Prometheus, group: VmagentGroup): Promise<number> {
  const victim = group.vmagents[KILLED];
  if (victim === undefined) throw new Error(`there is no vmagent-${KILLED}`);
  const others = group.vmagents.filter((vmagent) => vmagent !== victim);
  prometheus.program.signal("SIGSTOP");
  await group.drained();
  victim.program.signal("SIGSTOP");
  const before = await Promise.all(others.map((vmagent) => vmagent.rowsTaken()));
  prometheus.program.signal("SIGCONT");
  await until("the other vmagents to get their parts of a request", REACHED_WITHIN_MS, async () => {
    const now = await Promise.all(others.map((vmagent) => vmagent.rowsTaken()));
    return now.every((rows, index) => rows > (before[index] ?? 0));
  });
  await victim.program.kill();
  return Date.now();
}
