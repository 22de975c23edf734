import { afterEach, describe, expect, it } from "vitest";
import type { ParcelOutcome } from "../../src/deliver/outcome.ts";
import type { Parcel } from "../../src/wire/parcel.ts";
import { makeParcel, makeParcels, numbersIn } from "./parcels.ts";
import { SenderUnderTest } from "./senderUnderTest.ts";
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

function deliver(parcels: readonly Parcel[], forMs: number, lane = 0) {
  return test.deliver(parcels, Date.now() + forMs, lane);
}

async function kindsOf(outcomes: ReturnType<typeof deliver>): Promise<string[]> {
  return (await outcomes).map(({ kind }) => kind);
}

/** The numbers of the parcels in each request. */
function received(): number[][] {
  return stub.requests.map(({ body }) => numbersIn(body));
}

describe("parcels of many calls", () => {
  it("gather while a request is in flight, and share the next", async () => {
    const held = new HeldAnswers();
    await start([held.act]);
    const parcels = makeParcels(6);
    const calls = [deliver(parcels.slice(0, 2), LONG_MS)];
    await expect.poll(() => held.count).toBe(1);
    for (const parcel of parcels.slice(2)) calls.push(deliver([parcel], LONG_MS));
    held.answerAll(204);
    await expect.poll(() => held.count).toBe(1);
    held.answerAll(204);
    expect((await Promise.all(calls)).flat()).toEqual(Array(6).fill({ kind: "delivered" }));
    expect(received()).toEqual([
      [1, 2],
      [3, 4, 5, 6],
    ]);
    expect(test.settled.of(parcels)).toEqual(Array(6).fill("delivered"));
    expect(test.attempts).toEqual(["delivered", "delivered"]);
  });

  it("can be none, which is answered after the call", async () => {
    await start([OK]);
    let answered = false;
    test.sender.deliver(0, [], null, Date.now(), () => {
      answered = true;
    });
    expect(answered).toBe(false);
    await expect.poll(() => answered).toBe(true);
  });

  it("wait for company, and are sent in every lane when the sender is flushed", async () => {
    await start([OK], { delivery: { lanes: 3, batchSendDeadlineMs: LONG_MS } });
    const parcels = makeParcels(4);
    const calls = [0, 1, 2].map((lane) => kindsOf(deliver(parcels.slice(lane, lane + 1), LONG_MS, lane)));
    calls.push(kindsOf(deliver(parcels.slice(3), LONG_MS, 1)));
    test.sender.flush();
    await Promise.all(calls);
    expect(received().sort()).toEqual([[1], [2, 4], [3]]);
    expect(test.settled.of(parcels)).toEqual(Array(4).fill("delivered"));
  });

  it("have their order within a lane, whatever the upstream answers", async () => {
    const answers = [204, 503, 204, 400, 429, 500].map((status) => answer(status));
    const script = Array.from({ length: 40 }, (_, index) => answers[index % answers.length] ?? OK);
    await start([...script, OK], { delivery: { maxSamplesPerSend: 40 } });
    const parcels = Array.from({ length: 60 }, (_, index) => makeParcel(index + 1));
    const calls = parcels.map((parcel) => deliver([parcel], LONG_MS));
    const outcomes = (await Promise.all(calls)).flat();

    const stored = stub.requests.flatMap(({ body }, index) =>
      test.attempts[index] === "delivered" ? numbersIn(body) : [],
    );
    const delivered = parcels.filter((_, index) => outcomes[index]?.kind === "delivered");
    expect(stored).toEqual(delivered.map(({ series }) => series));
    expect(outcomes.filter(({ kind }) => kind === "undelivered")).toEqual([]);
    expect(test.settled.total("delivered").parcels).toBe(delivered.length);
    expect(test.settled.total("refused").parcels).toBe(60 - delivered.length);
  });
});

