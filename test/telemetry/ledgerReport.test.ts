/** The ledger of routes with real senders, upstreams and a spool. */
import { mkdtemp, rm } from "node:fs/promises";
import { lookup } from "node:dns";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DeliveryOptions } from "../../src/deliver/options.ts";
import { DELIVERY_DROP_REASONS } from "../../src/deliver/outcome.ts";
import { Sender } from "../../src/deliver/sender.ts";
import { diskFiles } from "../../src/deliver/spool/diskFiles.ts";
import { SpoolStore } from "../../src/deliver/spool/spoolStore.ts";
import { MemoryBudget } from "../../src/memoryBudget.ts";
import type { LedgerReport } from "../../src/telemetry/ledgerReport.ts";
import { Metrics, type UpstreamMetrics } from "../../src/telemetry/metrics.ts";
import { makeParcel, numbersIn } from "../deliver/parcels.ts";
import { DELIVERY } from "../deliver/senderUnderTest.ts";
import { answer, StubUpstream } from "../deliver/stubUpstream.ts";
import type { Act } from "../deliver/stubUpstream.ts";

const MIB = 1024 * 1024;
const NOTHING = { samples: 0, histograms: 0, exemplars: 0 };
const log = pino({ level: "silent" });

let folder: string;
let metrics: Metrics;
let store: SpoolStore;
let stub: StubUpstream;
let senders: Sender[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ledger-"));
  metrics = new Metrics("1.0", {
    refusal: ["too_long"],
    drop: ["no_labels"],
    unrouted: ["no_route"],
    delivery: DELIVERY_DROP_REASONS,
  });
  senders = [];
  store = await SpoolStore.open(
    { path: folder, maxBytes: MIB, maxBytesPerUpstream: MIB, whenFull: "refuse", orphans: "keep" },
    { files: diskFiles, now: Date.now, random: Math.random, log },
  );
});
afterEach(async () => {
  await Promise.all(senders.map((sender) => sender.close(Date.now())));
  await store.close();
  await stub.close();
  await rm(folder, { recursive: true });
});

/** A sender whose events are counted as the gateway counts them. */
function start(route: string, delivery: Partial<DeliveryOptions>): [Sender, UpstreamMetrics] {
  const upstream = metrics.upstream(route, "a", 1);
  const spool = store.upstream(route, "a", {
    dropped: (reason, replica, items) => {
      upstream.settled(replica, reason, "spooled", items);
    },
    damaged: () => undefined,
  });
  const sender = new Sender(
    {
      name: "a",
      url: new URL(`http://127.0.0.1:${stub.port}/`),
      auth: { kind: "none" },
      headers: {},
      tls: { insecureSkipVerify: false },
    },
    { ...DELIVERY, ...delivery },
    {
      now: Date.now,
      random: Math.random,
      log,
      lookup,
      userAgent: "test",
      memory: new MemoryBudget(MIB).holder(),
    },
    {
      settled: (end, from, _parcels, items, replica) => {
        upstream.settled(replica, end, from, items);
      },
      attempted: () => undefined,
      delivered: () => undefined,
      breakerChanged: () => undefined,
    },
    delivery.onOutage === "spool" ? spool : null,
  );
  upstream.watchLanes(sender);
  senders.push(sender);
  return [sender, upstream];
}

/** A request of one series for this route. @returns when it is answered */
function send(route: string, [sender, upstream]: [Sender, UpstreamMetrics], samples: number): Promise<void> {
  const parcel = makeParcel(samples);
  const items = { samples, histograms: 0, exemplars: 0 };
  metrics.received.add({}, items);
  metrics.offered(route, items, []);
  upstream.routed(0, 1, items);
  return new Promise((resolve) => {
    sender.deliver(0, [parcel], null, Date.now() + 5_000, () => {
      resolve();
    });
  });
}

function lineOf(report: LedgerReport, route: string, upstream = "a") {
  const line = report.copies.find((copy) => copy.route === route && copy.upstream === upstream);
  if (line === undefined) throw new Error(`no line of ${route}/${upstream}`);
  return line;
}

