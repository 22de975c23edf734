/** The sample of live series: by itself over a table made of a set, and in a router with real requests. */
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { Engine, SAMPLE_PLACES, type SeriesKey } from "../../src/engine/engine.ts";
import { estimateCount, estimateShare } from "../../src/route/estimate.ts";
import {
  LiveSample,
  type SampledTable,
  type SampleLimits,
  type SampleState,
} from "../../src/route/liveSample.ts";
import type { TenantOptions } from "../../src/route/options.ts";
import type { Router } from "../../src/route/router.ts";
import { type RequestTenants, SHARED_CONTEXT, Tenants, UNKEPT_CONTEXT } from "../../src/route/tenants.ts";
import { label, sample, series, seriesOf } from "../wire/handmade.ts";
import { exampleRoute, slotsOf } from "./exampleRoute.ts";
import { labelled } from "./labelled.ts";
import { MIB, NO_TENANTS, routePlain, routerOf, type RouterShape } from "./routed.ts";
import { drop, keep, rulesOf } from "./rules.ts";

const ROUTE = exampleRoute({ upstreams: slotsOf("a", "b", "c") });
const LIMITS = { maxItems: 10_000, maxPlainBytes: 8 * MIB };
const SAMPLE_SERIES = 16_384;

function router(shape: RouterShape = {}, route = ROUTE): Router {
  return routerOf([{ route, limits: LIMITS }], { tableSeries: 1_000_000, tableBytes: 256 * MIB, ...shape });
}

function labelsOf(number: number): [string, string][] {
  return [
    ["__name__", "requests_total"],
    ["instance", `host-${number}`],
  ];
}

/** Sends series by their numbers, some thousand a request. */
function send(to: Router, numbers: readonly number[], tenants: RequestTenants = NO_TENANTS): void {
  for (let from = 0; from < numbers.length; from += 5000) {
    const some = numbers.slice(from, from + 5000);
    routePlain(to, Buffer.concat(some.map((number) => seriesOf(labelsOf(number)))), tenants);
  }
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}

/** The numbers of sampled series, in ascending order. */
function numbersIn({ series: sampled }: SampleState): number[] {
  return sampled
    .map(({ labels }) => Number(/host-(\d+)/.exec(Buffer.from(labels).toString("latin1"))?.[1]))
    .sort((a, b) => a - b);
}

describe("fewer series than the sample is for", () => {
  it("are all in it, once each, with their label bytes as they came", () => {
    const one = router();
    send(one, range(0, 1000));
    send(one, range(0, 1000));
    const state = one.sample;
    expect(state).toMatchObject({ isExact: true, fraction: 1, known: { value: 1000, standardError: 0 } });
    expect(numbersIn(state)).toEqual(range(0, 1000));
    const labels = Buffer.concat(labelsOf(7).map(([name, value]) => label(name, value)));
    expect(state.series.some((each) => labels.equals(each.labels))).toBe(true);
  });

  it("stay exact up to twice as many", () => {
    const one = router();
    send(one, range(0, 2 * SAMPLE_SERIES));
    expect(one.sample.known).toEqual({ value: 2 * SAMPLE_SERIES, standardError: 0 });
    send(one, [2 * SAMPLE_SERIES]);
    expect(one.sample).toMatchObject({ isExact: false, series: { length: SAMPLE_SERIES } });
  });
});

