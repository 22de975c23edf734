import { afterEach, describe, expect, it } from "vitest";
import type { Parcel } from "../../src/wire/parcel.ts";
import { SenderUnderTest, makeParcel } from "./senderUnderTest.ts";
import type { Settings } from "./senderUnderTest.ts";
import { HeldAnswers, StubUpstream, answer, blackHole } from "./stubUpstream.ts";
import type { Act } from "./stubUpstream.ts";

const OK = answer(204);
const LONG_MS = 60_000;
const BACK_LATER = answer(503, "", { "Retry-After": "30" });

let stub: StubUpstream;
let test: SenderUnderTest;
afterEach(async () => {
  await test.sender.close(Date.now());
  await stub.close();
});

async function start(script: Act[], settings: Settings = {}): Promise<void> {
  stub = await StubUpstream.start(script);
  test = new SenderUnderTest(`http://127.0.0.1:${stub.port}/`, settings);
}

function deliver(parcels: readonly Parcel[], forMs: number) {
  return test.sender.deliver(parcels, Date.now() + forMs);
}

async function kindsOf(outcomes: ReturnType<typeof deliver>): Promise<string[]> {
  return (await outcomes).map(({ kind }) => kind);
}

/** How each parcel was settled; one that was not, or twice, shows. */
function settledAs(parcels: readonly Parcel[]): string[] {
  return parcels.map((parcel) => (test.settled.get(parcel) ?? ["not"]).join(" and "));
}

function makeParcels(count: number): Parcel[] {
  return Array.from({ length: count }, (_, index) => makeParcel(index + 1));
}

describe("parcels of one call", () => {
  it("arrive one after another, in order, each before the next is sent", async () => {
    const held = new HeldAnswers();
    await start([held.act]);
    const parcels = makeParcels(3);
    const kinds = kindsOf(deliver(parcels, LONG_MS));
    for (let count = 1; count <= 3; count += 1) {
      await expect.poll(() => held.count).toBe(1);
      expect(stub.requests.map(({ body }) => body[0])).toEqual([1, 2, 3].slice(0, count));
      held.answerAll(204);
    }
    expect(await kinds).toEqual(["delivered", "delivered", "delivered"]);
    expect(settledAs(parcels)).toEqual(["delivered", "delivered", "delivered"]);
  });

  it("are not tried behind one that is undelivered", async () => {
    await start([OK, BACK_LATER, OK]);
    const parcels = makeParcels(4);
    expect(await kindsOf(deliver(parcels, 5_000))).toEqual([
      "delivered",
      "undelivered",
      "undelivered",
      "undelivered",
    ]);
    expect(stub.requests).toHaveLength(2);
    expect(settledAs(parcels)).toEqual(["delivered", "refused", "refused", "refused"]);
  });

  it("go on behind one that is refused", async () => {
    await start([OK, answer(400, "bad"), OK]);
    const parcels = makeParcels(3);
    expect(await deliver(parcels, 5_000)).toEqual([
      { kind: "delivered" },
      { kind: "refused", status: 400, reply: "bad" },
      { kind: "delivered" },
    ]);
    expect(settledAs(parcels)).toEqual(["delivered", "refused", "delivered"]);
  });

  it("can be none", async () => {
    await start([OK]);
    expect(await deliver([], 5_000)).toEqual([]);
  });
});

describe("calls side by side", () => {
  it("do not wait for each other", async () => {
    const held = new HeldAnswers();
    await start([held.act, OK]);
    const slow = kindsOf(deliver(makeParcels(1), LONG_MS));
    await expect.poll(() => held.count).toBe(1);
    expect(await kindsOf(deliver(makeParcels(1), LONG_MS))).toEqual(["delivered"]);
    held.answerAll(204);
    expect(await slow).toEqual(["delivered"]);
  });

  it("share at most 64 connections, and all get through", async () => {
    const held = new HeldAnswers();
    await start([held.act]);
    const calls = makeParcels(70).map((parcel) => kindsOf(deliver([parcel], LONG_MS)));
    await expect.poll(() => held.count).toBe(64);
    expect(stub.openConnections).toBe(64);
    held.answerAll(204);
    await expect.poll(() => held.count).toBe(6);
    held.answerAll(204);
    expect((await Promise.all(calls)).flat()).toEqual(Array<string>(70).fill("delivered"));
  });

  it("time out while they wait for a connection as anywhere else", async () => {
    await start([blackHole], {
      delivery: { remoteTimeoutMs: 300, minBackoffMs: LONG_MS, maxBackoffMs: LONG_MS },
      random: () => 0.9,
    });
    const parcels = makeParcels(66);
    const calls = parcels.map((parcel) => deliver([parcel], 5_000));
    for (const [outcome] of await Promise.all(calls)) {
      expect(outcome).toMatchObject({ kind: "undelivered", cause: "no answer within 300 ms" });
    }
    expect(Math.max(...test.durationsMs)).toBeLessThan(2_000);
    expect(new Set(settledAs(parcels))).toEqual(new Set(["refused"]));
  });
});

