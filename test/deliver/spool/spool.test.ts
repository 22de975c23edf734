import { describe, expect, it } from "vitest";
import { ForgetfulDisk } from "./forgetfulFiles.ts";
import {
  ALL,
  append,
  foundBy,
  LANE_0,
  MIB,
  numbered,
  numberOf,
  numbersIn,
  OPTIONS,
  readAll,
  SpoolRig,
} from "./spoolRig.ts";
import type { SpoolOptions } from "../../../src/deliver/spool/options.ts";
import { SpoolStore } from "../../../src/deliver/spool/spoolStore.ts";
import type { SpoolStream } from "../../../src/deliver/spool/spoolStream.ts";
import type { Parcel } from "../../../src/wire/parcel.ts";

interface Opened extends SpoolRig {
  readonly disk: ForgetfulDisk;
  readonly clock: { now: number };
}

/** Opens a spool; again, with the disk of the one before, as the next process would after a kill. */
async function open(
  options: Partial<SpoolOptions> = {},
  disk = new ForgetfulDisk(Math.random),
): Promise<Opened> {
  const clock = { now: 1_000_000 };
  const rig = await SpoolRig.open(disk.start(), options, () => clock.now);
  return Object.assign(rig, { disk, clock });
}

function numberedAll(...numbers: number[]) {
  return numbers.map((number) => numbered(number));
}

async function heldTickets(rig: SpoolRig, ...numbers: number[]) {
  const end = await append(rig.lane, numberedAll(...numbers), true);
  if (end.kind !== "synced") throw new Error(end.cause);
  return end.tickets;
}

describe("spool stream", () => {
  it("gives out what was appended, in order, with all that is known of it", async () => {
    const { lane } = await open();
    const parcels = [numbered(1), numbered(2, 100, 1), numbered(3)];
    expect(await append(lane, parcels)).toEqual({ kind: "synced", tickets: [] });
    const comparable = (parcel: Parcel) => ({ ...parcel, elements: Buffer.from(parcel.elements) });
    const read = (await readAll(lane)).map(({ parcel }) => comparable(parcel));
    expect(read).toEqual(parcels.map(comparable));
  });

  it("stops before a parcel that exceeds the limits, and gives one that does so alone", async () => {
    const { lane } = await open();
    await append(lane, numberedAll(1, 2, 3, 90, 4));
    const batches = [];
    while (lane.hasUnread) batches.push((await lane.next({ ...ALL, maxItems: 6 })).map(numberOf));
    expect(batches).toEqual([[1, 2], [3], [90], [4]]);
    await append(lane, numberedAll(5, 6, 7));
    expect((await lane.next({ ...ALL, maxPlainBytes: 160 })).map(numberOf)).toEqual([5, 6]);
  });

  it("leaves free bytes before the elements, in the same buffer", async () => {
    const { lane } = await open();
    await append(lane, [numbered(1, 5000)]);
    const [read] = await lane.next(ALL);
    expect(read?.parcel.elements.byteOffset).toBeGreaterThanOrEqual(8);
  });

  it("throws when a record is released twice", async () => {
    const { lane } = await open();
    await append(lane, numberedAll(1, 2, 3));
    const tickets = (await readAll(lane)).map(({ ticket }) => ticket);
    for (const index of [0, 2]) {
      const once = tickets.slice(index, index + 1);
      lane.release(once);
      expect(() => {
        lane.release(once);
      }).toThrow("released twice");
    }
  });

  it("tells when its oldest record was appended", async () => {
    const { lane, spool, clock } = await open();
    expect(spool.oldestAt).toBeNull();
    await append(lane, numberedAll(1));
    clock.now += 5000;
    await append(lane, numberedAll(2));
    expect(spool.oldestAt).toBe(1_000_000);
  });

  it("has no file when all is released, in whatever order", async () => {
    const { lane, disk, spool, store } = await open();
    await append(lane, numberedAll(1, 2, 3));
    const tickets = (await readAll(lane)).map(({ ticket }) => ticket);
    for (const index of [2, 0]) lane.release(tickets.slice(index, index + 1));
    await expect.poll(() => disk.paths.filter((path) => path.endsWith(".segment"))).toHaveLength(1);
    expect(lane.isEmpty).toBe(false);
    lane.release(tickets.slice(1, 2));
    expect([lane.isEmpty, spool.bytes]).toEqual([true, 0]);
    await store.close();
    expect(disk.paths).toEqual([]);
  });

  it("is the same one until it is forgotten, and is not forgotten while it has something", async () => {
    const { lane, spool } = await open();
    expect(spool.stream({ ...LANE_0 })).toBe(lane);
    const ended = append(lane, numberedAll(1));
    spool.forget(LANE_0);
    expect(spool.stream(LANE_0)).toBe(lane);
    await ended;
    lane.release((await readAll(lane)).map(({ ticket }) => ticket));
    spool.forget(LANE_0);
    expect(spool.stream(LANE_0)).not.toBe(lane);
  });

  it("makes segments of 16 MiB, and keeps the parcels of one append together", async () => {
    const { lane, disk } = await open();
    const size = 3 * 1024 * 1024;
    for (let number = 1; number <= 8; number++) await append(lane, [numbered(number, size)]);
    await append(
      lane,
      Array.from({ length: 7 }, (_, index) => numbered(9 + index, size)),
    );
    const segments = disk.paths.map((path) => Math.floor(disk.bytesOf(path).length / size));
    expect(segments.toSorted((left, right) => left - right)).toEqual([3, 5, 7]);
    expect(await numbersIn(lane, { ...ALL, maxPlainBytes: 1 })).toEqual(
      [...Array(15).keys()].map((at) => at + 1),
    );
  });
});

