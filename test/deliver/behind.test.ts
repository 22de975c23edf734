/** What becomes of parcels whose upstream is away or slow, with a real spool on disk. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { DeliveryOptions } from "../../src/deliver/options.ts";
import type { ParcelOutcome } from "../../src/deliver/outcome.ts";
import { diskFiles } from "../../src/deliver/spool/diskFiles.ts";
import type { SpoolFiles } from "../../src/deliver/spool/files.ts";
import type { SpoolOptions } from "../../src/deliver/spool/options.ts";
import { SpoolStore } from "../../src/deliver/spool/spoolStore.ts";
import type { Parcel } from "../../src/wire/parcel.ts";
import { makeParcel, makeParcels, numbersIn } from "./parcels.ts";
import { SenderUnderTest } from "./senderUnderTest.ts";
import { answer, blackHole, HeldAnswers, StubUpstream } from "./stubUpstream.ts";
import type { Act } from "./stubUpstream.ts";

const OK = answer(204);
const DOWN = answer(500, "away");
const LONG_MS = 60_000;
const MIB = 1024 * 1024;
/** Short enough to go behind at once, long enough that a tenth of it is more than an exchange here takes. */
const SPOOL_AFTER_MS = 200;

let folder: string;
let stub: StubUpstream;
let store: SpoolStore;
let test: SenderUnderTest;
let dropped: string[];
/** What the disk waits for before it syncs. */
let disk: Promise<void>;

/** The disk's files, which the test can let wait. */
const files: SpoolFiles = {
  ...diskFiles,
  open: async (path, use) => {
    const file = await diskFiles.open(path, use);
    return new Proxy(file, {
      get: (target, method) => {
        const value = Reflect.get(target, method, target) as unknown;
        if (typeof value !== "function") return value;
        const call = (value as () => unknown).bind(target);
        return method === "sync" ? () => disk.then(call) : call;
      },
    });
  },
};

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "behind-"));
  dropped = [];
  disk = Promise.resolve();
});
afterEach(async () => {
  await stop();
  await stub.close();
  await rm(folder, { recursive: true });
});

async function start(
  script: Act[],
  delivery: Partial<DeliveryOptions> = {},
  spool: Partial<SpoolOptions> = {},
): Promise<void> {
  stub = await StubUpstream.start(script);
  await open(delivery, spool);
}

/** A sender as a process would begin with it. */
async function open(
  delivery: Partial<DeliveryOptions> = {},
  spool: Partial<SpoolOptions> = {},
): Promise<void> {
  const limits = { path: folder, maxBytes: 64 * MIB, maxBytesPerUpstream: 64 * MIB };
  const tools = { files, now: Date.now, random: Math.random, log: pino({ level: "silent" }) };
  store = await SpoolStore.open({ ...limits, whenFull: "refuse", orphans: "keep", ...spool }, tools);
  const upstream = store.upstream("r", "vmagent-2", {
    dropped: (reason, _replica, { samples }) => dropped.push(`${samples} samples: ${reason}`),
    damaged: () => undefined,
  });
  const options = { onOutage: "spool", spoolAfterMs: SPOOL_AFTER_MS, ...delivery } as const;
  test = new SenderUnderTest(`http://127.0.0.1:${stub.port}/`, {
    delivery: options,
    ...(options.onOutage === "spool" ? { spool: upstream } : {}),
  });
  test.sender.resume();
}

async function stop(): Promise<void> {
  await test.sender.close(Date.now());
  await store.close();
}

function deliver(parcels: readonly Parcel[], forMs = LONG_MS): Promise<readonly ParcelOutcome[]> {
  return test.deliver(parcels, Date.now() + forMs);
}

async function kindsOf(...calls: readonly ReturnType<typeof deliver>[]): Promise<string[]> {
  return (await Promise.all(calls)).flat().map(({ kind }) => kind);
}

function downWhile(isDown: () => boolean): Act {
  return (response, socket) => {
    (isDown() ? DOWN : OK)(response, socket);
  };
}

/** Lets no sync end until it is released. */
function holdDisk(): () => void {
  let release = (): void => undefined;
  disk = new Promise((resolve) => {
    release = resolve;
  });
  return release;
}

/** The numbers of the parcels that came, in their order. */
function received(): number[] {
  return stub.requests.flatMap(({ body }) => numbersIn(body));
}

/** Segments on disk. */
async function segments(): Promise<string[]> {
  const files = await readdir(folder, { recursive: true });
  return files.filter((file) => file.endsWith(".segment"));
}