describe("a Retry-After", () => {
  it("speaks for the upstream: until it is over no other parcel is tried either", async () => {
    await start([BACK_LATER, OK]);
    expect(await kindsOf(deliver(makeParcels(1), 1_000))).toEqual(["undelivered"]);
    const [outcome] = await deliver(makeParcels(1), 1_000);
    if (outcome?.kind !== "undelivered") throw new Error("undelivered was wanted");
    expect(outcome.retryAfterMs).toBeGreaterThan(20_000);
    expect(stub.requests).toHaveLength(1);
  });

  it("that is over lets all through", async () => {
    await start([answer(429, "", { "Retry-After": "1" }), OK]);
    const parcels = makeParcels(5);
    const calls = parcels.map((parcel) => kindsOf(deliver([parcel], LONG_MS)));
    expect((await Promise.all(calls)).flat()).toEqual(Array<string>(5).fill("delivered"));
    expect(settledAs(parcels)).toEqual(Array<string>(5).fill("delivered"));
  });
});

describe("the deadline", () => {
  const rows = [
    { name: "accepted", status: 204, settled: "delivered" },
    { name: "refused", status: 400, settled: "refused" },
    { name: "not accepted", status: 503, settled: "refused" },
  ];
  it.each(rows)(
    "is when the answer is there; a parcel $name later is settled then",
    async ({ status, settled }) => {
      const held = new HeldAnswers();
      await start([held.act]);
      const parcels = makeParcels(2);
      const outcomes = await deliver(parcels, 50);
      expect(outcomes).toMatchObject([
        { kind: "undelivered", cause: "no answer to attempt 1 by the deadline" },
        { kind: "undelivered" },
      ]);
      expect(settledAs(parcels)).toEqual(["not", "refused"]);

      held.answerAll(status);
      await expect.poll(() => settledAs(parcels)).toEqual([settled, "refused"]);
      expect(test.attempts).toHaveLength(1);
      expect(stub.requests).toHaveLength(1);
    },
  );

  it("does not end an attempt before its own timeout, which does", async () => {
    await start([blackHole], { delivery: { remoteTimeoutMs: 150 } });
    const parcels = makeParcels(1);
    expect(await kindsOf(deliver(parcels, 20))).toEqual(["undelivered"]);
    expect(test.attempts).toEqual([]);
    await expect.poll(() => settledAs(parcels)).toEqual(["refused"]);
    expect(test.attempts).toEqual(["retry"]);
    expect(test.durationsMs[0]).toBeGreaterThanOrEqual(140);
  });

  it("lets no attempt begin once it is over", async () => {
    await start([OK]);
    const parcels = makeParcels(2);
    expect(await kindsOf(deliver(parcels, 0))).toEqual(["undelivered", "undelivered"]);
    expect(settledAs(parcels)).toEqual(["refused", "refused"]);
    expect(stub.requests).toEqual([]);
  });

  it("is not waited for when the next attempt would come after it", async () => {
    await start([answer(500)], {
      delivery: { minBackoffMs: 20_000, maxBackoffMs: 20_000 },
      random: () => 0.5,
    });
    const startedAt = Date.now();
    const outcomes = await deliver(makeParcels(1), 8_000);
    expect(outcomes).toEqual([{ kind: "undelivered", cause: "500", retryAfterMs: 10_000 }]);
    expect(Date.now() - startedAt).toBeLessThan(4_000);
  });
});

