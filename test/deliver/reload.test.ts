/** A sender whose options change, that is retired or taken back, while it works. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DeliveryOptions } from "../../src/deliver/options.ts";
import type { ParcelOutcome } from "../../src/deliver/outcome.ts";
import type { Retirement } from "../../src/deliver/sender.ts";
import { diskFiles } from "../../src/deliver/spool/diskFiles.ts";
import { SpoolStore } from "../../src/deliver/spool/spoolStore.ts";
import type { UpstreamSpool } from "../../src/deliver/spool/upstreamSpool.ts";
import { MemoryBudget } from "../../src/memoryBudget.ts";
import type { Parcel } from "../../src/wire/parcel.ts";
import { Random } from "../fuzz/random.ts";
import { collectGarbage } from "./garbage.ts";
import { makeParcel, makeParcels, numbersIn } from "./parcels.ts";
import { SenderUnderTest } from "./senderUnderTest.ts";
import type { Settings } from "./senderUnderTest.ts";
import { answer, blackHole, HeldAnswers, StubUpstream } from "./stubUpstream.ts";
import type { Act } from "./stubUpstream.ts";

const OK = answer(204);
const DOWN = answer(500, "away");
const LONG_MS = 60_000;
const MIB = 1024 * 1024;
const SPOOL_AFTER_MS = 100;
const SPOOLS = { onOutage: "spool", spoolAfterMs: SPOOL_AFTER_MS } as const;

let folder: string;
let stubs: StubUpstream[];
let store: SpoolStore | null;
let test: SenderUnderTest;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reload-"));
  stubs = [];
  store = null;
});
afterEach(async () => {
  await test.sender.close(Date.now());
  await store?.close();
  for (const stub of stubs) await stub.close();
  await rm(folder, { recursive: true });
});

async function upstream(...script: Act[]): Promise<StubUpstream> {
  const stub = await StubUpstream.start(script);
  stubs.push(stub);
  return stub;
}

function urlOf({ port }: StubUpstream): string {
  return `http://127.0.0.1:${port}/`;
}

/** A sender to an upstream that acts so, with a spool if it spools. */
async function start(script: readonly Act[], settings: Settings = {}): Promise<StubUpstream> {
  const stub = await upstream(...script);
  const spool = settings.delivery?.onOutage === "spool" ? { spool: await openSpool() } : {};
  test = new SenderUnderTest(urlOf(stub), { ...settings, ...spool });
  test.sender.resume();
  return stub;
}

async function openSpool(): Promise<UpstreamSpool> {
  const tools = { files: diskFiles, now: Date.now, random: Math.random, log: pino({ level: "silent" }) };
  const limits = { maxBytes: 64 * MIB, maxBytesPerUpstream: 64 * MIB };
  store = await SpoolStore.open({ path: folder, ...limits, whenFull: "refuse", orphans: "keep" }, tools);
  return store.upstream("r", "vmagent-2", { dropped: () => undefined, damaged: () => undefined });
}

function change(settings: Parameters<SenderUnderTest["prepare"]>[0], spool?: UpstreamSpool): void {
  test.prepare(settings).apply(spool);
}

function deliver(parcels: readonly Parcel[], lane = 0, forMs = LONG_MS): Promise<readonly ParcelOutcome[]> {
  return test.deliver(parcels, Date.now() + forMs, lane);
}

async function kindsOf(...calls: readonly ReturnType<typeof deliver>[]): Promise<string[]> {
  return (await Promise.all(calls)).flat().map(({ kind }) => kind);
}

function received({ requests }: StubUpstream): number[] {
  return requests.flatMap(({ body }) => numbersIn(body));
}

function downWhile(isDown: () => boolean): Act {
  return (response, socket) => {
    (isDown() ? DOWN : OK)(response, socket);
  };
}

function activeTimers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
}

async function segments(): Promise<string[]> {
  const files = await readdir(folder, { recursive: true });
  return files.filter((file) => file.endsWith(".segment"));
}

