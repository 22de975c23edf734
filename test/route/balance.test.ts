import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { NamedSlot } from "../../src/hash/slots.ts";
import { taskBalance } from "../../src/route/balance.ts";

function slotsNumbered(count: number): NamedSlot[] {
  return Array.from({ length: count }, (_, number) => ({ name: `slot-${number}` }));
}

describe("tasks under jump hash", () => {
  it.each([
    { tasks: 16, slots: 3, maxOverAverage: "1.50", empty: 0 },
    { tasks: 128, slots: 3, maxOverAverage: "1.05", empty: 0 },
    { tasks: 128, slots: 5, maxOverAverage: "1.05", empty: 0 },
    { tasks: 128, slots: 10, maxOverAverage: "1.33", empty: 0 },
    { tasks: 128, slots: 100, maxOverAverage: "3.91", empty: 24 },
    { tasks: 1, slots: 1, maxOverAverage: "1.00", empty: 0 },
  ])("$tasks on $slots slots: the fullest has $maxOverAverage times the average, $empty are empty", (row) => {
    const { maxOverAverage, emptySlots } = taskBalance(
      row.tasks,
      { algorithm: "jump" },
      slotsNumbered(row.slots),
    );
    expect(maxOverAverage.toFixed(2)).toBe(row.maxOverAverage);
    expect(emptySlots).toHaveLength(row.empty);
  });
});

describe("tasks by modulus", () => {
  it("fill the slots from the first", () => {
    expect(taskBalance(5, { algorithm: "hashmod" }, slotsNumbered(3))).toEqual({
      maxOverAverage: 2 / (5 / 3),
      emptySlots: [],
    });
    expect(taskBalance(2, { algorithm: "hashmod" }, slotsNumbered(4))).toEqual({
      maxOverAverage: 2,
      emptySlots: [2, 3],
    });
  });
});

describe("tasks over a list with tombstones", () => {
  it("are compared with the average of the live slots, and a tombstone is not called empty", () => {
    const slots = [{ name: "a" }, { name: "b", removed: true }, { name: "c" }];
    const { maxOverAverage, emptySlots } = taskBalance(2, { algorithm: "rendezvous" }, slots);
    expect([1, 2]).toContain(maxOverAverage);
    expect(emptySlots).not.toContain(1);
    const few = taskBalance(1, { algorithm: "jump" }, slots);
    expect(few.maxOverAverage).toBe(2);
    expect(few.emptySlots).toHaveLength(1);
  });
});

describe("balanced tasks", () => {
  it("are within one of even, where jump leaves slots empty", () => {
    const balanced = taskBalance(128, { algorithm: "balanced", tasks: 128 }, slotsNumbered(100));
    expect(balanced).toEqual({ maxOverAverage: 2 / 1.28, emptySlots: [] });
  });
});

describe("copies of tasks", () => {
  it("are counted each, and make a slot less empty", () => {
    const slots = slotsNumbered(3);
    expect(taskBalance(2, { algorithm: "hashmod" }, slots, 3)).toEqual({ maxOverAverage: 1, emptySlots: [] });
    const { maxOverAverage, emptySlots } = taskBalance(1, { algorithm: "hashmod" }, slots, 2);
    expect(maxOverAverage).toBe(1.5);
    expect(emptySlots).toHaveLength(1);
    expect(emptySlots).not.toContain(0);
  });
});

describe("any number of tasks and slots", () => {
  it("gives a fullest slot of at least the average, and no more empty slots than there can be", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500 }),
        fc.integer({ min: 1, max: 200 }),
        fc.constantFrom("jump" as const, "hashmod" as const),
        (tasks, slots, algorithm) => {
          const { maxOverAverage, emptySlots } = taskBalance(tasks, { algorithm }, slotsNumbered(slots));
          expect(maxOverAverage).toBeGreaterThanOrEqual(1 - 1e-9);
          expect(emptySlots.length).toBeGreaterThanOrEqual(slots - tasks);
          expect(emptySlots.length).toBeLessThan(slots);
        },
      ),
      { numRuns: 200, seed: 11 },
    );
  });
});
