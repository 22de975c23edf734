/** The decision table, through the engine's face: what is found again, what is not, and what falls out. */
import { describe, expect, it } from "vitest";
import {
  type Effect,
  Engine,
  type EngineOptions,
  MAX_STEP_SERIES,
  SAMPLE_PLACES,
} from "../../src/engine/engine.ts";
import { label, sample, series } from "../wire/handmade.ts";
import { highwayHash128 } from "./highwayReference.ts";

const OPTIONS: EngineOptions = {
  destinations: [{ maxItems: 10_000, maxPlainBytes: 1 << 20 }],
  tallies: 4,
  bounds: [],
  tableSeries: 100,
  tableBytes: 1 << 20,
  hashKey: new Uint8Array(32).fill(9),
};
const COUNT: readonly Effect[] = [{ kind: "count", tally: 0 }];

/** Scans series, and answers which of them have no decision. */
function undecided(engine: Engine, plains: readonly Uint8Array[], context = 0): number[] {
  const plain = Buffer.concat(plains);
  engine.setWindow(plain);
  const step = engine.scan(MAX_STEP_SERIES, plain.length, plain.length, context);
  expect(step?.consumed).toBe(plain.length);
  const rows: number[] = [];
  for (let row = engine.nextUndecided(0); row >= 0; row = engine.nextUndecided(row + 1)) rows.push(row);
  expect(step?.undecided).toBe(rows.length);
  return rows;
}

/** Decides all series that need it, and answers how many those were. */
function decideAll(
  engine: Engine,
  plains: readonly Uint8Array[],
  effects: readonly Effect[] = COUNT,
  context = 0,
): number {
  const rows = undecided(engine, plains, context);
  for (const row of rows) engine.decide(row, context, [{ firstEpoch: 0, effects }], true);
  return rows.length;
}

function numbered(from: number, to: number): Buffer[] {
  return Array.from({ length: to - from }, (_, index) => series(label("n", String(from + index)), sample(1)));
}

describe("a decision", () => {
  it("is found again by the same label bytes, whatever follows them", () => {
    const engine = new Engine(OPTIONS);
    expect(decideAll(engine, [series(label("a", "1"), sample(1))])).toBe(1);
    expect(
      undecided(engine, [series(label("a", "1")), series(label("a", "1"), sample(7), sample(8))]),
    ).toEqual([]);
  });

  it("is not found by other bytes, be they the same labels in another order", () => {
    const engine = new Engine(OPTIONS);
    decideAll(engine, [series(label("a", "1"), label("b", "2"))]);
    const others = [
      series(label("b", "2"), label("a", "1")),
      series(label("a", "1")),
      series(label("a", "1"), label("b", "2"), label("c", "")),
      series(label("a", "2"), label("b", "2")),
    ];
    expect(undecided(engine, others)).toEqual([0, 1, 2, 3]);
  });

  it("is that of its context only", () => {
    const engine = new Engine(OPTIONS);
    const one = [series(label("a", "1"), sample(1))];
    for (const context of [0, 1, 2 ** 32 - 1]) {
      expect(decideAll(engine, one, [{ kind: "count", tally: context % 3 }], context)).toBe(1);
    }
    for (const context of [0, 1, 2 ** 32 - 1]) {
      expect(undecided(engine, one, context)).toEqual([]);
      engine.emit();
      expect([0, 1, 2].map((tally) => engine.tally(tally).series)).toEqual(
        [0, 1, 2].map((tally) => (tally === context % 3 ? 1 : 0)),
      );
    }
  });

  it("is made for each of two equal series that come new in one step, and is one in the table", () => {
    const engine = new Engine(OPTIONS);
    const twice = [series(label("a", "1"), sample(1)), series(label("a", "1"), sample(2))];
    expect(decideAll(engine, twice)).toBe(2);
    engine.emit();
    expect(engine.tally(0)).toEqual({ series: 2, samples: 2, histograms: 0, exemplars: 0 });
    expect(engine.table.series).toBe(1);
  });

  it("is not kept when it is not to be", () => {
    const engine = new Engine(OPTIONS);
    const one = [series(label("a", "1"))];
    expect(undecided(engine, one)).toEqual([0]);
    engine.decide(0, 0, [{ firstEpoch: 0, effects: [] }], false);
    expect(undecided(engine, one)).toEqual([0]);
  });

  it.each([
    { name: "without labels", plain: series(sample(1)) },
    { name: "with a label behind its samples", plain: series(label("a", "1"), sample(1), label("b", "2")) },
    {
      name: "with other than ASCII in an exemplar",
      plain: series(label("a", "1"), Buffer.from("1a060a040a02c3a9", "hex")),
    },
  ])("is never kept for a series $name", ({ plain }) => {
    const engine = new Engine(OPTIONS);
    expect(decideAll(engine, [plain])).toBe(1);
    expect(undecided(engine, [plain])).toEqual([0]);
    expect(engine.row(0).labelsEnd).toBe(engine.row(0).end);
  });

  it("of more than 8 KiB is carried out and not kept", () => {
    const engine = new Engine(OPTIONS);
    const inserted = new Uint8Array(9000).fill(1);
    const big: Effect = { kind: "send", destination: 0, splices: [{ keep: 0, resume: 0, inserted }] };
    const one = [series(label("a", "1"), sample(1))];
    expect(decideAll(engine, one, [big])).toBe(1);
    expect(engine.emit().map(({ series: count }) => count)).toEqual([1]);
    expect(decideAll(engine, one, [big])).toBe(1);
  });
});

