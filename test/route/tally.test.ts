import { describe, expect, it } from "vitest";
import { REFUSAL_REASONS } from "../../src/route/door.ts";
import { DROP_REASONS, talliesOf, tallyNumber, UNROUTED_REASONS } from "../../src/route/tally.ts";

describe("tallies", () => {
  it.each([0, 1, 2, 7])("have the numbers that they are listed by, with %i routes", (routes) => {
    const tallies = talliesOf(routes);
    expect(tallies.map(tallyNumber)).toEqual([...tallies.keys()]);
  });

  it("are all different", () => {
    const texts = talliesOf(3).map((tally) => JSON.stringify(tally));
    expect(new Set(texts).size).toBe(texts.length);
  });

  it("are there for every reason of every route, and for what has no route", () => {
    const tallies = talliesOf(2);
    for (const reason of UNROUTED_REASONS) expect(tallies).toContainEqual({ kind: "unrouted", reason });
    for (const route of [0, 1]) {
      expect(tallies).toContainEqual({ kind: "not_selected", route });
      expect(tallies).toContainEqual({ kind: "missing_key_labels", route });
      for (const reason of DROP_REASONS) expect(tallies).toContainEqual({ kind: "dropped", route, reason });
    }
    expect(tallies).toHaveLength(UNROUTED_REASONS.length + 2 * (2 + DROP_REASONS.length));
  });

  it("can count as dropped after rules all that is refused at the door", () => {
    expect(DROP_REASONS).toEqual(expect.arrayContaining([...REFUSAL_REASONS]));
  });
});
