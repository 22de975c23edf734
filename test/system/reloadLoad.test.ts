/** Reloads of a gateway under load: what comes before and after is delivered once, and the ledger adds up. */
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../peers/until.ts";
import { uncompressSync } from "snappy";
import { answer, StubUpstream } from "../deliver/stubUpstream.ts";
import { label, requestBody, sample, series } from "../reference/build.ts";
import { GatewayRig } from "./gatewayRig.ts";
import { NumberedSender } from "./numberedSender.ts";
import { numberedSeries, type NumberedSample, samplesIn } from "./numberedSeries.ts";
import { seriesMessages } from "./seriesMessages.ts";

const ADMIN = { adminListen: "127.0.0.1:0" };
const FORCE = "?force=true";
const WITHIN_MS = 20_000;
const TEST_TIMEOUT_MS = 90_000;
const SENDERS = 3;
const SERIES = 30;
const REQUESTS = 2;
/** A plan is made over series that came in when there are so many. */
const KNOWN_SERIES = 1_000;
const TIMESTAMP_MS = 1_796_006_259_632;

let rig: GatewayRig;
let upstreams: StubUpstream[] = [];
let senders: NumberedSender[] = [];

afterEach(async () => {
  await Promise.all(senders.map((sender) => sender.close()));
  senders = [];
  await rig.stop();
  await Promise.all(upstreams.map((upstream) => upstream.close()));
});

/** @param routes asked for when there are the upstreams */
async function start(upstreamCount: number, routes: () => string): Promise<void> {
  upstreams = await Promise.all(
    Array.from({ length: upstreamCount }, () => StubUpstream.start([answer(204)])),
  );
  rig = await GatewayRig.start(0, () => `routes:${routes()}`, ADMIN);
  const known = Array.from({ length: KNOWN_SERIES }, (_, number) =>
    series(label("__name__", "known"), label("instance", String(number)), sample(0, TIMESTAMP_MS)),
  );
  expect(await rig.send(requestBody(...known))).toMatchObject({ status: 204 });
}

function beginLoad(): void {
  senders = Array.from(
    { length: SENDERS },
    (_, sender) => new NumberedSender(rig.origin, numberedSeries(sender * SERIES, SERIES), 10),
  );
}

/** Waits until every sender has had so many further requests acknowledged. */
async function acknowledgedAgain(requests = REQUESTS): Promise<void> {
  const wanted = senders.map(({ acknowledged }) => acknowledged + requests);
  await until(`${requests} requests of each sender to be acknowledged`, WITHIN_MS, () =>
    senders.every(({ acknowledged }, index) => acknowledged >= (wanted[index] ?? 0)),
  );
}

/** Those of series that have a number. */
function samplesAt({ requests }: StubUpstream): NumberedSample[] {
  return requests
    .flatMap(({ body }) => seriesMessages(uncompressSync(body) as Buffer).flatMap(samplesIn))
    .filter(({ number }) => !Number.isNaN(number));
}

/** How often each sample has arrived at these upstreams, in all. */
function arrivals(at: readonly StubUpstream[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { number, place } of at.flatMap(samplesAt)) {
    const sampleName = `sample ${place} of series ${number}`;
    counts.set(sampleName, (counts.get(sampleName) ?? 0) + 1);
  }
  return counts;
}

/** Of the acknowledged samples, those that have not arrived so often; none when all is well. */
function notArrived(at: readonly StubUpstream[], [least, most]: readonly [number, number]): string[] {
  const counts = arrivals(at);
  return senders.flatMap(({ series: all, acknowledged }) =>
    all.flatMap(({ number }) =>
      Array.from({ length: acknowledged }, (_, index) => `sample ${index + 1} of series ${number}`)
        .filter((name) => (counts.get(name) ?? 0) < least || (counts.get(name) ?? 0) > most)
        .map((name) => `${name}: ${counts.get(name) ?? 0} times`),
    ),
  );
}

interface RouteText {
  readonly name?: string;
  readonly options?: string;
  readonly delivery?: string;
  readonly placement?: string;
  readonly list: readonly string[];
}

function routeText({ name, options, delivery, placement, list }: RouteText): string {
  return `
  - name: ${name ?? "aggregation"}
    tasks: {count: 128}
    placement: {key: task${placement === undefined ? "" : `, ${placement}`}}
    delivery: ${delivery ?? "{}"}
    ${options ?? ""}
    upstreams: [${list.join(", ")}]
`;
}

function up(slot: number): string {
  return `{name: vmagent-${slot}, url: "http://127.0.0.1:${upstreams[slot]?.port}/w"}`;
}

/** Three upstreams, one for each of the first three receivers. */
function three(more: Omit<RouteText, "list"> = {}): string {
  return routeText({ ...more, list: [up(0), up(1), up(2)] });
}

function extra(name = "extra"): string {
  return routeText({ name, list: [up(3)] });
}

interface Step {
  readonly name: string;
  readonly text: () => string;
}

