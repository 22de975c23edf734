import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { label, metadata, oneSample, requestBody, series } from "../reference/build.ts";
import { ledgerGaps } from "./ledger.ts";
import { GatewayRig, taskRoute } from "./gatewayRig.ts";

let rig: GatewayRig;

afterEach(async () => {
  await rig.stop();
});

/** Enough series that each of a few upstreams gets some. */
const MANY = Array.from({ length: 60 }, (_, i) => oneSample("up", label("instance", `host-${i}`)));

const names = (slot: number): string[] => rig.receiver(slot).series.map(({ labels }) => labels[0]?.[1] ?? "");
const reply =
  (status: number, text = "", headers: Record<string, string> = {}) =>
  (response: ServerResponse): void => {
    response.writeHead(status, headers).end(text);
  };

/** The ledger adds up, for every route. */
async function expectBalance(): Promise<void> {
  const routes = rig.config.routes.map(({ route }) => route.name);
  expect(ledgerGaps(await rig.metrics(), routes)).toEqual([]);
}

describe("a series that is refused at the door", () => {
  it.each([
    { name: "an empty label name", bad: oneSample("bad", label("", "x")), reason: "empty_label_name" },
    {
      name: "a duplicate label name",
      bad: oneSample("bad", label("a", "1"), label("a", "2")),
      reason: "duplicate_label_name",
    },
    { name: "invalid UTF-8", bad: oneSample("bad", label("a", Uint8Array.of(0xff))), reason: "invalid_utf8" },
    {
      name: "too many labels",
      bad: oneSample("bad", ...Array.from({ length: 300 }, (_, i) => label(`l${i}`, "x"))),
      reason: "too_many_labels",
    },
    {
      name: "a long label name",
      bad: oneSample("bad", label("n".repeat(2000), "x")),
      reason: "label_name_too_long",
    },
    {
      name: "a long label value",
      bad: oneSample("bad", label("a", "v".repeat(70_000))),
      reason: "label_value_too_long",
    },
  ])("for $name is named in a 400 after the good ones were forwarded", async ({ bad, reason }) => {
    rig = await GatewayRig.start(1, taskRoute);
    const answer = await rig.send(requestBody(oneSample("first"), bad, oneSample("last")));
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("1 of 3 series refused, the other 2 were forwarded");
    expect(answer.text).toContain(`${reason}: bad`);
    expect(names(0)).toEqual(["first", "last"]);
    expect(await rig.metric("series_refused_at_door_total", `reason="${reason}"`)).toBe(1);
    expect(await rig.metric("samples_delivered_total")).toBe(2);
    await expectBalance();
  });
});

describe("the smallest limits and table", () => {
  const NARROWEST =
    "limits: {max_decoded_bytes: 200, max_labels: 2, max_label_name_bytes: 10, max_label_value_bytes: 10}\n" +
    "memory: {decision_table_series: 1, decision_table_bytes: 1MiB}\n";

  it("let it start, and serve what keeps to them", async () => {
    rig = await GatewayRig.start(1, (urls) => NARROWEST + taskRoute(urls));
    expect((await rig.send(requestBody(oneSample("a"), oneSample("b")))).status).toBe(204);
    expect((await rig.send(requestBody(oneSample("a"), oneSample("b")))).status).toBe(204);
    expect((await rig.send(requestBody(...Array.from({ length: 20 }, () => oneSample("a"))))).status).toBe(
      400,
    );
    expect(names(0)).toEqual(["a", "b", "a", "b"]);
  });
});

describe("the decision table", () => {
  it("is told of in the metrics: what it holds, and how many series were known and new", async () => {
    rig = await GatewayRig.start(1, taskRoute);
    const known = requestBody(oneSample("a"), oneSample("b"));
    for (const body of [known, known, requestBody(oneSample("c"), oneSample("a"))]) await rig.send(body);
    expect(await rig.metric("decision_table_misses_total")).toBe(3);
    expect(await rig.metric("decision_table_hits_total")).toBe(3);
    expect(await rig.metric("decision_table_series")).toBe(3);
    expect(await rig.metric("decision_table_bytes")).toBeGreaterThan(100);
  });
});