describe("an upstream that fails", () => {
  it("has its parcels spooled after spool_after, and gets them in order when it is back", async () => {
    let isDown = true;
    await start([downWhile(() => isDown)]);
    const parcels = makeParcels(6);
    const began = Date.now();
    expect(await kindsOf(deliver(parcels.slice(0, 2)))).toEqual(["spooled", "spooled"]);
    expect(Date.now() - began).toBeGreaterThanOrEqual(SPOOL_AFTER_MS - 5);
    expect(await kindsOf(deliver(parcels.slice(2, 5)), deliver(parcels.slice(5)))).toEqual(
      Array(4).fill("spooled"),
    );
    expect(test.settled.spooledSamples).toBe(21);
    stub.requests.length = 0;
    isDown = false;
    await expect.poll(() => test.settled.total("delivered").parcels).toBe(6);
    expect(received().filter((number, index, all) => all.indexOf(number) === index)).toEqual([
      1, 2, 3, 4, 5, 6,
    ]);
    expect(test.settled.of(parcels)).toEqual(Array(6).fill("spooled and delivered"));
    await expect.poll(segments).toEqual([]);
  });

  it("costs senders nothing once it is behind", async () => {
    await start([blackHole], { remoteTimeoutMs: LONG_MS });
    expect(await kindsOf(deliver([makeParcel(1)]))).toEqual(["spooled"]);
    const began = performance.now();
    for (let number = 2; number < 12; number += 1) await deliver([makeParcel(number)]);
    expect((performance.now() - began) / 10).toBeLessThan(SPOOL_AFTER_MS);
    expect(test.log("warn").map(({ msg }) => msg)).toEqual([
      expect.stringMatching(/^upstream vmagent-2: behind, .*waits for more than/u),
    ]);
  });

  it("is not sent again what was in flight when it went behind, if that succeeds", async () => {
    const held = new HeldAnswers();
    await start([held.act, OK]);
    const parcels = makeParcels(3);
    expect(await kindsOf(deliver(parcels.slice(0, 1)), deliver(parcels.slice(1)))).toEqual(
      Array(3).fill("spooled"),
    );
    held.answerAll(204);
    await expect.poll(() => test.settled.of(parcels)).toEqual(Array(3).fill("spooled and delivered"));
    expect(received()).toEqual([1, 2, 3]);
  });

  it("has its parcels spooled at once while its breaker is open", async () => {
    await start([DOWN], { breaker: { consecutiveFailures: 1, resetAfterMs: LONG_MS } });
    expect(await kindsOf(deliver([makeParcel(1)]))).toEqual(["spooled"]);
    expect(test.breakerStates).toEqual(["open"]);
    expect(await kindsOf(deliver([makeParcel(2)]))).toEqual(["spooled"]);
    expect(stub.requests).toHaveLength(1);
  });

  it("has its parcels spooled when it asks for a longer pause than spool_after", async () => {
    await start([answer(429, "", { "Retry-After": "30" })]);
    expect(await kindsOf(deliver([makeParcel(1)]))).toEqual(["spooled"]);
    expect(await kindsOf(deliver([makeParcel(2)]))).toEqual(["spooled"]);
    expect(stub.requests).toHaveLength(1);
  });
});

describe("an upstream that answers, but slowly", () => {
  it("is behind until ten answers in a row were quick, and has no more written for it then", async () => {
    let delayMs = SPOOL_AFTER_MS / 2;
    await start([
      (response) => {
        setTimeout(() => response.writeHead(204).end(), delayMs);
      },
    ]);
    const kinds: string[] = [];
    let number = 0;
    const send = async (): Promise<void> => {
      number += 1;
      kinds.push(...(await kindsOf(deliver([makeParcel(number)]))));
    };
    // Two at a time: the second waits for the first's answer, and then for its own.
    for (let round = 0; round < 3; round += 1) await Promise.all([send(), send(), send(), send(), send()]);
    expect(kinds).toContain("spooled");
    delayMs = 0;
    await expect
      .poll(async () => {
        await send();
        return kinds.at(-1);
      })
      .toBe("delivered");
    await expect.poll(() => test.settled.spooledSamples).toBe(0);
    expect(await segments()).toEqual([]);
    expect([...new Set(received())]).toEqual(Array.from({ length: number }, (_, index) => index + 1));
  });

  it("comes back under a load that never pauses, in order", async () => {
    let isDown = true;
    await start([downWhile(() => isDown)]);
    const kinds: string[] = [];
    let number = 0;
    let isOver = false;
    const sender = async (): Promise<void> => {
      while (!isOver) {
        number += 1;
        kinds.push(...(await kindsOf(deliver([makeParcel(number)]))));
      }
    };
    const senders = [sender(), sender(), sender(), sender()];
    await expect.poll(() => kinds.length).toBeGreaterThan(20);
    isDown = false;
    await expect.poll(() => kinds.slice(-20)).toEqual(Array(20).fill("delivered"));
    isOver = true;
    await Promise.all(senders);
    await expect.poll(() => test.settled.spooledSamples).toBe(0);
    const numbers = [...new Set(received())];
    expect(numbers).toEqual(Array.from({ length: number }, (_, index) => index + 1));
  });
});

