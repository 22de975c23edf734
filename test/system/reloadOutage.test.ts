/**
 * Reloads while one of three upstreams refuses connections, and what comes for it waits on disk: nothing of that is lost or
 * sent twice, its order stays, and changes of others leave it alone.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { uncompressSync } from "snappy";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Explainer } from "../../src/explain/explainer.ts";
import { makeIdentity } from "../deliver/identity.ts";
import { type Act, StubUpstream } from "../deliver/stubUpstream.ts";
import { Random } from "../fuzz/random.ts";
import { until, untilSettled } from "../peers/until.ts";
import { configOf, GatewayRig, taskRoute } from "./gatewayRig.ts";
import { NumberedReceiver } from "./numberedReceiver.ts";
import { NumberedSender } from "./numberedSender.ts";
import {
  type NumberedSample,
  type NumberedSeries,
  numberedSeries,
  requestOf,
  samplesIn,
} from "./numberedSeries.ts";
import { seriesMessages } from "./seriesMessages.ts";

const WITHIN_MS = 20_000;
const FORCE = "?force=true";
const PREFIX = "stream_metrics_route_";
/** The upstream that is away, in the slot of that number, as its receiver is. */
const AWAY = 0;
const AWAY_NAME = "vmagent-0";
/** A receiver that no upstream is at. */
const ELSEWHERE = 3;
/** How long a slow receiver takes to answer, so that a spool of many batches is seen while it drains. */
const SLOW_MS = 30;
/** Small enough to be full soon; there is no smaller one. */
const SMALL_SPOOL = ", max_bytes: 64MiB, max_bytes_per_upstream: 16MiB";
const LARGER_SPOOL = ", max_bytes: 64MiB, max_bytes_per_upstream: 32MiB";
/** Of a series that fills a spool, and how many of these a request has. */
const TEXT_BYTES = 60_000;
const LONG_SERIES = 8;
const EXPLAINER = new Explainer(
  configOf(`limits: {max_labels: 8}\n${taskRoute(["http://a/w", "http://b/w", "http://c/w"])}`),
);
/** Series of the others, enough to have a plan made over them, which takes less than one over made-up keys. */
const KNOWN = [1, 2].flatMap((slot) => seriesOf(slot, 500, 10_000));

let rig: GatewayRig;
let receivers: NumberedReceiver[];
let urls: string[];
let senders: NumberedSender[] = [];
let logged: string[] = [];
let knownSent = 0;

afterEach(async () => {
  await Promise.all(senders.map((sender) => sender.close()));
  [senders, logged, knownSent] = [[], [], 0];
  await rig.stop();
  await Promise.all(receivers.map((receiver) => receiver.close()));
});

/** Starts a gateway before three upstreams, of which one is away. */
async function start(options: RouteText = {}, spool = ""): Promise<void> {
  receivers = Array.from({ length: 4 }, () => new NumberedReceiver(SLOW_MS));
  urls = await Promise.all(receivers.map((receiver) => receiver.start()));
  const log = pino(
    { level: "info" },
    { write: (line: string) => logged.push((JSON.parse(line) as { msg: string }).msg) },
  );
  rig = await GatewayRig.start(0, () => routeText(options), { adminListen: "127.0.0.1:0", spool, log });
  await sendKnown();
  await receiver(AWAY).become("away");
}

interface RouteText {
  /** Its upstreams, asked for when there are receivers. */
  readonly list?: () => readonly string[];
  readonly breaker?: string;
  /** Further options of delivery and of its queue, each with a comma in front. */
  readonly delivery?: string;
  readonly queue?: string;
}

function routeText({
  list = () => [up(0), up(1), up(2)],
  breaker = "{consecutive_failures: 2, reset_after: 200ms}",
  delivery = "",
  queue = "",
}: RouteText = {}): string {
  return `
limits: {max_labels: 8}
routes:
  - name: aggregation
    tasks: {count: 128}
    delivery:
      {remote_timeout: 10s, delivery_deadline: 1s, spool_after: 400ms, breaker: ${breaker}, queue_config: {max_backoff: 100ms${queue}}${delivery}}
    upstreams: [${list().join(", ")}]
`;
}