describe("a request that is broken at its end", () => {
  it("is refused whole: nothing of it is forwarded", async () => {
    rig = await GatewayRig.start(1, taskRoute);
    const answer = await rig.send(requestBody(oneSample("good"), series(Uint8Array.of(0x0b))));
    expect(answer.status).toBe(400);
    expect(answer.text).toMatch(/byte \d+.*nothing was forwarded/);
    expect(rig.receiver(0).requests).toEqual([]);
    expect(await rig.metric("malformed_requests_total", 'code="WIRE_T')).toBe(1);
    expect(await rig.metric("samples_received_total")).toBe(0);
  });

  it("as a 2.0 message without its header is refused, since it would read as empty", async () => {
    rig = await GatewayRig.start(1, taskRoute);
    // Request { symbols = 4: "", timeseries = 5: {} }
    const answer = await rig.send(requestBody(Uint8Array.of(0x22, 0, 0x2a, 0)));
    expect(answer.status).toBe(415);
    expect(answer.text).toContain("2.0");
  });
});

describe("a flood of series without anything in them", () => {
  it("does not keep others waiting until it is worked off", async () => {
    rig = await GatewayRig.start(1, taskRoute);
    const flood = rig
      .send(requestBody(...Array.from({ length: 100_000 }, () => series())))
      .then(() => "flood");
    const others: string[] = [];
    for (let first = ""; first !== "flood";) {
      first = await Promise.race([flood, rig.send(requestBody()).then(() => "other")]);
      others.push(first);
    }
    expect(others.filter((name) => name === "other").length).toBeGreaterThan(2);
  });
});

describe("requests without series", () => {
  it("of metadata that is not all text lose what is none, counted", async () => {
    rig = await GatewayRig.start(1, taskRoute);
    expect(await rig.send(requestBody(metadata("good"), metadata(Uint8Array.of(0xff))))).toMatchObject({
      status: 204,
    });
    expect(await rig.metric("metadata_received_total")).toBe(2);
    expect(await rig.metric("metadata_dropped_total", 'reason="invalid_utf8"')).toBe(1);
    await expect.poll(() => rig.metric("metadata_delivered_total")).toBe(1);
  });

  it("of nothing are answered 204", async () => {
    rig = await GatewayRig.start(1, taskRoute);
    expect(await rig.send(requestBody())).toMatchObject({ status: 204 });
  });

  it("of metadata only are answered 204 at once and go to every upstream, even while one of them hangs", async () => {
    rig = await GatewayRig.start(3, taskRoute);
    rig.receiver(1).answer = () => undefined;
    expect(await rig.send(requestBody(metadata("requests"), metadata("errors")))).toMatchObject({
      status: 204,
    });
    for (const receiver of rig.receivers) {
      await expect
        .poll(() => receiver.requests.flatMap((request) => request.metadata.map(({ family }) => family)))
        .toEqual(["requests", "errors"]);
    }
    await expect.poll(() => rig.metric("metadata_delivered_total")).toBe(4);
  });

  it("are counted as lost where an upstream does not take metadata", async () => {
    rig = await GatewayRig.start(2, taskRoute);
    rig.receiver(1).answer = reply(500);
    expect(await rig.send(requestBody(metadata("requests")))).toMatchObject({ status: 204 });
    await expect.poll(() => rig.metric("metadata_lost_total", 'upstream="vmagent-1"')).toBe(1);
    await expect.poll(() => rig.metric("metadata_delivered_total", 'upstream="vmagent-0"')).toBe(1);
  });
});

