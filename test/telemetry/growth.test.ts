import { describe, expect, it } from "vitest";
import { Growth } from "../../src/telemetry/growth.ts";

const OVER_MS = 60_000;

describe("growth", () => {
  it("cannot be told from one look, or from looks in quick succession", () => {
    const growth = new Growth(OVER_MS);
    expect([growth.look(0, 0), growth.look(1_000, 50), growth.look(4_999, 70)]).toEqual([null, null, null]);
    expect(growth.look(5_000, 100)).toBe(20);
  });

  it("is that of the last minute, however long and often it has been looked at", () => {
    const growth = new Growth(OVER_MS);
    for (let at = 0; at <= 600_000; at += 1_000)
      growth.look(at, at < 300_000 ? at : 300_000 + 2 * (at - 300_000));
    expect(growth.look(600_000, 900_000)).toBe(2_000);
    expect(growth.look(630_000, 900_000)).toBeCloseTo(1_000);
    expect(growth.look(660_000, 900_000)).toBe(0);
  });

  it("is that since the last look when looks are further apart than a minute", () => {
    const growth = new Growth(OVER_MS);
    growth.look(0, 0);
    growth.look(100_000, 0);
    expect(growth.look(200_000, 5_000)).toBe(50);
  });

  it("is less than nothing for what shrinks", () => {
    const growth = new Growth(OVER_MS);
    growth.look(0, 1_000);
    expect(growth.look(10_000, 0)).toBe(-100);
  });
});
