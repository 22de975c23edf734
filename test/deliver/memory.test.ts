/** That what a sender takes of the gateway's memory is given back, whatever becomes of its parcels. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DeliveryOptions } from "../../src/deliver/options.ts";
import type { ParcelOutcome } from "../../src/deliver/outcome.ts";
import { diskFiles } from "../../src/deliver/spool/diskFiles.ts";
import { SpoolStore } from "../../src/deliver/spool/spoolStore.ts";
import { MemoryBudget } from "../../src/memoryBudget.ts";
import type { Parcel } from "../../src/wire/parcel.ts";
import { makeParcel, makeParcels } from "./parcels.ts";
import { SenderUnderTest } from "./senderUnderTest.ts";
import { answer, blackHole, HeldAnswers, StubUpstream } from "./stubUpstream.ts";
import type { Act } from "./stubUpstream.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
/** With a buffer of its own. */
const PARCEL_KIB = 64;
const OK = answer(204);
const LONG_MS = 60_000;
const SHORT_MS = 100;

let folder: string;
let stub: StubUpstream;
let store: SpoolStore | null;
let test: SenderUnderTest;
let budget: MemoryBudget;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "memory-"));
  store = null;
});
afterEach(async () => {
  await test.sender.close(Date.now());
  expect(budget.heldBytes).toBe(0);
  await store?.close();
  await stub.close();
  await rm(folder, { recursive: true });
});

async function start(
  script: Act[],
  delivery: Partial<DeliveryOptions> = {},
  { kibibytes = Infinity, spoolBytes = 64 * MIB } = {},
): Promise<void> {
  stub = await StubUpstream.start(script);
  budget = new MemoryBudget(kibibytes * KIB);
  const options = { onOutage: "spool", spoolAfterMs: 60_000, ...delivery } as const;
  const limits = { path: folder, maxBytes: spoolBytes, maxBytesPerUpstream: spoolBytes };
  const tools = { files: diskFiles, now: Date.now, random: Math.random, log: pino({ level: "silent" }) };
  store = await SpoolStore.open({ ...limits, whenFull: "refuse", orphans: "keep" }, tools);
  const spool = store.upstream("r", "u", { dropped: () => undefined, damaged: () => undefined });
  test = new SenderUnderTest(`http://127.0.0.1:${stub.port}/`, {
    delivery: options,
    budget,
    ...(options.onOutage === "spool" ? { spool } : {}),
  });
}

function large(series: number): Parcel {
  return makeParcel(series, PARCEL_KIB * KIB);
}

function deliver(parcels: readonly Parcel[], forMs = LONG_MS): Promise<readonly ParcelOutcome[]> {
  return test.deliver(parcels, Date.now() + forMs);
}

async function kindsOf(...calls: readonly ReturnType<typeof deliver>[]): Promise<string[]> {
  return (await Promise.all(calls)).flat().map(({ kind }) => kind);
}