describe("an upstream that gets another url", () => {
  it("has what is under way end where it began, then its old connections are closed", async () => {
    const held = new HeldAnswers();
    const old = await start([held.act]);
    const next = await upstream(OK);
    const parcels = makeParcels(2);
    const first = kindsOf(deliver(parcels.slice(0, 1)));
    await expect.poll(() => held.count).toBe(1);
    const second = kindsOf(deliver(parcels.slice(1)));
    change({ upstream: { url: new URL(urlOf(next)) } });
    expect(old.openConnections).toBe(1);
    held.answerAll(204);
    expect([await first, await second].flat()).toEqual(["delivered", "delivered"]);
    expect([received(old), received(next)]).toEqual([[1], [2]]);
    await expect.poll(() => old.openConnections).toBe(0);
    expect(test.settled.of(parcels)).toEqual(["delivered", "delivered"]);
  });

  it("has a request sent again at the old one whose connection was closed for being idle", async () => {
    const used = new Set<Socket>();
    const held: Socket[] = [];
    const old = await start([
      (response, socket) => {
        if (used.has(socket)) held.push(socket);
        else OK(response, socket);
        used.add(socket);
      },
    ]);
    let call = kindsOf(deliver([makeParcel(1)]));
    // Now and then a request goes out over a new connection, before the one before has been read to its end.
    for (let sent = 1; ; sent += 1) {
      await expect.poll(() => test.settled.total("delivered").parcels + held.length).toBe(sent);
      if (held.length > 0) break;
      call = kindsOf(deliver([makeParcel(1)]));
    }
    const before = old.requests.length;
    change({ upstream: { url: new URL("http://127.0.0.1:1/") } });
    held[0]?.end();
    expect(await call).toEqual(["delivered"]);
    expect(old.requests).toHaveLength(before + 1);
    expect(test.attempts.filter((end) => end !== "delivered")).toEqual([]);
    await expect.poll(() => old.openConnections).toBe(0);
  });

  it("gets there what failed at the old one", async () => {
    const held = new HeldAnswers();
    await start([held.act]);
    const next = await upstream(OK);
    const call = kindsOf(deliver([makeParcel(1)]));
    await expect.poll(() => held.count).toBe(1);
    change({ upstream: { url: new URL(urlOf(next)) } });
    held.answerAll(503);
    expect(await call).toEqual(["delivered"]);
    expect(received(next)).toEqual([1]);
  });

  it("has its breaker stay open, and the trial go to the new url", async () => {
    const breaker = { consecutiveFailures: 1, resetAfterMs: 200 };
    const old = await start([DOWN], { breaker });
    const next = await upstream(OK);
    await deliver([makeParcel(1)]);
    change({ upstream: { url: new URL(urlOf(next)) }, breaker: { ...breaker, resetAfterMs: LONG_MS } });
    expect(await deliver([makeParcel(2)])).toMatchObject([
      { kind: "undelivered", cause: "breaker open, last failure: 500" },
    ]);
    await expect.poll(() => test.breakerStates).toEqual(["open", "half_open"]);
    expect(await kindsOf(deliver([makeParcel(3)]))).toEqual(["delivered"]);
    expect([received(old), received(next)]).toEqual([[1], [3]]);
  });

  it("has the pause kept that the upstream asked for", async () => {
    await start([answer(429, "", { "Retry-After": "30" })]);
    const next = await upstream(OK);
    await deliver([makeParcel(1)], 0, 500);
    change({ upstream: { url: new URL(urlOf(next)) } });
    expect(await deliver([makeParcel(2)], 0, 500)).toMatchObject([{ kind: "undelivered", cause: "429" }]);
    expect(next.requests).toEqual([]);
  });

  it("however often, leaves the connections of the last alone", async () => {
    const stub = await start([OK]);
    for (let round = 0; round < 300; round += 1) {
      change({ upstream: { url: new URL(`?round=${round}`, urlOf(stub)) } });
      if (round % 10 === 0) expect(await kindsOf(deliver([makeParcel(1)]))).toEqual(["delivered"]);
    }
    await expect.poll(() => stub.openConnections).toBe(0);
    expect(await kindsOf(deliver([makeParcel(1)]))).toEqual(["delivered"]);
    expect(stub.requests.at(-1)?.path).toBe("/?round=299");
    expect(stub.openConnections).toBe(1);
  });

  it("ends with its sender, while something is under way at both", async () => {
    const old = await start([blackHole]);
    const next = await upstream(blackHole);
    const first = deliver([makeParcel(1)]);
    await expect.poll(() => old.requests.length).toBe(1);
    change({ upstream: { url: new URL(urlOf(next)) }, delivery: { lanes: 2 } });
    const second = deliver([makeParcel(2)], 1);
    await expect.poll(() => next.requests.length).toBe(1);
    await test.sender.close(Date.now() + 20);
    expect(await kindsOf(first, second)).toEqual(["undelivered", "undelivered"]);
    await expect.poll(() => old.openConnections + next.openConnections).toBe(0);
  });
});

