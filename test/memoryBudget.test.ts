import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MemoryBudget } from "../src/memoryBudget.ts";

/** Takes a byte at a time until there is no more. */
function fill(holders: readonly { tryTake(bytes: number): boolean }[]): void {
  let taken = true;
  while (taken) taken = holders.map((holder) => holder.tryTake(1)).some(Boolean);
}

describe("a memory budget", () => {
  it.each([1, 2, 3, 9])(
    "leaves as much free as each of %i holders has that take all they can get",
    (count) => {
      const budget = new MemoryBudget(1_000);
      const holders = Array.from({ length: count }, () => budget.holder());
      fill(holders);
      const part = 1_000 / (count + 1);
      for (const { heldBytes } of holders) {
        expect(heldBytes).toBeGreaterThan(part - 2);
        expect(heldBytes).toBeLessThan(part + 2);
      }
      const other = budget.holder();
      expect(other.tryTake(1)).toBe(true);
      expect(other.tryTake(Math.floor(part / 2) - 5)).toBe(true);
    },
  );

  it("has room for another as soon as the first gives some back", () => {
    const budget = new MemoryBudget(100);
    const [slow, quick] = [budget.holder(), budget.holder()];
    fill([slow]);
    expect(slow.heldBytes).toBe(50);
    expect([quick.tryTake(25), quick.tryTake(1)]).toEqual([true, false]);
    slow.release(50);
    expect([quick.tryTake(25), quick.tryTake(1)]).toEqual([true, false]);
    expect(quick.refusals).toBe(2);
  });

  it("lets one that holds nothing take what is larger than all of it, and then nothing more", () => {
    const budget = new MemoryBudget(100);
    const holder = budget.holder();
    expect([holder.tryTake(1_000), holder.tryTake(1)]).toEqual([true, false]);
    expect(budget.heldBytes).toBe(1_000);
  });

  it("has all back of a holder that is closed, and nothing from it afterwards", () => {
    const budget = new MemoryBudget(100);
    const [closed, other] = [budget.holder(), budget.holder()];
    closed.take(30);
    other.take(20);
    closed.close();
    closed.take(5);
    closed.release(30);
    closed.close();
    expect([budget.heldBytes, closed.heldBytes]).toEqual([20, 0]);
  });

  it("may become smaller and larger, for the holders that are there too", () => {
    const budget = new MemoryBudget(100);
    const holder = budget.holder();
    holder.take(40);
    budget.maxBytes = 60;
    expect([holder.tryTake(10), budget.heldBytes]).toEqual([false, 40]);
    budget.maxBytes = 200;
    expect([holder.tryTake(10), budget.heldBytes]).toEqual([true, 50]);
  });

  it("holds what its holders hold, and no more than it has but for first ones, whatever they do", () => {
    const step = fc.record({
      holder: fc.nat(3),
      bytes: fc.integer({ min: 1, max: 60 }),
      takes: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const budget = new MemoryBudget(200);
        const holders = Array.from({ length: 4 }, () => budget.holder());
        for (const { holder: number, bytes, takes } of steps) {
          const holder = holders[number];
          if (holder === undefined) throw new Error("no holder");
          const isFirst = holder.heldBytes === 0;
          if (!takes) holder.release(Math.min(bytes, holder.heldBytes));
          else if (holder.tryTake(bytes) && !isFirst) expect(budget.heldBytes).toBeLessThanOrEqual(200);
        }
        expect(budget.heldBytes).toBe(holders.reduce((sum, { heldBytes }) => sum + heldBytes, 0));
      }),
    );
  });
});
