/** Decisions that differ between epochs, through the engine's face: which section a row's items pick, and parts of items. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Counts,
  Engine,
  type EngineOptions,
  MAX_STEP_SERIES,
  type Section,
} from "../../src/engine/engine.ts";
import { exemplar, histogram, label, nested, sample, series, varintField } from "../wire/handmade.ts";

const BOUNDS = [-5, 1000, 2 ** 41];
const OPTIONS: EngineOptions = {
  destinations: [{ maxItems: 10_000, maxPlainBytes: 1 << 20 }],
  tallies: 4,
  bounds: BOUNDS,
  tableSeries: 100,
  tableBytes: 1 << 20,
  hashKey: new Uint8Array(32).fill(9),
};
/** Counts what is of the epochs from these on with a tally each. */
function sectionsFrom(...epochs: readonly number[]): Section[] {
  return epochs.map((firstEpoch, tally) => ({ firstEpoch, effects: [{ kind: "count", tally }] }));
}
const BY_EPOCH = sectionsFrom(0, 1, 2, 3);
const NOTHING: Counts = { series: 0, samples: 0, histograms: 0, exemplars: 0 };

/** Scans series, gives those that need it a decision, and answers which these were and what each tally has. */
function run(
  engine: Engine,
  plains: readonly Uint8Array[],
  sections: readonly Section[] = BY_EPOCH,
): { readonly undecided: number[]; readonly split: number[]; readonly tallies: Counts[] } {
  const plain = Buffer.concat(plains);
  engine.setWindow(plain);
  expect(engine.scan(MAX_STEP_SERIES, plain.length, plain.length, 0)?.consumed).toBe(plain.length);
  const split = [...plains.keys()].filter((row) => engine.row(row).isSplit);
  const undecided: number[] = [];
  for (let row = engine.nextUndecided(0); row >= 0; row = engine.nextUndecided(row + 1)) {
    undecided.push(row);
    engine.decide(row, 0, sections, true);
  }
  engine.emit();
  return { undecided, split, tallies: [0, 1, 2, 3].map((tally) => engine.tally(tally)) };
}

function samplesOf({ tallies }: { readonly tallies: Counts[] }): number[] {
  return tallies.map(({ samples }) => samples);
}

const A = label("a", "1");

describe("a row whose decision has sections", () => {
  it.each([
    { name: "far before all bounds", at: -(2n ** 63n), epoch: 0 },
    { name: "before a bound below 0", at: -6n, epoch: 0 },
    { name: "at it", at: -5n, epoch: 1 },
    { name: "just before 0", at: -1n, epoch: 1 },
    { name: "before the second", at: 999n, epoch: 1 },
    { name: "at the second", at: 1000n, epoch: 2 },
    { name: "before one that takes more than 32 bits", at: 2n ** 41n - 1n, epoch: 2 },
    { name: "at it", at: 2n ** 41n, epoch: 3 },
    { name: "far behind all bounds", at: 2n ** 63n - 1n, epoch: 3 },
  ])("gets that of its items' epoch, new or known, alone or beside others: $name", ({ at, epoch }) => {
    const engine = new Engine(OPTIONS);
    const wanted = [0, 1, 2, 3].map((each) => (each === epoch ? 1 : 0));
    for (const isNew of [true, false]) {
      const { undecided, tallies } = run(engine, [series(A, sample(at))]);
      expect(undecided).toEqual(isNew ? [0] : []);
      expect(tallies.map(({ samples }) => samples)).toEqual(wanted);
    }
    const mixed = run(engine, [series(A, sample(at)), series(A, sample(0)), series(A, sample(5000))]);
    expect(mixed.split).toEqual([]);
    expect(samplesOf(mixed)).toEqual(wanted.map((one, each) => one + (each === 1 || each === 2 ? 1 : 0)));
  });

  it("gets the newest without items, in steps of one epoch and of several", () => {
    const bare = series(label("a", "2"));
    expect(run(new Engine(OPTIONS), [bare]).tallies[3]).toEqual({ ...NOTHING, series: 1 });
    expect(run(new Engine(OPTIONS), [bare, series(A, sample(1))]).tallies[3]).toEqual({
      ...NOTHING,
      series: 1,
    });
    const several = [bare, series(A, sample(1)), series(A, sample(5000))];
    expect(run(new Engine(OPTIONS), several).tallies[3]).toEqual({ ...NOTHING, series: 1 });
  });

  it.each([
    { name: "a sample without its timestamp, which is 0", fields: [nested(2)] },
    { name: "an exemplar without it", fields: [exemplar(label("x", "y"))] },
    { name: "a histogram without it", fields: [histogram(varintField(1, 7))] },
    {
      name: "a sample of two, of which the last is valid",
      fields: [nested(2, varintField(2, 5000), varintField(2, 3))],
    },
    { name: "unknown fields before it", fields: [nested(77, "new"), sample(3)] },
    { name: "an exemplar with labels", fields: [exemplar(label("x", "y"), varintField(3, 3))] },
    { name: "a histogram", fields: [histogram(varintField(1, 7), varintField(15, 3))] },
  ])("is told from another with its items behind a bound: $name", ({ fields }) => {
    const engine = new Engine(OPTIONS);
    for (let round = 0; round < 2; round++) {
      const { split, tallies } = run(engine, [series(label("a", "2"), ...fields), series(A, sample(5000))]);
      expect(split).toEqual([]);
      expect(tallies.map((each) => each.series)).toEqual([0, 1, 1, 0]);
    }
  });

  it("has the section of each epoch up to the next section's, in a table that keeps several such and others", () => {
    const engine = new Engine(OPTIONS);
    const [one, two, three] = ["1", "2", "3"].map((value) => label("b", value));
    if (one === undefined || two === undefined || three === undefined) throw new Error("no labels");
    run(engine, [series(one, sample(1))], sectionsFrom(0, 2));
    run(engine, [series(two, sample(1))], sectionsFrom(0));
    run(engine, [series(three, sample(1))], sectionsFrom(0, 1, 3));
    for (const [at, tallies] of [
      [-9, [3, 0, 0, 0]],
      [1, [2, 1, 0, 0]],
      [1000, [1, 2, 0, 0]],
      [2 ** 42, [1, 1, 1, 0]],
    ] as const) {
      const result = run(
        engine,
        [one, two, three].map((labels) => series(labels, sample(at))),
      );
      expect(result.undecided).toEqual([]);
      expect(samplesOf(result)).toEqual(tallies);
    }
  });
});

