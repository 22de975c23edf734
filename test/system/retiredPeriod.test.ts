/**
 * An upstream of past periods alone, when retire_after is over for it: what is late for it is dropped, which the ledger, the log
 * and explain tell.
 */
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Explanation, Explainer } from "../../src/explain/explainer.ts";
import { until } from "../peers/until.ts";
import { metadata, requestBody } from "../reference/build.ts";
import { GatewayRig } from "./gatewayRig.ts";
import { seriesMessages } from "./seriesMessages.ts";
import { ITEM_KINDS, labelFields, labelsOf, readTimedSeries, timedSeries } from "./timedItems.ts";

const WITHIN_MS = 10_000;
const HOUR_MS = 3_600_000;
const NUMBERS = Array.from({ length: 60 }, (_, number) => number);
const RETIRED = "vmagent-0";

interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly route?: string;
  readonly upstream?: string;
}
const WARN = 40;

let rig: GatewayRig;
let logged: LogLine[];
/** A moment of the first period, and one of the second. */
let [oldMs, newMs] = [NaN, NaN];

beforeEach(() => {
  logged = [];
  newMs = Date.now();
  oldMs = newMs - 3 * HOUR_MS;
});
afterEach(async () => {
  await rig.stop();
});

async function start(text: (urls: readonly string[]) => string): Promise<void> {
  const log = pino({ level: "info" }, { write: (line: string) => logged.push(JSON.parse(line) as LogLine) });
  rig = await GatewayRig.start(3, text, { adminListen: "127.0.0.1:0", log });
}

/** Two periods, of which the first has ended two hours ago. */
function periods([a = "", b = "", c = ""]: readonly string[], retireAfter = "1h", before = ""): string {
  const from = new Date(newMs - 2 * HOUR_MS).toISOString();
  return `
routes:${before}
  - name: aggregation
    tasks: {count: 128}
    retire_after: ${retireAfter}
    delivery: {spool_after: 100ms, breaker: {consecutive_failures: 1, reset_after: 200ms}}
    topology:
      - upstreams: [{name: ${RETIRED}, url: "${a}"}, {name: vmagent-1, url: "${b}"}]
      - {from: ${from}, upstreams: [{name: vmagent-1}, {name: vmagent-2, url: "${c}"}]}
`;
}

/** Sends an item of each kind, of a time, for every series. */
async function send(timestampMs: number): Promise<void> {
  const items = ITEM_KINDS.map((kind) => ({ kind, timestampMs }));
  const body = requestBody(...NUMBERS.map((number) => timedSeries(labelFields(number), items)));
  expect(await rig.send(body)).toMatchObject({ status: 204 });
}

/** The series that have items of a time at a receiver, by their numbers. */
function arrived(slot: number, timestampMs: number): number[] {
  return rig
    .receiver(slot)
    .requests.flatMap(({ plain }) => seriesMessages(plain).map(readTimedSeries))
    .filter(({ items }) => items.some((item) => item.timestampMs === timestampMs))
    .map(({ number }) => number)
    .sort((a, b) => a - b);
}

/** Series whose items of the first period belong to an upstream. */
function oldSeriesOf(upstream: string): number[] {
  const explainer = new Explainer(rig.config);
  return NUMBERS.filter((number) => {
    const explanation = explainer.explain(labelsOf(number), null, oldMs);
    return "routes" in explanation && explanation.routes[0]?.upstreams?.[0] === upstream;
  });
}

function each(count: number): Readonly<Record<"samples" | "histograms" | "exemplars", number>> {
  return { samples: count, histograms: count, exemplars: count };
}

/** What the log says of items that come too late. */
function told(): LogLine[] {
  return logged.filter(({ msg }) => msg.includes("retire_after"));
}

async function ledgerOf(upstream: string): Promise<unknown> {
  const { adds_up, copies } = await rig.ledger();
  expect(adds_up).toBe(true);
  return copies.find((copy) => copy.upstream === upstream);
}