/** @param more further options, each with a comma in front */
function up(slot: number, more = "", at = slot): string {
  return `{name: vmagent-${slot}, url: "${urls[at] ?? ""}"${more}}`;
}

/** Lists without the upstream that is away. */
const WITHOUT = (): string[] => [up(1), up(2)];
const TOMBSTONE = (): string[] => [`{name: ${AWAY_NAME}, removed: true}`, ...WITHOUT()];

function receiver(slot: number): NumberedReceiver {
  const found = receivers[slot];
  if (found === undefined) throw new Error(`no receiver ${slot}`);
  return found;
}

/** Series that belong to an upstream. @param first the least number that they may have */
function seriesOf(slot: number, count: number, first = 0, textBytes = 0): NumberedSeries[] {
  const found: NumberedSeries[] = [];
  for (let number = first; found.length < count; number += 1) {
    const [series] = numberedSeries(number, 1, textBytes);
    const explanation = EXPLAINER.explain(series?.labels ?? []);
    if (series === undefined || !("routes" in explanation)) throw new Error(`series ${number} is refused`);
    if (explanation.routes[0]?.upstreams?.includes(`vmagent-${slot}`) === true) found.push(series);
  }
  return found;
}

/** Sends the samples of these places of each series, each when the one before is accepted. */
async function send(series: readonly NumberedSeries[], first: number, last = first): Promise<void> {
  for (let place = first; place <= last; place += 1) {
    const { status, text } = await rig.send(requestOf(series, place));
    expect({ place, status, text }).toEqual({ place, status: 204, text: "" });
  }
}

/** A gateway that has begun, or decides anew since a reload, knows none any more. */
async function sendKnown(): Promise<void> {
  knownSent += 1;
  await send(KNOWN, knownSent);
}

async function reload(options: RouteText, query = "", head = rig.head): Promise<string> {
  const { status, text } = await rig.reload(routeText(options), query, head);
  expect({ status, text }).toEqual({ status: 200, text: expect.any(String) as string });
  return text;
}

/** What is there for the upstream that is away. */
async function look(): Promise<Readonly<Record<"spooled" | "bytes" | "closed", number>>> {
  const metrics = await rig.metrics();
  const of = (name: string, labels = {}): number =>
    metrics.sum(PREFIX + name, { upstream: AWAY_NAME, ...labels });
  return {
    spooled: of("samples_spooled"),
    bytes: of("spool_bytes"),
    closed: of("breaker_state", { state: "closed" }),
  };
}

/** Whether there is a metric of it: its gauges go when its sender has ended. */
async function shows(name: string): Promise<boolean> {
  const page = await (await fetch(`${rig.origin}/metrics`)).text();
  return page.includes(`\n${PREFIX}${name}{route="aggregation",upstream="${AWAY_NAME}"`);
}

async function heldNothing(): Promise<void> {
  await until("the gateway to hold nothing", WITHIN_MS, async () => {
    const { copies } = await rig.ledger();
    return copies.every(({ in_flight, spooled }) => in_flight.samples + spooled.samples === 0);
  });
  await until("its spool to be empty", WITHIN_MS, async () => (await rig.segments()).length === 0);
}

/** All samples of each of the series are at a receiver, in order, and nothing was sent twice to anybody. */
function expectArrived(slot: number, series: readonly NumberedSeries[], samples: number): void {
  expect(receivers.map(({ problems, repeated }) => ({ problems, repeated }))).toEqual(
    receivers.map(() => ({ problems: [], repeated: 0 })),
  );
  const arrived = series.map(({ number }) => receiver(slot).arrived(number));
  expect(arrived).toEqual(series.map(() => samples));
}

/** Has what waits sent in part; what is sent then is not answered. */
async function drainPartly(): Promise<void> {
  const { spooled: before } = await look();
  await receiver(AWAY).become("slow");
  await until("it to drain", WITHIN_MS, async () => (await look()).spooled < before);
  await receiver(AWAY).become("silent");
  // What it has kept is answered, late as it is.
  await untilSettled("the last answer", WITHIN_MS, async () => (await look()).spooled);
}

