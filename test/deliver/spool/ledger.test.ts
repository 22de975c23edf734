import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SpooledParcel } from "../../../src/deliver/spool/readBatch.ts";
import type { SpoolStream } from "../../../src/deliver/spool/spoolStream.ts";
import type { Ticket } from "../../../src/deliver/spool/ticket.ts";
import { ForgetfulDisk, randomFrom } from "./forgetfulFiles.ts";
import { ALL, append, LANE_0, numbered, numberOf, readAll, SpoolRig } from "./spoolRig.ts";

const REPLICAS = [0, 1];
const LANES = [LANE_0, { number: 1, tenant: "team" }];

const lane = fc.nat({ max: LANES.length - 1 });
const steps = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      lane,
      held: fc.boolean(),
      sizes: fc.array(fc.integer({ min: 10, max: 200 }), { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("read" as const), lane, maxItems: fc.nat(20) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("release" as const), from: fc.nat(5) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("damage" as const),
      at: fc.nat(),
      bytes: fc.integer({ min: 1, max: 300 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("fault" as const),
      call: fc.constantFrom("write", "read", null),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), turns: fc.integer({ min: 1, max: 8 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("settle" as const) }) },
);
type Step = typeof steps extends fc.Arbitrary<infer Value> ? Value : never;

/** A spool that is too small, on a disk that damages files, and what went in and out of it. */
class Bookkeeper {
  readonly #disk: ForgetfulDisk;
  readonly #rig: SpoolRig;
  #under: Promise<void>[] = [];
  readonly #isReading = new Set<number>();
  readonly #unheld = [0, 0];
  readonly #out: { readonly stream: SpoolStream; readonly ticket: Ticket }[] = [];
  readonly #in = [0, 0];
  readonly #released = [0, 0];
  #number = 0;

  private constructor(disk: ForgetfulDisk, rig: SpoolRig) {
    this.#disk = disk;
    this.#rig = rig;
  }

  static async start(random: () => number): Promise<Bookkeeper> {
    const disk = new ForgetfulDisk(random);
    let now = 1000;
    const options = { maxBytesPerUpstream: 1500, whenFull: "drop_oldest" as const };
    return new Bookkeeper(disk, await SpoolRig.open(disk.start(), options, () => (now += 100)));
  }

  async do(step: Step): Promise<void> {
    if (step.kind === "append") this.#append(step.lane, step.sizes, step.held);
    else if (step.kind === "read") this.#read(step.lane, step.maxItems);
    else if (step.kind === "damage") this.#damage(step.at, step.bytes);
    else if (step.kind === "fault") this.#disk.fault = (call) => (call === step.call ? "EIO" : null);
    else if (step.kind === "settle") await this.#settle();
    else if (step.kind === "wait") await passTurns(step.turns);
    else for (const { stream, ticket } of this.#out.splice(step.from, 2)) this.#release(stream, ticket);
  }

  /** In the end all is read, released, and nothing is left. */
  async finish(): Promise<void> {
    this.#disk.fault = () => null;
    await this.#settle();
    for (const id of LANES) {
      const stream = this.#rig.spool.stream(id);
      for (const parcel of await readAll(stream)) this.#take(stream, parcel);
    }
    for (const { stream, ticket } of this.#out.splice(0)) this.#release(stream, ticket);
    this.#check();
    expect(this.#rig.spool.bytes).toBe(0);
    await this.#rig.store.close();
    expect(this.#disk.paths.filter((path) => path.endsWith(".segment"))).toEqual([]);
  }

  /** What went in went out, or was dropped and told. */
  #check(): void {
    for (const replica of REPLICAS) {
      const dropped = this.#rig.told.drops.filter((drop) => drop.replica === replica);
      const lost = dropped.reduce((sum, { samples }) => sum + samples, 0);
      expect((this.#released[replica] ?? 0) + lost).toBe(this.#in[replica]);
    }
  }

  #append(index: number, sizes: readonly number[], wantsHeld: boolean): void {
    const stream = this.#rig.spool.stream(LANES[index] ?? LANE_0);
    const held = wantsHeld && !stream.hasUnread && this.#unheld[index] === 0;
    const parcels = sizes.map((size) => numbered(++this.#number, size, this.#number % 2));
    if (!held) this.#unheld[index] = (this.#unheld[index] ?? 0) + 1;
    const ended = append(stream, parcels, held, (end) => {
      if (!held) this.#unheld[index] = (this.#unheld[index] ?? 0) - 1;
      if (end.kind !== "synced") return;
      for (const parcel of parcels)
        this.#in[parcel.replica] = (this.#in[parcel.replica] ?? 0) + parcel.items.samples;
      this.#out.push(...end.tickets.map((ticket) => ({ stream, ticket })));
    });
    this.#under.push(ended.then(() => undefined));
  }

  #read(index: number, maxItems: number): void {
    if (this.#isReading.has(index)) return;
    this.#isReading.add(index);
    const stream = this.#rig.spool.stream(LANES[index] ?? LANE_0);
    const read = async (): Promise<void> => {
      const parcels = await stream.next({ ...ALL, maxItems }).catch(() => []);
      this.#isReading.delete(index);
      for (const parcel of parcels) this.#take(stream, parcel);
    };
    this.#under.push(read());
  }

  #take(stream: SpoolStream, parcel: SpooledParcel): void {
    // What comes back is whole, damage or not.
    expect(parcel.parcel.items.samples).toBe(numberOf(parcel));
    this.#out.push({ stream, ticket: parcel.ticket });
  }

  #release(stream: SpoolStream, ticket: Ticket): void {
    this.#released[ticket.replica] = (this.#released[ticket.replica] ?? 0) + ticket.items.samples;
    stream.release([ticket]);
  }

  #damage(at: number, bytes: number): void {
    const paths = this.#disk.paths.filter((path) => path.endsWith(".segment"));
    const path = paths[at % Math.max(1, paths.length)];
    if (path === undefined) return;
    const file = this.#disk.bytesOf(path);
    const start = at % Math.max(1, file.length);
    file.fill(0xaa, start, Math.min(file.length, start + bytes));
  }

  async #settle(): Promise<void> {
    await Promise.all(this.#under);
    this.#under = [];
  }
}

async function passTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
}

describe("spool that is too small, on a disk that damages files", () => {
  it("gives out, or tells as dropped, every sample that went in, once", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(steps, { maxLength: 100, size: "max" }),
        fc.noShrink(fc.integer()),
        async (sequence, seed) => {
          const books = await Bookkeeper.start(randomFrom(seed));
          for (const step of sequence) await books.do(step);
          await books.finish();
        },
      ),
      { numRuns: 300 },
    );
  });
});
