import { describe, expect, it } from "vitest";
import { retirements } from "../../src/route/retirement.ts";
import { type ExampleSlot, exampleRoute, slotsOf } from "./exampleRoute.ts";

const HOUR = 3_600_000;

function retired(...periods: readonly (readonly [number | null, readonly ExampleSlot[]])[]): unknown {
  const route = exampleRoute({ periods: periods.map(([fromMs, slots]) => ({ fromMs, slots })) });
  const times = retirements(route);
  return Object.fromEntries(route.upstreams.map(({ name }, index) => [name, times[index]]));
}

function removed(slots: readonly ExampleSlot[], ...names: readonly string[]): ExampleSlot[] {
  return slots.map((slot) => (names.includes(slot.name) ? { ...slot, removed: true } : slot));
}

describe("when upstreams retire", () => {
  it("is never in a route of one period", () => {
    expect(retired([null, slotsOf("a", "b")])).toEqual({ a: null, b: null });
  });

  it("is never for those of the newest period, whether they are in the others or not", () => {
    expect(retired([null, slotsOf("a")], [5000, slotsOf("a", "b")])).toEqual({ a: null, b: null });
  });

  it("is retire_after past the end of the last period that has them live", () => {
    const all = slotsOf("a", "b", "c", "d");
    expect(
      retired([null, all], [1000, removed(all, "b")], [2000, slotsOf("a", "d")], [3000, removed(all, "a")]),
    ).toEqual({ a: 3000 + HOUR, b: null, c: null, d: null });
    expect(retired([null, all], [1000, removed(all, "b")], [2000, removed(all, "b", "c")])).toEqual({
      a: null,
      b: 1000 + HOUR,
      c: 2000 + HOUR,
      d: null,
    });
  });
});