async function expectBalance(): Promise<void> {
  expect(await rig.ledger()).toMatchObject({ adds_up: true });
}

/** Senders of long series for the upstream that is away, until its spool takes no more of them. */
async function fill(): Promise<NumberedSender[]> {
  const long = seriesOf(AWAY, 2 * LONG_SERIES, 0, TEXT_BYTES);
  const filling = [long.slice(0, LONG_SERIES), long.slice(LONG_SERIES)].map(
    (series) => new NumberedSender(rig.origin, series, 1),
  );
  senders.push(...filling);
  await until("the spool to be full", WITHIN_MS, () => filling.every(({ pushedBack }) => pushedBack > 0));
  return filling;
}

/** Waits until each has been answered so many times more. */
async function pushedBackAgain(filling: readonly NumberedSender[]): Promise<void> {
  const before = filling.map(({ pushedBack }) => pushedBack);
  await until("senders to be told to come again", WITHIN_MS, () =>
    filling.every(({ pushedBack }, index) => pushedBack > (before[index] ?? 0) + 1),
  );
}

describe("an upstream that is away with a full spool", () => {
  it("is left as it is by reloads that concern others or are wrong, and gets what was accepted in order when it is back", async () => {
    const queue = `, max_samples_per_send: ${LONG_SERIES}`;
    await start({ queue }, SMALL_SPOOL);
    const filling = await fill();
    const others = [...seriesOf(1, 5), ...seriesOf(2, 5)];
    const light = new NumberedSender(rig.origin, others, 1);
    senders.push(light);
    const before = [await look(), await rig.segments(AWAY_NAME)];
    expect(before).toMatchObject([{ closed: 0 }, { length: 1 }]);
    const untouched = async (): Promise<void> => {
      const [acknowledged, served] = [filling.map((sender) => sender.acknowledged), light.acknowledged];
      expect([await look(), await rig.segments(AWAY_NAME)]).toEqual(before);
      await pushedBackAgain(filling);
      await until("others to be served", WITHIN_MS, () => light.acknowledged > served);
      expect([await look(), await rig.segments(AWAY_NAME)]).toEqual(before);
      expect(filling.map((sender) => sender.acknowledged)).toEqual(acknowledged);
      await expectBalance();
    };

    const changed = () => [up(0), up(1, ", headers: {X-Changed: a}"), up(2)];
    expect(await reload({ queue, list: changed })).not.toContain("next start");
    await untouched();
    const other = routeText({ queue, list: () => [up(0, "", ELSEWHERE), up(1), up(2)] });
    for (let tenths = 0; tenths < 10; tenths += 1) {
      const half = other.slice(0, Math.floor((other.length * tenths) / 10));
      expect(await rig.reload(half)).toMatchObject({ status: 400 });
    }
    await untouched();
    await reload({ queue });
    // Those that are asked for while the file is written may find it half there.
    const meanwhile = Array.from({ length: 5 }, () => rig.admin("/-/reload", { method: "POST" }));
    await reload({ queue, list: changed });
    for (const { status } of await Promise.all(meanwhile)) expect([200, 400]).toContain(status);
    await untouched();
    const told = await reload({ queue, list: changed }, "", rig.head.replace(SMALL_SPOOL, LARGER_SPOOL));
    expect(told).toContain("spool is another and takes effect at the next start");
    await untouched();
    const more = requestOf(seriesOf(AWAY, LONG_SERIES, 500, TEXT_BYTES), 1);
    expect(await rig.send(more)).toMatchObject({
      status: 503,
      text: expect.stringContaining("of spool.max_bytes_per_upstream 16 MiB are used") as string,
    });

    await drainPartly();
    await reload({ queue, list: () => [up(0), up(1), up(2, ", headers: {X-Changed: b}")] });
    expect((await look()).spooled).toBeGreaterThan(0);
    await receiver(AWAY).become("well");
    await Promise.all(senders.map((sender) => sender.finish()));
    await heldNothing();
    for (const { series, acknowledged } of filling) expectArrived(AWAY, series, acknowledged);
    expectArrived(1, others.slice(0, 5), light.acknowledged);
    expectArrived(2, others.slice(5), light.acknowledged);
    expect([light.pushedBack, ...senders.flatMap((sender) => sender.refused)]).toEqual([0]);
    await expectBalance();
  });

  it("has what was accepted sent by the next process, when its gateway ends in the middle of a reload", async () => {
    await start({}, SMALL_SPOOL);
    const filling = await fill();
    const asked = rig.reload(routeText({ queue: `, max_samples_per_send: ${LONG_SERIES}` }));
    await rig.metrics();
    await rig.restart(routeText());
    // It may have come to its end before.
    expect([200, 503]).toContain((await asked).status);
    await Promise.all(senders.map((sender) => sender.close()));
    const accepted = filling.reduce((sum, { acknowledged }) => sum + acknowledged * LONG_SERIES, 0);
    const found = `upstream="${AWAY_NAME}"`;
    expect(await rig.metric("samples_found_in_spool_total", found)).toBe(accepted);
    await receiver(AWAY).become("well");
    await heldNothing();
    for (const { series, acknowledged } of filling) expectArrived(AWAY, series, acknowledged);
    await expectBalance();
  });

  it("has limits of its delivery that change hold for what is in the spool", async () => {
    await start({}, SMALL_SPOOL);
    const filling = await fill();
    const records = filling.reduce((sum, { acknowledged }) => sum + acknowledged, 0);
    await reload({ queue: `, max_samples_per_send: ${LONG_SERIES}` });
    await receiver(AWAY).become("well");
    await Promise.all(senders.map((sender) => sender.finish()));
    await heldNothing();
    for (const { series, acknowledged } of filling) expectArrived(AWAY, series, acknowledged);
    const metrics = await rig.metrics();
    const labels = { upstream: AWAY_NAME, result: "delivered" };
    // A request for each of them, where there were a few large ones before.
    expect(metrics.sum(`${PREFIX}upstream_requests_total`, labels)).toBeGreaterThanOrEqual(records);
    await expectBalance();
  });
});