describe("the breaker of a sender", () => {
  const breaker = { consecutiveFailures: 3, resetAfterMs: 150 };

  /** Three failures in a row, so that it is open. */
  async function open(script: Act[], settings: Settings = {}): Promise<void> {
    await start([answer(500), answer(500), answer(500, "full"), ...script], {
      breaker,
      random: () => 0,
      ...settings,
    });
    const parcels = makeParcels(1);
    const outcomes = await deliver(parcels, LONG_MS);
    expect(outcomes).toMatchObject([
      { kind: "undelivered", cause: "breaker open, last failure: 500 (full)" },
    ]);
    expect(settledAs(parcels)).toEqual(["refused"]);
  }

  it("opens after failures in a row; then nothing is sent and the answer is there at once", async () => {
    await open([OK], { breaker: { consecutiveFailures: 3, resetAfterMs: 20_000 } });
    const startedAt = Date.now();
    const [outcome] = await deliver(makeParcels(1), LONG_MS);
    expect(outcome).toMatchObject({ kind: "undelivered", cause: "breaker open, last failure: 500 (full)" });
    expect(Date.now() - startedAt).toBeLessThan(5_000);
    expect(stub.requests).toHaveLength(3);
    expect(test.breakerStates).toEqual(["open"]);
  });

  it("tells senders to stay away for a second at least", async () => {
    await start([answer(500)], { breaker: { consecutiveFailures: 1, resetAfterMs: 30 }, random: () => 0 });
    expect(await deliver(makeParcels(1), LONG_MS)).toMatchObject([{ retryAfterMs: 1_000 }]);
  });

  it("tells senders to come back when it lets something through, spread by chance", async () => {
    await start([answer(500)], {
      breaker: { consecutiveFailures: 1, resetAfterMs: 20_000 },
      random: () => 0.5,
    });
    const [outcome] = await deliver(makeParcels(1), LONG_MS);
    if (outcome?.kind !== "undelivered") throw new Error("undelivered was wanted");
    expect(outcome.retryAfterMs).toBeGreaterThan(20_000);
    expect(outcome.retryAfterMs).toBeLessThanOrEqual(25_000);
  });

  it("sends those away who wait for their next attempt when it opens", async () => {
    await start([answer(500)], {
      delivery: { minBackoffMs: LONG_MS / 2, maxBackoffMs: LONG_MS / 2 },
      breaker: { consecutiveFailures: 2, resetAfterMs: 20_000 },
      random: () => 0.9,
    });
    const waiting = makeParcels(1);
    const early = deliver(waiting, LONG_MS);
    await expect.poll(() => test.attempts).toHaveLength(1);
    await deliver(makeParcels(1), LONG_MS);
    expect(await early).toMatchObject([{ kind: "undelivered", cause: "breaker open, last failure: 500" }]);
    expect(settledAs(waiting)).toEqual(["refused"]);
  });

  it("lets one parcel through when half-open; the others wait and follow", async () => {
    const held = new HeldAnswers();
    await open([held.act, OK]);
    await expect.poll(() => test.breakerStates).toEqual(["open", "half_open"]);
    const parcels = makeParcels(10);
    const calls = parcels.map((parcel) => kindsOf(deliver([parcel], LONG_MS)));
    await expect.poll(() => held.count).toBe(1);
    expect(stub.requests).toHaveLength(4);

    held.answerAll(204);
    expect((await Promise.all(calls)).flat()).toEqual(Array<string>(10).fill("delivered"));
    expect(settledAs(parcels)).toEqual(Array<string>(10).fill("delivered"));
    expect(test.breakerStates).toEqual(["open", "half_open", "closed"]);
    expect(test.log("info").map(({ msg }) => msg)).toContain(
      "upstream vmagent-2: breaker closed, parcels are sent again",
    );
  });

  it("answers those who wait while half-open by their deadline", async () => {
    await open([blackHole]);
    await expect.poll(() => test.breakerStates).toEqual(["open", "half_open"]);
    const parcels = makeParcels(2);
    const [trial, waiting] = parcels.map((parcel) => kindsOf(deliver([parcel], 60)));
    expect(await waiting).toEqual(["undelivered"]);
    expect(await trial).toEqual(["undelivered"]);
    expect(settledAs(parcels)).toEqual(["not", "refused"]);
  });

  it("comes out of half-open when the upstream hangs, and closes when it answers again", async () => {
    await open([blackHole, OK], { delivery: { remoteTimeoutMs: 100 } });
    await expect.poll(() => test.breakerStates).toEqual(["open", "half_open"]);
    const trial = await deliver(makeParcels(1), LONG_MS);
    expect(trial).toMatchObject([
      { kind: "undelivered", cause: "breaker open, last failure: no answer within 100 ms" },
    ]);
    await expect.poll(() => test.breakerStates).toEqual(["open", "half_open", "open", "half_open"]);
    expect(await kindsOf(deliver(makeParcels(1), LONG_MS))).toEqual(["delivered"]);
    expect(test.breakerStates.at(-1)).toBe("closed");
  });

  const healthy = [
    { name: "throttles", act: answer(429), settings: {} },
    { name: "refuses", act: answer(400), settings: {} },
    {
      name: "answers with a status that is listed to retry",
      act: answer(404),
      settings: { delivery: { retryOn: [404] } },
    },
  ];
  it.each(healthy)("stays closed when the upstream $name", async ({ act, settings }) => {
    await start([act], { breaker: { consecutiveFailures: 1, resetAfterMs: 20_000 }, ...settings });
    for (let call = 0; call < 3; call += 1) await deliver(makeParcels(1), 30);
    expect(test.breakerStates).toEqual([]);
  });

  it("closes when the one parcel is refused, for that is an answer", async () => {
    await open([answer(400), OK]);
    await expect.poll(() => test.breakerStates).toEqual(["open", "half_open"]);
    expect(await kindsOf(deliver(makeParcels(2), LONG_MS))).toEqual(["refused", "delivered"]);
    expect(test.breakerStates).toEqual(["open", "half_open", "closed"]);
  });

  it("takes no notice of attempts that began before it opened and fail after", async () => {
    const held = new HeldAnswers();
    const trial = new HeldAnswers();
    await start([held.act, held.act, answer(500), answer(500), answer(500), trial.act, OK], { breaker });
    const early = [deliver(makeParcels(1), LONG_MS), deliver(makeParcels(1), LONG_MS)];
    await expect.poll(() => held.count).toBe(2);
    await deliver(makeParcels(1), LONG_MS);
    await expect.poll(() => test.breakerStates).toEqual(["open", "half_open"]);

    held.answerAll(500);
    await expect.poll(() => trial.count).toBe(1);
    expect(test.attempts).toHaveLength(5);
    expect(test.breakerStates).toEqual(["open", "half_open"]);

    trial.answerAll(204);
    expect((await Promise.all(early.map(kindsOf))).flat()).toEqual(["delivered", "delivered"]);
    expect(test.breakerStates).toEqual(["open", "half_open", "closed"]);
  });
});

