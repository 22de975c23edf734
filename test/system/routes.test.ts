/** Routes and tenants side by side: each gets its series, and nothing of the others. */
import type { ServerResponse } from "node:http";
import { Pool } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requestBody } from "../reference/build.ts";
import { exemplar, histogram, label, nested, sample, series, varintField } from "../wire/handmade.ts";
import { GatewayRig, WRITE_HEADERS } from "./gatewayRig.ts";
import { ITEMS, ledgerGaps } from "./ledger.ts";
import { seriesMessages } from "./seriesMessages.ts";

const TENANT_HEADER = "x-scope-orgid";
const FIRST_TIMESTAMP = 1_700_000_000_000;

describe("1,000 requests at once, of two tenants and of none, over a route with rules and a raw one", () => {
  const REQUESTS = 1000;
  const CONNECTIONS = 40;
  const SERIES = 12;
  const INSTANCES = 5;
  const TENANTS = ["team-a", "team-b", null] as const;
  const JOBS = ["api", "noise", "db"] as const;
  const STALE_MARKER = "7ff0000000000002";
  /** Upstreams of the route with rules; the raw route has those behind them. */
  const LABELLED = 2;

  interface Sent {
    readonly request: number;
    readonly tenant: string | null;
    readonly labels: Readonly<Record<string, string>>;
    /** The whole message, and what of it is no label. */
    readonly message: Buffer;
    readonly rest: Buffer;
  }

  interface Arrival {
    readonly sent: Sent;
    readonly slot: number;
    /** Which of all outgoing requests it is in. */
    readonly outgoing: number;
    readonly tenantHeader: string | null;
    readonly labels: Readonly<Record<string, string>>;
    readonly message: Uint8Array;
  }

  /** Series of one number are alike in all requests, whosever they are; but for the first, which is new every time. */
  function sentSeries(request: number, number: number): Sent {
    const labels = {
      __name__: `metric_${number}`,
      instance: `host-${request % INSTANCES}`,
      job: JOBS[number % JOBS.length] ?? "",
      ...(number === 0 ? { request: String(request) } : {}),
      // Nobody but the gateway says whose a series is.
      ...(number % 4 === 0 ? { tenant: "forged" } : {}),
      zone: "Zürich",
    };
    const names = Object.entries(labels);
    // A sender may write labels in any order, and after the samples.
    if (number === 5) names.reverse();
    const fields = names.map(([name, value]) => label(name, value));
    const late = number === 8 ? fields.splice(-1) : [];
    const rest = [
      sample(FIRST_TIMESTAMP + request * SERIES + number, number === 2 ? STALE_MARKER : "3ff0000000000000"),
      ...(number === 3 ? [exemplar(label("trace_id", `t-${request}`), varintField(3, 7))] : []),
      ...(number === 6 ? [histogram(varintField(1, 3), varintField(15, FIRST_TIMESTAMP))] : []),
      // A field that this version does not know.
      ...(number === 11 ? [nested(9, "from the future")] : []),
    ];
    return {
      request,
      tenant: TENANTS[request % TENANTS.length] ?? null,
      labels,
      message: Buffer.concat([...fields, ...rest, ...late]),
      rest: Buffer.concat(rest),
    };
  }

  /** What the route with rules makes of a series, by hand; null for nothing. */
  function expectedLabels({ tenant, labels }: Sent, slot: number): Readonly<Record<string, string>> | null {
    if (labels["job"] === "noise") return null;
    const others = Object.entries(labels).filter(([name]) => name !== "tenant");
    const withTenant = Object.fromEntries([
      ...others,
      ...(tenant === null ? [] : [["tenant", tenant]]),
    ]) as Record<string, string>;
    if (labels["job"] !== "api") return withTenant;
    const byRules = { kind: "of-api", host: (labels["instance"] ?? "").replace("host-", "") };
    return { ...withTenant, ...byRules, ...(slot === 1 ? { written_by: "labelled-1" } : {}) };
  }

  const all = Array.from({ length: REQUESTS }, (_, request) =>
    Array.from({ length: SERIES }, (_, number) => sentSeries(request, number)),
  );
  let rig: GatewayRig;
  let statuses: readonly number[];
  let arrivals: readonly Arrival[];
  const byRules = (): readonly Arrival[] => arrivals.filter(({ slot }) => slot < LABELLED);
  const raw = (): readonly Arrival[] => arrivals.filter(({ slot }) => slot >= LABELLED);

  beforeAll(async () => {
    rig = await GatewayRig.start(
      4,
      ([a, b, c, d]) => `
routes:
  - name: labelled
    tenant: {label: tenant}
    relabel_configs:
      - {source_labels: [job], regex: noise, action: drop}
      - {source_labels: [job], regex: api, target_label: kind, replacement: of-$0}
      - {source_labels: [job, instance], regex: api;host-(.*), target_label: host}
    upstreams:
      - {name: labelled-0, url: "${a}"}
      - name: labelled-1
        url: "${b}"
        write_relabel_configs:
          - {source_labels: [job], regex: api, target_label: written_by, replacement: labelled-1}
  - name: raw
    tenant: {pass: true}
    upstreams: [{name: raw-0, url: "${c}"}, {name: raw-1, url: "${d}"}]
`,
    );
    const pool = new Pool(rig.origin, { connections: CONNECTIONS });
    statuses = await Promise.all(all.map((each) => post(pool, each)));
    await pool.close();
    arrivals = arrivalsAt(rig);
  });
  afterAll(() => rig.stop());

  async function post(pool: Pool, sent: readonly Sent[]): Promise<number> {
    const tenant = sent[0]?.tenant ?? null;
    const { statusCode, body } = await pool.request({
      path: "/api/v1/write",
      method: "POST",
      headers: { ...WRITE_HEADERS, ...(tenant === null ? {} : { [TENANT_HEADER]: tenant }) },
      body: requestBody(...sent.map(({ message }) => series(message))),
    });
    await body.dump();
    return statusCode;
  }

  function arrivalsAt({ receivers }: GatewayRig): Arrival[] {
    let outgoing = 0;
    return receivers.flatMap(({ requests, headers }, slot) =>
      requests.flatMap((request, index) => {
        outgoing += 1;
        const messages = seriesMessages(request.plain);
        return request.series.map((got, number) => ({
          sent: sentOf(got.samples[0]?.timestamp ?? ""),
          slot,
          outgoing,
          tenantHeader: headers[index]?.[TENANT_HEADER]?.toString() ?? null,
          labels: Object.fromEntries(got.labels.map(([name, value]) => [textOf(name), textOf(value)])),
          message: messages[number] ?? new Uint8Array(),
        }));
      }),
    );
  }

  /** The timestamp tells which of the series it is that were sent. */
  function sentOf(timestamp: string): Sent {
    const place = Number(timestamp) - FIRST_TIMESTAMP;
    const sent = all[Math.floor(place / SERIES)]?.[place % SERIES];
    if (sent === undefined) throw new Error(`nobody sent a sample at ${timestamp}`);
    return sent;
  }

  /** How many of the series that a route keeps did not arrive once, and how many others did arrive. */
  function astray(
    route: readonly Arrival[],
    kept: readonly Sent[],
  ): { missing: number; repeated: number; unexpected: number } {
    const arrived = new Set(route.map(({ sent }) => sent));
    const missing = kept.filter((sent) => !arrived.has(sent)).length;
    return {
      missing,
      repeated: route.length - arrived.size,
      unexpected: arrived.size - (kept.length - missing),
    };
  }

  it("are accepted, all of them", () => {
    expect(new Set(statuses)).toEqual(new Set([204]));
  });

  it("arrive exactly once in every route that keeps them, over all upstreams", () => {
    const sent = all.flat();
    const kept = sent.filter(({ labels }) => labels["job"] !== "noise");
    const none = { missing: 0, repeated: 0, unexpected: 0 };
    expect(astray(raw(), sent)).toEqual(none);
    expect(astray(byRules(), kept)).toEqual(none);
    for (const receiver of rig.receivers) expect(receiver.series.length).toBeGreaterThan(REQUESTS);
  });

  it("have the labels that their own route's rules, tenant and upstream give them, and no other", () => {
    const wrong = byRules().filter(
      ({ sent, slot, labels }) => !sameLabels(labels, expectedLabels(sent, slot)),
    );
    expect(
      wrong.slice(0, 3).map(({ sent, slot, labels }) => ({ labels, want: expectedLabels(sent, slot) })),
    ).toEqual([]);
  });

  it("go through the raw route byte for byte, whoever sent them", () => {
    const changed = raw().filter(({ sent, message }) => !sent.message.equals(message));
    expect(changed.slice(0, 3).map(({ sent, labels }) => ({ sent: sent.labels, labels }))).toEqual([]);
  });

  it("go through the route with rules byte for byte where none of them changes anything", () => {
    const unchanged = byRules().filter(({ sent, slot }) =>
      sameLabels(sent.labels, expectedLabels(sent, slot)),
    );
    expect(unchanged.length).toBeGreaterThan(REQUESTS / 2);
    expect(unchanged.filter(({ sent, message }) => !sent.message.equals(message)).length).toBe(0);
  });

  it("keep the bytes of everything but their labels where rules change those", () => {
    const torn = byRules().filter(({ sent, message }) => !endsWith(message, sent));
    expect(torn.slice(0, 3).map(({ sent }) => sent.labels)).toEqual([]);
  });

  /** An unchanged series may have a label behind its samples. */
  function endsWith(message: Uint8Array, { rest, message: whole }: Sent): boolean {
    return whole.equals(message) || Buffer.from(message).subarray(-rest.length).equals(rest);
  }

  it("share outgoing requests with others of their tenant only, which the raw route names in the header", () => {
    const tenants = new Map<number, Set<string | null>>();
    const requests = new Map<number, Set<number>>();
    for (const { outgoing, sent } of arrivals) {
      tenants.set(outgoing, (tenants.get(outgoing) ?? new Set()).add(sent.tenant));
      requests.set(outgoing, (requests.get(outgoing) ?? new Set()).add(sent.request));
    }
    expect([...tenants.values()].filter(({ size }) => size !== 1)).toEqual([]);
    // Otherwise nothing could have been mixed.
    expect([...requests.values()].some(({ size }) => size > 1)).toBe(true);
    expect(raw().filter(({ sent, tenantHeader }) => tenantHeader !== sent.tenant).length).toBe(0);
    expect(byRules().filter(({ tenantHeader }) => tenantHeader !== null).length).toBe(0);
  });

  it("are decided once for each tenant, and from then on by the table", async () => {
    const misses = (await rig.metrics()).sum("stream_metrics_route_decision_table_misses_total");
    // New in every request, or not to be kept since its labels are not all in front: each of these costs one every time.
    const everyTime = 2;
    expect(misses).toBe(everyTime * REQUESTS + (SERIES - everyTime) * INSTANCES * TENANTS.length);
  });

  it("leave a ledger that adds up", async () => {
    const metrics = await rig.metrics();
    expect(ledgerGaps(metrics, ["labelled", "raw"])).toEqual([]);
    expect(metrics.sum("stream_metrics_route_samples_received_total")).toBe(REQUESTS * SERIES);
    for (const items of ITEMS) expect(metrics.sum(`stream_metrics_route_${items}_in_flight`)).toBe(0);
    expect(metrics.sum("stream_metrics_route_samples_not_selected_total", { route: "labelled" })).toBe(
      (REQUESTS * SERIES) / JOBS.length,
    );
  });
});

