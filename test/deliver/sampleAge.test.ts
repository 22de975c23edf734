/** What becomes of data that is older than sample_age_limit when it is to be sent. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DeliveryOptions } from "../../src/deliver/options.ts";
import type { ParcelOutcome } from "../../src/deliver/outcome.ts";
import { dropOld } from "../../src/deliver/sampleAge.ts";
import { diskFiles } from "../../src/deliver/spool/diskFiles.ts";
import { SpoolStore } from "../../src/deliver/spool/spoolStore.ts";
import { type Parcel, withHeadroom } from "../../src/wire/parcel.ts";
import { MemoryBudget } from "../../src/memoryBudget.ts";
import { decodeBody } from "../reference/writeRequest.ts";
import { label, sample, series } from "../wire/handmade.ts";
import { literal, makeParcel } from "./parcels.ts";
import { SenderUnderTest } from "./senderUnderTest.ts";
import { answer, HeldAnswers, StubUpstream } from "./stubUpstream.ts";
import type { Act } from "./stubUpstream.ts";

const MIB = 1024 * 1024;
const OK = answer(204);
const DOWN = answer(500);
const LONG_MS = 60_000;
const DAY_MS = 86_400_000;

/** A parcel with a series of each number, and a sample of each age, which are milliseconds before now. */
function parcelOf(
  now: number,
  agesBySeries: Readonly<Record<string, readonly number[]>>,
  newest?: number,
): Parcel {
  const all = Object.entries(agesBySeries);
  const plain = Buffer.concat(
    all.map(([name, ages]) => series(label("n", name), ...ages.map((age) => sample(now - age)))),
  );
  const ages = all.flatMap(([, each]) => each);
  return {
    elements: withHeadroom(literal(plain)),
    plainBytes: plain.length,
    series: all.length,
    items: { samples: ages.length, histograms: 0, exemplars: 0 },
    replica: 0,
    newestTimestampMs: now - (newest ?? Math.min(...ages)),
  };
}

describe("a parcel", () => {
  const NOW = 1_700_000_000_000;
  const LIMIT = 1_000;

  it.each([
    { name: "has no limit", limit: 0, ages: [900_000], arrived: 900_000, newest: 900_000 },
    { name: "is new", limit: LIMIT, ages: [0, 5_000], arrived: 0, newest: 0 },
    {
      name: "has waited, but holds nothing old",
      limit: LIMIT,
      ages: [999, 1_000],
      arrived: 900,
      newest: 999,
    },
  ])("stays as it is when it $name", ({ limit, ages, arrived, newest }) => {
    const parcel = parcelOf(NOW, { a: ages }, newest);
    expect(dropOld(parcel, NOW - arrived, NOW, limit)).toMatchObject({
      parcel,
      dropped: { samples: 0 },
    });
  });

  it("goes whole, unopened, when its newest item is too old", () => {
    const parcel = { ...parcelOf(NOW, { a: [1_001], b: [2_000] }), elements: new Uint8Array(0) };
    expect(dropOld(parcel, NOW, NOW, LIMIT)).toMatchObject({ parcel: null, dropped: { samples: 2 } });
  });

  it.each([
    { name: "its newest item is not new any more", arrived: 0, newest: 600 },
    { name: "it has waited, whatever its newest item says", arrived: 600, newest: -DAY_MS },
  ])("is looked at item by item when $name", ({ arrived, newest }) => {
    const parcel = parcelOf(NOW, { a: [600, 1_001, 1_000], gone: [2_000, 3_000] }, newest);
    const aged = dropOld(parcel, NOW - arrived, NOW, LIMIT);
    expect(aged.dropped).toEqual({ samples: 3, histograms: 0, exemplars: 0 });
    expect(aged.parcel).toMatchObject({ series: 1, items: { samples: 2 } });
  });

  it("goes whole when no item of it is left, though one was said to be newer", () => {
    const parcel = parcelOf(NOW, { a: [1_001], b: [2_000] }, -DAY_MS);
    expect(dropOld(parcel, NOW - 600, NOW, LIMIT)).toMatchObject({ parcel: null, dropped: { samples: 2 } });
  });
});

