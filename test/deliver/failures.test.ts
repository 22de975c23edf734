import { afterEach, describe, expect, it } from "vitest";
import type { ParcelOutcome } from "../../src/deliver/outcome.ts";
import { makeParcel, numbersIn } from "./parcels.ts";
import { SenderUnderTest } from "./senderUnderTest.ts";
import type { Settings } from "./senderUnderTest.ts";
import {
  StubUpstream,
  answer,
  blackHole,
  closedPort,
  endless,
  raw,
  rawThenEnd,
  rawThenReset,
  reset,
} from "./stubUpstream.ts";
import type { Act } from "./stubUpstream.ts";

interface Row {
  readonly name: string;
  readonly script: Act[];
  readonly delivery?: Settings["delivery"];
  readonly outcome: ParcelOutcome["kind"];
  /** How the attempts ended, in order. */
  readonly attempts: ("delivered" | "refused" | "retry")[];
  /** Part of the reply of a refusal. */
  readonly reply?: string | RegExp;
  /** Part of what the log says, at any level. */
  readonly says?: string | RegExp;
}

const OK = answer(204);
const inSeconds = (seconds: number): string => new Date(Date.now() + seconds * 1000).toUTCString();
const SHORT = { remoteTimeoutMs: 500 };
const HEAD = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";