describe("an upstream that gets another url while it is away", () => {
  it("has what is in the spool sent there, in order, and what comes then after it", async () => {
    await start();
    const series = numberedSeries(0, 30);
    const [own, others] = [seriesOf(AWAY, 5), seriesOf(1, 5)];
    await send([...own, ...others], 1, 20);
    expect((await look()).spooled).toBe(20 * own.length);
    await reload({ list: () => [up(0, "", ELSEWHERE), up(1), up(2)] });
    await send([...own, ...others], 21, 30);
    await heldNothing();
    expectArrived(ELSEWHERE, own, 30);
    expectArrived(1, others, 30);
    expectArrived(AWAY, series, 0);
    await expectBalance();
  });
});

describe("an upstream that is taken away while it is away", () => {
  it.each([
    { name: "out of the list, forced", list: WITHOUT, query: FORCE },
    { name: "by a tombstone", list: TOMBSTONE, query: "" },
  ])("$name, is sent what the spool has when it is back, and ends then", async ({ list, query }) => {
    await start();
    const [own, later] = [seriesOf(AWAY, 5), seriesOf(AWAY, 5, 1_000)];
    await send(own, 1, 20);
    const before = await look();
    if (query !== "") expect(await rig.reload(routeText({ list }))).toMatchObject({ status: 409 });
    await reload({ list }, query);
    await send(later, 1, 3);
    expect(await look()).toEqual(before);
    await expectBalance();
    await receiver(AWAY).become("well");
    await heldNothing();
    await until("its sender to end", WITHIN_MS, async () => !(await shows("lanes_behind")));
    expectArrived(AWAY, own, 20);
    expectArrived(AWAY, later, 0);
    expect(logged).toContain("an upstream that is not configured any more is drained");
    await expectBalance();
  });

  it("and is back in the list before it is drained, goes on with what it has", async () => {
    // A request has the samples of one that came.
    const queue = ", max_samples_per_send: 5";
    await start({ queue });
    const own = seriesOf(AWAY, 5);
    await send(own, 1, 20);
    await reload({ queue, list: TOMBSTONE });
    await sendKnown();
    await reload({ queue });
    await send(own, 21, 30);
    await sendKnown();
    const before = await look();
    expect(before).toMatchObject({ spooled: 30 * own.length, closed: 0 });
    await reload({ queue, list: TOMBSTONE });
    await sendKnown();
    await drainPartly();
    await reload({ queue });
    expect((await look()).spooled).toBeGreaterThan(0);
    await send(own, 31, 40);
    await receiver(AWAY).become("well");
    await heldNothing();
    // It does not end now that it holds nothing.
    await send(own, 41);
    await heldNothing();
    expectArrived(AWAY, own, 41);
    // It is the sender of before, that has found nothing.
    expect(await rig.metric("samples_found_in_spool_total")).toBe(0);
    await expectBalance();
  });

  it("and when the gateway ends, is told of as an orphan, which is kept and sent once it is in the list again", async () => {
    await start();
    const own = seriesOf(AWAY, 5);
    await send(own, 1, 20);
    await reload({ list: TOMBSTONE });
    await rig.restart(routeText({ list: TOMBSTONE }));
    const told =
      "the spool holds 20 parcels for an upstream that is not configured: kept until the upstream is configured again";
    expect(logged.filter((line) => line.startsWith("the spool holds"))).toEqual([told]);
    expect(await rig.metric("spool_orphan_bytes", `upstream="${AWAY_NAME}"`)).toBeGreaterThan(0);
    await receiver(AWAY).become("well");
    await send(seriesOf(AWAY, 5, 1_000), 1, 3);
    expectArrived(AWAY, own, 0);
    expect(await rig.segments(AWAY_NAME)).toHaveLength(1);

    await sendKnown();
    await reload({});
    await send(own, 21, 30);
    await heldNothing();
    expectArrived(AWAY, own, 30);
    expect(await shows("spool_orphan_bytes")).toBe(false);
    expect(await rig.metric("samples_found_in_spool_total", `upstream="${AWAY_NAME}"`)).toBe(20 * own.length);
    await expectBalance();
  });
});

