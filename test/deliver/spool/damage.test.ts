import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeHeader, encodeOwner, recordStart } from "../../../src/deliver/spool/record.ts";
import { ForgetfulDisk, randomFrom } from "./forgetfulFiles.ts";
import { append, foundBy, LANE_0, numbered, numberOf, numbersIn, readAll, SpoolRig } from "./spoolRig.ts";

const OWNER = encodeOwner({ route: "aggregation", upstream: "vmagent-0", lane: LANE_0 });
const HEADER_BYTES = 72 + OWNER.length;

/** A spool with parcels 1, 2, ... of these sizes in one segment, and its process killed. */
async function written(sizes: readonly number[]) {
  const disk = new ForgetfulDisk(randomFrom(1));
  const { lane } = await SpoolRig.open(disk.start());
  await append(
    lane,
    sizes.map((size, index) => numbered(index + 1, size)),
  );
  const [path = ""] = disk.paths;
  const ends: number[] = [];
  for (const size of sizes) ends.push((ends.at(-1) ?? 0) + HEADER_BYTES + size);
  const records = sizes.map((size, index) => ({
    number: index + 1,
    start: (ends[index] ?? 0) - size - HEADER_BYTES,
    end: ends[index] ?? 0,
  }));
  return { disk, path, records };
}

interface Damage {
  /** Part of the file, from 0 to 1. */
  readonly at: number;
  readonly bytes: Uint8Array;
}

const sizes = fc.array(fc.integer({ min: 10, max: 400 }), { minLength: 1, maxLength: 12 });
const part = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const damage: fc.Arbitrary<Damage> = fc.record({
  at: part,
  bytes: fc.uint8Array({ minLength: 1, maxLength: 300 }),
});

