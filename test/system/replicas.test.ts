/** Series with two of three upstreams each: who has them, what their sender is told, and that each copy's ledger adds up. */
import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { Explainer } from "../../src/explain/explainer.ts";
import type { Labels } from "../../src/cli/seriesLines.ts";
import type { Metrics } from "../peers/metrics.ts";
import { label, requestBody, sample, series } from "../reference/build.ts";
import { GatewayRig } from "./gatewayRig.ts";
import { ledgerGaps } from "./ledger.ts";

const UPSTREAMS = 3;
const REPLICAS = 2;
const SERIES = 300;
const ROUTE = "twice";

let rig: GatewayRig;

afterEach(async () => {
  await rig.stop();
});

/** @param more options of the upstream in slot 1 */
function start(placement: string, delivery = "{}", more = ""): Promise<GatewayRig> {
  return GatewayRig.start(
    UPSTREAMS,
    ([a, b, c]) => `
routes:
  - name: ${ROUTE}
    tasks: {count: 128}
    placement: {${placement}, replicas: ${REPLICAS}}
    delivery: ${delivery}
    upstreams:
      - {name: up-0, url: "${a}"}
      - {name: up-1, url: "${b}"${more}}
      - {name: up-2, url: "${c}"}
`,
  );
}

function labelsOf(number: number): Labels {
  return [
    ["__name__", "requests_total"],
    ["number", String(number)],
  ];
}

const ALL = Array.from({ length: SERIES }, (_, number) => number);
const BODY = requestBody(
  ...ALL.map((number) =>
    series(...labelsOf(number).map(([name, value]) => label(name, value)), sample(1, 1 + number)),
  ),
);

/** By number of the series: its slots, by replica, as explain has them. */
function explainedSlots(): readonly (readonly number[])[] {
  const explainer = new Explainer(rig.config);
  return ALL.map((number) => {
    const explanation = explainer.explain(labelsOf(number));
    return ("routes" in explanation ? explanation.routes[0]?.slots : undefined) ?? [];
  });
}

/** The numbers of the series that arrived at an upstream, as often as they did, in ascending order. */
function arrivedAt(slot: number): number[] {
  return rig
    .receiver(slot)
    .series.map(({ samples }) => Number(samples[0]?.timestamp) - 1)
    .sort((a, b) => a - b);
}

function numbersOf(
  slot: number,
  slots: readonly (readonly number[])[],
  replica: number | null = null,
): number[] {
  return ALL.filter((number) => {
    const at = slots[number] ?? [];
    return replica === null ? at.includes(slot) : at[replica] === slot;
  });
}

/** How many samples of each copy came to an end, at one upstream or at all. */
function byCopy(metrics: Metrics, name: string, labels: Readonly<Record<string, string>> = {}): number[] {
  return ["0", "1"].map((copy) =>
    metrics.sum(`stream_metrics_route_samples_${name}`, { route: ROUTE, copy, ...labels }),
  );
}

const PLACEMENTS = [
  { name: "by the task, jump", placement: "key: task" },
  { name: "by the task, balanced", placement: "key: task, algorithm: balanced" },
  { name: "by all labels, rendezvous", placement: "key: series, algorithm: rendezvous" },
  { name: "by all labels, ring", placement: "key: series, algorithm: ring" },
];

describe("series with two replicas", () => {
  it.each(PLACEMENTS)("reach exactly the two upstreams that explain says: $name", async ({ placement }) => {
    rig = await start(placement);
    // Decided the first time, and found in the table the second time.
    for (const times of [1, 2]) {
      expect(await rig.send(BODY)).toMatchObject({ status: 204 });
      const slots = explainedSlots();
      for (let slot = 0; slot < UPSTREAMS; slot++) {
        const once = numbersOf(slot, slots);
        expect(arrivedAt(slot)).toEqual(once.flatMap((number) => Array<number>(times).fill(number)));
        // An upstream that has nothing would agree too easily, and so would one that has all.
        expect(once.length).toBeGreaterThan(SERIES / 3);
        expect(once.length).toBeLessThan(SERIES);
      }
    }
    const metrics = await rig.metrics();
    expect(ledgerGaps(metrics, [ROUTE], REPLICAS)).toEqual([]);
    expect(byCopy(metrics, "delivered_total")).toEqual([2 * SERIES, 2 * SERIES]);
  });

  it("are counted at each upstream by which of their copies it has", async () => {
    rig = await start("key: task");
    await rig.send(BODY);
    const slots = explainedSlots();
    const metrics = await rig.metrics();
    for (let slot = 0; slot < UPSTREAMS; slot++) {
      const counted = [0, 1].map((replica) => numbersOf(slot, slots, replica).length);
      expect(Math.min(...counted)).toBeGreaterThan(0);
      expect(byCopy(metrics, "delivered_total", { upstream: `up-${slot}` })).toEqual(counted);
    }
    // Copies of both kinds travel together.
    for (const receiver of rig.receivers) expect(receiver.requests).toHaveLength(1);
  });

  it("are accepted only once all their copies are", async () => {
    rig = await start("key: task");
    const held: ServerResponse[] = [];
    rig.receiver(1).answer = (response) => held.push(response);
    let status = 0;
    const answer = rig.send(BODY).then((got) => (status = got.status));
    await expect.poll(() => held.length).toBe(1);
    const slots = explainedSlots();
    await expect
      .poll(async () => byCopy(await rig.metrics(), "in_flight"))
      .toEqual([0, 1].map((replica) => numbersOf(1, slots, replica).length));
    expect(ledgerGaps(await rig.metrics(), [ROUTE], REPLICAS)).toEqual([]);
    expect(status).toBe(0);
    held.forEach((response) => response.writeHead(204).end());
    expect(await answer).toBe(204);
    expect(ledgerGaps(await rig.metrics(), [ROUTE], REPLICAS)).toEqual([]);
  });
});