describe("a process that ends while it is behind", () => {
  it("leaves its parcels to the next, which sends them in order, before what comes then", async () => {
    await start([blackHole], { remoteTimeoutMs: LONG_MS });
    await Promise.all([deliver([makeParcel(1), makeParcel(2)]), deliver([makeParcel(3)])]);
    await deliver([makeParcel(4)]);
    await stop();
    await stub.close();
    stub = await StubUpstream.start([OK]);
    await open();
    expect(await kindsOf(deliver([makeParcel(5)]))).toEqual(["spooled"]);
    await expect.poll(received).toEqual([1, 2, 3, 4, 5]);
    await expect.poll(segments).toEqual([]);
  });

  it("spools what waits and what is in flight when it is asked to end, and answers that", async () => {
    const held = new HeldAnswers();
    await start([held.act], { spoolAfterMs: LONG_MS });
    const parcels = makeParcels(3);
    const calls = [deliver(parcels.slice(0, 1))];
    await expect.poll(() => held.count).toBe(1);
    calls.push(deliver(parcels.slice(1)));
    const closed = test.sender.close(Date.now() + LONG_MS);
    expect(await kindsOf(...calls)).toEqual(Array(3).fill("spooled"));
    held.answerAll(204);
    await closed;
    expect(test.settled.of(parcels)).toEqual(["spooled and delivered", "spooled", "spooled"]);
  });
});

describe("a parcel that is refused after it was spooled", () => {
  it("is dropped and counted, and those around it are delivered", async () => {
    let isDown = true;
    const bad = (body: Uint8Array): boolean => numbersIn(body).includes(2);
    await start([
      (response, socket) => {
        const body = stub.requests.at(-1)?.body ?? Buffer.alloc(0);
        (isDown ? DOWN : bad(body) ? answer(400, "bad") : OK)(response, socket);
      },
    ]);
    const parcels = makeParcels(4);
    await deliver(parcels.slice(0, 1));
    expect(await kindsOf(deliver(parcels.slice(1)))).toEqual(Array(3).fill("spooled"));
    isDown = false;
    await expect
      .poll(() => test.settled.of(parcels))
      .toEqual([
        "spooled and delivered",
        "spooled and refused_by_upstream",
        "spooled and delivered",
        "spooled and delivered",
      ]);
    await expect.poll(segments).toEqual([]);
  });
});

describe("a batch that is refused", () => {
  it("keeps its place before the records that were read while it was in flight", async () => {
    let isDown = true;
    await start(
      [
        (response, socket) => {
          const isBad = numbersIn(stub.requests.at(-1)?.body ?? Buffer.alloc(0)).includes(2);
          (isDown ? DOWN : isBad ? answer(400, "bad") : OK)(response, socket);
        },
      ],
      { maxSamplesPerSend: 7, minBackoffMs: 300, maxBackoffMs: 300 },
    );
    for (const number of [7, 1, 2, 3, 4, 5, 6]) await deliver([makeParcel(number)]);
    stub.requests.length = 0;
    isDown = false;
    await expect.poll(() => test.settled.spooledSamples).toBe(0);
    const accepted = stub.requests.map(({ body }) => numbersIn(body)).filter((batch) => !batch.includes(2));
    expect(accepted.flat()).toEqual([7, 1, 3, 4, 5, 6]);
  });

  it("and could not be written to disk is answered, though more comes meanwhile and the disk is slow", async () => {
    const held = new HeldAnswers();
    await start(
      [held.act, answer(400, "bad")],
      { remoteTimeoutMs: LONG_MS },
      { maxBytes: 20_000, maxBytesPerUpstream: 20_000 },
    );
    const tooMuch = Array.from({ length: 64 }, (_, index) => makeParcel(index + 1, 1_000));
    const first = deliver(tooMuch);
    await expect.poll(() => test.log("error").map(({ msg }) => msg)[0]).toContain("not spooled");
    const release = holdDisk();
    const second = deliver([makeParcel(100)]);
    held.answerAll(400);
    // Quick answers in a row: the upstream is well.
    await expect.poll(() => stub.requests.length).toBeGreaterThan(12);
    const third = deliver([makeParcel(101)]);
    release();
    expect(await kindsOf(first, second, third)).not.toContain("undelivered");
    await expect.poll(() => test.settled.spooledSamples).toBe(0);
  });
});

