import { execFileSync } from "node:child_process";
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { diskFiles } from "../../../src/deliver/spool/diskFiles.ts";
import { encodeHeader, encodeOwner, recordStart } from "../../../src/deliver/spool/record.ts";
import { formatSegmentName } from "../../../src/deliver/spool/segmentName.ts";
import { buildSpoolProcess, SpoolProcess } from "./childProcess.ts";
import { killWriters } from "./killLoop.ts";
import { append, LANE_0, MIB, numbered, numberOf, numbersIn, readAll, SpoolRig } from "./spoolRig.ts";

let folder = "";
let program = "";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "spool-"));
  program = await buildSpoolProcess(join(folder, "program"));
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

function openFiles(): number {
  return readdirSync("/proc/self/fd").length;
}

describe("spool on a real disk", () => {
  it("gives out after a restart what was appended, whole and in order", async () => {
    const path = join(folder, "restart");
    const rig = await SpoolRig.open(diskFiles, { path });
    const sizes = [40, 70_000, 300_000, 1, 2 * MIB].map((size) => Math.max(size, 10));
    await append(
      rig.lane,
      sizes.map((size, index) => numbered(index + 1, size)),
    );
    await rig.store.close();
    const next = await SpoolRig.open(diskFiles, { path });
    const read = await readAll(next.lane);
    expect(read.map(numberOf)).toEqual([1, 2, 3, 4, 5]);
    expect(read.map(({ parcel }) => parcel.elements.length)).toEqual(sizes);
    next.lane.release(read.map(({ ticket }) => ticket));
    await next.store.close();
    expect(readdirSync(join(path, "0/aggregation/vmagent-0"))).toEqual([]);
    expect(readdirSync(join(path, "0"))).toEqual(["aggregation"]);
  });

  it("keeps no file open, whatever number of tenants has something in it", async () => {
    const { spool, store } = await SpoolRig.open(diskFiles, { path: join(folder, "tenants") });
    const before = openFiles();
    const streams = Array.from({ length: 300 }, (_, index) =>
      spool.stream({ number: 0, tenant: `team ${index}` }),
    );
    await Promise.all(streams.map((stream, index) => append(stream, [numbered(index + 1)])));
    expect(openFiles()).toBe(before);
    for (const stream of streams) stream.release((await readAll(stream)).map(({ ticket }) => ticket));
    expect(spool.bytes).toBe(0);
    await store.close();
    expect(readdirSync(join(folder, "tenants/0/aggregation/vmagent-0"))).toEqual([]);
  });

  it("makes its folder again when somebody removed it, and counts what was lost", async () => {
    const path = join(folder, "removed");
    let now = 0;
    const { lane, store, told } = await SpoolRig.open(diskFiles, { path }, () => now);
    await append(lane, [numbered(1), numbered(2)]);
    rmSync(join(path, "0/aggregation"), { recursive: true });
    expect((await append(lane, [numbered(3)])).kind).toBe("failed");
    now += 1000;
    expect((await append(lane, [numbered(4)])).kind).toBe("synced");
    expect([await numbersIn(lane), told.samples("spool_damaged")]).toEqual([[4], 3]);
    await store.close();
  });

  it("says what is wrong with a folder that cannot be used", async () => {
    const path = join(folder, "file");
    closeSync(openSync(path, "w"));
    await expect(SpoolRig.open(diskFiles, { path })).rejects.toMatchObject({
      code: "SPOOL_UNUSABLE",
      message: expect.stringContaining(`spool.path ${path}: `) as string,
    });
  });
});

