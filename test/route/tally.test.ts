import { describe, expect, it } from "vitest";
import { REFUSAL_REASONS } from "../../src/route/door.ts";
import { DROP_REASONS, Tallies, UNROUTED_REASONS } from "../../src/route/tally.ts";

describe("tallies", () => {
  it.each([[[]], [[1]], [[1, 1]], [[2, 1, 3, 1]]])(
    "have the numbers that they are listed by, with routes of %j replicas",
    (replicas) => {
      const tallies = new Tallies(replicas);
      expect(tallies.all.map((tally) => tallies.numberOf(tally))).toEqual([...tallies.all.keys()]);
    },
  );

  it("are all different", () => {
    const texts = new Tallies([1, 3, 1]).all.map((tally) => JSON.stringify(tally));
    expect(new Set(texts).size).toBe(texts.length);
  });

  it("are there for every reason of every replica of every route, and for what has no route", () => {
    const { all } = new Tallies([1, 2]);
    for (const reason of UNROUTED_REASONS) expect(all).toContainEqual({ kind: "unrouted", reason });
    for (const [route, replicas] of [[0], [0, 1]].entries()) {
      expect(all).toContainEqual({ kind: "not_selected", route });
      expect(all).toContainEqual({ kind: "missing_key_labels", route });
      for (const replica of replicas) {
        for (const reason of DROP_REASONS)
          expect(all).toContainEqual({ kind: "dropped", route, replica, reason });
      }
    }
    expect(all).toHaveLength(UNROUTED_REASONS.length + 2 * 2 + 3 * DROP_REASONS.length);
  });

  it("can count as dropped after rules all that is refused at the door", () => {
    expect(DROP_REASONS).toEqual(expect.arrayContaining([...REFUSAL_REASONS]));
  });
});
