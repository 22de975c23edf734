import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AppendEnd } from "../../../src/deliver/spool/append.ts";
import { SpoolError } from "../../../src/deliver/spool/errors.ts";
import type { SpooledParcel } from "../../../src/deliver/spool/readBatch.ts";
import type { SpoolStream } from "../../../src/deliver/spool/spoolStream.ts";
import type { Ticket } from "../../../src/deliver/spool/ticket.ts";
import { ForgetfulDisk, randomFrom } from "./forgetfulFiles.ts";
import { ALL, foundBy, numbered, numberOf, readAll, SpoolRig } from "./spoolRig.ts";
import { StreamModel } from "./streamModel.ts";

const LANES = [
  { number: 0, tenant: null },
  { number: 0, tenant: "team a" },
  { number: 1, tenant: "team a" },
];

type Step =
  | {
      readonly kind: "append";
      readonly lane: number;
      readonly parcels: number;
      readonly held: boolean;
      readonly bytes: number;
    }
  | { readonly kind: "read"; readonly lane: number; readonly maxItems: number }
  | {
      readonly kind: "release";
      readonly lane: number;
      readonly parcels: number;
      readonly from: number;
    }
  | { readonly kind: "wait"; readonly turns: number }
  | { readonly kind: "tick"; readonly ms: number }
  | { readonly kind: "fault"; readonly call: "write" | "sync" | "syncFolder" | "open" | null }
  | { readonly kind: "kill" | "cut_power" | "close" };