describe("spool, several appends at a time", () => {
  it("writes each stream once and syncs each file once, and the folder once for new files", async () => {
    const { spool, disk } = await open();
    const streams = [0, 1, 2].map((number) => spool.stream({ number, tenant: null }));
    await Promise.all(
      streams.flatMap((stream) => [1, 2, 3].map((number) => append(stream, [numbered(number)]))),
    );
    expect(disk.calls).toEqual({ open: 3, write: 3, sync: 3, syncFolder: 1 });
    await Promise.all(streams.map((stream) => append(stream, [numbered(4)])));
    expect(disk.calls).toEqual({ open: 6, write: 6, sync: 6, syncFolder: 1 });
  });

  it("takes all that comes during a commit into the next one", async () => {
    const { lane, disk } = await open();
    const first = append(lane, [numbered(1)]);
    await expect.poll(() => disk.calls.write).toBe(1);
    const others = Array.from({ length: 100 }, (_, index) => append(lane, [numbered(2 + index)]));
    await Promise.all([first, ...others]);
    expect(disk.calls.sync).toBe(2);
    expect(await numbersIn(lane)).toEqual(Array.from({ length: 101 }, (_, index) => index + 1));
  });
});

describe("spool, parcels that the caller holds", () => {
  it("does not give them out", async () => {
    const rig = await open();
    const tickets = await heldTickets(rig, 1, 2);
    await append(rig.lane, numberedAll(3));
    expect(tickets).toHaveLength(2);
    const read = await readAll(rig.lane);
    expect(read.map(numberOf)).toEqual([3]);
    rig.lane.release(read.map(({ ticket }) => ticket));
    expect(rig.lane.isEmpty).toBe(false);
    rig.lane.release(tickets);
    expect(rig.lane.isEmpty).toBe(true);
  });

  it("has them for the next process if this one is killed", async () => {
    const rig = await open();
    await heldTickets(rig, 1, 2);
    const next = await open({}, rig.disk);
    expect(next.spool.found).toEqual([LANE_0]);
    expect(await numbersIn(next.lane)).toEqual([1, 2]);
  });
});