describe("series with two replicas, one upstream in trouble", () => {
  it("lose no other copy when it refuses them, and their sender is told", async () => {
    rig = await start("key: task");
    rig.receiver(1).answer = (response) => response.writeHead(400).end("out of order");
    const answer = await rig.send(BODY);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("out of order");
    const slots = explainedSlots();
    for (const slot of [0, 2]) expect(arrivedAt(slot)).toEqual(numbersOf(slot, slots));

    const metrics = await rig.metrics();
    expect(ledgerGaps(metrics, [ROUTE], REPLICAS)).toEqual([]);
    const refused = [0, 1].map((replica) => numbersOf(1, slots, replica).length);
    expect(Math.min(...refused)).toBeGreaterThan(0);
    expect(byCopy(metrics, "refused_total")).toEqual(refused);
    expect(byCopy(metrics, "delivered_total")).toEqual(refused.map((count) => SERIES - count));
  });

  it("stay where they are while it is down, and are complete when their sender comes again", async () => {
    rig = await start("key: task", "{on_outage: refuse, breaker: {reset_after: 200ms}}");
    const { port } = rig.receiver(1);
    await rig.receiver(1).stop();
    expect(await rig.send(BODY)).toMatchObject({ status: 503 });
    const slots = explainedSlots();
    expect(arrivedAt(1)).toEqual([]);
    for (const slot of [0, 2]) expect(arrivedAt(slot)).toEqual(numbersOf(slot, slots));
    const refused = [0, 1].map((replica) => numbersOf(1, slots, replica).length);
    const meanwhile = await rig.metrics();
    expect(ledgerGaps(meanwhile, [ROUTE], REPLICAS)).toEqual([]);
    expect(byCopy(meanwhile, "refused_total")).toEqual(refused);

    await rig.receiver(1).start(port);
    await expect.poll(async () => (await rig.send(BODY)).status).toBe(204);
    expect([...new Set(arrivedAt(1))]).toEqual(numbersOf(1, slots));
    for (const slot of [0, 2]) expect([...new Set(arrivedAt(slot))]).toEqual(numbersOf(slot, slots));
    expect(ledgerGaps(await rig.metrics(), [ROUTE], REPLICAS)).toEqual([]);
  });

  it("are dropped there alone by its write_relabel_configs, which is counted with the copy", async () => {
    const rule = "{source_labels: [number], regex: '.*[02468]', action: drop}";
    rig = await start("key: task", "{}", `, write_relabel_configs: [${rule}]`);
    expect(await rig.send(BODY)).toMatchObject({ status: 204 });
    const slots = explainedSlots();
    const isOdd = (number: number): boolean => number % 2 === 1;
    expect(arrivedAt(1)).toEqual(numbersOf(1, slots).filter(isOdd));
    for (const slot of [0, 2]) expect(arrivedAt(slot)).toEqual(numbersOf(slot, slots));

    const metrics = await rig.metrics();
    expect(ledgerGaps(metrics, [ROUTE], REPLICAS)).toEqual([]);
    const dropped = [0, 1].map((replica) => {
      return numbersOf(1, slots, replica).filter((number) => !isOdd(number)).length;
    });
    expect(Math.min(...dropped)).toBeGreaterThan(0);
    expect(byCopy(metrics, "dropped_total", { reason: "write_relabel_configs" })).toEqual(dropped);
  });
});

describe("series that a route with replicas cannot place", () => {
  it("are dropped in all their copies, so that the ledger of each has them", async () => {
    rig = await GatewayRig.start(
      UPSTREAMS,
      ([a, b]) => `
routes:
  - name: ${ROUTE}
    relabel_configs: [{source_labels: [number], regex: '.*0', target_label: __name__, replacement: ""}]
    placement: {replicas: ${REPLICAS}}
    upstreams: [{name: up-0, url: "${a}"}, {name: up-1, url: "${b}"}]
`,
    );
    expect(await rig.send(BODY)).toMatchObject({ status: 204 });
    const metrics = await rig.metrics();
    expect(ledgerGaps(metrics, [ROUTE], REPLICAS)).toEqual([]);
    expect(byCopy(metrics, "dropped_total", { reason: "no_metric_name" })).toEqual([
      SERIES / 10,
      SERIES / 10,
    ]);
    expect(byCopy(metrics, "routed_total")).toEqual([SERIES, SERIES]);
  });
});