/** Each has one thing that the one before has not, or lacks one. */
const STEPS: readonly Step[] = [
  {
    name: "delivery options",
    text: () =>
      three({ delivery: "{remote_timeout: 7s, spool_after: 3s, queue_config: {batch_send_deadline: 1ms}}" }),
  },
  {
    name: "max_samples_per_send",
    text: () => three({ delivery: "{queue_config: {max_samples_per_send: 7}}" }),
  },
  { name: "more lanes", text: () => three({ delivery: "{queue_config: {lanes: 4}}" }) },
  { name: "fewer lanes", text: () => three({ delivery: "{queue_config: {lanes: 2}}" }) },
  { name: "on_outage", text: () => three({ delivery: "{on_outage: refuse}" }) },
  { name: "ack", text: () => three({ delivery: "{ack: enqueued}" }) },
  {
    name: "rules, so that series go elsewhere",
    text: () => three({ options: "relabel_configs: [{action: labeldrop, regex: instance}]" }),
  },
  { name: "the algorithm", text: () => three({ placement: "algorithm: balanced" }) },
  { name: "an upstream that is taken away", text: () => routeText({ list: [up(0), up(1)] }) },
  { name: "an upstream that comes back", text: () => three() },
  {
    name: "a tombstone",
    text: () => routeText({ list: [up(0), "{name: vmagent-1, removed: true}", up(2)] }),
  },
  { name: "a route that is added", text: () => three() + extra() },
  { name: "a route that gets another name", text: () => three() + extra("renamed") },
  { name: "a route that is taken away", text: () => three() },
  // The last: the sample begins anew, and what plans there are behind it take long, being of made-up keys.
  {
    name: "the header of the tenant",
    text: () => three({ options: "tenant: {header: X-Tenant, pass: true}" }),
  },
];

async function heldNothing(): Promise<void> {
  await until("the gateway to hold nothing", WITHIN_MS, async () => {
    const { copies } = await rig.ledger();
    return copies.every(({ in_flight, spooled }) => in_flight.samples + spooled.samples === 0);
  });
}

/** Applies the changes in turn under load, and ends the load. */
async function goThrough(steps: readonly Step[]): Promise<void> {
  beginLoad();
  await acknowledgedAgain();
  for (const { name, text } of steps) {
    const reload = await rig.reload(`routes:${text()}`, FORCE);
    expect({ name, ...reload }).toMatchObject({ status: 200 });
    await acknowledgedAgain();
    expect({ name, ledger: await rig.ledger() }).toMatchObject({ ledger: { adds_up: true } });
  }
  await Promise.all(senders.map((sender) => sender.finish()));
  await heldNothing();
  expect(senders.map(({ pushedBack, unanswered, refused }) => [pushedBack, unanswered, refused])).toEqual(
    senders.map(() => [0, 0, []]),
  );
  expect(await rig.ledger()).toMatchObject({ adds_up: true });
}

describe("changes under load", () => {
  it(
    "of delivery, rules, upstreams and routes have each sample arrive once",
    async () => {
      await start(4, () => three());
      await goThrough(STEPS);
      expect(notArrived(upstreams.slice(0, 3), [1, 1])).toEqual([]);
      expect(notArrived(upstreams.slice(3), [0, 1])).toEqual([]);
      // The additional route was there for a time.
      expect(upstreams[3]?.requests.length).toBeGreaterThan(0);
    },
    TEST_TIMEOUT_MS,
  );

  it("of the number of replicas have each sample arrive at one upstream, or at two", async () => {
    await start(3, () => three());
    await goThrough([
      { name: "two replicas", text: () => three({ placement: "replicas: 2" }) },
      { name: "one again", text: () => three() },
    ]);
    expect(notArrived(upstreams, [1, 2])).toEqual([]);
    for (const upstream of upstreams) expect(notArrived([upstream], [0, 1])).toEqual([]);
    const { copies } = await rig.ledger();
    expect(copies.some(({ copy, delivered }) => copy === "1" && delivered.samples > 0)).toBe(true);
  });
});

describe("requests that are being routed at the moment of a swap", () => {
  /** Takes several steps to route. */
  const LARGE = 20_000;

  /** New series, whose samples have the number of the request. */
  function largeBody(request: number): Uint8Array {
    return requestBody(
      ...Array.from({ length: LARGE }, (_, index) =>
        series(
          label("__name__", "m"),
          label("instance", `${request}-${index}`),
          sample(request, TIMESTAMP_MS),
        ),
      ),
    );
  }

  /** One upstream, and a label that says which configuration has routed. */
  function side(slot: number): string {
    return routeText({
      list: [up(slot)],
      options: `relabel_configs: [{target_label: number, replacement: "${slot}"}]`,
    });
  }

  it("end by the configuration that they began with, at an upstream that the new one does not have", async () => {
    await start(2, () => side(0));
    const large = [1, 2].map((request) => rig.send(largeBody(request)));
    await until("routing to begin", WITHIN_MS, async () => {
      return (await rig.metric("decision_table_misses_total")) > KNOWN_SERIES;
    });
    expect(await rig.reload(`routes:${side(1)}`, FORCE)).toMatchObject({ status: 200 });
    expect(await rig.send(largeBody(3))).toMatchObject({ status: 204 });
    expect(await Promise.all(large)).toMatchObject(large.map(() => ({ status: 204 })));
    const counts = new Map<string, number>();
    for (const [slot, upstream] of upstreams.entries()) {
      for (const { number, place } of samplesAt(upstream)) {
        const name = `request ${place} by ${number} at ${slot}`;
        counts.set(name, (counts.get(name) ?? 0) + 1);
      }
    }
    expect([...counts].sort()).toEqual([
      [`request 0 by 0 at 0`, KNOWN_SERIES],
      ["request 1 by 0 at 0", LARGE],
      ["request 2 by 0 at 0", LARGE],
      ["request 3 by 1 at 1", LARGE],
    ]);
    expect(await rig.ledger()).toMatchObject({ adds_up: true });
  });
});