describe("a change", () => {
  it("of nothing that requests say keeps the connections", async () => {
    const ports = new Set<number | undefined>();
    await start([
      (response, socket) => {
        ports.add(socket.remotePort);
        response.writeHead(204).end();
      },
    ]);
    for (let round = 0; round < 20; round += 1) {
      await deliver([makeParcel(1)]);
      change({ delivery: { minBackoffMs: 5 + round, spoolAfterMs: 50_000 + round } });
    }
    expect(ports.size).toBeLessThan(3); // a request can go out before the end of the answer to the one before was read
  });

  const rows: { name: string; settings: Settings; header: string; value: string }[] = [
    {
      name: "credentials",
      settings: { upstream: { auth: { kind: "basic", username: "u", password: "p" } } },
      header: "authorization",
      value: `Basic ${Buffer.from("u:p").toString("base64")}`,
    },
    { name: "headers", settings: { upstream: { headers: { "X-A": "b" } } }, header: "x-a", value: "b" },
    {
      name: "the tenant's header",
      settings: { delivery: { tenantHeader: "X-Tenant" } },
      header: "x-tenant",
      value: "t",
    },
  ];
  it.each(rows)("of $name is in the next request", async ({ settings, header, value }) => {
    const stub = await start([OK]);
    await test.deliver([makeParcel(1)], Date.now() + LONG_MS, 0, "t");
    change(settings);
    await test.deliver([makeParcel(2)], Date.now() + LONG_MS, 0, "t");
    expect(stub.requests.map(({ headers }) => headers[header])).toEqual([undefined, value]);
  });

  it("to a tls_config that cannot be used throws, and changes nothing", async () => {
    const stub = await start([OK]);
    const tls = { insecureSkipVerify: false, cert: "no certificate", key: "no key" };
    expect(() => test.prepare({ upstream: { url: new URL("https://127.0.0.1:1/"), tls } })).toThrow(
      "upstream vmagent-2: tls_config cannot be used",
    );
    expect(await kindsOf(deliver([makeParcel(1)]))).toEqual(["delivered"]);
    expect(stub.requests).toHaveLength(1);
  });

  it("that is discarded changes nothing", async () => {
    const stub = await start([OK]);
    test.prepare({ upstream: { url: new URL("http://127.0.0.1:1/") } }).discard();
    expect(await kindsOf(deliver([makeParcel(1)]))).toEqual(["delivered"]);
    expect(stub.requests).toHaveLength(1);
  });

  it("of remote_timeout holds for the next attempt", async () => {
    await start([blackHole, OK], { delivery: { remoteTimeoutMs: 100 } });
    const call = kindsOf(deliver([makeParcel(1)]));
    change({ delivery: { remoteTimeoutMs: LONG_MS } });
    expect(await call).toEqual(["delivered"]);
    expect(test.attempts).toEqual(["retry", "delivered"]);
  });

  it("of what is retried holds for the attempt that is under way", async () => {
    const held = new HeldAnswers();
    await start([held.act, OK]);
    const call = kindsOf(deliver([makeParcel(1)]));
    await expect.poll(() => held.count).toBe(1);
    change({ delivery: { retryOn: [404] } });
    held.answerAll(404);
    expect(await call).toEqual(["delivered"]);
  });

  it("of batch_send_deadline lets go what waits for company", async () => {
    await start([OK], { delivery: { batchSendDeadlineMs: LONG_MS } });
    const call = kindsOf(deliver([makeParcel(1)]));
    change({ delivery: { batchSendDeadlineMs: 0 } });
    expect(await call).toEqual(["delivered"]);
  });

  it("of max_samples_per_send holds for what waits", async () => {
    const held = new HeldAnswers();
    const stub = await start([held.act, OK]);
    const calls = [deliver([makeParcel(1)])];
    await expect.poll(() => held.count).toBe(1);
    for (const number of [2, 3, 4]) calls.push(deliver([makeParcel(number)]));
    change({ delivery: { maxSamplesPerSend: 5 } });
    held.answerAll(204);
    await Promise.all(calls);
    expect(stub.requests.map(({ body }) => numbersIn(body))).toEqual([[1], [2, 3], [4]]);
  });

  it("of the breaker holds for the next failure", async () => {
    await start([DOWN], { delivery: { minBackoffMs: LONG_MS, maxBackoffMs: LONG_MS }, random: () => 0.9 });
    await deliver([makeParcel(1)], 0, 500);
    change({ breaker: { consecutiveFailures: 2, resetAfterMs: LONG_MS } });
    await deliver([makeParcel(1)], 0, 500);
    expect(test.breakerStates).toEqual(["open"]);
  });
});