describe("closing a sender", () => {
  it("sends those away who wait for their next attempt, at once", async () => {
    await start([BACK_LATER]);
    const parcels = makeParcels(2);
    const outcomes = deliver(parcels, LONG_MS);
    await expect.poll(() => test.attempts).toHaveLength(1);
    await test.sender.close(Date.now() + LONG_MS);
    expect(settledAs(parcels)).toEqual(["refused", "refused"]);
    expect(await outcomes).toMatchObject([
      { kind: "undelivered", cause: "the gateway is shutting down" },
      { kind: "undelivered", cause: "the gateway is shutting down" },
    ]);
  });

  it("waits for the attempt under way, and begins no other", async () => {
    const held = new HeldAnswers();
    await start([held.act]);
    const parcels = makeParcels(2);
    const kinds = kindsOf(deliver(parcels, LONG_MS));
    await expect.poll(() => held.count).toBe(1);
    const closed = test.sender.close(Date.now() + LONG_MS);
    held.answerAll(204);
    await closed;
    expect(settledAs(parcels)).toEqual(["delivered", "refused"]);
    expect(await kinds).toEqual(["delivered", "undelivered"]);
    expect(stub.requests).toHaveLength(1);
  });

  it("aborts at its deadline what is under way, answered already or not", async () => {
    await start([blackHole]);
    const parcels = makeParcels(3);
    expect(await kindsOf(deliver(parcels.slice(0, 1), 20))).toEqual(["undelivered"]);
    const kinds = kindsOf(deliver(parcels.slice(1), LONG_MS));
    await expect.poll(() => stub.requests).toHaveLength(2);
    const startedAt = Date.now();
    await test.sender.close(startedAt + 50);
    expect(Date.now() - startedAt).toBeLessThan(5_000);
    expect(settledAs(parcels)).toEqual(["refused", "refused", "refused"]);
    expect(await kinds).toEqual(["undelivered", "undelivered"]);
    expect(test.attempts).toEqual(["retry", "retry"]);
    await expect.poll(() => stub.openConnections).toBe(0);
  });

  it("ends half-open with its one parcel under way and others waiting", async () => {
    await start([answer(500), blackHole], { breaker: { consecutiveFailures: 1, resetAfterMs: 30 } });
    await deliver(makeParcels(1), LONG_MS);
    await expect.poll(() => test.breakerStates).toEqual(["open", "half_open"]);
    const parcels = makeParcels(3);
    const calls = parcels.map((parcel) => kindsOf(deliver([parcel], LONG_MS)));
    await expect.poll(() => stub.requests).toHaveLength(2);
    await test.sender.close(Date.now() + 50);
    expect(settledAs(parcels)).toEqual(["refused", "refused", "refused"]);
    expect((await Promise.all(calls)).flat()).toEqual(["undelivered", "undelivered", "undelivered"]);
    expect(test.breakerStates).toEqual(["open", "half_open"]);
  });

  it("ends attempts that wait for a connection", async () => {
    await start([blackHole]);
    const parcels = makeParcels(70);
    const calls = parcels.map((parcel) => deliver([parcel], LONG_MS));
    await expect.poll(() => stub.requests).toHaveLength(64);
    await test.sender.close(Date.now());
    await Promise.all(calls);
    expect(new Set(settledAs(parcels))).toEqual(new Set(["refused"]));
  });

  it("closes idle connections, and those still sending a body that is not needed", async () => {
    await start([OK, (response) => response.writeHead(200).write("x")]);
    await deliver(makeParcels(2), LONG_MS);
    await test.sender.close(Date.now() + LONG_MS);
    await expect.poll(() => stub.openConnections).toBe(0);
  });

  it("leaves a sender that answers at once, however often it is closed", async () => {
    await start([OK]);
    await Promise.all([test.sender.close(Date.now()), test.sender.close(Date.now())]);
    const parcels = makeParcels(2);
    expect(await kindsOf(deliver(parcels, LONG_MS))).toEqual(["undelivered", "undelivered"]);
    expect(settledAs(parcels)).toEqual(["refused", "refused"]);
    expect(await test.sender.deliverMetadata(new Uint8Array(8))).toBe(false);
    expect(stub.requests).toEqual([]);
  });
});