const ROWS: Row[] = [
  { name: "204", script: [OK], outcome: "delivered", attempts: ["delivered"] },
  { name: "200 with a body", script: [answer(200, "stored")], outcome: "delivered", attempts: ["delivered"] },
  {
    name: "200 with a long body",
    script: [answer(200, "x".repeat(1e6))],
    outcome: "delivered",
    attempts: ["delivered"],
  },
  { name: "200 with an endless body", script: [endless(200)], outcome: "delivered", attempts: ["delivered"] },
  {
    name: "200 with a body that stops",
    script: [raw(`${HEAD}abc`)],
    outcome: "delivered",
    attempts: ["delivered"],
  },
  {
    name: "200, reset in its body",
    script: [rawThenReset(`${HEAD}abc`)],
    outcome: "delivered",
    attempts: ["delivered"],
  },
  {
    name: "200, reset after its head",
    script: [rawThenReset(HEAD)],
    outcome: "delivered",
    attempts: ["delivered"],
  },
  {
    name: "200 with a body of another length",
    script: [rawThenEnd(`${HEAD}abc`)],
    outcome: "delivered",
    attempts: ["delivered"],
  },
  {
    name: "200 with broken chunks",
    script: [raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")],
    outcome: "delivered",
    attempts: ["delivered"],
  },
  {
    name: "no answer at all",
    script: [blackHole, OK],
    delivery: SHORT,
    outcome: "delivered",
    attempts: ["retry", "delivered"],
    says: "no answer within 500 ms",
  },
  {
    name: "half a head, then nothing",
    script: [raw("HTTP/1.1 200 OK\r\nCont"), OK],
    delivery: SHORT,
    outcome: "delivered",
    attempts: ["retry", "delivered"],
    says: "no answer within",
  },
  {
    name: "a reset before the head",
    script: [reset, OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
  },
  {
    name: "a reset in the head",
    script: [rawThenReset("HTTP/1.1 200 OK\r\nCont"), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
  },
  {
    name: "the end of the connection in place of an answer",
    script: [rawThenEnd(""), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
    says: "other side closed",
  },
  {
    name: "an answer that is not HTTP",
    script: [rawThenEnd("SSH-2.0-OpenSSH_9.2\r\n"), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
    says: /HTTP\/1\.1 protocol/,
  },
  {
    name: "100 for ever",
    script: [raw("HTTP/1.1 100 Continue\r\n\r\n"), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
  },
  {
    name: "102, then 200",
    script: [raw("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")],
    outcome: "delivered",
    attempts: ["delivered"],
  },
  {
    name: "a switch of protocols",
    script: [raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
  },
  {
    name: "a status that HTTP does not have",
    script: [rawThenEnd("HTTP/1.1 799 What\r\n\r\n"), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
    says: "799",
  },
  {
    name: "a head without end",
    script: [raw(`HTTP/1.1 200 OK\r\nX: ${"x".repeat(1e5)}`), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
    says: /Headers Overflow/i,
  },
  {
    name: "500, then 200",
    script: [answer(500, "try later"), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
    says: "500 (try later)",
  },
  {
    name: "500 and a reset in its body",
    script: [rawThenReset("HTTP/1.1 500 Oops\r\nContent-Length: 10\r\n\r\nabc"), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
    says: /500/,
  },
  {
    name: "503 with an endless body",
    script: [endless(503), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
    says: "503 (xxx",
  },
  {
    name: "503 with Retry-After in seconds",
    script: [answer(503, "", { "Retry-After": "30" })],
    outcome: "undelivered",
    attempts: ["retry"],
  },
  {
    name: "503 with a date as Retry-After",
    script: [answer(503, "", { "Retry-After": inSeconds(60) })],
    outcome: "undelivered",
    attempts: ["retry"],
  },
  {
    name: "503 with Retry-After -1",
    script: [answer(503, "", { "Retry-After": "-1" }), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
  },
  {
    name: "503 with Retry-After 99999999",
    script: [answer(503, "", { "Retry-After": "99999999" }), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
  },
  {
    name: "503 with a Retry-After gone by",
    script: [answer(503, "", { "Retry-After": inSeconds(-60) }), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
  },
  {
    name: "503 with two Retry-Afters",
    script: [answer(503, "", { "Retry-After": ["30", "40"] }), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
  },
  { name: "429, retried", script: [answer(429), OK], outcome: "delivered", attempts: ["retry", "delivered"] },
  {
    name: "429, not retried",
    script: [answer(429, "slow down"), OK],
    delivery: { retryOnHttp429: false },
    outcome: "refused",
    attempts: ["refused"],
    reply: "slow down",
  },
  { name: "408", script: [answer(408), OK], outcome: "delivered", attempts: ["retry", "delivered"] },
  {
    name: "400",
    script: [answer(400, "out of\norder"), OK],
    outcome: "refused",
    attempts: ["refused"],
    reply: "out of order",
  },
  {
    name: "400 with an endless body",
    script: [endless(400), OK],
    outcome: "refused",
    attempts: ["refused"],
    reply: /^x{512}$/,
  },
  {
    name: "400 with a body that stops",
    script: [raw("HTTP/1.1 400 Bad\r\nContent-Length: 10\r\n\r\nabc"), OK],
    delivery: SHORT,
    outcome: "refused",
    attempts: ["refused"],
    reply: "abc",
  },
  {
    name: "400 and a reset in its body",
    script: [rawThenReset("HTTP/1.1 400 Bad\r\nContent-Length: 10\r\n\r\nabc"), OK],
    outcome: "refused",
    attempts: ["refused"],
  },
  { name: "404", script: [answer(404), OK], outcome: "refused", attempts: ["refused"], reply: "" },
  {
    name: "404, listed to retry",
    script: [answer(404), OK],
    delivery: { retryOn: [404] },
    outcome: "delivered",
    attempts: ["retry", "delivered"],
  },
  { name: "409", script: [answer(409), OK], outcome: "refused", attempts: ["refused"] },
  { name: "413", script: [answer(413), OK], outcome: "refused", attempts: ["refused"] },
  {
    name: "301",
    script: [answer(301, "", { Location: "http://127.0.0.1:1/other" }), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
    says: "301 to http://127.0.0.1:1/other, which is not followed",
  },
  {
    name: "307",
    script: [answer(307, "", { Location: "/other?token=abc" }), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
    says: "307 to /other, which",
  },
  {
    name: "302 without a Location",
    script: [answer(302), OK],
    outcome: "delivered",
    attempts: ["retry", "delivered"],
    says: "302",
  },
];

let stub: StubUpstream | undefined;
let test: SenderUnderTest | undefined;
afterEach(async () => {
  await test?.sender.close(Date.now());
  await stub?.close();
  stub = test = undefined;
});

describe("an upstream that answers with", () => {
  it.each(ROWS)("$name", async ({ script, delivery, outcome, attempts, reply, says }) => {
    stub = await StubUpstream.start(script);
    test = new SenderUnderTest(
      `http://127.0.0.1:${stub.port}/api/v1/write`,
      delivery === undefined ? {} : { delivery },
    );
    const outcomes = await test.deliver([makeParcel()], Date.now() + 5_000);

    expect(outcomes.map(({ kind }) => kind)).toEqual([outcome]);
    expect(test.attempts).toEqual(attempts);
    expect(stub.requests).toHaveLength(attempts.length);
    for (const { body } of stub.requests) expect(numbersIn(body)).toEqual([512]);
    expect(test.settled.total("delivered").parcels).toBe(outcome === "delivered" ? 1 : 0);
    expect(test.settled.total("refused").parcels).toBe(outcome === "delivered" ? 0 : 1);
    if (reply !== undefined) {
      expect(outcomes).toEqual([
        expect.objectContaining({
          reply: typeof reply === "string" ? reply : (expect.stringMatching(reply) as string),
        }),
      ]);
    }
    if (says !== undefined) expect(test.logText()).toMatch(says);
  });
});

describe("an upstream that is not there", () => {
  it("is tried until the deadline, and the cause is told", async () => {
    const port = await closedPort();
    test = new SenderUnderTest(`http://127.0.0.1:${port}/`);
    const outcomes = await test.deliver([makeParcel()], Date.now() + 100);
    expect(outcomes).toEqual([
      {
        kind: "undelivered",
        cause: expect.stringContaining(`connect ECONNREFUSED 127.0.0.1:${port}`) as string,
        retryAfterMs: expect.any(Number) as number,
      },
    ]);
    expect(test.attempts.length).toBeGreaterThan(1);
    expect(test.settled.total("refused")).toEqual({ parcels: 1, samples: 512 });
  });
});

describe("Retry-After", () => {
  const rows = [
    { name: "in seconds, shortened to a minute", value: () => "120", least: 60_000, most: 60_000 },
    { name: "in seconds", value: () => "30", least: 30_000, most: 30_000 },
    { name: "as a date", value: () => inSeconds(31), least: 25_000, most: 31_000 },
  ];
  it.each(rows)("$name, beyond the deadline is handed on at once", async ({ value, least, most }) => {
    stub = await StubUpstream.start([answer(503, "", { "Retry-After": value() })]);
    test = new SenderUnderTest(`http://127.0.0.1:${stub.port}/`);
    const startedAt = Date.now();
    const [outcome] = await test.deliver([makeParcel()], startedAt + 20_000);
    expect(Date.now() - startedAt).toBeLessThan(5_000);
    if (outcome?.kind !== "undelivered") throw new Error("undelivered was wanted");
    expect(outcome.retryAfterMs).toBeGreaterThanOrEqual(least);
    expect(outcome.retryAfterMs).toBeLessThanOrEqual(most);
  });

  it("sets the wait in place of the backoff", async () => {
    stub = await StubUpstream.start([answer(429, "", { "Retry-After": "1" }), OK]);
    test = new SenderUnderTest(`http://127.0.0.1:${stub.port}/`);
    const startedAt = Date.now();
    const [outcome] = await test.deliver([makeParcel(512, 40 * 1024)], startedAt + 20_000);
    expect(outcome).toEqual({ kind: "delivered" });
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(990);
    expect(test.log("warn")).toMatchObject([
      {
        level: "warn",
        msg: "upstream vmagent-2: 429 for a batch of 512 series (40 KiB), attempt 1; next attempt in 1.0 s (Retry-After)",
      },
    ]);
  });
});

describe("an upstream that refuses and does not finish saying why", () => {
  it("is not waited for until the remote timeout", async () => {
    stub = await StubUpstream.start([raw("HTTP/1.1 400 Bad\r\nContent-Length: 10\r\n\r\nabc")]);
    test = new SenderUnderTest(`http://127.0.0.1:${stub.port}/`);
    const startedAt = Date.now();
    const outcomes = await test.deliver([makeParcel()], startedAt + 10_000);
    expect(outcomes).toEqual([{ kind: "refused", status: 400, reply: "abc" }]);
    expect(Date.now() - startedAt).toBeLessThan(5_000);
  });
});

describe("a redirect to another host", () => {
  it.each([301, 302, 303, 307, 308])(
    "by %i is not followed but tried again, and is an error",
    async (status) => {
      const other = await StubUpstream.start([OK]);
      const location = `http://localhost:${other.port}/api/v1/write`;
      stub = await StubUpstream.start([answer(status, "", { Location: location }), OK]);
      test = new SenderUnderTest(`http://127.0.0.1:${stub.port}/`, {
        breaker: { consecutiveFailures: 1, resetAfterMs: 10 },
        delivery: { minBackoffMs: 20, maxBackoffMs: 20 },
      });
      const [outcome] = await test.deliver([makeParcel()], Date.now() + 5_000);
      await other.close();
      expect(outcome?.kind).toBe("undelivered");
      expect(other.requests).toEqual([]);
      expect(test.breakerStates[0]).toBe("open");
      expect(test.log("error").map(({ msg }) => msg)).toEqual([
        expect.stringContaining(`${status} to ${location}, which is not followed, for a batch of 512 series`),
      ]);
    },
  );
});

describe("an upstream whose 2xx body has no end", () => {
  it("has its connection closed, and further parcels get through", async () => {
    const closed: Promise<void>[] = [];
    const watched: Act = (response, socket) => {
      closed.push(new Promise((resolve) => socket.on("close", resolve)));
      endless(200)(response, socket);
    };
    stub = await StubUpstream.start([watched]);
    test = new SenderUnderTest(`http://127.0.0.1:${stub.port}/`);
    for (let call = 0; call < 3; call += 1) {
      expect(await test.deliver([makeParcel()], Date.now() + 5_000)).toEqual([{ kind: "delivered" }]);
    }
    expect(closed).toHaveLength(3);
    await Promise.all(closed);
  });
});