describe("spool, full disk", () => {
  it("refuses what does not fit, goes on reading, and takes more when there is room again", async () => {
    const path = join(folder, "small");
    mkdirSync(path);
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=10m", "tmpfs", path], { stdio: "pipe" });
    } catch (error) {
      // Without the right to mount there is no full disk to be had; disk.capacity in spool.test.ts stands in for it.
      process.stderr.write(`no full disk was tried: ${String(error)}\n`);
      return;
    }
    try {
      let now = 0;
      const { lane, store, told } = await SpoolRig.open(diskFiles, { path }, () => now);
      let number = 0;
      const accepted: number[] = [];
      for (let kind = "synced"; kind === "synced";) {
        number += 1;
        ({ kind } = await append(lane, [numbered(number, 400_000)]));
        if (kind === "synced") accepted.push(number);
      }
      expect(accepted.length).toBeGreaterThan(20);
      const read = await readAll(lane);
      expect(read.map(numberOf)).toEqual(accepted);
      lane.release(read.map(({ ticket }) => ticket));
      now += 1000;
      expect((await append(lane, [numbered(1000, 400_000)])).kind).toBe("synced");
      expect([await numbersIn(lane), told.drops]).toEqual([[1000], []]);
      await store.close();
    } finally {
      execFileSync("umount", [path]);
    }
  });
});

describe("spool, folder that another process has", () => {
  it("is refused while that process lives, and free at once when it was killed", async () => {
    const path = join(folder, "held");
    const holder = new SpoolProcess(program, ["hold", path]);
    await holder.said(1);
    await expect(SpoolRig.open(diskFiles, { path })).rejects.toMatchObject({
      code: "SPOOL_IN_USE",
      message: expect.stringContaining(`is in use by process ${holder.pid}, which is alive`) as string,
    });
    await holder.kill();
    const before = performance.now();
    const { store } = await SpoolRig.open(diskFiles, { path });
    expect(performance.now() - before).toBeLessThan(2000);
    await expect(SpoolRig.open(diskFiles, { path })).rejects.toMatchObject({ code: "SPOOL_IN_USE" });
    await store.close();
  });
});

describe("spool, process killed while it writes and delivers", () => {
  it("has everything that was acknowledged and not delivered, in order, once", async () => {
    const { synced, delivered, lost, left, errors } = await killWriters(program, join(folder, "killed"), 10);
    expect(synced).toBeGreaterThan(100);
    expect(delivered).toBeGreaterThan(0);
    expect([lost, errors]).toEqual([[], []]);
    expect(left).toEqual([...new Set(left)].toSorted((one, other) => one - other));
  }, 60_000);
});

describe("spool, big backlog", () => {
  /** Files full of holes: they have their size, and cost nothing. */
  function writeBacklog(path: string, segments: number, recordsEach: number, payloadBytes: number): void {
    const upstream = join(path, "0/aggregation/vmagent-0");
    mkdirSync(upstream, { recursive: true });
    const owner = encodeOwner({ route: "aggregation", upstream: "vmagent-0", lane: LANE_0 });
    const payload = Buffer.alloc(payloadBytes);
    const facts = { ...numbered(1), appendedAt: 1 };
    for (let sequence = 1; sequence <= segments; sequence++) {
      const nonce = Buffer.alloc(8, sequence);
      const header = encodeHeader(recordStart(nonce), owner, { ...facts, plainBytes: payloadBytes }, payload);
      const nonceText = nonce.toString("hex");
      const name = formatSegmentName({
        stream: "0-none",
        sequence,
        previous: sequence - 1,
        nonce: nonceText,
      });
      const file = openSync(join(upstream, name), "w");
      for (let record = 0; record < recordsEach; record++) {
        writeSync(file, header, 0, header.length, record * (header.length + payloadBytes));
      }
      ftruncateSync(file, recordsEach * (header.length + payloadBytes));
      closeSync(file);
    }
  }

  it("is opened by reading headers only, and read in memory that does not grow with it", async () => {
    const path = join(folder, "backlog");
    writeBacklog(path, 20, 1500, 10_240);
    const reader = new SpoolProcess(program, ["read", path], ["--max-old-space-size=64"]);
    expect(await reader.ended()).toBe(0);
    const told = JSON.parse(reader.lines[0] ?? "") as { records: number; read: number; maxRssBytes: number };
    expect(told).toMatchObject({ records: 30_000, read: 30_000 });
    expect(told.maxRssBytes).toBeLessThan(200 * MIB);
  }, 60_000);
});