describe("what requests to an upstream say, changed while its breaker is open", () => {
  let stub: StubUpstream;
  let folder: string;
  let isAway: boolean;
  const answerIfThere: Act = (response) => {
    response.writeHead(isAway ? 503 : 204).end();
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "reload-outage-"));
  });
  beforeEach(() => {
    isAway = true;
  });
  afterEach(async () => {
    await stub.close();
  });
  afterAll(async () => {
    await rm(folder, { recursive: true });
  });

  /** Reloads when one failure has opened the breaker. @returns how many requests had come before */
  async function change(scheme: string, before: string, after: string): Promise<number> {
    const breaker = "{consecutive_failures: 1, reset_after: 700ms}";
    const list = (more: string): string[] => [
      `{name: ${AWAY_NAME}, url: "${scheme}://127.0.0.1:${stub.port}/w", ${more}}`,
      up(1),
      up(2),
    ];
    await start({ breaker, list: () => list(before) });
    const own = seriesOf(AWAY, 5);
    await send(own, 1, 3);
    expect(await look()).toMatchObject({ spooled: 3 * own.length, closed: 0 });
    const tried = stub.requests.length;
    await reload({ breaker, list: () => list(after) });
    expect(await look()).toMatchObject({ spooled: 3 * own.length, closed: 0 });
    isAway = false;
    return tried;
  }

  it("is in the next attempt, which the breaker lets through when it would have: credentials", async () => {
    stub = await StubUpstream.start([answerIfThere]);
    const auth = (password: string): string => `basic_auth: {username: gateway, password: "${password}"}`;
    const tried = await change("http", auth("old"), auth("new"));
    await heldNothing();
    const credentials = stub.requests.map(({ headers }) => headers.authorization);
    const [before, after] = ["old", "new"].map(
      (password) => `Basic ${Buffer.from(`gateway:${password}`).toString("base64")}`,
    );
    expect(new Set(credentials.slice(0, tried))).toEqual(new Set([before]));
    expect(new Set(credentials.slice(tried))).toEqual(new Set([after]));
    await expectBalance();
  });

  it("is in the next attempt, which the breaker lets through when it would have: the ca that is trusted", async () => {
    const identity = makeIdentity(folder, "upstream", "IP:127.0.0.1");
    makeIdentity(folder, "other", "IP:127.0.0.1");
    stub = await StubUpstream.start([answerIfThere], identity);
    const ca = (name: string): string => `tls_config: {ca_file: "${join(folder, `${name}.crt`)}"}`;
    expect(await change("https", ca("other"), ca("upstream"))).toBe(0);
    await heldNothing();
    expect(stub.requests.length).toBeGreaterThan(0);
    await expectBalance();
  });
});