describe("an upstream that is away", () => {
  const QUICK =
    "{on_outage: refuse, delivery_deadline: 200ms, queue_config: {min_backoff: 10ms, max_backoff: 20ms}, breaker: {reset_after: 50ms}}";

  it("costs its own series a 503 with Retry-After, while the others are delivered", async () => {
    rig = await GatewayRig.start(3, (urls) => taskRoute(urls, QUICK));
    await rig.receiver(1).stop();
    const answer = await rig.send(requestBody(...MANY));
    expect(answer.status).toBe(503);
    expect(Number(answer.retryAfter)).toBeGreaterThanOrEqual(1);
    expect(answer.text).toContain("upstream vmagent-1:");
    const away = await rig.metric("samples_routed_total", 'upstream="vmagent-1"');
    expect(away).toBeGreaterThan(0);
    expect(rig.receiver(0).series.length + rig.receiver(2).series.length).toBe(MANY.length - away);
    expect(await rig.metric("samples_refused_total", 'upstream="vmagent-1"')).toBe(away);
    await expectBalance();
  });

  it("gets its series when it is back and the sender comes again", async () => {
    rig = await GatewayRig.start(3, (urls) => taskRoute(urls, QUICK));
    const { port } = rig.receiver(1);
    await rig.receiver(1).stop();
    expect((await rig.send(requestBody(...MANY))).status).toBe(503);
    await rig.receiver(1).start(port);
    // The breaker may be open for a moment yet, as a sender would see it.
    await expect.poll(async () => (await rig.send(requestBody(...MANY))).status).toBe(204);
    const delivered = await rig.metric("samples_delivered_total", 'upstream="vmagent-1"');
    expect(new Set(rig.receiver(1).series.map(({ labels }) => labels.flat().join())).size).toBe(delivered);
    // What the others had got already was not sent to them again.
    expect(rig.receiver(0).series.length + rig.receiver(2).series.length).toBe(MANY.length - delivered);
    expect(await rig.metric("samples_skipped_resend_total")).toBeGreaterThan(0);
    await expectBalance();
  });

  it("is tried again within the request when it fails once", async () => {
    rig = await GatewayRig.start(1, taskRoute);
    const { answer } = rig.receiver(0);
    rig.receiver(0).answer = (response) => {
      rig.receiver(0).answer = answer;
      response.writeHead(500).end();
    };
    expect((await rig.send(requestBody(oneSample("up")))).status).toBe(204);
    expect(rig.receiver(0).requests).toHaveLength(2);
    await expectBalance();
  });
});

describe("an upstream that refuses for good", () => {
  it("has its words in a 400, and the other upstreams have theirs delivered", async () => {
    rig = await GatewayRig.start(3, taskRoute);
    rig.receiver(2).answer = reply(400, "cannot parse\u0007 this");
    const answer = await rig.send(requestBody(...MANY));
    expect(answer.status).toBe(400);
    expect(answer.text).toMatch(/^upstream vmagent-2 refused its part with 400: cannot parse.*this$/);
    expect(answer.text).not.toContain("\u0007");
    const refused = await rig.metric("samples_refused_total", 'upstream="vmagent-2"');
    expect(rig.receiver(0).series.length + rig.receiver(1).series.length).toBe(MANY.length - refused);
    await expectBalance();
  });

  it("is heard of by one of ten senders whose series share a request, and the other nine get their 2xx", async () => {
    rig = await GatewayRig.start(1, taskRoute);
    const [receiver] = rig.receivers;
    let open = (): void => undefined;
    const judge = (response: ServerResponse): void => {
      const isBad = receiver?.requests.at(-1)?.series.some(({ labels }) => labels[0]?.[1] === "bad");
      reply(isBad === true ? 400 : 204, isBad === true ? "out of bounds" : "")(response);
    };
    rig.receiver(0).answer = (response) => {
      open = () => response.writeHead(204).end();
      rig.receiver(0).answer = judge;
    };
    const first = rig.send(requestBody(oneSample("first")));
    await expect.poll(() => rig.receiver(0).requests.length).toBe(1);
    const senders = ["a", "b", "c", "d", "bad", "e", "f", "g", "h", "i"];
    const answers = senders.map((name) => rig.send(requestBody(oneSample(name))));
    await expect.poll(() => rig.metric("samples_routed_total")).toBe(11);
    open();
    expect((await first).status).toBe(204);
    expect((await Promise.all(answers)).map(({ status, text }) => `${status} ${text}`)).toEqual(
      senders.map((name) =>
        name === "bad" ? "400 upstream vmagent-0 refused its part with 400: out of bounds" : "204 ",
      ),
    );
    expect(rig.receiver(0).requests[1]?.series).toHaveLength(10);
    await expectBalance();
  });

  it("gives way to a 503 while another upstream is away", async () => {
    rig = await GatewayRig.start(3, (urls) =>
      taskRoute(urls, "{on_outage: refuse, delivery_deadline: 100ms}"),
    );
    rig.receiver(2).answer = reply(400, "no");
    rig.receiver(1).answer = reply(503, "", { "Retry-After": "60" });
    expect((await rig.send(requestBody(...MANY))).status).toBe(503);
    await expectBalance();
  });
});