describe("an upstream whose periods are over for longer than retire_after", () => {
  it("is not sent what is late for it: senders have their 2xx, the ledger its reason, and the log a line for many", async () => {
    await start(periods);
    const [retired, others] = [oldSeriesOf(RETIRED), oldSeriesOf("vmagent-1")];
    expect([retired.length > 0, others.length > 0]).toEqual([true, true]);
    await send(newMs);
    expect(told()).toEqual([]);
    await send(oldMs);
    await send(oldMs + 1);
    expect(rig.receiver(0).requests).toEqual([]);
    expect([arrived(1, oldMs), arrived(2, oldMs)]).toEqual([others, []]);
    expect([...arrived(1, newMs), ...arrived(2, newMs)].sort((a, b) => a - b)).toEqual(NUMBERS);
    expect(await ledgerOf(RETIRED)).toMatchObject({
      routed: each(2 * retired.length),
      delivered: each(0),
      refused: each(0),
      dropped: { period_retired: each(2 * retired.length) },
    });
    expect(told()).toMatchObject([
      {
        level: WARN,
        msg: `items of ${retired.length} series are dropped: they belong to an upstream of past periods, and come later than retire_after (period_retired)`,
        route: "aggregation",
        upstream: RETIRED,
      },
    ]);
  });

  it("is explained to be so: the drop in the place of the labels that would leave", async () => {
    await start(periods);
    const [[retired = NaN], [other = NaN]] = [oldSeriesOf(RETIRED), oldSeriesOf("vmagent-1")];
    const ask = async (number: number, atMs: number): Promise<unknown> => {
      const body = JSON.stringify({ labels: labelsOf(number), at: new Date(atMs).toISOString() });
      const answer = await rig.admin("/api/v1/explain", { method: "POST", body });
      const { data } = (await answer.json()) as { data: Explanation };
      const [route] = "routes" in data ? data.routes : [];
      return { upstreams: route?.upstreams, dropped: route?.dropped, leaves: route?.labels !== undefined };
    };
    expect(await ask(retired, oldMs)).toEqual({
      upstreams: [RETIRED],
      dropped: "period_retired",
      leaves: false,
    });
    expect(await ask(retired, newMs)).toMatchObject({ dropped: undefined, leaves: true });
    expect(await ask(other, oldMs)).toMatchObject({ upstreams: ["vmagent-1"], leaves: true });
  });

  it("is sent it when a reload raises retire_after", async () => {
    await start(periods);
    const retired = oldSeriesOf(RETIRED);
    await send(oldMs);
    expect(await rig.reload(periods(rig.urls, "100h"))).toMatchObject({ status: 200 });
    await send(oldMs + 1);
    expect([arrived(0, oldMs), arrived(0, oldMs + 1)]).toEqual([[], retired]);
    expect(await ledgerOf(RETIRED)).toMatchObject({
      delivered: each(retired.length),
      dropped: { period_retired: each(retired.length) },
    });
  });

  it("is sent what it had in the spool before, when it is back", async () => {
    await start((urls) => periods(urls, "100h"));
    const retired = oldSeriesOf(RETIRED);
    const { port } = rig.receiver(0);
    await rig.receiver(0).stop();
    await send(oldMs);
    expect(await rig.reload(periods(rig.urls))).toMatchObject({ status: 200 });
    await send(oldMs + 1);
    expect(await ledgerOf(RETIRED)).toMatchObject({
      spooled: each(retired.length),
      dropped: { period_retired: each(retired.length) },
    });
    await rig.receiver(0).start(port);
    await until("it to have all", WITHIN_MS, () => arrived(0, oldMs).length >= retired.length);
    await until("the spool to be empty", WITHIN_MS, async () => (await rig.metric("samples_spooled")) === 0);
    expect([arrived(0, oldMs), arrived(0, oldMs + 1)]).toEqual([retired, []]);
    expect(await ledgerOf(RETIRED)).toMatchObject({ delivered: each(retired.length), spooled: each(0) });
  });
});

describe("metadata for an upstream whose periods are over for longer than retire_after", () => {
  const families = (slot: number): string[] =>
    rig.receiver(slot).requests.flatMap((request) => request.metadata.map(({ family }) => family));

  async function countsOf(upstream: string): Promise<unknown> {
    const { metadata: counts } = await rig.ledger();
    return counts.upstreams.find((line) => line.upstream === upstream);
  }

  it("is counted as lost, and has the sender's answer be what it would have been", async () => {
    await start(periods);
    expect(await rig.send(requestBody(metadata("requests")))).toMatchObject({ status: 204 });
    await until("the others to have it", WITHIN_MS, () => families(1).length + families(2).length === 2);
    expect(families(0)).toEqual([]);
    expect(await countsOf(RETIRED)).toEqual({ upstream: RETIRED, forwarded: 1, delivered: 0, lost: 1 });
  });

  it("is sent to it if another route has it still", async () => {
    await start((urls) => {
      const raw = `\n  - {name: raw, upstreams: [{name: ${RETIRED}, url: "${urls[0] ?? ""}"}]}`;
      return periods(urls, "1h", raw);
    });
    expect(await rig.send(requestBody(metadata("requests")))).toMatchObject({ status: 204 });
    await until("it to be sent", WITHIN_MS, () => families(0).length > 0);
    expect(families(0)).toEqual(["requests"]);
    await expect.poll(() => countsOf(RETIRED)).toMatchObject({ forwarded: 1, delivered: 1, lost: 0 });
  });
});
