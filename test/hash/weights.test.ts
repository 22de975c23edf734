import { describe, expect, it } from "vitest";
import { maglevTable } from "../../src/hash/maglev.ts";
import { buildPlacement, type PlacementMethod } from "../../src/hash/placement.ts";
import type { NamedSlot } from "../../src/hash/slots.ts";
import { hashedKeys } from "./methods.ts";

const WEIGHTS = [1, 2, 3, 0.5, 10, 1];
const SUM = WEIGHTS.reduce((sum, weight) => sum + weight, 0);
const slots: NamedSlot[] = WEIGHTS.map((weight, index) => ({ name: `upstream-${index}`, weight }));

/** The sum over slots of (counted - expected)^2 / expected. */
function chiSquare(counts: readonly number[], expected: readonly number[]): number {
  return counts.reduce((sum, count, index) => {
    const wanted = expected[index] ?? NaN;
    return sum + (count - wanted) ** 2 / wanted;
  }, 0);
}

function countPlaced(method: PlacementMethod, list: readonly NamedSlot[], keys: readonly number[]): number[] {
  const { place } = buildPlacement(method, list);
  const counts = list.map(() => 0);
  for (const key of keys) {
    const slot = place(key);
    counts[slot] = (counts[slot] ?? 0) + 1;
  }
  return counts;
}

describe("tables that Envoy's tests publish for weighted hosts (maglev_lb_test.cc)", () => {
  const hosts = ["127.0.0.1:90", "127.0.0.1:91"];

  it.each([
    {
      name: "Weighted",
      weights: [1, 2],
      table: [1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1],
    },
    {
      name: "LocalityWeightedDifferentLocalityWeights",
      weights: [8, 2],
      table: [1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0],
    },
  ])("are filled as published: $name", ({ weights, table }) => {
    const weighted = hosts.map((name, index) => ({ name, weight: weights[index] ?? NaN }));
    expect([...maglevTable(weighted, table.length)]).toEqual(table);
  });
});

describe("slots of different weights", () => {
  const keys = hashedKeys(200_000);
  // 99.9 % of samples of five degrees of freedom are below.
  const LIMIT = 20.5;

  it("get keys by their weights under rendezvous", () => {
    const expected = WEIGHTS.map((weight) => (keys.length * weight) / SUM);
    expect(chiSquare(countPlaced({ algorithm: "rendezvous" }, slots, keys), expected)).toBeLessThan(LIMIT);
  });

  it("get entries of a Maglev table by their weights, a few more or less", () => {
    const counts = slots.map(() => 0);
    for (const slot of maglevTable(slots, 65537)) counts[slot] = (counts[slot] ?? 0) + 1;
    counts.forEach((count, slot) => {
      expect(Math.abs(count - (65537 * (WEIGHTS[slot] ?? NaN)) / SUM)).toBeLessThan(3);
    });
  });

  it("get keys by their weights under maglev", () => {
    const expected = WEIGHTS.map((weight) => (keys.length * weight) / SUM);
    const counts = countPlaced({ algorithm: "maglev", table: 65537 }, slots, keys);
    expect(chiSquare(counts, expected)).toBeLessThan(LIMIT);
  });

  it("get keys by their weights on a ring, as closely as its points lie", () => {
    const counts = countPlaced({ algorithm: "ring", hash: "md5", points: 1000 }, slots, keys);
    counts.forEach((count, slot) => {
      const share = (keys.length * (WEIGHTS[slot] ?? NaN)) / SUM;
      expect(Math.abs(count / share - 1), `slot ${slot}`).toBeLessThan(0.15);
    });
  });

  it("get the keys of a tombstone by their weights", () => {
    const list = slots.map((slot, index) => ({ ...slot, removed: index === 4 }));
    const method: PlacementMethod = { algorithm: "maglev", table: 65537 };
    const counts = countPlaced(method, list, keys);
    const expected = WEIGHTS.map((weight, index) => (index === 4 ? 0 : (keys.length * weight) / (SUM - 10)));
    expect(counts[4]).toBe(0);
    expect(
      chiSquare([...counts.slice(0, 4), ...counts.slice(5)], [...expected.slice(0, 4), ...expected.slice(5)]),
    ).toBeLessThan(LIMIT);
  });
});

describe.each<{ name: string; method: PlacementMethod }>([
  { name: "ring", method: { algorithm: "ring", hash: "md5", points: 160 } },
  { name: "maglev", method: { algorithm: "maglev", table: 5003 } },
  { name: "rendezvous", method: { algorithm: "rendezvous" } },
])("a weight of one under $name", ({ method }) => {
  it("is what a slot without a weight has", () => {
    const keys = hashedKeys(2000);
    const bare = slots.map(({ name }) => ({ name }));
    const { place } = buildPlacement(method, bare);
    const weighed = buildPlacement(
      method,
      bare.map((slot) => ({ ...slot, weight: 1 })),
    );
    expect(keys.filter((key) => weighed.place(key) !== place(key))).toEqual([]);
  });
});

describe("a slot of another weight that is added under rendezvous", () => {
  it("takes keys, and moves none between slots that were of one weight", () => {
    const bare = slots.map(({ name }) => ({ name }));
    const before = buildPlacement({ algorithm: "rendezvous" }, bare);
    const after = buildPlacement({ algorithm: "rendezvous" }, [...bare, { name: "heavy", weight: 4 }]);
    const keys = hashedKeys(20_000);
    const taken = keys.filter((key) => after.place(key) === bare.length);
    expect(Math.abs(taken.length / keys.length - 0.4)).toBeLessThan(0.02);
    const others = keys.filter((key) => after.place(key) !== bare.length);
    expect(others.filter((key) => after.place(key) !== before.place(key))).toEqual([]);
  });
});