describe("on_outage, changed while an upstream is away", () => {
  it("keeps what was accepted, and is the rule for what comes then", async () => {
    await start();
    const [own, unwanted] = [seriesOf(AWAY, 5), seriesOf(AWAY, 5, 1_000)];
    await send(own, 1, 10);
    const spooled = (): Promise<number> => look().then((found) => found.spooled);
    await reload({ delivery: ", on_outage: refuse" });
    expect(await rig.send(requestOf(own, 11))).toMatchObject({ status: 503 });
    expect(await spooled()).toBe(10 * own.length);
    await reload({ delivery: ", on_outage: drop" });
    await send(unwanted, 1);
    const dropped = `upstream="${AWAY_NAME}",reason="outage"`;
    expect(await rig.metric("samples_dropped_total", dropped)).toBe(unwanted.length);
    expect(await spooled()).toBe(10 * own.length);
    await expectBalance();
    await reload({});
    await send(own, 11, 20);
    expect(await spooled()).toBe(20 * own.length);
    await receiver(AWAY).become("well");
    await heldNothing();
    expectArrived(AWAY, own, 20);
    expectArrived(AWAY, unwanted, 0);
    expect(await rig.metric("samples_refused_total", `upstream="${AWAY_NAME}"`)).toBe(own.length);
    await expectBalance();
  });

  it("to spool has sent what a process before has left, which was an orphan as long as it refused", async () => {
    await start();
    const own = seriesOf(AWAY, 5);
    await send(own, 1, 10);
    // The spool is opened for a route that spools. It takes no series.
    const rules = "[{source_labels: [none], regex: x, action: keep}]";
    const list = `[{name: store, url: "${urls[ELSEWHERE] ?? ""}"}]`;
    const spooling = `  - {name: another, relabel_configs: ${rules}, upstreams: ${list}}\n`;
    await rig.restart(routeText({ delivery: ", on_outage: refuse" }) + spooling);
    expect(await rig.send(requestOf(own, 11))).toMatchObject({ status: 503 });
    expect(await rig.metric("spool_orphan_bytes", `upstream="${AWAY_NAME}"`)).toBeGreaterThan(0);
    await receiver(AWAY).become("well");
    expect(await rig.reload(routeText() + spooling)).toMatchObject({ status: 200 });
    await send(own, 11, 20);
    await heldNothing();
    expectArrived(AWAY, own, 20);
    expect(await shows("spool_orphan_bytes")).toBe(false);
    await expectBalance();
  });
});

/** An upstream that keeps every sample that came, refuses connections at times, and answers 503 at others. */
class ComingAndGoing {
  readonly samples: NumberedSample[] = [];
  #stub: StubUpstream | null = null;
  #fails = false;
  #port = 0;