function sameLabels(
  one: Readonly<Record<string, string>>,
  other: Readonly<Record<string, string>> | null,
): boolean {
  if (other === null || Object.keys(one).length !== Object.keys(other).length) return false;
  return Object.entries(one).every(([name, value]) => other[name] === value);
}

function textOf(latin1: string): string {
  return Buffer.from(latin1, "latin1").toString();
}

describe("the ledger, of series that come to every end there is", () => {
  /** What becomes of series of each job; they have different numbers of items, so that none passes for another. */
  const ENDS = [
    { job: "api", end: "delivered" },
    { job: "secret", end: "dropped", route: "api", reason: "write_relabel_configs" },
    { job: "unwanted", end: "dropped", route: "", reason: "relabel_configs" },
    { job: "stranger", end: "dropped", route: "", reason: "no_route" },
    { job: "nameless", end: "dropped", route: "broken", reason: "no_metric_name" },
    { job: "long", end: "dropped", route: "broken", reason: "label_value_too_long" },
    { job: "refused", end: "refused", route: "refusing" },
    { job: "away", end: "refused", route: "away" },
    { job: "bad", end: "refused_at_door" },
  ] as const;
  const ROUTES = ["api", "broken", "refusing", "away"];

  const itemsOf = (place: number): Record<(typeof ITEMS)[number], number> => {
    return { samples: place + 1, histograms: 2 * place + 1, exemplars: 3 * place + 1 };
  };

  function ofJob(job: string, place: number): Buffer {
    const { samples, histograms, exemplars } = itemsOf(place);
    const repeated = (times: number, field: Buffer): Buffer[] => Array.from({ length: times }, () => field);
    return series(
      ...(job === "bad" ? [label("", "x")] : []),
      label("__name__", "requests"),
      label("job", job),
      ...repeated(samples, sample(FIRST_TIMESTAMP)),
      ...repeated(exemplars, exemplar(label("trace_id", "t"), varintField(3, FIRST_TIMESTAMP))),
      ...repeated(histograms, histogram(varintField(1, 3), varintField(15, FIRST_TIMESTAMP))),
    );
  }

  it("adds up for samples, histograms and exemplars of every route, while some are in flight and afterwards", async () => {
    const route = (
      name: string,
      jobs: string,
      url: string | undefined,
      more = "",
      upstreamMore = "",
    ): string => `
  - name: ${name}
    final: true
    relabel_configs: [{source_labels: [job], regex: ${jobs}, action: keep}${more}]
    delivery: {on_outage: refuse, spool_after: 10s, delivery_deadline: ${name === "away" ? "200ms" : "20s"}}
    upstreams: [{name: ${name}-0, url: "${url}"${upstreamMore}}]`;
    const rig = await GatewayRig.start(
      4,
      ([api, broken, refusing, away]) => `
limits: {max_label_value_bytes: 20}
relabel_configs: [{source_labels: [job], regex: unwanted, action: drop}]
routes:
  ${route(
    "api",
    "api|secret",
    api,
    "",
    ", write_relabel_configs: [{source_labels: [job], regex: secret, action: drop}]",
  )}
  ${route(
    "broken",
    "nameless|long",
    broken,
    ", {source_labels: [job], regex: nameless, target_label: __name__, replacement: ''}" +
      ", {source_labels: [job], regex: long, target_label: long, replacement: '123456789012345678901'}",
  )}
  ${route("refusing", "refused", refusing)}
  ${route("away", "away", away)}
`,
    );
    const held: ServerResponse[] = [];
    rig.receiver(0).answer = (response) => held.push(response);
    rig.receiver(2).answer = (response) => response.writeHead(400).end("no");
    rig.receiver(3).answer = (response) => response.writeHead(503).end();

    const answer = rig.send(requestBody(...ENDS.map(({ job }, place) => ofJob(job, place))));
    await expect.poll(() => held.length).toBe(1);
    const meanwhile = await rig.metrics();
    expect(ledgerGaps(meanwhile, ROUTES)).toEqual([]);
    for (const items of ITEMS) {
      const inFlight = meanwhile.sum(`stream_metrics_route_${items}_in_flight`, { upstream: "api-0" });
      expect(inFlight).toBe(itemsOf(0)[items]);
    }

    held[0]?.writeHead(204).end();
    expect(await answer).toMatchObject({ status: 503 });
    const metrics = await rig.metrics();
    expect(ledgerGaps(metrics, ROUTES)).toEqual([]);
    for (const items of ITEMS) {
      expect(metrics.sum(`stream_metrics_route_${items}_in_flight`)).toBe(0);
      ENDS.forEach(({ job, end, ...labels }, place) => {
        const counted = metrics.sum(`stream_metrics_route_${items}_${end}_total`, labels);
        expect(counted, `${items} of job ${job}`).toBe(itemsOf(place)[items]);
      });
    }
    await rig.stop();
  });
});