describe("spool, no room", () => {
  const maxBytesPerUpstream = 1000;

  it("refuses all of an append that does not fit, saying why, and takes what fits", async () => {
    const { lane, told, disk } = await open({ maxBytesPerUpstream });
    await append(lane, [numbered(1, 500)]);
    expect(await append(lane, [numbered(2, 40), numbered(3, 300)])).toEqual({
      kind: "full",
      cause:
        "spool of aggregation/vmagent-0 is full: no room for 556 B, 608 B of spool.max_bytes_per_upstream 1000 B are used",
    });
    await append(lane, [numbered(4, 40)]);
    expect(await numbersIn(lane)).toEqual([1, 4]);
    expect(told.drops).toEqual([]);
    expect(disk.used).toBeLessThanOrEqual(maxBytesPerUpstream);
  });

  it("counts appends under way, and room that failed appends gave back", async () => {
    const { lane, disk, spool } = await open({ maxBytesPerUpstream });
    const ends = await Promise.all([append(lane, [numbered(1, 500)]), append(lane, [numbered(2, 500)])]);
    expect(ends.map(({ kind }) => kind)).toEqual(["synced", "full"]);
    lane.release((await readAll(lane)).map(({ ticket }) => ticket));
    disk.fault = (call) => (call === "write" ? "EIO" : null);
    expect((await append(lane, [numbered(3, 500)])).kind).toBe("failed");
    expect(spool.bytes).toBe(0);
  });

  it("keeps to the bound of all upstreams", async () => {
    const { lane, store } = await open({ maxBytes: 1000, maxBytesPerUpstream: 900 });
    const other = store.upstream("archive", "store", { dropped: () => undefined, damaged: () => undefined });
    await append(other.stream(LANE_0), [numbered(1, 600)]);
    expect(await append(lane, [numbered(2, 600)])).toMatchObject({
      kind: "full",
      cause: /of spool\.max_bytes 1000 B/,
    });
  });

  it("drops the oldest records if it is told to, and counts them", async () => {
    const rig = await open({ maxBytesPerUpstream, whenFull: "drop_oldest" });
    await append(rig.lane, [numbered(1, 300), numbered(2, 200, 1)]);
    expect((await append(rig.lane, [numbered(3, 700)])).kind).toBe("synced");
    expect(rig.told.drops).toEqual([
      { reason: "spool_full", replica: 0, records: 1, samples: 1 },
      { reason: "spool_full", replica: 1, records: 1, samples: 2 },
    ]);
    expect(await numbersIn(rig.lane)).toEqual([3]);
    expect(rig.disk.paths).toHaveLength(1);
  });

  it("drops of the stream that has most", async () => {
    const { spool, told } = await open({ maxBytesPerUpstream, whenFull: "drop_oldest" });
    const [small, large, third] = [0, 1, 2].map((number) => spool.stream({ number, tenant: null }));
    if (small === undefined || large === undefined || third === undefined) throw new Error("no streams");
    await append(small, [numbered(1, 40)]);
    await append(large, [numbered(2, 400)]);
    await append(third, [numbered(3, 300)]);
    expect(told.drops).toEqual([{ reason: "spool_full", replica: 0, records: 1, samples: 2 }]);
    expect(await numbersIn(small)).toEqual([1]);
    expect(large.isEmpty).toBe(true);
  });

  it("leaves tickets good that are out, and is not empty until they come back", async () => {
    const rig = await open({ maxBytesPerUpstream, whenFull: "drop_oldest" });
    await append(rig.lane, [numbered(1, 300), numbered(2, 300)]);
    const [one] = await rig.lane.next({ ...ALL, maxItems: 1 });
    await append(rig.lane, [numbered(3, 700)]);
    expect(rig.told.drops).toEqual([{ reason: "spool_full", replica: 0, records: 1, samples: 2 }]);
    rig.lane.release((await readAll(rig.lane)).map(({ ticket }) => ticket));
    expect(rig.lane.isEmpty).toBe(false);
    if (one !== undefined) rig.lane.release([one.ticket]);
    expect(rig.lane.isEmpty).toBe(true);
    expect(rig.told.drops).toHaveLength(1);
  });

  it("refuses, without dropping anything, what would not fit in an empty spool", async () => {
    const { lane, told } = await open({ maxBytesPerUpstream, whenFull: "drop_oldest" });
    await append(lane, numberedAll(1));
    expect((await append(lane, [numbered(2, 1000)])).kind).toBe("full");
    expect(told.drops).toEqual([]);
  });
});