describe("a table with more series than it is for", () => {
  it("keeps those that come again and again, and forgets those that do not", () => {
    const engine = new Engine(OPTIONS);
    const steady = numbered(0, 50);
    expect(decideAll(engine, steady)).toBe(50);
    for (let from = 1000; from < 2000; from += 40) {
      expect(decideAll(engine, numbered(from, from + 40))).toBe(40);
      expect(undecided(engine, steady)).toEqual([]);
    }
    expect(engine.table.turns).toBeGreaterThan(5);
    expect(engine.table.series).toBeLessThanOrEqual(200);
    expect(undecided(engine, numbered(1000, 1040))).toHaveLength(40);
  });

  it("carries out every decision of a step that is larger than itself", () => {
    const engine = new Engine({ ...OPTIONS, tableSeries: 3 });
    const many = numbered(0, 500);
    for (let round = 0; round < 3; round++) {
      decideAll(engine, many);
      engine.emit();
      expect(engine.tally(0)).toEqual({ series: 500, samples: 500, histograms: 0, exemplars: 0 });
    }
  });

  it("holds as many as its memory has room for", () => {
    const tableBytes = 64 * 1024;
    const engine = new Engine({ ...OPTIONS, tableSeries: 1_000_000, tableBytes });
    for (let from = 0; from < 20_000; from += 500) decideAll(engine, numbered(from, from + 500));
    expect(engine.table.bytes).toBeLessThan(tableBytes);
    expect(engine.table.series).toBeGreaterThan(100);
    expect(engine.table.turns).toBeGreaterThan(1);
  });
});

describe("whether the table knows a series", () => {
  it("is told for each context, in both generations, and no longer when both have turned without it", () => {
    const engine = new Engine(OPTIONS);
    decideAll(engine, numbered(0, 1), COUNT, 7);
    const key = engine.seriesKey(0);
    decideAll(engine, numbered(1, 2), COUNT, 7);
    const other = engine.seriesKey(0);
    expect([engine.knows(key, 7), engine.knows(other, 7), engine.knows(key, 8)]).toEqual([true, true, false]);
    for (let from = 1000; engine.table.turns < 1; from += 50) decideAll(engine, numbered(from, from + 50));
    expect(engine.knows(key, 7)).toBe(true);
    // To ask does not keep it.
    for (let from = 5000; engine.table.turns < 2; from += 50) {
      decideAll(engine, numbered(from, from + 50));
      decideAll(engine, numbered(1, 2), COUNT, 7);
    }
    expect([engine.knows(key, 7), engine.knows(other, 7)]).toEqual([false, true]);
  });
});

describe("the place of a series in samples", () => {
  const NO_SALT = { low: 0, high: 0 };

  it("is the upper 53 bits of half a hash of its label bytes, whatever the engine's own key is", () => {
    const engines = [1, 2].map((fill) => new Engine({ ...OPTIONS, hashKey: new Uint8Array(32).fill(fill) }));
    const labels = label("a", "1");
    const key = Buffer.alloc(32);
    for (const salt of [NO_SALT, { low: 0xfedcba98, high: 0x89abcdef }]) {
      key.writeUInt32LE(salt.low, 0);
      key.writeUInt32LE(salt.high, 4);
      const expected = Number(BigInt.asUintN(64, highwayHash128(labels, key)) >> 11n);
      for (const engine of engines) {
        undecided(engine, [series(labels, sample(1))]);
        expect(engine.samplePlace(0, salt)).toBe(expected);
      }
    }
  });

  it("is beyond all places for one whose decision is never kept", () => {
    const engine = new Engine(OPTIONS);
    undecided(engine, [series(label("a", "1"), sample(1), label("b", "2"))]);
    expect(engine.samplePlace(0, NO_SALT)).toBe(SAMPLE_PLACES);
  });
});

describe("memory that grows", () => {
  it("keeps the table and the step's rows", () => {
    const engine = new Engine(OPTIONS);
    const before = engine.bytes.length;
    decideAll(engine, numbered(0, 20));
    const long = series(
      label("long", "x"),
      sample(1),
      Buffer.concat([Buffer.from("a20180808004", "hex"), Buffer.alloc(1 << 23)]),
    );
    expect(decideAll(engine, [...numbered(0, 20), long])).toBe(1);
    expect(engine.bytes.length).toBeGreaterThan(before);
    engine.emit();
    expect(engine.tally(0).samples).toBe(21);
    expect(undecided(engine, numbered(0, 20))).toEqual([]);
  });
});