  async become(condition: "well" | "failing" | "away"): Promise<void> {
    this.#fails = condition === "failing";
    if (condition === "away") await this.close();
    else this.#stub ??= await this.#listen();
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/w`;
  }

  async close(): Promise<void> {
    await this.#stub?.close();
    this.#stub = null;
  }

  async #listen(): Promise<StubUpstream> {
    const stub = await StubUpstream.start(
      [
        (response) => {
          const bodies = stub.requests.splice(0).map(({ body }) => uncompressSync(body) as Buffer);
          if (!this.#fails) this.samples.push(...bodies.flatMap(seriesMessages).flatMap(samplesIn));
          response.writeHead(this.#fails ? 503 : 204).end();
        },
      ],
      null,
      { port: this.#port },
    );
    this.#port = stub.port;
    return stub;
  }
}

describe("reloads of all kinds under load, while an upstream comes and goes", () => {
  const STEPS = 15;
  let upstreams: ComingAndGoing[];

  beforeEach(async () => {
    upstreams = [0, 1, 2].map(() => new ComingAndGoing());
    await Promise.all(upstreams.map((upstream) => upstream.become("well")));
  });
  afterEach(async () => {
    await Promise.all(upstreams.map((upstream) => upstream.close()));
  });

  function randomText(random: Random): RouteText {
    const variant = random.below(3);
    const urls = upstreams.map(({ url }) => url);
    const upstream = (slot: number): string =>
      `{name: vmagent-${slot}, url: "${urls[slot] ?? ""}?${slot === AWAY ? variant : 0}", headers: {X-Variant: "${random.below(2)}"}}`;
    const isRemoved = random.once(3);
    return {
      list: () => [
        isRemoved ? `{name: ${AWAY_NAME}, removed: true}` : upstream(AWAY),
        upstream(1),
        upstream(2),
      ],
      breaker: `{consecutive_failures: ${1 + random.below(3)}, reset_after: ${50 + random.below(100)}ms}`,
      delivery: `, on_outage: ${random.pick(["spool", "refuse", "spool"])}`,
      queue: `, max_samples_per_send: ${random.pick([10, 1_000])}`,
    };
  }

  function answers(): number {
    return senders.reduce((sum, { acknowledged, pushedBack }) => sum + acknowledged + pushedBack, 0);
  }

  it.each([1, 2])(
    "lose nothing that was accepted, and each upstream gets a series in order (seed %i)",
    async (seed) => {
      const random = new Random(seed);
      await start(randomText(random));
      senders = [0, 1, 2].map((sender) => new NumberedSender(rig.origin, numberedSeries(20 * sender, 20), 2));
      for (let step = 0; step < STEPS; step += 1) {
        if (random.once(2)) await upstreams[AWAY]?.become(random.pick(["away", "well", "failing", "away"]));
        await sendKnown();
        await reload(randomText(random));
        const wanted = answers() + senders.length;
        await until("senders to be answered", WITHIN_MS, () => answers() >= wanted);
        await expectBalance();
      }
      await upstreams[AWAY]?.become("well");
      await Promise.all(senders.map((sender) => sender.finish()));
      await heldNothing();
      await expectBalance();
      expect(senders.flatMap(({ refused }) => refused)).toEqual([]);
      const all = upstreams.flatMap(({ samples }) => samples);
      const arrived = new Set(all.map(({ number, place }) => `sample ${place} of series ${number}`));
      const accepted = senders.flatMap(({ series, acknowledged }) =>
        series.flatMap(({ number }) =>
          Array.from({ length: acknowledged }, (_, index) => `sample ${index + 1} of series ${number}`),
        ),
      );
      expect(accepted.filter((name) => !arrived.has(name))).toEqual([]);
      const failed = { upstream: AWAY_NAME, result: "retry" };
      expect((await rig.metrics()).sum(`${PREFIX}upstream_requests_total`, failed)).toBeGreaterThan(0);
      expect(upstreams.flatMap(outOfOrder)).toEqual([]);
    },
  );
});

/** Samples that came first after a later one of their series. */
function outOfOrder({ samples }: ComingAndGoing): string[] {
  const latest = new Map<number, number>();
  const seen = new Set<string>();
  return samples.flatMap(({ number, place }) => {
    const name = `sample ${place} of series ${number}`;
    const before = latest.get(number) ?? 0;
    const isLate = place < before && !seen.has(name);
    seen.add(name);
    latest.set(number, Math.max(before, place));
    return isLate ? [`${name} came after ${before}`] : [];
  });
}