describe("spool, disk that fails", () => {
  it("writes to a new segment what could not be synced, and never syncs that file again", async () => {
    const { lane, disk, lines } = await open();
    await append(lane, numberedAll(1));
    const first = disk.paths[0];
    disk.fault = (call, path) => (call === "sync" && path === first ? "EIO" : null);
    expect((await append(lane, numberedAll(2))).kind).toBe("synced");
    disk.fault = () => null;
    expect((await append(lane, numberedAll(3))).kind).toBe("synced");
    expect(disk.syncedAgain).toEqual([]);
    expect(await numbersIn(lane)).toEqual([1, 2, 3]);
    expect(lines.error).toEqual([]);
  });

  it("ends what could not be written there either as failed, and neither gives it out now nor after a restart", async () => {
    const { lane, disk, lines } = await open();
    await append(lane, numberedAll(1));
    disk.fault = (call) => (call === "sync" ? "EIO" : null);
    const end = await append(lane, numberedAll(2, 3));
    expect(end).toMatchObject({ kind: "failed", cause: /^spool of aggregation\/vmagent-0: EIO: / });
    expect(lines.error).toHaveLength(1);
    expect(await numbersIn(lane)).toEqual([1]);
    const next = await open({}, disk);
    expect(await numbersIn(next.lane)).toEqual([1]);
  });

  it("fails at once for a second, and then tries again", async () => {
    const { lane, disk, clock, lines } = await open();
    disk.fault = (call) => (call === "open" ? "EMFILE" : null);
    expect((await append(lane, numberedAll(1))).kind).toBe("failed");
    disk.fault = () => null;
    clock.now += 999;
    const { open: opens } = disk.calls;
    expect((await append(lane, numberedAll(2))).kind).toBe("failed");
    expect(disk.calls.open).toBe(opens);
    clock.now += 1;
    expect((await append(lane, numberedAll(3))).kind).toBe("synced");
    expect(lines.info).toEqual(["spool of aggregation/vmagent-0: can be written again"]);
    expect(await numbersIn(lane)).toEqual([3]);
  });

  it("fails what is in new files when their names cannot be synced", async () => {
    const { lane, disk, spool } = await open();
    disk.fault = (call) => (call === "syncFolder" ? "EIO" : null);
    expect((await append(lane, numberedAll(1))).kind).toBe("failed");
    expect([lane.isEmpty, spool.bytes, disk.paths]).toEqual([true, 0, []]);
  });

  it("goes on reading and releasing when the disk is full, and takes more when there is room again", async () => {
    const { lane, disk, clock } = await open();
    for (const number of [1, 2, 3]) await append(lane, [numbered(number, 1000)]);
    disk.capacity = disk.used + 500;
    expect((await append(lane, [numbered(4, 1000)])).kind).toBe("failed");
    lane.release((await readAll(lane)).map(({ ticket }) => ticket));
    clock.now += 1000;
    expect((await append(lane, [numbered(5, 1000)])).kind).toBe("synced");
    expect(await numbersIn(lane)).toEqual([5]);
  });

  it("tells that records cannot be read, and gives them out later", async () => {
    const { lane, disk } = await open();
    await append(lane, numberedAll(1, 2));
    disk.fault = (call) => (call === "read" ? "EIO" : null);
    await expect(lane.next(ALL)).rejects.toMatchObject({ code: "SPOOL_UNREADABLE" });
    disk.fault = () => null;
    expect(await numbersIn(lane)).toEqual([1, 2]);
  });

  it("drops what cannot be read for a minute, and goes on with the next segment", async () => {
    const rig = await open();
    await append(rig.lane, numberedAll(1, 2));
    const [first] = rig.disk.paths;
    const next = await open({}, rig.disk);
    await append(next.lane, numberedAll(4));
    rig.disk.fault = (call, path) => (call === "read" && path === first ? "EIO" : null);
    for (const ms of [0, 30_000, 29_999]) {
      next.clock.now += ms;
      await expect(next.lane.next(ALL)).rejects.toMatchObject({ code: "SPOOL_UNREADABLE" });
    }
    next.clock.now += 1;
    expect(await numbersIn(next.lane)).toEqual([4]);
    expect(next.told.samples("spool_damaged")).toBe(3);
    expect(next.disk.paths).toContain(`${first ?? ""}.damaged`);
  });

  it("drops nothing when it has no file descriptors to read with, however long", async () => {
    const { lane, disk, clock, told } = await open();
    await append(lane, numberedAll(1, 2));
    disk.fault = (call) => (call === "open" ? "EMFILE" : null);
    for (let minute = 0; minute < 10; minute++) {
      await expect(lane.next(ALL)).rejects.toMatchObject({ code: "SPOOL_UNREADABLE" });
      clock.now += 60_000;
    }
    disk.fault = () => null;
    expect([await numbersIn(lane), told.drops]).toEqual([[1, 2], []]);
  });

  it("drops what somebody removed, and counts it", async () => {
    const { lane, disk, told } = await open();
    await append(lane, numberedAll(1, 2));
    for (const path of disk.paths) disk.remove(path);
    expect(await numbersIn(lane)).toEqual([]);
    expect([told.samples("spool_damaged"), lane.isEmpty]).toEqual([3, true]);
  });

  it("closes what it opens", async () => {
    const { lane, disk } = await open();
    for (const call of ["write", "sync", "read", "truncate"] as const) {
      disk.fault = (now) => (now === call ? "EIO" : null);
      await append(lane, numberedAll(1));
      await lane.next(ALL).catch(() => []);
      expect(disk.openFiles).toBe(0);
    }
  });
});