describe("a batch that is refused", () => {
  it("is sent again in halves: the sender of the bad one hears of it, all others are delivered once", async () => {
    const bad = 7;
    const first = new HeldAnswers();
    const judge: Act = (response, socket) => {
      const isBad = received().slice(-1).flat().includes(bad);
      (isBad ? answer(400, "out of order") : OK)(response, socket);
    };
    await start([first.act, judge]);
    const opener = deliver([makeParcel(500)], LONG_MS);
    await expect.poll(() => first.count).toBe(1);
    const parcels = makeParcels(10);
    const calls = parcels.map((parcel) => deliver([parcel], LONG_MS));
    first.answerAll(204);

    const outcomes = (await Promise.all(calls)).flat();
    expect(outcomes).toEqual(
      parcels.map(({ series }) =>
        series === bad ? { kind: "refused", status: 400, reply: "out of order" } : { kind: "delivered" },
      ),
    );
    await opener;
    expect(received().slice(1)).toEqual([
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
      [1, 2, 3, 4, 5],
      [6, 7, 8, 9, 10],
      [6, 7, 8],
      [6, 7],
      [6],
      [7],
      [8],
      [9, 10],
    ]);
    expect(test.settled.of(parcels)).toEqual(
      parcels.map(({ series }) => (series === bad ? "refused" : "delivered")),
    );
    expect(test.log("error").map(({ msg }) => msg)).toEqual([
      expect.stringContaining("400 for a batch of 7 series"),
    ]);
  });
});

describe("lanes", () => {
  it("do not wait for each other, and have one connection each", async () => {
    const held = new HeldAnswers();
    await start([held.act], { delivery: { lanes: 4 } });
    const parcels = makeParcels(8);
    const calls = parcels.map((parcel, index) => kindsOf(deliver([parcel], LONG_MS, index % 4)));
    await expect.poll(() => held.count).toBe(4);
    expect(stub.openConnections).toBe(4);
    held.answerAll(204);
    await expect.poll(() => held.count).toBe(4);
    held.answerAll(204);
    expect((await Promise.all(calls)).flat()).toEqual(Array(8).fill("delivered"));
    expect(received().slice(4).sort()).toEqual([[5], [6], [7], [8]]);
  });

  it("leave a connection for metadata", async () => {
    const held = new HeldAnswers();
    await start([held.act, held.act, OK], { delivery: { lanes: 2 } });
    const calls = [0, 1].map((lane) => deliver([makeParcel()], LONG_MS, lane));
    await expect.poll(() => held.count).toBe(2);
    expect(await test.sender.deliverMetadata(new Uint8Array([1]), null)).toBe(true);
    held.answerAll(204);
    await Promise.all(calls);
  });
});