describe("a sender with a sample_age_limit", () => {
  let folder: string;
  let stub: StubUpstream;
  let store: SpoolStore;
  let test: SenderUnderTest;
  let budget: MemoryBudget;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "sample-age-"));
  });
  afterEach(async () => {
    await test.sender.close(Date.now());
    await store.close();
    await stub.close();
    await rm(folder, { recursive: true });
  });

  async function start(script: Act[], delivery: Partial<DeliveryOptions>): Promise<void> {
    stub = await StubUpstream.start(script);
    budget = new MemoryBudget(MIB);
    const tools = { files: diskFiles, now: Date.now, random: Math.random, log: pino({ level: "silent" }) };
    const limits = { path: folder, maxBytes: 64 * MIB, maxBytesPerUpstream: 64 * MIB };
    store = await SpoolStore.open({ ...limits, whenFull: "refuse", orphans: "keep" }, tools);
    const spool = store.upstream("r", "u", { dropped: () => undefined, damaged: () => undefined });
    test = new SenderUnderTest(`http://127.0.0.1:${stub.port}/`, {
      delivery,
      budget,
      spool,
      random: () => 0.9,
    });
  }

  function deliver(parcel: Parcel): Promise<readonly ParcelOutcome[]> {
    return test.deliver([parcel], Date.now() + LONG_MS);
  }

  function received(): (readonly [string, number])[] {
    return stub.requests.flatMap(({ body }) =>
      decodeBody(body).series.map(({ labels, samples }) => [labels[0]?.[1] ?? "", samples.length] as const),
    );
  }

  it("drops what comes too old, tells its sender that it need not come again, and sends the rest", async () => {
    await start([OK], { onOutage: "refuse", sampleAgeLimitMs: DAY_MS });
    const now = Date.now();
    const calls = [deliver(parcelOf(now, { old: [2 * DAY_MS] })), deliver(parcelOf(now, { young: [0] }))];
    expect((await Promise.all(calls)).flat().map(({ kind }) => kind)).toEqual(["dropped", "delivered"]);
    expect(received()).toEqual([["young", 1]]);
    expect(test.settled.total("sample_age_limit")).toEqual({ parcels: 1, samples: 1 });
    expect(budget.heldBytes).toBe(0);
  });

  it("drops item by item what has become too old while it was tried", async () => {
    const held = new HeldAnswers();
    const limitMs = 1_000;
    await start([held.act, OK], { onOutage: "refuse", sampleAgeLimitMs: limitMs });
    const outcomes = deliver(parcelOf(Date.now(), { both: [0, limitMs - 100], gone: [limitMs - 100] }));
    await expect.poll(() => held.count).toBe(1);
    const until = Date.now() + limitMs / 2 + 50;
    await expect.poll(() => Date.now()).toBeGreaterThan(until);
    held.answerAll(500);
    expect(await outcomes).toEqual([{ kind: "delivered" }]);
    expect(received()).toEqual([
      ["both", 2],
      ["gone", 1],
      ["both", 1],
    ]);
    expect(test.settled.total("sample_age_limit").samples).toBe(2);
    expect(test.settled.total("delivered")).toEqual({ parcels: 1, samples: 1 });
    expect(budget.heldBytes).toBe(0);
  });

  it("drops what has become too old in the spool, and sends what has not, in order", async () => {
    const limitMs = 1_000;
    await start([DOWN, OK], {
      onOutage: "spool",
      spoolAfterMs: 20,
      minBackoffMs: 2 * limitMs,
      maxBackoffMs: 2 * limitMs,
      sampleAgeLimitMs: limitMs,
    });
    const now = Date.now();
    const calls = [deliver(parcelOf(now, { first: [0] }))];
    await expect.poll(() => stub.requests.length).toBe(1);
    calls.push(
      deliver(parcelOf(now, { second: [0, -DAY_MS] })),
      deliver(parcelOf(now, { third: [0] })),
      deliver(parcelOf(now, { fourth: [-DAY_MS] })),
    );
    expect((await Promise.all(calls)).flat().map(({ kind }) => kind)).toEqual(
      Array<string>(4).fill("spooled"),
    );
    await expect.poll(() => test.settled.spooledSamples).toBe(0);
    expect(received()).toEqual([
      ["first", 1],
      ["second", 1],
      ["fourth", 1],
    ]);
    expect(test.settled.total("sample_age_limit").samples).toBe(3);
    expect(test.settled.total("delivered").samples).toBe(2);
    await expect.poll(() => budget.heldBytes).toBe(0);
  });

  it("drops what cannot be opened when it is read back, says so, and sends what is around it", async () => {
    await start([DOWN, OK], {
      onOutage: "spool",
      spoolAfterMs: 20,
      minBackoffMs: 300,
      maxBackoffMs: 300,
      sampleAgeLimitMs: DAY_MS,
    });
    const now = Date.now();
    const aged = (series: number, elements: Uint8Array, bit: number): Parcel => ({
      ...makeParcel(series),
      elements: withHeadroom(elements),
      items: { samples: series, histograms: 0, exemplars: bit },
      newestTimestampMs: now - 0.7 * DAY_MS,
    });
    const noBlock = aged(1, Buffer.from([0x7f, 0xff, 0xff]), 1);
    const noRequest = aged(2, makeParcel(2).elements, 2);
    const outcomes = [deliver(parcelOf(now, { first: [0] }))];
    await expect.poll(() => stub.requests.length).toBe(1);
    outcomes.push(deliver(noBlock), deliver(noRequest), deliver(parcelOf(now, { last: [0] })));
    expect((await Promise.all(outcomes)).flat().map(({ kind }) => kind)).toEqual(
      Array<string>(4).fill("spooled"),
    );
    await expect.poll(() => test.settled.spooledSamples).toBe(0);
    expect(received()).toEqual([
      ["first", 1],
      ["first", 1],
      ["last", 1],
    ]);
    expect(test.settled.total("spool_damaged")).toEqual({ parcels: 2, samples: 3 });
    expect(test.log("error").map(({ msg }) => msg)).toEqual([
      expect.stringMatching(/a parcel of 1 series cannot be opened .*it is dropped as spool_damaged$/u),
    ]);
    expect(test.settled.total("delivered").samples).toBe(2);
    await expect.poll(() => budget.heldBytes).toBe(0);
  });

  it("sends as it is what cannot be opened and never was on disk: its upstream judges it", async () => {
    await start([answer(400, "no request"), OK], { onOutage: "refuse", sampleAgeLimitMs: DAY_MS });
    const parcel = { ...makeParcel(1), newestTimestampMs: Date.now() - 0.7 * DAY_MS };
    expect(await deliver(parcel)).toEqual([{ kind: "refused", status: 400, reply: "no request" }]);
    expect(await deliver(parcelOf(Date.now(), { good: [0] }))).toEqual([{ kind: "delivered" }]);
  });
});