describe("the ledger", () => {
  it("adds up at any moment of outages, refusals and spooling, and says where all of it is", async () => {
    let isDown = false;
    const act: Act = (response, socket) => {
      const isBad = numbersIn(stub.requests.at(-1)?.body ?? Buffer.alloc(0)).includes(13);
      (isDown ? answer(500) : isBad ? answer(400, "bad") : answer(204))(response, socket);
    };
    stub = await StubUpstream.start([act]);
    const spools = start("spools", { onOutage: "spool", spoolAfterMs: 50 });
    const drops = start("drops", { onOutage: "drop", spoolAfterMs: 50 });
    const answers: Promise<void>[] = [];
    const look = (): void => {
      expect(metrics.ledger()).toMatchObject({ adds_up: true });
    };
    for (let number = 1; number <= 40; number++) {
      isDown = number % 20 > 10;
      answers.push(send("spools", spools, number), send("drops", drops, number));
      look();
      if (number % 5 === 0) await Promise.race(answers.slice(-2));
      look();
    }
    await Promise.all(answers);
    look();
    isDown = false;
    await expect.poll(() => lineOf(metrics.ledger(), "spools").spooled).toEqual(NOTHING);
    const report = metrics.ledger();
    expect(report.adds_up).toBe(true);
    const sum = (40 * 41) / 2;
    const { routed, delivered, refused, dropped, in_flight } = lineOf(report, "spools");
    expect([routed.samples, in_flight.samples]).toEqual([sum, 0]);
    expect(delivered.samples).toBe(sum - 13);
    expect(refused.samples + (dropped["refused_by_upstream"]?.samples ?? 0)).toBe(13);
    expect(lineOf(report, "drops").dropped["outage"]?.samples).toBeGreaterThan(0);
    expect(
      report.routes.map(({ route, received, difference }) => [route, received.samples, difference]),
    ).toEqual([
      ["spools", sum, NOTHING],
      ["drops", sum, NOTHING],
    ]);
  });

  it("is a copy, which does not move", async () => {
    stub = await StubUpstream.start([answer(204)]);
    const upstream = start("r", {});
    const before = metrics.ledger();
    await send("r", upstream, 5);
    expect(lineOf(before, "r").routed).toEqual(NOTHING);
    expect(lineOf(metrics.ledger(), "r").delivered.samples).toBe(5);
  });

  const FIVE = { samples: 5, histograms: 0, exemplars: 0 };
  const LESS = { samples: -5, histograms: 0, exemplars: 0 };
  const rows: { name: string; tamper: (upstream: UpstreamMetrics) => void; copy: object; route: object }[] = [
    {
      name: "is settled twice",
      tamper: (upstream) => {
        upstream.settled(0, "delivered", "in_flight", FIVE);
      },
      copy: LESS,
      route: NOTHING,
    },
    {
      name: "was forgotten on its way",
      tamper: (upstream) => {
        upstream.routed(0, 1, FIVE);
        metrics.offered("r", FIVE, []);
      },
      copy: FIVE,
      route: NOTHING,
    },
    {
      name: "came to no route",
      tamper: () => {
        metrics.offered("r", FIVE, []);
      },
      copy: NOTHING,
      route: FIVE,
    },
    {
      name: "is counted as not selected by a route that has it",
      tamper: () => {
        metrics.notSelected.add({ route: "r" }, FIVE);
      },
      copy: NOTHING,
      route: LESS,
    },
  ];
  it.each(rows)("does not add up when something $name", async ({ tamper, copy, route }) => {
    stub = await StubUpstream.start([answer(204)]);
    const upstream = start("r", {});
    await send("r", upstream, 5);
    expect(metrics.ledger().adds_up).toBe(true);
    tamper(upstream[1]);
    const report = metrics.ledger();
    expect(report.adds_up).toBe(false);
    expect([lineOf(report, "r").difference, report.routes[0]?.difference]).toEqual([copy, route]);
  });

  it("has what was refused at the door, dropped by a route, and unrouted, and each upstream's metadata", async () => {
    stub = await StubUpstream.start([answer(204)]);
    start("r", {});
    const all = { samples: 6, histograms: 0, exemplars: 0 };
    metrics.offered("r", all, [
      { samples: 1, histograms: 0, exemplars: 0 },
      { samples: 2, histograms: 0, exemplars: 0 },
    ]);
    metrics.notSelected.add({ route: "r" }, { samples: 1, histograms: 0, exemplars: 0 });
    metrics.dropped("r", 0, "no_labels", { series: 1, samples: 2, histograms: 0, exemplars: 0 });
    metrics.unrouted("no_route", { series: 1, samples: 1, histograms: 0, exemplars: 0 });
    metrics.metadataReceived.inc({}, 9);
    metrics.metadataDropped.inc({ reason: "too_many" }, 2);
    metrics.metadataForwarded.inc({ upstream: "a" }, 7);
    metrics.metadataDelivered.inc({ upstream: "a" }, 4);
    metrics.metadataLost.inc({ upstream: "a" }, 3);
    const report = metrics.ledger();
    expect(report.adds_up).toBe(true);
    expect(lineOf(report, "r", "").dropped["no_labels"]?.samples).toBe(2);
    expect(report.routes[0]).toMatchObject({ refused_at_door: { samples: 3 }, not_selected: { samples: 1 } });
    expect(report.unrouted).toEqual({ no_route: { samples: 1, histograms: 0, exemplars: 0 } });
    expect(report.metadata).toEqual({
      received: 9,
      dropped: { too_many: 2 },
      upstreams: [{ upstream: "a", forwarded: 7, delivered: 4, lost: 3 }],
    });
  });

  it("keeps the lines of an upstream that is gone", async () => {
    stub = await StubUpstream.start([answer(204)]);
    const upstream = start("r", {});
    await send("r", upstream, 5);
    await upstream[0].retire();
    upstream[1].close();
    const report = metrics.ledger();
    expect([report.adds_up, lineOf(report, "r").delivered.samples]).toEqual([true, 5]);
  });
});
