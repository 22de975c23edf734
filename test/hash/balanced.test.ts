import { describe, expect, it } from "vitest";
import { balancedTable } from "../../src/hash/balanced.ts";

const MAX_TASKS = 1024;
const MAX_SLOTS = 64;

/**
 * Whether every slot has its share, and nothing moved from the table of one slot less but to the new slot, and no more than
 * that slot must get. Plain loops: 65,000 tables are looked at.
 */
function isAsItMustBe(before: Uint32Array, after: Uint32Array, slots: number): boolean {
  const counts = new Uint32Array(slots);
  let moved = 0;
  for (let task = 0; task < after.length; task++) {
    const slot = after[task] ?? -1;
    counts[slot] = (counts[slot] ?? 0) + 1;
    if (slot === before[task]) continue;
    if (slot !== slots - 1) return false;
    moved += 1;
  }
  const least = Math.floor(after.length / slots);
  const most = Math.ceil(after.length / slots);
  return moved === least && counts.every((count) => count === least || count === most);
}

describe("balanced tables of 1 to 1024 tasks on 1 to 64 slots", () => {
  it("give every slot as many tasks as every other, one more or less, and move the new slot's share and no more", () => {
    const wrong: string[] = [];
    for (let tasks = 1; tasks <= MAX_TASKS; tasks++) {
      let before: Uint32Array = new Uint32Array(tasks);
      for (let slots = 1; slots <= MAX_SLOTS; slots++) {
        const after = balancedTable(tasks, slots);
        const right = slots === 1 ? after.every((slot) => slot === 0) : isAsItMustBe(before, after, slots);
        if (!right || after.length !== tasks) wrong.push(`${tasks} tasks on ${slots} slots`);
        before = after;
      }
    }
    expect(wrong).toEqual([]);
  });
});

describe("a balanced table", () => {
  it("stays what it was, for tasks of running gateways would move at an upgrade", () => {
    expect(balancedTable(16, 5).join(" ")).toMatchInlineSnapshot(`"4 0 3 4 3 2 1 4 3 2 1 0 3 0 1 2"`);
  });

  it("leaves slots empty that are more than the tasks", () => {
    const table = balancedTable(3, 7);
    expect([...table].sort()).toEqual([0, 1, 2]);
  });

  it("does not move neighbours together", () => {
    const table = balancedTable(1024, 2);
    const together = table.filter((slot, task) => slot === table[task + 1]).length;
    expect(together).toBeGreaterThan(400);
    expect(together).toBeLessThan(620);
  });
});