describe("what a sender holds in memory", () => {
  it("is its parcels from the call on, and the request that they are joined in while it is under way", async () => {
    const held = new HeldAnswers();
    await start([held.act]);
    const parcels = [large(1), large(2)];
    const outcomes = deliver(parcels);
    const bytes = parcels.reduce((sum, { elements }) => sum + elements.buffer.byteLength, 0);
    await expect.poll(() => held.count).toBe(1);
    expect(budget.heldBytes).toBeGreaterThan(2 * bytes - 100);
    expect(budget.heldBytes).toBeLessThan(2 * bytes + 100);
    held.answerAll(204);
    await outcomes;
    expect(budget.heldBytes).toBe(0);
  });

  it("is nothing once its parcels were delivered, and refused in parts", async () => {
    await start([answer(400), OK, answer(400), OK]);
    const outcomes = deliver(makeParcels(3));
    expect(await kindsOf(outcomes)).toContain("refused");
    expect(budget.heldBytes).toBe(0);
  });

  it.each([
    {
      name: "given back at their deadline",
      forMs: SHORT_MS,
      delivery: { onOutage: "refuse" },
      kind: "undelivered",
    },
    { name: "dropped", forMs: SHORT_MS, delivery: { onOutage: "drop", spoolAfterMs: 100 }, kind: "dropped" },
    { name: "spooled", forMs: LONG_MS, delivery: { spoolAfterMs: 20, remoteTimeoutMs: 50 }, kind: "spooled" },
    {
      name: "accepted early and then lost",
      forMs: SHORT_MS,
      delivery: { ack: "enqueued", onOutage: "refuse" },
      kind: "enqueued",
    },
  ] as const)("is nothing once its parcels were $name", async ({ delivery, kind, forMs }) => {
    await start([blackHole], { remoteTimeoutMs: 200, ...delivery });
    const calls = [deliver([large(1), large(2)], forMs)];
    await expect.poll(() => stub.requests.length).toBe(1);
    calls.push(deliver([large(3)], forMs));
    expect(await kindsOf(...calls)).toEqual([kind, kind, kind]);
    if (kind !== "spooled") await expect.poll(() => budget.heldBytes).toBe(0);
  });

  it("is nothing once what was spooled is delivered, which takes memory again when it is read", async () => {
    const held = new HeldAnswers();
    await start([answer(500), held.act], { spoolAfterMs: 20, minBackoffMs: 100, maxBackoffMs: 100 });
    const calls = [deliver([large(1)])];
    await expect.poll(() => stub.requests.length).toBeGreaterThan(0);
    calls.push(deliver([large(2), large(3)]));
    expect(await kindsOf(...calls)).toEqual(["spooled", "spooled", "spooled"]);
    await expect.poll(() => held.count).toBe(1);
    expect(budget.heldBytes).toBeGreaterThan(PARCEL_KIB * KIB);
    await expect
      .poll(() => {
        held.answerAll(204);
        return test.settled.spooledSamples;
      })
      .toBe(0);
    await expect.poll(() => budget.heldBytes).toBe(0);
  });

  it("is nothing once parcels were given back that the spool has no room for", async () => {
    await start([answer(500)], { spoolAfterMs: 20 }, { spoolBytes: MIB });
    const calls = Array.from({ length: 30 }, (_, index) => deliver([large(index + 1)], 500));
    expect(await kindsOf(...calls)).toContain("undelivered");
  });

  it("is nothing for metadata, once it is sent or lost", async () => {
    const held = new HeldAnswers();
    await start([held.act]);
    const sent = [1, 2].map(() => test.sender.deliverMetadata(new Uint8Array(PARCEL_KIB * KIB), null));
    expect(budget.heldBytes).toBe(2 * PARCEL_KIB * KIB);
    await expect.poll(() => held.count).toBe(1);
    held.answerAll(204);
    await expect.poll(() => held.count).toBe(1);
    held.answerAll(500);
    expect(await Promise.all(sent)).toEqual([true, false]);
    expect(budget.heldBytes).toBe(0);
  });
});

describe("a sender that holds as much as it may", () => {
  it.each([
    { onOutage: "spool", kind: "undelivered" },
    { onOutage: "refuse", kind: "undelivered" },
    { onOutage: "drop", kind: "dropped" },
  ] as const)(
    "has what comes $kind at once with on_outage: $onOutage, and goes on with the rest",
    async ({ onOutage, kind }) => {
      const held = new HeldAnswers();
      await start([held.act, OK], { onOutage }, { kibibytes: 5 * PARCEL_KIB });
      const first = [deliver([large(1)]), deliver([large(2)])];
      await expect.poll(() => held.count).toBe(1);
      const [outcome] = await deliver([large(3)]);
      expect(outcome).toMatchObject({ kind });
      if (outcome?.kind === "undelivered") expect(outcome.cause).toMatch(/memory/);
      expect(test.memory.refusals).toBe(1);
      held.answerAll(204);
      expect(await kindsOf(...first)).toEqual(["delivered", "delivered"]);
      expect(await kindsOf(deliver([large(4)]))).toEqual(["delivered"]);
      expect(test.settled.total(kind === "dropped" ? "outage" : "refused")).toEqual({
        parcels: 1,
        samples: 3,
      });
    },
  );

  it("takes no metadata", async () => {
    await start([blackHole], {}, { kibibytes: 2 * PARCEL_KIB });
    void deliver([large(1)]);
    expect(await test.sender.deliverMetadata(new Uint8Array(PARCEL_KIB * KIB), null)).toBe(false);
  });
});