describe("a change of the number of lanes", () => {
  it("to fewer and to more has each lane go on in order with what it holds", async () => {
    const held = new HeldAnswers();
    const stub = await start([held.act, held.act, held.act, OK], { delivery: { lanes: 3 } });
    const calls = [0, 1, 2].map((lane) => deliver([makeParcel(10 * lane + 1)], lane));
    await expect.poll(() => held.count).toBe(3);
    calls.push(...[0, 1, 2].map((lane) => deliver([makeParcel(10 * lane + 2)], lane)));
    change({ delivery: { lanes: 1 } });
    calls.push(deliver([makeParcel(23)], 2)); // routed before
    change({ delivery: { lanes: 4 } });
    calls.push(...[2, 3].map((lane) => deliver([makeParcel(10 * lane + 4)], lane)));
    held.answerAll(204);
    expect(await kindsOf(...calls)).toEqual(Array(9).fill("delivered"));
    const ofLane2 = received(stub).filter((number) => Math.floor(number / 10) === 2);
    expect(ofLane2).toEqual([21, 22, 23, 24]);
    expect(received(stub).sort((a, b) => a - b)).toEqual([1, 2, 11, 12, 21, 22, 23, 24, 34]);
  });

  it("leaves what is on disk to the lanes of before, until it is sent", async () => {
    let isDown = true;
    const stub = await start([downWhile(() => isDown)], {
      delivery: { ...SPOOLS, lanes: 3 },
    });
    await Promise.all([0, 1, 2].map((lane) => deliver([makeParcel(10 * lane + 1)], lane)));
    change({ delivery: { ...SPOOLS, lanes: 1 } });
    await Promise.all([0, 2].map((lane) => deliver([makeParcel(10 * lane + 2)], lane)));
    stub.requests.length = 0;
    isDown = false;
    await expect.poll(() => test.settled.total("delivered").parcels).toBe(5);
    expect(received(stub).filter((number) => number > 20)).toEqual([21, 22]);
    await expect.poll(segments).toEqual([]);
  });
});

describe("a change of on_outage", () => {
  const rows = [
    { onOutage: "refuse", kind: "undelivered" },
    { onOutage: "drop", kind: "dropped" },
  ] as const;
  it.each(rows)("from spool to $onOutage sends what is on disk, and writes no more", async (row) => {
    let isDown = true;
    const breaker = { consecutiveFailures: 1, resetAfterMs: 300 };
    const stub = await start([downWhile(() => isDown)], {
      delivery: SPOOLS,
      breaker,
    });
    expect(await kindsOf(deliver([makeParcel(1)]), deliver([makeParcel(2)]))).toEqual(["spooled", "spooled"]);
    change({ delivery: { onOutage: row.onOutage, spoolAfterMs: SPOOL_AFTER_MS }, breaker });
    expect(await kindsOf(deliver([makeParcel(3)]))).toEqual([row.kind]);
    expect(test.settled.spooledSamples).toBe(3);
    stub.requests.length = 0;
    isDown = false;
    await expect.poll(() => test.settled.spooledSamples).toBe(0);
    expect(await kindsOf(deliver([makeParcel(4)]))).toEqual(["delivered"]);
    expect(received(stub)).toEqual([1, 2, 4]);
    await expect.poll(segments).toEqual([]);
  });

  it("from refuse to spool has what waits go to disk as it would have", async () => {
    const held = new HeldAnswers();
    const stub = await start([held.act, OK], { delivery: { onOutage: "refuse" } });
    const calls = [deliver([makeParcel(1)])];
    await expect.poll(() => held.count).toBe(1);
    calls.push(deliver([makeParcel(2)]));
    const prepared = test.prepare({ delivery: SPOOLS });
    expect(prepared.needsSpool).toBe(true);
    prepared.apply(await openSpool());
    expect(await kindsOf(...calls)).toEqual(["spooled", "spooled"]);
    expect(test.prepare({ delivery: SPOOLS }).needsSpool).toBe(false);
    held.answerAll(204);
    await expect.poll(() => test.settled.spooledSamples).toBe(0);
    expect(received(stub)).toEqual([1, 2]);
  });

  it("from refuse to spool sends first what an earlier process has left there", async () => {
    await start([DOWN], { delivery: { ...SPOOLS, lanes: 2 } });
    await Promise.all([0, 1].map((lane) => deliver([makeParcel(lane + 1)], lane)));
    await test.sender.close(Date.now());
    await store?.close();
    const held = new HeldAnswers();
    const stub = await start([held.act, OK], { delivery: { onOutage: "refuse" } });
    const first = deliver([makeParcel(3)]);
    await expect.poll(() => held.count).toBe(1);
    const second = deliver([makeParcel(4)]);
    change({ delivery: SPOOLS }, await openSpool());
    expect(await kindsOf(second)).toEqual(["spooled"]);
    held.answerAll(204);
    expect(await kindsOf(first)).toEqual(["delivered"]);
    await expect.poll(() => received(stub).length).toBe(4);
    expect(received(stub).filter((number) => number !== 2)).toEqual([3, 1, 4]);
    await expect.poll(segments).toEqual([]);
  });
});