describe("spool, files that were damaged while no process ran", () => {
  it("loses nothing but damaged records, and counts exactly what it found and lost", async () => {
    await fc.assert(
      fc.asyncProperty(
        sizes,
        fc.array(damage, { minLength: 1, maxLength: 3 }),
        async (recordSizes, damages) => {
          const { disk, path, records } = await written(recordSizes);
          const before = disk.bytesOf(path);
          const after = Buffer.from(before);
          for (const { at, bytes } of damages) Buffer.from(bytes).copy(after, Math.floor(at * after.length));
          disk.put(path, after);
          const intact = records.filter(
            ({ start, end }) => before.compare(after, start, end, start, end) === 0,
          );
          const { lane, spool, told } = await SpoolRig.open(disk.start());
          const read = await readAll(lane);
          expect(read.map(numberOf)).toEqual(intact.map(({ number }) => number));
          const samples = intact.reduce((sum, { number }) => sum + number, 0);
          expect(foundBy(spool).samples).toBe(samples + told.samples("spool_damaged"));
          lane.release(read.map(({ ticket }) => ticket));
          expect([lane.isEmpty, spool.bytes]).toEqual([true, 0]);
          await expect.poll(() => disk.paths.filter((name) => name.endsWith(".segment"))).toEqual([]);
          const aside = disk.paths.filter((name) => name.endsWith(".damaged"));
          if (intact.length === records.length) expect(aside).toEqual([]);
          // An end that looks unfinished is cut off, all other damage is kept.
          else if (spool.foundAtStart.tornBytes === 0) expect(aside).toEqual([`${path}.damaged`]);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("reports damage once, and keeps the file aside when the rest of it is released", async () => {
    const { disk, path, records } = await written([50, 50, 50]);
    disk.bytesOf(path).fill(0, records[1]?.start, (records[1]?.start ?? 0) + 20);
    const { lane, spool, told, lines } = await SpoolRig.open(disk.start());
    expect(spool.foundAtStart.damagedBytes).toBe(HEADER_BYTES + 50);
    const read = await readAll(lane);
    lane.release(read.map(({ ticket }) => ticket));
    await expect.poll(() => disk.paths).toEqual([`${path}.damaged`]);
    expect([told.drops, told.damage, lines.error.length]).toEqual([[], [], 1]);
    const next = await SpoolRig.open(disk.start());
    expect([next.lines.error, foundBy(next.spool).records, disk.paths]).toEqual([[], 0, [`${path}.damaged`]]);
  });

  it("counts a damaged payload as dropped, item by item", async () => {
    const { disk, path, records } = await written([50, 50, 50]);
    disk.bytesOf(path).fill(0, (records[1]?.end ?? 0) - 20, (records[1]?.end ?? 0) - 10);
    const { lane, told, lines } = await SpoolRig.open(disk.start());
    expect(await numbersIn(lane)).toEqual([1, 3]);
    expect(told.drops).toEqual([{ reason: "spool_damaged", replica: 0, records: 1, samples: 2 }]);
    expect(lines.error).toEqual([expect.stringMatching(/: bytes \d+ to \d+ .*: 2 samples, 1 histograms/)]);
  });
});

describe("spool, full segments of an earlier process", () => {
  /** The first of two segments has parcels 1 to 4, and is full. */
  async function fullSegment() {
    const disk = new ForgetfulDisk(randomFrom(1));
    const { lane } = await SpoolRig.open(disk.start(), {}, () => 5000);
    for (const number of [1, 2, 3, 4, 5]) await append(lane, [numbered(number, 4_000_000, number % 2)]);
    const [path = ""] = disk.paths.filter((name) => name.includes("-000000000001-"));
    return { disk, lane, path };
  }

  it("tells how much is in them without looking at the records", async () => {
    const { disk, path } = await fullSegment();
    disk.bytesOf(path).fill(0, HEADER_BYTES + 4_000_000, HEADER_BYTES + 4_000_010);
    const { lane, spool, told } = await SpoolRig.open(disk.start());
    expect(spool.foundAtStart).toMatchObject({
      replicas: [
        { replica: 1, records: 3, items: { samples: 1 + 3 + 5 } },
        { replica: 0, records: 2, items: { samples: 2 + 4 } },
      ],
      damagedBytes: 0,
    });
    expect(spool.oldestAt).toBe(5000);
    expect(await numbersIn(lane)).toEqual([1, 3, 4, 5]);
    expect(told.drops).toEqual([{ reason: "spool_damaged", replica: 0, records: 1, samples: 2 }]);
  });

  it.each([
    { name: "is damaged", change: (bytes: Buffer) => bytes.fill(0, bytes.length - 30, bytes.length - 20) },
    { name: "was not finished", change: (bytes: Buffer) => bytes.subarray(0, bytes.length - 30) },
    { name: "has lost its place", change: (bytes: Buffer) => bytes.fill(255, bytes.length - 4) },
  ])("looks at the records when the summary $name", async ({ change }) => {
    const { disk, path } = await fullSegment();
    disk.put(path, change(disk.bytesOf(path)));
    const { lane, spool, told } = await SpoolRig.open(disk.start());
    expect(foundBy(spool)).toEqual({ records: 5, samples: 15 });
    expect(await numbersIn(lane)).toEqual([1, 2, 3, 4, 5]);
    expect(told.drops).toEqual([]);
  });

  it("looks at the records of one that was released in part", async () => {
    const { disk, lane } = await fullSegment();
    const [one] = await readAll(lane);
    if (one !== undefined) lane.release([one.ticket]);
    await expect.poll(() => disk.textOf("positions")).not.toBe("");
    const next = await SpoolRig.open(disk.start());
    expect(foundBy(next.spool)).toEqual({ records: 4, samples: 14 });
    expect(await numbersIn(next.lane)).toEqual([2, 3, 4, 5]);
  });
});

describe("spool, files that are damaged while the process runs", () => {
  it("counts records whose headers are damaged as well, since it knows what it wrote", async () => {
    const disk = new ForgetfulDisk(randomFrom(1));
    const { lane, told, spool } = await SpoolRig.open(disk.start());
    await append(
      lane,
      [1, 2, 3, 4].map((number) => numbered(number, 50, number % 2)),
    );
    disk.bytesOf(disk.paths[0] ?? "").fill(0, HEADER_BYTES + 50 + 10, 2 * (HEADER_BYTES + 50) + 20);
    const read = await readAll(lane);
    expect(read.map(numberOf)).toEqual([1, 4]);
    expect(told.drops).toEqual([
      { reason: "spool_damaged", replica: 1, records: 1, samples: 3 },
      { reason: "spool_damaged", replica: 0, records: 1, samples: 2 },
    ]);
    expect(told.damage).toEqual([2 * (HEADER_BYTES + 50)]);
    lane.release(read.map(({ ticket }) => ticket));
    expect([spool.bytes, lane.isEmpty]).toEqual([0, true]);
  });
});

describe("spool, payloads that look like records", () => {
  it("does not take a record out of a payload, whatever a sender puts there", async () => {
    const facts = { ...numbered(7), appendedAt: 0 };
    const forged = numbered(7).elements;
    const record = Buffer.concat([encodeHeader(recordStart(Buffer.alloc(8)), OWNER, facts, forged), forged]);
    const disk = new ForgetfulDisk(randomFrom(1));
    const rig = await SpoolRig.open(disk.start());
    const hostile = numbered(2, 30);
    const elements = Buffer.concat([hostile.elements, record, record]);
    await append(rig.lane, [numbered(1), { ...hostile, elements }, numbered(3)]);
    disk.bytesOf(disk.paths[0] ?? "").fill(0, HEADER_BYTES + 40, HEADER_BYTES + 60);
    const next = await SpoolRig.open(disk.start());
    expect(await numbersIn(next.lane)).toEqual([1, 3]);
  });

  it("would take it with the nonce of the segment, which no sender knows", async () => {
    const disk = new ForgetfulDisk(randomFrom(1));
    const rig = await SpoolRig.open(disk.start());
    await append(rig.lane, [numbered(1)]);
    const nonce = Buffer.from(/-([0-9a-f]{16})\.segment$/.exec(disk.paths[0] ?? "")?.[1] ?? "", "hex");
    const facts = { ...numbered(7), appendedAt: 0 };
    const forged = numbered(7).elements;
    const record = Buffer.concat([encodeHeader(recordStart(nonce), OWNER, facts, forged), forged]);
    const hostile = numbered(2, 30);
    const elements = Buffer.concat([hostile.elements, record]);
    await append(rig.lane, [{ ...hostile, elements }]);
    disk.bytesOf(disk.paths[0] ?? "").fill(0, HEADER_BYTES + 40, HEADER_BYTES + 60);
    const next = await SpoolRig.open(disk.start());
    expect(await numbersIn(next.lane)).toEqual([1, 7]);
  });
});