describe("outgoing requests", () => {
  it("carry remote write's headers, and the upstream's own", async () => {
    rig = await GatewayRig.start(1, ([url]) => {
      const upstream = `{name: a, url: "${url}", headers: {X-Scope-OrgID: team-a}, authorization: {credentials: secret}}`;
      return `routes: [{name: r, placement: {key: series}, upstreams: [${upstream}]}]`;
    });
    await rig.send(requestBody(oneSample("up")));
    expect(rig.receiver(0).headers[0]).toMatchObject({
      "content-encoding": "snappy",
      "content-type": "application/x-protobuf",
      "x-prometheus-remote-write-version": "0.1.0",
      "x-scope-orgid": "team-a",
      authorization: "Bearer secret",
    });
    expect(rig.receiver(0).headers[0]?.["user-agent"]).toMatch(/^stream-metrics-route\//);
  });

  it("hold at most max_samples_per_send samples each, in the sender's order", async () => {
    rig = await GatewayRig.start(1, (urls) => taskRoute(urls, "{queue_config: {max_samples_per_send: 7}}"));
    const sent = Array.from({ length: 30 }, (_, i) => `metric_${i}`);
    await rig.send(requestBody(...sent.map((name) => oneSample(name))));
    expect(rig.receiver(0).requests.map((request) => request.series.length)).toEqual([7, 7, 7, 7, 2]);
    expect(names(0)).toEqual(sent);
  });
});

describe("routes", () => {
  it("each get every series, keyed and labelled in their own way", async () => {
    rig = await GatewayRig.start(
      3,
      ([a, b, c]) => `
routes:
  - name: aggregation
    tasks: {count: 16, label: task}
    placement: {key: task}
    upstreams: [{name: a, url: "${a}"}, {name: b, url: "${b}"}]
  - name: raw
    placement: {key: series}
    upstreams: [{name: c, url: "${c}"}]
`,
    );
    expect((await rig.send(requestBody(...MANY))).status).toBe(204);
    const labelNames = (slot: number): Set<string> =>
      new Set(rig.receiver(slot).series.flatMap(({ labels }) => labels.map(([name]) => name)));
    expect(rig.receiver(0).series.length + rig.receiver(1).series.length).toBe(MANY.length);
    expect(labelNames(0)).toEqual(new Set(["__name__", "instance", "task"]));
    expect(rig.receiver(2).series).toHaveLength(MANY.length);
    expect(labelNames(2)).toEqual(new Set(["__name__", "instance"]));
  });

  it("count series that have none of the labels they key by, and keep them together", async () => {
    rig = await GatewayRig.start(
      2,
      ([a, b]) => `
routes:
  - name: by-job
    placement: {key: {by: [job]}}
    upstreams: [{name: a, url: "${a}"}, {name: b, url: "${b}"}]
`,
    );
    expect((await rig.send(requestBody(...MANY))).status).toBe(204);
    expect(rig.receivers.map(({ series: got }) => got.length).sort((a, b) => a - b)).toEqual([
      0,
      MANY.length,
    ]);
    expect(await rig.metric("series_missing_key_labels_total", 'route="by-job"')).toBe(MANY.length);
  });
});