describe("a disk that hangs", () => {
  it("has senders answered by their deadlines, and no alarm that rings for what is over", async () => {
    await start([blackHole], { remoteTimeoutMs: LONG_MS });
    const release = holdDisk();
    const calls = [
      deliver([makeParcel(1)], 2 * SPOOL_AFTER_MS),
      deliver([makeParcel(2)], 3 * SPOOL_AFTER_MS),
    ];
    expect(await kindsOf(...calls)).toEqual(["undelivered", "undelivered"]);
    const timers = vi.spyOn(globalThis, "setTimeout");
    expect(await kindsOf(deliver([makeParcel(3)], SPOOL_AFTER_MS))).toEqual(["undelivered"]);
    expect(timers.mock.calls.length).toBeLessThan(20);
    timers.mockRestore();
    release();
    await expect.poll(() => test.settled.spooledSamples).toBe(6);
  });

  it("does not keep the gateway from ending, nor senders from their answers", async () => {
    await start(
      [DOWN],
      { minBackoffMs: LONG_MS, maxBackoffMs: LONG_MS },
      { maxBytes: 1_000, maxBytesPerUpstream: 1_000 },
    );
    const first = deliver([makeParcel(1, 2_000)]);
    await expect.poll(() => test.log("error").map(({ msg }) => msg)[0]).toContain("not spooled");
    await test.sender.close(Date.now());
    expect(await kindsOf(first)).toEqual(["undelivered"]);
  });
});

describe("a disk that hangs while the gateway ends", () => {
  it("is not waited for beyond the deadline: senders are told to come again with what it has not taken", async () => {
    const held = new HeldAnswers();
    await start([held.act], { remoteTimeoutMs: LONG_MS });
    const release = holdDisk();
    const parcels = makeParcels(4);
    const calls = [deliver(parcels.slice(0, 1))];
    await expect.poll(() => held.count).toBe(1);
    calls.push(deliver(parcels.slice(1, 2)));
    await expect.poll(() => test.sender.lanesBehind).toBe(1);
    calls.push(deliver(parcels.slice(2, 3)));
    const began = Date.now();
    const closed = test.sender.close(began + 50, began + 100);
    calls.push(deliver(parcels.slice(3)));
    await closed;
    expect(Date.now() - began).toBeLessThan(5_000);
    expect(await kindsOf(...calls)).toEqual(Array(4).fill("undelivered"));
    expect(test.settled.of(parcels)).toEqual(Array(4).fill("refused"));
    expect(test.memory.heldBytes).toBe(0);
    await store.close(50);
    expect(Date.now() - began).toBeLessThan(5_000);
    release();
  });

  it("counts as lost what was acknowledged before with ack: enqueued", async () => {
    await start([blackHole], { ack: "enqueued", remoteTimeoutMs: LONG_MS });
    const release = holdDisk();
    const parcels = makeParcels(2);
    expect(await kindsOf(deliver(parcels))).toEqual(["enqueued", "enqueued"]);
    await test.sender.close(Date.now(), Date.now() + 50);
    expect(test.settled.of(parcels)).toEqual(["undelivered", "undelivered"]);
    release();
  });

  it("has what is under way counted once, however late the disk has it after all", async () => {
    const held = new HeldAnswers();
    await start([held.act]);
    const release = holdDisk();
    const parcels = makeParcels(1);
    const call = deliver(parcels);
    await expect.poll(() => held.count).toBe(1);
    await expect.poll(() => test.sender.lanesBehind).toBe(1);
    const spoolBy = Date.now() + 50;
    const closed = test.sender.close(Date.now() + LONG_MS, spoolBy);
    await expect.poll(() => Date.now()).toBeGreaterThan(spoolBy + 20);
    held.answerAll(204);
    await closed;
    release();
    await store.close();
    expect(await kindsOf(call)).toEqual(["delivered"]);
    expect(test.settled.of(parcels)).toEqual(["delivered"]);
  });
});