describe("spool, opened again", () => {
  it("finds streams, counts and bytes of the process before", async () => {
    const { lane, spool, disk } = await open();
    await append(lane, [numbered(1), numbered(2, 40, 1)]);
    await append(spool.stream({ number: 3, tenant: "team/ä" }), numberedAll(4));
    const { bytes } = spool;
    const next = await open({}, disk);
    expect(next.spool.found).toEqual(expect.arrayContaining([LANE_0, { number: 3, tenant: "team/ä" }]));
    expect(next.spool.foundAtStart).toEqual({
      replicas: [
        { replica: 0, records: 2, items: { samples: 5, histograms: 2, exemplars: 0 } },
        { replica: 1, records: 1, items: { samples: 2, histograms: 1, exemplars: 0 } },
      ],
      tornBytes: 0,
      damagedBytes: 0,
    });
    expect(next.spool.bytes).toBe(bytes);
    expect(next.spool.oldestAt).toBe(1_000_000);
    expect(next.lines.info).toEqual(["spool of aggregation/vmagent-0: 3 records (451 B) wait from before"]);
  });

  it("gives out what it finds before what is new", async () => {
    const rig = await open();
    await append(rig.lane, numberedAll(1, 2));
    const next = await open({}, rig.disk);
    await append(next.lane, numberedAll(3));
    expect(await numbersIn(next.lane)).toEqual([1, 2, 3]);
  });

  it("does not give out again what was released a second before a kill, or before a close", async () => {
    const rig = await open();
    await append(rig.lane, numberedAll(1, 2, 3, 4, 5));
    const tickets = (await readAll(rig.lane)).map(({ ticket }) => ticket);
    rig.lane.release(tickets.slice(0, 1));
    rig.clock.now += 1000;
    rig.lane.release(tickets.slice(1, 2));
    const noted = new RegExp(`segment ${(2 * rig.spool.bytes) / 5}\n`);
    await expect.poll(() => rig.disk.textOf("positions")).toMatch(noted);
    rig.lane.release(tickets.slice(2, 3));
    const next = await open({}, rig.disk);
    const [three, four] = await readAll(next.lane);
    expect([three, four].map((parcel) => parcel && numberOf(parcel))).toEqual([3, 4]);
    if (three !== undefined) next.lane.release([three.ticket]);
    if (four !== undefined) next.lane.release([four.ticket]);
    await next.store.close();
    const last = await open({}, rig.disk);
    expect(await numbersIn(last.lane)).toEqual([5]);
  });

  it("cuts off what the process before had not finished writing, without an error", async () => {
    const rig = await open();
    await append(rig.lane, numberedAll(1));
    await new Promise<void>((resolve) => {
      rig.disk.fault = (call) => {
        if (call !== "write") return null;
        rig.disk.kill();
        resolve();
        return null;
      };
      void append(rig.lane, [numbered(2, 3000)]);
    });
    rig.disk.fault = () => null;
    const next = await open({}, rig.disk);
    expect(next.spool.foundAtStart).toMatchObject({
      tornBytes: expect.any(Number) as number,
      damagedBytes: 0,
    });
    expect(next.spool.foundAtStart.tornBytes).toBeGreaterThan(900);
    expect(await numbersIn(next.lane)).toEqual([1]);
    expect([next.lines.error, next.lines.warn.length]).toEqual([[], 1]);
    const last = await open({}, rig.disk);
    expect(last.spool.foundAtStart.tornBytes).toBe(0);
  });

  it("reports a segment that is missing between others", async () => {
    const size = 9 * 1024 * 1024;
    const rig = await open();
    for (const number of [1, 2, 3]) await append(rig.lane, [numbered(number, size)]);
    const middle = rig.disk.paths.find((path) => path.includes("-000000000002-"));
    rig.disk.remove(middle ?? "");
    const next = await open({}, rig.disk);
    expect(next.lines.error).toEqual([
      expect.stringContaining("segment 2 of 0-none is missing, between 1 and 3"),
    ]);
  });

  it("leaves files alone that are not its own", async () => {
    const rig = await open();
    await append(rig.lane, numberedAll(1));
    const folder = (rig.disk.paths[0] ?? "").replace(/[^/]*$/, "");
    rig.disk.put(`${folder}README`, Buffer.from("hello"));
    const next = await open({}, rig.disk);
    expect(await numbersIn(next.lane)).toEqual([1]);
    expect(rig.disk.paths).toContain(`${folder}README`);
  });

  it("does not take records for another upstream, whose file stands in the folder", async () => {
    const rig = await open();
    const other = rig.store.upstream("aggregation", "vmagent-1", rig.told);
    await append(other.stream(LANE_0), numberedAll(1));
    await append(rig.lane, numberedAll(2));
    const [path] = rig.disk.paths.filter((name) => name.includes("vmagent-1"));
    rig.disk.put((path ?? "").replace("vmagent-1", "vmagent-0"), rig.disk.bytesOf(path ?? ""));
    const next = await open({}, rig.disk);
    expect(await numbersIn(next.lane)).toEqual([2]);
    expect(next.spool.foundAtStart.damagedBytes).toBeGreaterThan(100);
  });
});

