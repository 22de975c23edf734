import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Ranking } from "../../src/deliver/ranking.ts";

describe("a ranking", () => {
  it("has the lowest first, and nothing at the end", () => {
    const ranking = new Ranking<string>();
    for (const [item, rank] of [
      ["b", 2],
      ["c", 3],
      ["a", 1],
    ] as const)
      ranking.set(item, rank);
    const taken: (string | undefined)[] = [];
    while (ranking.first !== undefined) {
      taken.push(ranking.first);
      ranking.delete(ranking.first);
    }
    expect(taken).toEqual(["a", "b", "c"]);
    expect(ranking.lowestRank).toBe(Infinity);
  });

  it("knows nothing of an item that it does not have", () => {
    const ranking = new Ranking<string>();
    ranking.set("a", 1);
    ranking.delete("b");
    expect(ranking.first).toBe("a");
  });

  it("agrees with a plain list, whatever is set and deleted", () => {
    const step = fc.record({ item: fc.nat(15), rank: fc.option(fc.integer({ min: -5, max: 30 })) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const ranking = new Ranking<number>();
        const ranks = new Map<number, number>();
        for (const { item, rank } of steps) {
          if (rank === null) {
            ranking.delete(item);
            ranks.delete(item);
          } else {
            ranking.set(item, rank);
            ranks.set(item, rank);
          }
          const lowest = Math.min(Infinity, ...ranks.values());
          expect(ranking.lowestRank).toBe(lowest);
          expect(ranking.first === undefined ? Infinity : ranks.get(ranking.first)).toBe(lowest);
        }
      }),
      { numRuns: 500 },
    );
  });
});