const lane = fc.nat({ max: LANES.length - 1 });
const parcels = fc.integer({ min: 1, max: 4 });
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("append"),
      lane,
      parcels,
      held: fc.boolean(),
      bytes: fc.integer({ min: 20, max: 300 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("read"), lane, maxItems: fc.integer({ min: 1, max: 400 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("release"),
      lane,
      parcels,
      from: fc.nat({ max: 3 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("wait"), turns: fc.nat({ max: 30 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("tick"), ms: fc.nat({ max: 3000 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("fault"),
      call: fc.constantFrom("write", "sync", "syncFolder", "open", null),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("kill", "cut_power", "close") }) },
);

/** A spool, beside a model of it. */
class Crasher {
  readonly #disk: ForgetfulDisk;
  readonly #models = LANES.map(() => new StreamModel());
  #rig: SpoolRig | null = null;
  #out: { ticket: Ticket; number: number }[][] = LANES.map(() => []);
  #unheldUnderWay = LANES.map(() => 0);
  #underWay = 0;
  #reads: Promise<void>[] = [];
  #isReading = LANES.map(() => false);
  #number = 0;
  #now = 1_000_000;
  /** Failures of checks in what nobody waits for. */
  readonly #failures: unknown[] = [];

  constructor(random: () => number) {
    this.#disk = new ForgetfulDisk(random);
  }

  async start(): Promise<void> {
    this.#disk.fault = () => null;
    for (const model of this.#models) model.crashed();
    this.#out = LANES.map(() => []);
    this.#unheldUnderWay = LANES.map(() => 0);
    this.#underWay = 0;
    this.#reads = [];
    this.#isReading = LANES.map(() => false);
    this.#rig = await SpoolRig.open(this.#disk.start(), {}, () => this.#now);
    this.#checkFound(this.#rig);
  }

  async do(step: Step): Promise<void> {
    switch (step.kind) {
      case "append":
        this.#append(step);
        break;
      case "read":
        this.#read(step.lane, step.maxItems);
        break;
      case "release":
        this.#release(step);
        break;
      case "wait":
        for (let turn = 0; turn < step.turns; turn++) await new Promise(setImmediate);
        break;
      case "tick":
        this.#now += step.ms;
        break;
      case "fault":
        this.#disk.fault = (call) => (call === step.call ? "EIO" : null);
        break;
      case "kill":
        this.#disk.kill();
        await this.start();
        break;
      case "cut_power":
        this.#disk.cutPower();
        await this.start();
        break;
      case "close":
        this.#disk.fault = () => null;
        await Promise.all(this.#reads);
        await this.#opened.store.close();
        expect(this.#underWay).toBe(0);
        this.#disk.cutPower();
        await this.start();
        break;
    }
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  /** Reads all that is there and releases it: then nothing is left, on disk either. */
  async finish(): Promise<void> {
    this.#disk.fault = () => null;
    await this.#settle();
    for (const [index, model] of this.#models.entries()) {
      const stream = this.#stream(index);
      const read = await readAll(stream);
      for (const parcel of read) model.gaveOut(numberOf(parcel));
      model.ranOut();
      stream.release([
        ...read.map(({ ticket }) => ticket),
        ...(this.#out[index] ?? []).map(({ ticket }) => ticket),
      ]);
      expect(stream.isEmpty).toBe(true);
    }
    const { spool, store, told } = this.#opened;
    expect(spool.bytes).toBe(0);
    // What was being written when the power was cut can look like damage: it was not acknowledged.
    expect(told.drops.filter(({ reason }) => reason !== "spool_damaged")).toEqual([]);
    await store.close();
    expect(this.#disk.paths.filter((path) => !path.endsWith(".damaged"))).toEqual([]);
    expect(this.#disk.openFiles).toBe(0);
    expect(this.#disk.syncedAgain).toEqual([]);
  }

  /** What the spool counts at its start is what the model has, as far as that is certain. */
  #checkFound({ spool }: SpoolRig): void {
    const certain = this.#models.reduce((sum, model) => sum + model.count("must"), 0);
    const possible = this.#models.reduce((sum, model) => sum + model.count("must", "may"), 0);
    const { records } = foundBy(spool);
    expect(records).toBeGreaterThanOrEqual(certain);
    expect(records).toBeLessThanOrEqual(possible);
  }

  get #opened(): SpoolRig {
    if (this.#rig === null) throw new Error("not started");
    return this.#rig;
  }

  #stream(index: number): SpoolStream {
    const id = LANES[index];
    if (id === undefined) throw new Error("no such lane");
    return this.#opened.spool.stream(id);
  }

  #append({ lane: index, parcels: count, held: wantsHeld, bytes }: Extract<Step, { kind: "append" }>): void {
    const [stream, model, rig] = [this.#stream(index), this.#models[index], this.#rig];
    const held = wantsHeld && !stream.hasUnread && this.#unheldUnderWay[index] === 0;
    const numbers = Array.from({ length: count }, () => ++this.#number);
    model?.appended(numbers);
    this.#underWay += 1;
    if (!held) this.#unheldUnderWay[index] = (this.#unheldUnderWay[index] ?? 0) + 1;
    const onEnd = (end: AppendEnd): void => {
      if (rig !== this.#rig) this.#failures.push(new Error("an append of a killed process ended"));
      this.#underWay -= 1;
      if (!held) this.#unheldUnderWay[index] = (this.#unheldUnderWay[index] ?? 0) - 1;
      model?.ended(numbers, end.kind, held);
      if (end.kind !== "synced") return;
      this.#out[index]?.push(...end.tickets.map((ticket, at) => ({ ticket, number: numbers[at] ?? 0 })));
    };
    stream.append(
      numbers.map((number) => numbered(number, bytes)),
      held,
      onEnd,
    );
  }

  #read(index: number, maxItems: number): void {
    if (this.#isReading[index] === true) return;
    const rig = this.#rig;
    this.#isReading[index] = true;
    const read = async (): Promise<void> => {
      const parcels = await this.#stream(index)
        .next({ ...ALL, maxItems })
        .catch(unlessUnreadable);
      if (rig !== this.#rig) throw new Error("a read of a killed process ended");
      this.#isReading[index] = false;
      for (const parcel of parcels) {
        this.#models[index]?.gaveOut(numberOf(parcel));
        this.#out[index]?.push({ ticket: parcel.ticket, number: numberOf(parcel) });
      }
    };
    const ended = read().catch((error: unknown) => void this.#failures.push(error));
    this.#reads.push(ended);
  }

  #release({ lane: index, parcels: count, from }: Extract<Step, { kind: "release" }>): void {
    const taken = this.#out[index]?.splice(from, count) ?? [];
    this.#stream(index).release(taken.map(({ ticket }) => ticket));
    for (const { number } of taken) this.#models[index]?.released(number);
  }

  async #settle(): Promise<void> {
    await Promise.all(this.#reads);
    while (this.#underWay > 0) await new Promise(setImmediate);
    if (this.#failures.length > 0) throw this.#failures[0];
  }
}

/** A disk that fails can be read later. */
function unlessUnreadable(error: unknown): readonly SpooledParcel[] {
  if (error instanceof SpoolError && error.code === "SPOOL_UNREADABLE") return [];
  throw error;
}

describe("spool, killed and cut off from power at any moment", () => {
  it("gives out whatever was acknowledged, in order, once in each life of the process", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(steps, { maxLength: 80, size: "max" }),
        fc.noShrink(fc.integer()),
        async (sequence, seed) => {
          const crasher = new Crasher(randomFrom(seed));
          await crasher.start();
          for (const step of sequence) await crasher.do(step);
          await crasher.finish();
        },
      ),
      { numRuns: 200 },
    );
  });
});