describe("an upstream that retires", () => {
  it("ends at once when it holds nothing, with its connections", async () => {
    const stub = await start([OK]);
    await deliver([makeParcel(1)]);
    expect(test.sender.hasEnded).toBe(false);
    expect(await test.sender.retire()).toBe("drained");
    expect(test.sender.hasEnded).toBe(true);
    await expect.poll(() => stub.openConnections).toBe(0);
    expect(test.memory.heldBytes).toBe(0);
  });

  it("goes on until what it holds is delivered, which may come after it retired", async () => {
    const held = new HeldAnswers();
    const stub = await start([held.act, OK]);
    const calls = [deliver([makeParcel(1)])];
    await expect.poll(() => held.count).toBe(1);
    let how: Retirement | null = null;
    void test.sender.retire().then((ended) => (how = ended));
    calls.push(deliver([makeParcel(2)]));
    await new Promise(setImmediate);
    expect(how).toBe(null);
    held.answerAll(204);
    expect(await kindsOf(...calls)).toEqual(["delivered", "delivered"]);
    await expect.poll(() => how).toBe("drained");
    expect(received(stub)).toEqual([1, 2]);
  });

  it("waits for metadata that is under way", async () => {
    const held = new HeldAnswers();
    await start([held.act]);
    const accepted = test.sender.deliverMetadata(new Uint8Array([1]), null);
    await expect.poll(() => held.count).toBe(1);
    const retired = test.sender.retire();
    held.answerAll(204);
    expect([await accepted, await retired]).toEqual([true, "drained"]);
  });

  it("sends what is on disk first, however long its upstream is away", async () => {
    let isDown = true;
    const stub = await start([downWhile(() => isDown)], {
      delivery: SPOOLS,
    });
    await deliver([makeParcel(1)]);
    const retired = test.sender.retire();
    expect(await kindsOf(deliver([makeParcel(2)]))).toEqual(["spooled"]);
    stub.requests.length = 0;
    isDown = false;
    expect(await retired).toBe("drained");
    expect(received(stub)).toEqual([1, 2]);
    expect(test.settled.spooledSamples).toBe(0);
    await expect.poll(segments).toEqual([]);
  });

  it("with on_outage: refuse ends when its lanes are empty, as when the breaker opens", async () => {
    const held = new HeldAnswers();
    await start([held.act], { breaker: { consecutiveFailures: 1, resetAfterMs: LONG_MS } });
    const call = deliver([makeParcel(1)]);
    await expect.poll(() => held.count).toBe(1);
    const retired = test.sender.retire();
    held.answerAll(500);
    expect(await kindsOf(call)).toEqual(["undelivered"]);
    expect(await retired).toBe("drained");
  });

  it("has senders come again that come after its end", async () => {
    await start([OK]);
    await test.sender.retire();
    const parcels = makeParcels(2);
    expect(await deliver(parcels)).toEqual(
      Array(2).fill({ kind: "undelivered", cause: "it is not configured any more", retryAfterMs: 1_000 }),
    );
    expect(test.settled.of(parcels)).toEqual(["refused", "refused"]);
    expect(await test.sender.deliverMetadata(new Uint8Array([1]), null)).toBe(false);
    expect(() => test.prepare({})).toThrow("has ended");
  });

  it("goes on when it is taken back, with what it holds", async () => {
    let isDown = true;
    const stub = await start([downWhile(() => isDown)], {
      delivery: SPOOLS,
    });
    await deliver([makeParcel(1)]);
    const retired = test.sender.retire();
    change({ delivery: SPOOLS });
    expect(await retired).toBe("taken_back");
    stub.requests.length = 0;
    isDown = false;
    await expect.poll(() => test.settled.spooledSamples).toBe(0);
    expect(await kindsOf(deliver([makeParcel(2)]))).toEqual(["spooled"]);
    await expect.poll(() => received(stub)).toEqual([1, 2]);
    await expect.poll(() => test.settled.spooledSamples).toBe(0);
    expect(await test.sender.retire()).toBe("drained");
  });

  it("does not end while a change is prepared, and does when that is discarded", async () => {
    await start([OK]);
    const prepared = test.prepare({});
    let how: Retirement | null = null;
    void test.sender.retire().then((ended) => (how = ended));
    await deliver([makeParcel(1)]);
    expect([test.sender.hasEnded, how]).toEqual([false, null]);
    prepared.discard();
    await expect.poll(() => how).toBe("drained");
  });

  it("leaves its spool to the sender that comes after it, with what was spooled for it before", async () => {
    const stub = await start([DOWN], { delivery: SPOOLS });
    await deliver([makeParcel(1), makeParcel(2)]);
    const before = test;
    await before.sender.close(Date.now());
    await store?.release("r", "vmagent-2");
    stub.requests.length = 0;
    const next = await upstream(OK);
    const spool = store?.upstream("r", "vmagent-2", { dropped: () => undefined, damaged: () => undefined });
    if (spool === undefined) throw new Error("a store was wanted");
    test = new SenderUnderTest(urlOf(next), { delivery: SPOOLS, spool });
    test.sender.resume();
    expect(await kindsOf(before.deliver([makeParcel(3)], Date.now() + LONG_MS))).toEqual(["undelivered"]);
    await expect.poll(() => test.settled.total("delivered").parcels).toBe(2);
    expect(received(next)).toEqual([1, 2]);
    await expect.poll(segments).toEqual([]);
  });

  it("is ended by a shutdown in time, and leaves on disk what it has there", async () => {
    await start([blackHole], { delivery: { ...SPOOLS, remoteTimeoutMs: LONG_MS } });
    await deliver([makeParcel(1)]);
    const retired = test.sender.retire();
    const began = Date.now();
    await test.sender.close(began + 50);
    expect(Date.now() - began).toBeLessThan(5_000);
    expect(await retired).toBe("closed");
    expect(await test.sender.retire()).toBe("closed");
    expect(test.settled.spooledSamples).toBe(1);
    expect(await segments()).toHaveLength(1);
  });
});