describe("a Retry-After", () => {
  it("speaks for the upstream: until it is over nothing else is tried, in no lane", async () => {
    await start([BACK_LATER, OK], { delivery: { lanes: 2 } });
    expect(await kindsOf(deliver(makeParcels(1), 1_000))).toEqual(["undelivered"]);
    for (const lane of [0, 1]) {
      const [outcome] = await deliver(makeParcels(1), 1_000, lane);
      if (outcome?.kind !== "undelivered") throw new Error("undelivered was wanted");
      expect(outcome.cause).toBe("503");
      expect(outcome.retryAfterMs).toBeGreaterThan(20_000);
    }
    expect(stub.requests).toHaveLength(1);
  });

  it("that is over lets all through", async () => {
    await start([answer(429, "", { "Retry-After": "1" }), OK], { delivery: { lanes: 5 } });
    const parcels = makeParcels(5);
    const calls = parcels.map((parcel, lane) => kindsOf(deliver([parcel], LONG_MS, lane)));
    expect((await Promise.all(calls)).flat()).toEqual(Array(5).fill("delivered"));
    expect(test.settled.of(parcels)).toEqual(Array(5).fill("delivered"));
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
      const first = deliver(parcels.slice(0, 1), 50);
      const second = deliver(parcels.slice(1), 50);
      expect([await first, await second].flat()).toMatchObject([
        { kind: "undelivered", cause: "no answer to attempt 1 by the deadline" },
        { kind: "undelivered", cause: "no attempt could start before the deadline" },
      ]);
      expect(test.settled.of(parcels)).toEqual(["not", "refused"]);

      await expect.poll(() => held.count).toBe(1);
      held.answerAll(status);
      await expect.poll(() => test.settled.of(parcels)).toEqual([settled, "refused"]);
      expect(test.attempts).toHaveLength(1);
      expect(stub.requests).toHaveLength(1);
    },
  );

  it("does not end an attempt before its own timeout, which does", async () => {
    await start([blackHole], { delivery: { remoteTimeoutMs: 150 } });
    const parcels = makeParcels(1);
    expect(await kindsOf(deliver(parcels, 20))).toEqual(["undelivered"]);
    expect(test.attempts).toEqual([]);
    await expect.poll(() => test.settled.of(parcels)).toEqual(["refused"]);
    expect(test.attempts).toEqual(["retry"]);
    expect(test.durationsMs[0]).toBeGreaterThanOrEqual(140);
  });

  it("has what is sent again wait behind the attempt that is still under way", async () => {
    const held = new HeldAnswers();
    await start([held.act, OK]);
    expect(await kindsOf(deliver([makeParcel(1)], 20))).toEqual(["undelivered"]);
    const again = kindsOf(deliver([makeParcel(1)], LONG_MS));
    await expect.poll(() => held.count).toBe(1);
    expect(stub.requests).toHaveLength(1);
    held.answerAll(204);
    expect(await again).toEqual(["delivered"]);
    expect(received()).toEqual([[1], [1]]);
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
    expect(await deliver([makeParcel()], LONG_MS)).toMatchObject([
      { kind: "undelivered", cause: "breaker open, last failure: 500 (full)" },
    ]);
    expect(test.settled.total("refused")).toEqual({ parcels: 1, samples: 512 });
  }

  it("opens after failures in a row; then nothing is sent and the answer is there at once", async () => {
    await open([OK], { breaker: { consecutiveFailures: 3, resetAfterMs: 20_000 } });
    const startedAt = Date.now();
    const [outcome] = await deliver(makeParcels(1), LONG_MS);
    expect(outcome).toMatchObject({ kind: "undelivered", cause: "breaker open, last failure: 500" });
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

  it("gives back what waits in any lane when it opens, for company or for another attempt", async () => {
    const held = new HeldAnswers();
    await start([answer(500), held.act], {
      delivery: {
        lanes: 3,
        minBackoffMs: LONG_MS / 2,
        maxBackoffMs: LONG_MS / 2,
        batchSendDeadlineMs: LONG_MS,
      },
      breaker: { consecutiveFailures: 2, resetAfterMs: 20_000 },
      random: () => 0.9,
    });
    const parcels = makeParcels(3);
    const early = deliver(parcels.slice(0, 1), LONG_MS, 0);
    test.sender.flush();
    await expect.poll(() => test.attempts).toHaveLength(1);
    const company = deliver(parcels.slice(1, 2), LONG_MS, 1);
    const last = deliver([makeParcel()], LONG_MS, 2);
    await expect.poll(() => held.count).toBe(1);
    const behind = deliver(parcels.slice(2), LONG_MS, 2);
    held.answerAll(500);
    for (const outcomes of [await early, await company, await last, await behind]) {
      expect(outcomes).toMatchObject([{ kind: "undelivered", cause: "breaker open, last failure: 500" }]);
    }
    expect(test.settled.of(parcels)).toEqual(Array(3).fill("refused"));
    expect(stub.requests).toHaveLength(2);
  });

  it("lets one batch through when half-open; other lanes wait and follow", async () => {
    const held = new HeldAnswers();
    await open([held.act, OK], { delivery: { lanes: 4 } });
    await expect.poll(() => test.breakerStates).toEqual(["open", "half_open"]);
    const parcels = makeParcels(12);
    const calls = parcels.map((parcel, index) => kindsOf(deliver([parcel], LONG_MS, index % 4)));
    await expect.poll(() => held.count).toBe(1);
    expect(stub.requests).toHaveLength(4);

    held.answerAll(204);
    expect((await Promise.all(calls)).flat()).toEqual(Array(12).fill("delivered"));
    expect(test.settled.of(parcels)).toEqual(Array(12).fill("delivered"));
    expect(received().slice(3)[0]).toEqual([1]);
    expect(received().slice(4).sort()).toEqual([
      [2, 6, 10],
      [3, 7, 11],
      [4, 8, 12],
      [5, 9],
    ]);
    expect(test.breakerStates).toEqual(["open", "half_open", "closed"]);
    expect(test.log("info").map(({ msg }) => msg)).toContain(
      "upstream vmagent-2: breaker closed, batches are sent again",
    );
  });

  it("answers those who wait while half-open by their deadline", async () => {
    await open([blackHole], { delivery: { lanes: 2 } });
    await expect.poll(() => test.breakerStates).toEqual(["open", "half_open"]);
    const parcels = makeParcels(2);
    const [trial, waiting] = parcels.map((parcel, lane) => kindsOf(deliver([parcel], 60, lane)));
    expect(await waiting).toEqual(["undelivered"]);
    expect(await trial).toEqual(["undelivered"]);
    expect(test.settled.of(parcels)).toEqual(["not", "refused"]);
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

  it("closes when the one batch is refused, for that is an answer", async () => {
    await open([answer(400), OK]);
    await expect.poll(() => test.breakerStates).toEqual(["open", "half_open"]);
    expect(await kindsOf(deliver(makeParcels(2), LONG_MS))).toEqual(["delivered", "delivered"]);
    expect(test.breakerStates).toEqual(["open", "half_open", "closed"]);
    expect(received().slice(3)).toEqual([[1, 2], [1], [2]]);
  });

  it("takes no notice of attempts that began before it opened and fail after", async () => {
    const held = new HeldAnswers();
    const trial = new HeldAnswers();
    await start([held.act, held.act, answer(500), answer(500), answer(500), trial.act, OK], {
      breaker,
      delivery: { lanes: 3 },
    });
    const early = [deliver(makeParcels(1), LONG_MS, 0), deliver(makeParcels(1), LONG_MS, 1)];
    await expect.poll(() => held.count).toBe(2);
    await deliver(makeParcels(1), LONG_MS, 2);
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

describe("tenants of an upstream that is told them", () => {
  const TENANT = "x-scope-orgid";
  const WORDS = "user=bad: series {customer=Jane} over limit";

  /** Answers to the tenant "bad" with `act`, and takes what any other sends. */
  function judge(act: Act): Act {
    return (response, socket) => {
      const isBad = stub.requests.at(-1)?.headers[TENANT] === "bad";
      (isBad ? act : OK)(response, socket);
    };
  }

  function deliverOf(tenant: string | null, forMs = 500): Promise<readonly ParcelOutcome[]> {
    return test.deliver(makeParcels(1), Date.now() + forMs, 0, tenant);
  }

  const rows = [
    { name: "429 with Retry-After", act: answer(429, WORDS, { "Retry-After": "8" }) },
    { name: "429", act: answer(429, WORDS) },
    { name: "503", act: answer(503, WORDS) },
    { name: "503 with Retry-After", act: answer(503, WORDS, { "Retry-After": "8" }) },
    { name: "a redirect", act: answer(302, "", { Location: "/over-limit" }) },
  ];
  it.each(rows)(
    "are all delivered at once while one meets $name, which no other hears of",
    async ({ act }) => {
      await start([judge(act)], {
        breaker: { consecutiveFailures: 3, resetAfterMs: LONG_MS },
        delivery: { tenantHeader: TENANT },
      });
      for (let round = 0; round < 4; round += 1) {
        const bad = deliverOf("bad", 100);
        const others = [
          deliverOf("good", LONG_MS),
          deliverOf(null, LONG_MS),
          deliverOf(`new ${round}`, LONG_MS),
        ];
        expect((await Promise.all(others)).flat()).toEqual(Array(3).fill({ kind: "delivered" }));
        expect(await bad).toMatchObject([{ kind: "undelivered" }]);
      }
      expect(test.breakerStates).toEqual([]);
    },
  );

  it("have their own Retry-After: until it is over nothing of one is tried, in no lane", async () => {
    await start([judge(answer(429, WORDS, { "Retry-After": "30" }))], {
      delivery: { tenantHeader: TENANT, lanes: 2 },
    });
    expect(await deliverOf("bad")).toMatchObject([{ cause: `429 (${WORDS})` }]);
    for (const lane of [0, 1]) {
      expect(await test.deliver(makeParcels(1), Date.now() + 500, lane, "bad")).toMatchObject([
        { cause: "429" },
      ]);
    }
    expect(stub.requests).toHaveLength(1);
  });

  it("all wait when the upstream asks for it in an answer to a request that names none", async () => {
    await start([answer(429, WORDS, { "Retry-After": "30" }), OK], { delivery: { tenantHeader: TENANT } });
    await deliverOf(null);
    expect(await deliverOf("good")).toMatchObject([{ kind: "undelivered", cause: "429" }]);
    expect(stub.requests).toHaveLength(1);
  });

  it("all see the breaker open when it does not answer, whoever finds out", async () => {
    await start([blackHole], {
      breaker: { consecutiveFailures: 2, resetAfterMs: LONG_MS },
      delivery: { tenantHeader: TENANT, remoteTimeoutMs: 50 },
    });
    await Promise.all([deliverOf("a", LONG_MS), deliverOf("b", LONG_MS)]);
    expect(test.breakerStates).toEqual(["open"]);
    expect(await deliverOf("good")).toMatchObject([
      { cause: "breaker open, last failure: no answer within 50 ms" },
    ]);
  });

  it("hear the status only of what the upstream answered to a request that names none", async () => {
    await start([answer(500, WORDS)], {
      breaker: { consecutiveFailures: 1, resetAfterMs: LONG_MS },
      delivery: { tenantHeader: TENANT },
    });
    expect(await deliverOf(null)).toMatchObject([{ cause: `breaker open, last failure: 500 (${WORDS})` }]);
    for (const tenant of [null, "other"]) {
      expect(await deliverOf(tenant)).toMatchObject([{ cause: "breaker open, last failure: 500" }]);
    }
    expect(test.logText()).toContain(WORDS);
  });

  it("have its half-open breaker closed by any answer", async () => {
    await start([answer(500), judge(answer(503))], {
      breaker: { consecutiveFailures: 1, resetAfterMs: 50 },
      delivery: { tenantHeader: TENANT },
    });
    await deliverOf(null);
    await expect.poll(() => test.breakerStates).toEqual(["open", "half_open"]);
    await deliverOf("bad", 50);
    expect(test.breakerStates).toEqual(["open", "half_open", "closed"]);
  });

  it("are answered, settled and gone when the sender closes while they wait", async () => {
    const held = new HeldAnswers();
    await start([held.act], { delivery: { tenantHeader: TENANT } });
    const parcels = makeParcels(40);
    const calls = parcels.map((parcel, index) =>
      test.deliver([parcel], Date.now() + LONG_MS, 0, `t${index}`),
    );
    await expect.poll(() => held.count).toBe(9);
    const closed = test.sender.close(Date.now() + LONG_MS);
    held.answerAll(204);
    await closed;
    const outcomes = (await Promise.all(calls)).flat().map(({ kind }) => kind);
    expect(outcomes).toEqual(parcels.map((_, index) => (index < 9 ? "delivered" : "undelivered")));
    expect(test.settled.of(parcels)).toEqual(
      parcels.map((_, index) => (index < 9 ? "delivered" : "refused")),
    );
    expect(stub.requests).toHaveLength(9);
  });
});

describe("tenants of an upstream that is not told them", () => {
  it("share its Retry-After and its breaker", async () => {
    await start([BACK_LATER, OK], {
      breaker: { consecutiveFailures: 1, resetAfterMs: LONG_MS },
    });
    await test.deliver(makeParcels(1), Date.now() + 500, 0, "a");
    expect(test.breakerStates).toEqual(["open"]);
    expect(await test.deliver(makeParcels(1), Date.now() + 500, 0, "b")).toMatchObject([
      { cause: "breaker open, last failure: 503" },
    ]);
    expect(stub.requests).toHaveLength(1);
  });
});

describe("closing a sender", () => {
  it("gives back at once what waits for another attempt, and what waits behind it", async () => {
    await start([BACK_LATER]);
    const parcels = makeParcels(3);
    const first = deliver(parcels.slice(0, 2), LONG_MS);
    await expect.poll(() => test.attempts).toHaveLength(1);
    const second = deliver(parcels.slice(2), LONG_MS);
    await test.sender.close(Date.now() + LONG_MS);
    expect(test.settled.of(parcels)).toEqual(["refused", "refused", "refused"]);
    expect([await first, await second].flat()).toMatchObject(
      parcels.map(() => ({ kind: "undelivered", cause: "the gateway is shutting down" })),
    );
  });

  it("gives back at once what waits for company", async () => {
    await start([OK], { delivery: { batchSendDeadlineMs: LONG_MS } });
    const kinds = kindsOf(deliver(makeParcels(2), LONG_MS));
    await test.sender.close(Date.now() + LONG_MS);
    expect(await kinds).toEqual(["undelivered", "undelivered"]);
    expect(stub.requests).toEqual([]);
  });

  it("waits for the attempt under way, and begins no other", async () => {
    const held = new HeldAnswers();
    await start([held.act]);
    const parcels = makeParcels(2);
    const [first, second] = parcels.map((parcel) => kindsOf(deliver([parcel], LONG_MS)));
    await expect.poll(() => held.count).toBe(1);
    const closed = test.sender.close(Date.now() + LONG_MS);
    held.answerAll(204);
    await closed;
    expect(test.settled.of(parcels)).toEqual(["delivered", "refused"]);
    expect([await first, await second].flat()).toEqual(["delivered", "undelivered"]);
    expect(stub.requests).toHaveLength(1);
  });

  it("waits for the attempts of all lanes", async () => {
    const [first, second] = [new HeldAnswers(), new HeldAnswers()];
    await start([first.act, second.act], { delivery: { lanes: 2 } });
    const calls = [0, 1].map((lane) => kindsOf(deliver([makeParcel()], LONG_MS, lane)));
    await expect.poll(() => first.count + second.count).toBe(2);
    const closed = test.sender.close(Date.now() + LONG_MS);
    first.answerAll(204);
    await Promise.race(calls);
    second.answerAll(204);
    await closed;
    expect((await Promise.all(calls)).flat()).toEqual(["delivered", "delivered"]);
  });

  it("does not send the halves of a batch that is refused meanwhile", async () => {
    const held = new HeldAnswers();
    await start([held.act, OK]);
    const parcels = makeParcels(2);
    const kinds = kindsOf(deliver(parcels, LONG_MS));
    await expect.poll(() => held.count).toBe(1);
    const closed = test.sender.close(Date.now() + LONG_MS);
    held.answerAll(400);
    await closed;
    expect(await kinds).toEqual(["undelivered", "undelivered"]);
    expect(test.settled.of(parcels)).toEqual(["refused", "refused"]);
    expect(stub.requests).toHaveLength(1);
  });

  it("aborts at its deadline what is under way, answered already or not", async () => {
    await start([blackHole], { delivery: { lanes: 2 } });
    const parcels = makeParcels(3);
    expect(await kindsOf(deliver(parcels.slice(0, 1), 20))).toEqual(["undelivered"]);
    const kinds = kindsOf(deliver(parcels.slice(1), LONG_MS, 1));
    await expect.poll(() => stub.requests).toHaveLength(2);
    const startedAt = Date.now();
    await test.sender.close(startedAt + 50);
    expect(Date.now() - startedAt).toBeLessThan(5_000);
    expect(test.settled.of(parcels)).toEqual(["refused", "refused", "refused"]);
    expect(await kinds).toEqual(["undelivered", "undelivered"]);
    expect(test.attempts).toEqual(["retry", "retry"]);
    await expect.poll(() => stub.openConnections).toBe(0);
  });

  it("ends half-open with its one batch under way and other lanes waiting", async () => {
    await start([answer(500), blackHole], {
      breaker: { consecutiveFailures: 1, resetAfterMs: 30 },
      delivery: { lanes: 3 },
    });
    await deliver(makeParcels(1), LONG_MS);
    await expect.poll(() => test.breakerStates).toEqual(["open", "half_open"]);
    const parcels = makeParcels(3);
    const calls = parcels.map((parcel, lane) => kindsOf(deliver([parcel], LONG_MS, lane)));
    await expect.poll(() => stub.requests).toHaveLength(2);
    await test.sender.close(Date.now() + 50);
    expect((await Promise.all(calls)).flat()).toEqual(["undelivered", "undelivered", "undelivered"]);
    expect(test.settled.total("refused").parcels).toBe(4);
    expect(test.breakerStates).toEqual(["open", "half_open"]);
  });

  it("closes idle connections, and those still sending a body that is not needed", async () => {
    await start([OK, (response) => response.writeHead(200).write("x")]);
    for (let call = 0; call < 2; call += 1) await deliver(makeParcels(1), LONG_MS);
    await test.sender.close(Date.now() + LONG_MS);
    await expect.poll(() => stub.openConnections).toBe(0);
  });

  it("leaves a sender that answers at once, however often it is closed", async () => {
    await start([OK]);
    await Promise.all([test.sender.close(Date.now()), test.sender.close(Date.now())]);
    const parcels = makeParcels(2);
    expect(await kindsOf(deliver(parcels, LONG_MS))).toEqual(["undelivered", "undelivered"]);
    expect(test.settled.of(parcels)).toEqual(["refused", "refused"]);
    expect(await test.sender.deliverMetadata(new Uint8Array(8), null)).toBe(false);
    expect(stub.requests).toEqual([]);
  });
});

describe("metadata", () => {
  const body = new Uint8Array([1, 2, 3]);

  it("is sent as any other request, and reported by the answer alone", async () => {
    await start([OK]);
    expect(await test.sender.deliverMetadata(body, null)).toBe(true);
    expect(stub.requests.map((request) => [...request.body])).toEqual([[1, 2, 3]]);
    expect(test.attempts).toEqual([]);
    expect(test.settled.total("delivered").parcels).toBe(0);
  });

  it("is sent once, whatever comes of it, and the breaker takes no notice", async () => {
    await start([answer(500), answer(400), blackHole, OK], {
      breaker: { consecutiveFailures: 1, resetAfterMs: LONG_MS },
      delivery: { remoteTimeoutMs: 50 },
    });
    for (let round = 0; round < 3; round += 1)
      expect(await test.sender.deliverMetadata(body, null)).toBe(false);
    expect(test.breakerStates).toEqual([]);
    expect(await test.sender.deliverMetadata(body, null)).toBe(true);
    expect(stub.requests).toHaveLength(4);
  });

  it("goes one after another, and the newest is lost when too much waits", async () => {
    const held = new HeldAnswers();
    await start([held.act, OK]);
    const taken = Array.from({ length: 64 }, () => test.sender.deliverMetadata(body, null));
    expect(await test.sender.deliverMetadata(body, null)).toBe(false);
    await expect.poll(() => held.count).toBe(1);
    expect(stub.requests).toHaveLength(1);
    held.answerAll(204);
    expect(await Promise.all(taken)).toEqual(Array<boolean>(64).fill(true));
    expect(stub.requests).toHaveLength(64);
    expect(await test.sender.deliverMetadata(body, null)).toBe(true);
  });

  it("is lost while the breaker is open", async () => {
    await start([answer(500), OK], { breaker: { consecutiveFailures: 1, resetAfterMs: LONG_MS } });
    await deliver(makeParcels(1), LONG_MS);
    expect(await test.sender.deliverMetadata(body, null)).toBe(false);
    expect(stub.requests).toHaveLength(1);
  });

  it("is waited for and then aborted when the sender closes", async () => {
    await start([blackHole]);
    const accepted = test.sender.deliverMetadata(body, null);
    await expect.poll(() => stub.requests).toHaveLength(1);
    await test.sender.close(Date.now() + 20);
    expect(await accepted).toBe(false);
  });
});