describe("a spool that is full", () => {
  it("has new parcels refused at once, with words", async () => {
    await start([blackHole], { remoteTimeoutMs: LONG_MS }, { maxBytesPerUpstream: 2_000 });
    expect(await kindsOf(deliver([makeParcel(1)]))).toEqual(["spooled"]);
    const outcomes = await deliver([makeParcel(2, 3_000)]);
    expect(outcomes).toEqual([
      {
        kind: "undelivered",
        cause: expect.stringContaining("full") as string,
        retryAfterMs: expect.any(Number) as number,
      },
    ]);
    expect(test.settled.total("refused")).toEqual({ parcels: 1, samples: 2 });
  });

  it("makes room for them by dropping the oldest, if it may", async () => {
    await start(
      [blackHole],
      { remoteTimeoutMs: LONG_MS },
      { maxBytesPerUpstream: 40 * MIB, maxBytes: 40 * MIB, whenFull: "drop_oldest" },
    );
    await deliver([makeParcel(1)]);
    for (let number = 2; number < 8; number += 1) {
      expect(await kindsOf(deliver([makeParcel(number, 8 * MIB)]))).toEqual(["spooled"]);
    }
    expect(dropped).toContainEqual(expect.stringMatching(/^[2-7] samples: spool_full$/));
  });
});

describe("an outage", () => {
  it("has what comes refused at once with on_outage: refuse", async () => {
    await start([blackHole], { onOutage: "refuse", remoteTimeoutMs: LONG_MS });
    const first = deliver([makeParcel(1)], 1_000);
    await expect
      .poll(async () => (await deliver([makeParcel(2)], 20))[0])
      .toMatchObject({ kind: "undelivered", cause: "what came before waits for more than 200 ms" });
    expect(await kindsOf(first)).toEqual(["undelivered"]);
  });

  it("has what waits dropped with on_outage: drop, its sender being told that it is accepted", async () => {
    const held = new HeldAnswers();
    await start([held.act], { onOutage: "drop", remoteTimeoutMs: LONG_MS });
    const parcels = makeParcels(3);
    const calls = [deliver(parcels.slice(0, 1))];
    await expect.poll(() => held.count).toBe(1);
    calls.push(deliver(parcels.slice(1, 2)));
    expect(await kindsOf(...calls)).toEqual(["dropped", "dropped"]);
    expect(await kindsOf(deliver(parcels.slice(2)))).toEqual(["dropped"]);
    held.answerAll(204);
    await expect.poll(() => test.settled.of(parcels)).toEqual(["delivered", "outage", "outage"]);
  });

  it("is no reason to drop while the gateway stops", async () => {
    const held = new HeldAnswers();
    await start([held.act], { onOutage: "drop", spoolAfterMs: LONG_MS });
    const first = deliver([makeParcel(1)]);
    await expect.poll(() => held.count).toBe(1);
    const second = deliver([makeParcel(2)]);
    const closed = test.sender.close(Date.now() + LONG_MS);
    expect(await kindsOf(second)).toEqual(["undelivered"]);
    held.answerAll(204);
    await closed;
    expect(await kindsOf(first)).toEqual(["delivered"]);
  });
});

describe("an acknowledgement as soon as parcels are in memory", () => {
  it("comes before the upstream has them", async () => {
    const held = new HeldAnswers();
    await start([held.act], { ack: "enqueued" });
    const parcels = makeParcels(1);
    expect(await kindsOf(deliver(parcels))).toEqual(["enqueued"]);
    expect(test.settled.of(parcels)).toEqual(["not"]);
    await expect.poll(() => held.count).toBe(1);
    held.answerAll(204);
    await expect.poll(() => test.settled.of(parcels)).toEqual(["delivered"]);
  });

  it("is kept by the spool when the upstream is away", async () => {
    await start([DOWN], { ack: "enqueued" });
    const parcels = makeParcels(2);
    expect(await kindsOf(deliver(parcels))).toEqual(["enqueued", "enqueued"]);
    await expect.poll(() => test.settled.of(parcels)).toEqual(["spooled", "spooled"]);
    expect(await kindsOf(deliver([makeParcel(3)]))).toEqual(["spooled"]);
  });

  it("has refused parcels, and those that cannot be kept, dropped and counted", async () => {
    await start([answer(400, "bad"), DOWN], { ack: "enqueued", onOutage: "refuse", minBackoffMs: 50 });
    const parcels = makeParcels(2);
    await deliver(parcels.slice(0, 1));
    await expect.poll(() => test.settled.of(parcels)).toEqual(["refused_by_upstream", "not"]);
    await deliver(parcels.slice(1), 100);
    await expect.poll(() => test.settled.of(parcels)).toEqual(["refused_by_upstream", "undelivered"]);
  });
});