describe("metadata", () => {
  const body = new Uint8Array([1, 2, 3]);

  it("is sent as any other request, and reported by the answer alone", async () => {
    await start([OK]);
    expect(await test.sender.deliverMetadata(body)).toBe(true);
    expect(stub.requests.map((request) => [...request.body])).toEqual([[1, 2, 3]]);
    expect(test.attempts).toEqual([]);
    expect(test.settled.size).toBe(0);
  });

  it("is sent once, whatever comes of it, and the breaker takes no notice", async () => {
    await start([answer(500), answer(400), blackHole, OK], {
      breaker: { consecutiveFailures: 1, resetAfterMs: LONG_MS },
      delivery: { remoteTimeoutMs: 50 },
    });
    for (let round = 0; round < 3; round += 1) expect(await test.sender.deliverMetadata(body)).toBe(false);
    expect(test.breakerStates).toEqual([]);
    expect(await test.sender.deliverMetadata(body)).toBe(true);
    expect(stub.requests).toHaveLength(4);
  });

  it("goes one after another, and the newest is lost when too much waits", async () => {
    const held = new HeldAnswers();
    await start([held.act, OK]);
    const taken = Array.from({ length: 64 }, () => test.sender.deliverMetadata(body));
    expect(await test.sender.deliverMetadata(body)).toBe(false);
    await expect.poll(() => held.count).toBe(1);
    expect(stub.requests).toHaveLength(1);
    held.answerAll(204);
    expect(await Promise.all(taken)).toEqual(Array<boolean>(64).fill(true));
    expect(stub.requests).toHaveLength(64);
    expect(await test.sender.deliverMetadata(body)).toBe(true);
  });

  it("is lost while the breaker is open", async () => {
    await start([answer(500), OK], { breaker: { consecutiveFailures: 1, resetAfterMs: LONG_MS } });
    await deliver(makeParcels(1), LONG_MS);
    expect(await test.sender.deliverMetadata(body)).toBe(false);
    expect(stub.requests).toHaveLength(1);
  });

  it("is waited for and then aborted when the sender closes", async () => {
    await start([blackHole]);
    const accepted = test.sender.deliverMetadata(body);
    await expect.poll(() => stub.requests).toHaveLength(1);
    await test.sender.close(Date.now() + 20);
    expect(await accepted).toBe(false);
  });
});