describe("a row with items of several epochs", () => {
  it("has no decision though the table has one with sections, and has one that is the same in all", () => {
    const engine = new Engine(OPTIONS);
    const both = [sample(999), sample(1000)];
    run(engine, [series(label("sectioned", "1"), sample(1))]);
    run(engine, [series(label("same", "1"), sample(1))], sectionsFrom(0));
    const rows = [series(label("sectioned", "1"), ...both), series(label("same", "1"), ...both)];
    expect(run(engine, rows, sectionsFrom(0))).toMatchObject({ undecided: [0], split: [0, 1] });
  });

  it("is marked, whatever kinds they are and wherever they stand", () => {
    const kinds = [
      sample,
      (at: number) => exemplar(varintField(3, at)),
      (at: number) => histogram(varintField(15, at)),
    ];
    const item = fc.record({
      kind: fc.constantFrom(...kinds),
      at: fc.constantFrom(-9, -5, 0, 999, 1000, 2 ** 41),
    });
    const epochOf = (at: number): number => BOUNDS.filter((bound) => bound <= at).length;
    const engine = new Engine(OPTIONS);
    fc.assert(
      fc.property(fc.array(fc.array(item, { maxLength: 4 }), { minLength: 1, maxLength: 8 }), (rows) => {
        const plains = rows.map((items, row) =>
          series(label("n", String(row)), ...items.map(({ kind, at }) => kind(at)), label("z", "behind")),
        );
        const { split } = run(engine, plains, sectionsFrom(0));
        const wanted = rows.flatMap((items, row) =>
          new Set(items.map(({ at }) => epochOf(at))).size > 1 ? [row] : [],
        );
        expect(split).toEqual(wanted);
      }),
      { numRuns: 300 },
    );
  });
});

describe("effects on a part of the items", () => {
  it("count, and are sent with, as many as they say, and the effects between them with all", () => {
    const engine = new Engine(OPTIONS);
    const row = series(A, sample(1), sample(2), exemplar(varintField(3, 3)));
    const part = { samples: 1, histograms: 0, exemplars: 0 };
    const rest = { samples: 1, histograms: 7, exemplars: 1 };
    const inserted = new Uint8Array(Buffer.concat([A, sample(1)]));
    const plain = new Uint8Array(row);
    engine.setWindow(plain);
    engine.scan(1, plain.length, plain.length, 0);
    const message = engine.row(0).end - engine.row(0).start;
    const effects: Section["effects"] = [
      { kind: "count", tally: 0, items: part },
      { kind: "count", tally: 1 },
      { kind: "send", destination: 0, splices: [{ keep: 0, resume: message, inserted }], items: part },
      { kind: "send", destination: 0, splices: [] },
      { kind: "count", tally: 2, items: rest },
    ];
    engine.decide(0, 0, [{ firstEpoch: 0, effects }], false);
    const [piece, ...more] = engine.emit();
    expect(more).toEqual([]);
    expect(piece).toMatchObject({ series: 2, items: { samples: 3, histograms: 0, exemplars: 1 } });
    expect([0, 1, 2, 3].map((tally) => engine.tally(tally))).toEqual([
      { series: 1, ...part },
      { series: 1, samples: 2, histograms: 0, exemplars: 1 },
      { series: 1, ...rest },
      NOTHING,
    ]);
    expect(piece?.plainBytes).toBe(series(A, sample(1)).length + row.length);
  });

  it("close a parcel by their own count", () => {
    const engine = new Engine({ ...OPTIONS, destinations: [{ maxItems: 3, maxPlainBytes: 1 << 20 }] });
    const row = series(A, ...Array.from({ length: 10 }, () => sample(1)));
    engine.setWindow(row);
    engine.scan(1, row.length, row.length, 0);
    const items = { samples: 1, histograms: 1, exemplars: 0 };
    const send: Section["effects"][number] = { kind: "send", destination: 0, splices: [], items };
    engine.decide(0, 0, [{ firstEpoch: 0, effects: [send, send] }], false);
    expect(engine.emit().map(({ items: got }) => got)).toEqual([items, items]);
  });
});