describe("spool store", () => {
  it("tells what upstreams left behind that nobody asks for, and drops it", async () => {
    const rig = await open();
    const gone = rig.store.upstream("archive", "old/store", rig.told);
    await append(gone.stream(LANE_0), numberedAll(1, 2));
    await append(rig.lane, numberedAll(3));
    const next = await open({ maxBytes: gone.bytes + rig.spool.bytes }, rig.disk);
    expect(next.store.orphans()).toEqual([
      { route: "archive", upstream: "old/store", records: 2, bytes: gone.bytes },
    ]);
    expect((await append(next.lane, numberedAll(4))).kind).toBe("full");
    await next.store.dropOrphans();
    expect(next.store.orphans()).toEqual([]);
    expect(rig.disk.paths.filter((path) => path.includes("archive"))).toEqual([]);
    expect((await append(next.lane, numberedAll(5))).kind).toBe("synced");
    expect(await numbersIn(next.lane)).toEqual([3, 5]);
  });

  it("gives an orphan to who asks for it after all", async () => {
    const rig = await open();
    await append(rig.store.upstream("archive", "store", rig.told).stream(LANE_0), numberedAll(1));
    const next = await open({}, rig.disk);
    const spool = next.store.upstream("archive", "store", next.told);
    expect(next.store.orphans()).toEqual([]);
    expect(await numbersIn(spool.stream(LANE_0))).toEqual([1]);
  });

  it("finishes appends when it is closed, and fails later ones", async () => {
    const rig = await open();
    const ended = append(rig.lane, numberedAll(1));
    await rig.store.close();
    expect((await ended).kind).toBe("synced");
    expect(await append(rig.lane, numberedAll(2))).toEqual({
      kind: "failed",
      cause: "spool of aggregation/vmagent-0: the spool is closed",
    });
  });

  it("keeps upstreams of any names apart", async () => {
    const rig = await open();
    const names = ["..", ".", "", "a/b", "a%2fb", "a b", "ä", "x".repeat(300), `${"x".repeat(299)}y`];
    for (const [index, name] of names.entries()) {
      const spool = rig.store.upstream(name, "u", rig.told);
      await append(spool.stream(LANE_0), numberedAll(index + 1));
    }
    const next = await open({}, rig.disk);
    expect(
      next.store
        .orphans()
        .map(({ route }) => route)
        .toSorted(),
    ).toEqual(names.toSorted());
    for (const [index, name] of names.entries()) {
      const spool = next.store.upstream(name, "u", next.told);
      expect(await numbersIn(spool.stream(LANE_0))).toEqual([index + 1]);
    }
    expect(rig.disk.paths.filter((path) => !/^\/spool\/0\/[^/]{1,255}\/u\/[^/]{1,255}$/.test(path))).toEqual(
      [],
    );
  });
});