describe("a thousand senders of one upstream, one after another", () => {
  it("leave no memory, timer or connection behind", async () => {
    const stub = await start([OK]);
    const budget = new MemoryBudget(MIB);
    await openSpool();
    await store?.release("r", "vmagent-2");
    const round = async (number: number): Promise<void> => {
      const spool = store?.upstream("r", "vmagent-2", { dropped: () => undefined, damaged: () => undefined });
      const next = new SenderUnderTest(urlOf(stub), { delivery: SPOOLS, budget, ...(spool && { spool }) });
      if (number % 20 === 0) await next.deliver([makeParcel(1)], Date.now() + LONG_MS);
      expect(await next.sender.retire()).toBe("drained");
      await store?.release("r", "vmagent-2");
    };
    for (let number = 0; number < 200; number += 1) await round(number);
    await expect.poll(() => stub.openConnections).toBe(0);
    collectGarbage();
    const [before, timers] = [process.memoryUsage().heapUsed, activeTimers()];
    for (let number = 0; number < 1_000; number += 1) await round(number);
    await expect.poll(() => stub.openConnections).toBe(0);
    collectGarbage();
    expect((process.memoryUsage().heapUsed - before) / 1_000).toBeLessThan(2_000);
    expect(activeTimers()).toBeLessThanOrEqual(timers);
    expect([budget.heldBytes, store?.bytes]).toEqual([0, 0]);
  }, 30_000);
});