describe("100,000 series", () => {
  const count = 100_000;
  const all = router();
  send(all, range(0, count));
  const state = all.sample;
  const numbers = numbersIn(state);

  it("are told within four standard errors, of at most a percent", () => {
    const { value, standardError } = state.known;
    expect(standardError).toBeGreaterThan(0);
    expect(standardError).toBeLessThan(count / 100);
    expect(Math.abs(value - count)).toBeLessThan(4 * standardError);
    expect(numbers.length).toBeGreaterThanOrEqual(SAMPLE_SERIES);
    expect(numbers.length).toBeLessThanOrEqual(2 * SAMPLE_SERIES);
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  it("are sampled evenly in each upstream and task", () => {
    const placed = (of: readonly number[]): Map<string, number> => {
      const counts = new Map<string, number>();
      for (const number of of) {
        const { upstream, series: sent } = labelled(
          { labels: labelsOf(number), samples: [], histograms: [], exemplars: [] },
          ROUTE,
        );
        const task = sent.labels.find(([name]) => name === "stream_task_id")?.[1] ?? "";
        for (const place of [`upstream ${upstream}`, `task ${task}`]) {
          counts.set(place, (counts.get(place) ?? 0) + 1);
        }
      }
      return counts;
    };
    const sampled = placed(numbers);
    const truth = placed(range(0, count));
    expect(truth.size).toBe(3 + 128);
    for (const [place, series] of truth) {
      const share = estimateShare(sampled.get(place) ?? 0, numbers.length, state.fraction);
      expect(Math.abs(share.value - series / count), place).toBeLessThan(4 * share.standardError);
    }
  });

  it("are the same, in whatever order and how often they come, but for how many there is room for", () => {
    const other = router();
    const backwards = range(0, count).reverse();
    send(other, backwards);
    send(other, backwards.slice(0, 10_000));
    const [small, large] = [numbers, numbersIn(other.sample)].sort((a, b) => a.length - b.length);
    const more = new Set(large);
    expect(small?.every((number) => more.has(number))).toBe(true);
    expect(small?.length).toBeGreaterThanOrEqual(SAMPLE_SERIES);
  });
});

describe("series that come and go", () => {
  it("leave when the table has turned twice without them, and those that stay stay", () => {
    const one = router({ tableSeries: 500 });
    send(one, range(0, 100));
    for (let from = 1000; from < 6000; from += 100) {
      send(one, range(from, from + 100));
      send(one, range(0, 100));
    }
    const state = one.sample;
    expect(state.isExact).toBe(true);
    expect(state.series.length).toBe(state.known.value);
    expect(state.series.length).toBeLessThanOrEqual(one.decisionTable.series);
    const numbers = numbersIn(state);
    expect(numbers.slice(0, 100)).toEqual(range(0, 100));
    expect(numbers.some((number) => number >= 1000 && number < 2000)).toBe(false);
    // The newest come in when the table has room for them, which is when they come again.
    expect(numbers.filter((number) => number >= 5700).length).toBeGreaterThanOrEqual(200);
  });

  it("make room before others have to, so that the sample stays exact", () => {
    const one = router({ tableSeries: 10_000 });
    for (let from = 0; from < 60_000; from += 5000) send(one, range(from, from + 5000));
    expect(one.sample.isExact).toBe(true);
    expect(one.sample.known.value).toBeLessThanOrEqual(20_000);
    expect(one.sample.known.value).toBeGreaterThanOrEqual(10_000);
  });
});

describe("what is in the sample", () => {
  it.each([
    { name: "a series that no route takes", rules: rulesOf(keep("job", "x")), global: rulesOf() },
    { name: "a series that global rules drop", rules: rulesOf(), global: rulesOf(drop("__name__", ".*")) },
  ])("is $name: other rules may take it", ({ rules, global }) => {
    const one = router({ globalRules: global }, exampleRoute({ relabel: rules }));
    send(one, [1]);
    expect(numbersIn(one.sample)).toEqual([1]);
  });

  it("is one of which all messages are cut by a border of periods", () => {
    const periods = [
      { fromMs: null, slots: slotsOf("a") },
      { fromMs: 5_000, slots: slotsOf("b") },
    ];
    const one = router({}, exampleRoute({ periods }));
    const cut = series(label("a", "1"), sample(4_999), sample(5_000));
    for (let times = 0; times < 2; times++) {
      expect(routePlain(one, cut).consignments).toHaveLength(2);
      expect(one.sample.series).toHaveLength(1);
    }
  });

  it.each([
    { name: "refused", plain: series(label("a", "1"), label("a", "2"), sample(1)) },
    { name: "without a decision in the table", plain: series(label("a", "1"), sample(1), label("b", "2")) },
    { name: "of more than 8 KiB of labels", plain: series(label("a", "1".repeat(8192)), sample(1)) },
  ])("is not one that is $name", ({ plain }) => {
    const one = router();
    routePlain(one, plain);
    expect(one.sample.series).toEqual([]);
  });

  it("is a series of each tenant, by the header of whom", () => {
    const tenant = { header: "x-scope-orgid", label: "tenant", pass: false };
    const tenants = new Tenants([tenant], 100);
    const one = router({}, exampleRoute({ tenant }));
    for (const name of ["red", "blue", "red"])
      send(
        one,
        [1],
        tenants.of(() => [name]),
      );
    send(
      one,
      [1],
      tenants.of(() => []),
    );
    const { series: sampled } = one.sample;
    const names = sampled.map((each) => each.tenants.get("x-scope-orgid")?.text ?? "");
    expect(names.sort()).toEqual(["", "blue", "red"]);
    send(one, [2], { context: UNKEPT_CONTEXT, byRoute: [null] });
    expect(one.sample.series).toHaveLength(3);
  });
});

/** A table of two generations that are sets, in which a series has its number for a key, and the sample over it. */
class TableOfSets implements SampledTable {
  turns = 0;
  sample: LiveSample;
  readonly #limits: SampleLimits;
  #young = new Set<number>();
  #old = new Set<number>();
  /** How many more turns those live that a reload handed over, and that have not come since. */
  readonly #handed = new Map<number, number>();

  constructor(limits: SampleLimits) {
    this.#limits = limits;
    this.sample = new LiveSample(["h"], this, null, limits);
  }

  knows({ word0 }: SeriesKey): boolean {
    return this.#young.has(word0) || this.#old.has(word0);
  }

  get live(): number[] {
    return [...new Set([...this.#young, ...this.#old, ...this.#handed.keys()])];
  }

  /** What is known is not decided anew, and so not offered. */
  come(number: number, place: number, bytes: number): void {
    const isKnown = this.knows({ word0: number, ...OTHER_WORDS });
    this.#young.add(number);
    this.#handed.delete(number);
    if (isKnown || !this.sample.wants(place, bytes)) return;
    const tenants = { context: SHARED_CONTEXT, byRoute: [null] };
    const labels = new Uint8Array(bytes).fill(number);
    this.sample.offer(place, { key: { word0: number, ...OTHER_WORDS }, tenants, labels });
  }

  turn(): void {
    this.turns += 1;
    this.#old = this.#young;
    this.#young = new Set();
    for (const [number, left] of this.#handed) {
      if (left === 1) this.#handed.delete(number);
      else this.#handed.set(number, left - 1);
    }
  }

  /** Empties it, and has a sample in the place of the one before. */
  reload(): void {
    const before = this.sample.handOver();
    for (const known of [...this.#young, ...this.#old]) this.#handed.set(known, 2);
    this.#young.clear();
    this.#old.clear();
    this.sample = new LiveSample(["h"], this, before, this.#limits);
  }
}

const OTHER_WORDS = { word1: 0, word2: 0, word3: 0 };

describe("a sample of at most 8 series", () => {
  const numbers = 60;
  /** Evenly, as the hash has it, and in no order. */
  const placeOf = (number: number): number =>
    Math.floor((((number * 37) % numbers) / numbers) * SAMPLE_PLACES);

  it("holds just the live series below its threshold, which only falls, whatever comes, goes and is handed over", () => {
    const number = fc.integer({ min: 0, max: numbers - 1 });
    const bytes = fc.integer({ min: 1, max: 50 });
    const step = fc.oneof(
      { weight: 12, arbitrary: fc.record({ kind: fc.constant("come" as const), number, bytes }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant("turn" as const) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("reload" as const) }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const table = new TableOfSets({ series: 8, bytes: 400 });
        let fraction = 1;
        for (const each of steps) {
          if (each.kind === "come") table.come(each.number, placeOf(each.number), each.bytes);
          else if (each.kind === "turn") table.turn();
          else table.reload();
          const state = table.sample.state;
          expect(state.fraction).toBeLessThanOrEqual(fraction);
          fraction = state.fraction;
          const below = table.live.filter((live) => placeOf(live) < fraction * SAMPLE_PLACES);
          expect(state.series.map(({ labels }) => labels[0]).sort()).toEqual(below.sort());
          expect(state.isExact).toBe(fraction === 1);
          expect(state.known.value).toBeCloseTo(below.length / fraction, 6);
          expect(state.series.length).toBeLessThanOrEqual(16);
          expect(state.series.reduce((sum, { labels }) => sum + labels.length, 0)).toBeLessThanOrEqual(400);
        }
      }),
    );
  });

  it("is smaller, and not exact, after most series have gone", () => {
    const table = new TableOfSets({ series: 8, bytes: 10_000 });
    const send = (numbers: readonly number[]): void => {
      for (const number of numbers) table.come(number, placeOf(number), 1);
    };
    send(range(0, numbers));
    const { fraction } = table.sample.state;
    expect(fraction).toBeLessThan(0.4);
    table.turn();
    send(range(0, 5));
    table.turn();
    const { series: left, isExact, fraction: now } = table.sample.state;
    expect(left.length).toBeLessThan(5);
    expect({ isExact, now }).toEqual({ isExact: false, now: fraction });
  });
});

describe("a router in the place of another", () => {
  const shape = { tableSeries: 1_000_000, tableBytes: 256 * MIB };
  const following = (before: Router, more: RouterShape = {}, route = ROUTE): Router =>
    router({ ...shape, before, ...more }, route);
  const otherwise = exampleRoute({
    upstreams: slotsOf("a", "b"),
    keyFormat: "flat",
    relabel: rulesOf(keep("job", "x")),
  });

  it("has the series of the one before, all of them if that had, each once when they come again", () => {
    const one = router();
    send(one, range(0, 1000));
    const other = following(one, {}, otherwise);
    const exactly = { isExact: true, fraction: 1, known: { value: 1000, standardError: 0 } };
    expect(other.decisionTable.series).toBe(0);
    expect(other.sample).toMatchObject(exactly);
    expect(numbersIn(other.sample)).toEqual(range(0, 1000));
    send(other, range(0, 500));
    expect(other.sample).toMatchObject(exactly);
    send(other, range(1000, 1200));
    expect(numbersIn(following(other).sample)).toEqual(range(0, 1200));
  });

  it("has no series that the one before had lost", () => {
    const one = router({ tableSeries: 500 });
    for (let from = 0; from < 4000; from += 100) send(one, range(from, from + 100));
    const left = numbersIn(one.sample);
    expect(left.length).toBeLessThanOrEqual(1000);
    expect(numbersIn(following(one).sample)).toEqual(left);
  });

  it("loses those that do not come again when its table has turned twice, and those alone", () => {
    const one = router({ tableSeries: 500 });
    send(one, range(0, 200));
    const other = following(one, { tableSeries: 500 });
    const some = range(0, 50);
    // Sent in turn with those that stay, others fill a generation, and turn it with the request behind.
    const fill = (from: number): void => {
      for (let number = from; number < from + 500; number += 50) {
        send(other, range(number, number + 50));
        send(other, some);
      }
    };
    fill(1000);
    expect(numbersIn(other.sample).slice(0, 200)).toEqual(range(0, 200));
    fill(2000);
    fill(3000);
    expect(numbersIn(other.sample).filter((number) => number < 1000)).toEqual(some);
    expect(other.sample.isExact).toBe(true);
  });

  it("goes on with a sample of many series, and tells how many there are within four standard errors", () => {
    const one = router();
    send(one, range(0, 40_000));
    const before = one.sample;
    const other = following(one, {}, otherwise);
    expect(other.sample).toMatchObject({ isExact: false, fraction: before.fraction, known: before.known });
    expect(numbersIn(other.sample)).toEqual(numbersIn(before));
    send(other, range(20_000, 60_000));
    const { fraction, known } = other.sample;
    expect(fraction).toBeLessThanOrEqual(before.fraction);
    expect(known.standardError).toBeLessThan(600);
    expect(Math.abs(known.value - 60_000)).toBeLessThan(4 * known.standardError);
  });

  describe("with tenants", () => {
    const tenant = { header: "x-scope-orgid", label: "tenant", pass: false };
    const route = exampleRoute({ tenant });
    const sent = (to: Router, options: TenantOptions): void => {
      const tenants = new Tenants([options], 100);
      for (const name of ["red", "blue"]) {
        send(
          to,
          range(0, 10),
          tenants.of(() => [name]),
        );
      }
    };
    const one = (): Router => {
      const before = router({}, route);
      sent(before, tenant);
      return before;
    };

    it("has the series of each, once, while routes find them in the same headers", () => {
      const other = following(one(), {}, exampleRoute({ tenant: { ...tenant, label: null, pass: true } }));
      sent(other, tenant);
      const names = other.sample.series.map((each) => each.tenants.get("x-scope-orgid")?.text ?? "");
      expect(names.sort()).toEqual([...Array<string>(10).fill("blue"), ...Array<string>(10).fill("red")]);
    });

    it.each([
      { name: "another header", options: { ...tenant, header: "x-other" } },
      { name: "none", options: { ...tenant, label: null } },
    ])("begins anew when they ask for $name", ({ options }) => {
      const other = following(one(), {}, exampleRoute({ tenant: options }));
      expect(other.sample).toMatchObject({ isExact: true, series: [] });
      sent(other, options);
      expect(other.sample.series).toHaveLength(options.label === null ? 10 : 20);
    });
  });

  it("leaves the sample to the one before, if there is no memory for it", () => {
    const one = router();
    send(one, range(0, 1000));
    // No size that fits into 32 bits has it trip in truth where memory is only taken when it is used.
    const configure = vi.spyOn(Engine.prototype, "configure").mockImplementationOnce(() => {
      throw new WebAssembly.RuntimeError("unreachable");
    });
    try {
      expect(() => following(one)).toThrow(WebAssembly.RuntimeError);
    } finally {
      configure.mockRestore();
    }
    expect(one.decisionTable.series).toBe(0);
    expect(numbersIn(one.sample)).toEqual(range(0, 1000));
    send(one, range(500, 1500));
    expect(numbersIn(one.sample)).toEqual(range(0, 1500));
  });
});

describe("estimates", () => {
  it("are exact when all are sampled", () => {
    expect(estimateCount(12, 1)).toEqual({ value: 12, standardError: 0 });
    expect(estimateShare(3, 12, 1)).toEqual({ value: 0.25, standardError: 0 });
    expect(estimateShare(0, 0, 1)).toEqual({ value: 0, standardError: 0 });
  });

  it("have the errors of a sample otherwise", () => {
    expect(estimateCount(10_002, 0.0001)).toMatchObject({ value: expect.closeTo(100_020_000, 0) as number });
    expect(estimateCount(10_002, 0.0001).standardError / 100_020_000).toBeCloseTo(0.01, 5);
    expect(estimateShare(2500, 10_000, 1e-9).standardError).toBeCloseTo(Math.sqrt((0.25 * 0.75) / 10_000), 5);
    // Nothing seen of it is not nothing.
    expect(estimateShare(0, 10_000, 0.001).standardError).toBeGreaterThan(0.00005);
    expect(estimateShare(0, 0, 0.5)).toEqual({ value: 0, standardError: 1 });
  });
});