describe("the spool of an upstream that is given back", () => {
  async function giveBack(rig: Opened): Promise<SpoolStream> {
    await rig.store.release("aggregation", "vmagent-0");
    return rig.store.upstream("aggregation", "vmagent-0", rig.told).stream(LANE_0);
  }

  it("may be asked for again then, not before, and has what was appended and not read", async () => {
    const rig = await open();
    await append(rig.lane, numberedAll(1, 2));
    expect(() => rig.store.upstream("aggregation", "vmagent-0", rig.told)).toThrow("asked for twice");
    expect(await numbersIn(await giveBack(rig))).toEqual([1, 2]);
  });

  it("has what was read, or held, and not released, in order, and nothing else", async () => {
    const rig = await open();
    await heldTickets(rig, 1, 2);
    await append(rig.lane, numberedAll(3, 4, 5, 6));
    const tickets = (await readAll(rig.lane)).map(({ ticket }) => ticket);
    rig.lane.release(tickets.slice(1, 3));
    const again = await giveBack(rig);
    const read = await readAll(again);
    expect(read.map(numberOf)).toEqual([1, 2, 3, 6]);
    again.release(read.map(({ ticket }) => ticket));
    expect([again.isEmpty, rig.store.bytes]).toEqual([true, 0]);
  });

  it("has it over several files too, some of them read to their end", async () => {
    const rig = await open();
    const size = 6 * MIB;
    for (let number = 1; number <= 8; number++) await append(rig.lane, [numbered(number, size)]);
    const tickets = (await readAll(rig.lane)).map(({ ticket }) => ticket);
    rig.lane.release([0, 3, 5, 7].flatMap((at) => tickets.slice(at, at + 1)));
    const again = await giveBack(rig);
    expect(await numbersIn(again)).toEqual([2, 3, 5, 7]);
    await append(again, numberedAll(9));
    expect(await numbersIn(await giveBack(rig))).toEqual([2, 3, 5, 7, 9]);
  });

  it("waits for what is being written and read", async () => {
    const rig = await open();
    await append(rig.lane, numberedAll(1, 2));
    const reading = rig.lane.next(ALL);
    const written = append(rig.lane, numberedAll(3));
    const again = await giveBack(rig);
    expect([(await reading).length, (await written).kind]).toEqual([2, "synced"]);
    expect(await numbersIn(again)).toEqual([1, 2, 3]);
  });

  it("drops, and counts, what was in the caller's hands of a file that had to make room", async () => {
    const rig = await open({ whenFull: "drop_oldest", maxBytesPerUpstream: 10 * MIB });
    await append(rig.lane, [numbered(1, 6 * MIB)]);
    await readAll(rig.lane);
    await append(rig.lane, [numbered(2, 6 * MIB)]);
    expect(rig.told.drops).toEqual([]);
    expect(await numbersIn(await giveBack(rig))).toEqual([2]);
    expect(rig.told.samples("spool_full")).toBe(1);
  });

  it("is an orphan until it is asked for, which a drop of orphans leaves alone, and is found at the next start", async () => {
    const rig = await open();
    await append(rig.lane, numberedAll(1, 2, 3));
    await rig.store.release("aggregation", "vmagent-0");
    const orphan = { route: "aggregation", upstream: "vmagent-0", records: 3 };
    expect(rig.store.orphans()).toMatchObject([orphan]);
    await rig.store.dropOrphans();
    await rig.store.close();
    const next = await open({}, rig.disk);
    expect(foundBy(next.spool)).toEqual({ records: 3, samples: 6 });
  });

  it("tells what the start found once only", async () => {
    const first = await open();
    await append(first.lane, numberedAll(1, 2));
    await first.store.close();
    const rig = await open({}, first.disk);
    expect(foundBy(rig.spool).records).toBe(2);
    const again = await giveBack(rig);
    expect(foundBy(rig.spool).records).toBe(0);
    expect(rig.spool.found).toEqual([LANE_0]);
    expect(await numbersIn(again)).toEqual([1, 2]);
  });

  it("does not tell of orphans that were dropped", async () => {
    const first = await open();
    await append(first.lane, numberedAll(1, 2));
    await first.store.close();
    const tools = { files: first.disk.start(), now: () => 0, random: Math.random, log: first.lines.log };
    const store = await SpoolStore.open(OPTIONS, tools);
    expect(store.orphans()).toHaveLength(1);
    await store.dropOrphans();
    const spool = store.upstream("aggregation", "vmagent-0", first.told);
    expect([foundBy(spool).records, spool.found, spool.bytes]).toEqual([0, [], 0]);
  });

  it("costs nothing for each time, and a loss of power is survived as ever", async () => {
    const rig = await open();
    let lane = rig.lane;
    for (let round = 1; round <= 1_000; round++) {
      if (round % 100 === 0) await append(lane, [numbered(round)]);
      lane = await giveBack(rig);
      if (round % 200 === 0) lane.release((await readAll(lane)).map(({ ticket }) => ticket));
    }
    expect([lane.isEmpty, rig.store.bytes, rig.store.orphans()]).toEqual([true, 0, []]);
    await append(lane, numberedAll(7));
    await rig.store.release("aggregation", "vmagent-0");
    rig.disk.cutPower();
    const next = await open({}, rig.disk);
    expect(await numbersIn(next.lane)).toEqual([7]);
    expect(next.lines.error).toEqual([]);
  });
});