describe("an upstream whose last period is over for long", () => {
  it("takes nothing more: senders have their 2xx, the ledger its reason", async () => {
    const retiresAtMs = Date.now() + LONG_MS;
    const stub = await start([OK], { upstream: { retiresAtMs } });
    const parcels = makeParcels(3);
    expect(await kindsOf(deliver(parcels.slice(0, 1)))).toEqual(["delivered"]);
    change({ upstream: { retiresAtMs: Date.now() } });
    expect(await deliver(parcels.slice(1))).toEqual(
      Array(2).fill({ kind: "dropped", reason: "period_retired" }),
    );
    expect(test.settled.of(parcels)).toEqual(["delivered", "period_retired", "period_retired"]);
    expect(await test.sender.deliverMetadata(new Uint8Array([1]), null)).toBe(false);
    change({});
    expect(await kindsOf(deliver([makeParcel(9)]))).toEqual(["delivered"]);
    expect(received(stub)).toEqual([1, 9]);
  });

  it("has what it holds delivered, and then ends if it retires", async () => {
    const held = new HeldAnswers();
    const stub = await start([held.act, OK]);
    const calls = [deliver([makeParcel(1)])];
    await expect.poll(() => held.count).toBe(1);
    calls.push(deliver([makeParcel(2)]));
    change({ upstream: { retiresAtMs: 0 } });
    const retired = test.sender.retire();
    expect(await kindsOf(deliver([makeParcel(3)]))).toEqual(["dropped"]);
    held.answerAll(204);
    expect(await kindsOf(...calls)).toEqual(["delivered", "delivered"]);
    expect(await retired).toBe("drained");
    expect(received(stub)).toEqual([1, 2]);
  });
});

describe("changes at any time, with an upstream that comes and goes", () => {
  it.each([11, 12, 13, 14, 15, 16])("lose nothing and deliver each lane in order (seed %i)", async (seed) => {
    const random = new Random(seed);
    let isDown = false;
    const act: Act = downWhile(() => isDown);
    const taken: number[] = [];
    const note: Act = (response, socket) => {
      const body = stubs.flatMap(({ requests }) => requests.splice(0)).flatMap(({ body }) => numbersIn(body));
      if (!isDown) taken.push(...body);
      act(response, socket);
    };
    await start([note], { delivery: SPOOLS });
    await upstream(note);
    const calls: Promise<readonly ParcelOutcome[]>[] = [];
    const laneOf = new Map<number, number>();
    let lanes = 1;
    for (let step = 0; step < 150; step += 1) {
      switch (random.below(6)) {
        case 0:
          isDown = random.once(2);
          break;
        case 1: {
          lanes = 1 + random.below(3);
          const onOutage = random.pick(["spool", "refuse", "spool"] as const);
          const delivery: Partial<DeliveryOptions> = {
            onOutage,
            lanes,
            spoolAfterMs: 20 + random.below(100),
            maxSamplesPerSend: 1 + random.below(1_000),
          };
          const stub = random.pick(stubs as [StubUpstream, StubUpstream]);
          change({ upstream: { url: new URL(urlOf(stub)) }, delivery });
          break;
        }
        case 2:
          {
            const prepared = test.prepare({ delivery: { ...SPOOLS, lanes } });
            void test.sender.retire();
            prepared.apply();
          }
          break;
        case 3:
          await new Promise((resolve) => setImmediate(resolve));
          break;
        default: {
          const lane = random.below(lanes);
          laneOf.set(step + 1, lane);
          calls.push(deliver([makeParcel(step + 1)], lane, 2_000));
        }
      }
    }
    isDown = false;
    const outcomes = (await Promise.all(calls)).flat();
    await expect.poll(() => test.settled.spooledSamples).toBe(0);
    expect(await test.sender.retire()).toBe("drained");
    const accepted = outcomes.filter(({ kind }) => kind === "delivered" || kind === "spooled").length;
    expect(new Set(taken).size).toBeGreaterThanOrEqual(accepted);
    expect(accepted).toBeGreaterThan(10);
    const settled = ["delivered", "refused"].map((end) => test.settled.total(end as "delivered").parcels);
    expect(settled.reduce((sum, parcels) => sum + parcels, 0)).toBe(calls.length);
    const first = [...new Set(taken)];
    for (const lane of [0, 1, 2]) {
      const ofLane = first.filter((number) => laneOf.get(number) === lane);
      expect(ofLane).toEqual(ofLane.toSorted((a, b) => a - b));
    }
    await expect.poll(segments).toEqual([]);
    expect(test.memory.heldBytes).toBe(0);
  });
});
