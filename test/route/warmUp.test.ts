import { describe, expect, it } from "vitest";
import { warmUp } from "../../src/route/warmUp.ts";
import { exampleRoute } from "./exampleRoute.ts";
import { routerOf } from "./routed.ts";

const limits = { maxItems: 10_000, maxPlainBytes: 1 << 23 };

describe("made-up requests", () => {
  it("take both ways, that of a new series and that of a known one", () => {
    const router = routerOf([{ route: exampleRoute(), limits }], { tableSeries: 10_000 });
    warmUp(router, () => false);
    const { newSeries, knownSeries, series } = router.decisionTable;
    expect(series).toBeGreaterThan(1000);
    expect(newSeries).toBe(series);
    expect(knownSeries).toBe(series);
  });

  it("are given up as soon as they have taken long enough", () => {
    const router = routerOf([{ route: exampleRoute(), limits }], { tableSeries: 10_000 });
    let asked = 0;
    warmUp(router, () => (asked += 1) === 3);
    expect(asked).toBe(3);
    expect(router.decisionTable.series).toBeGreaterThan(0);
    expect(router.decisionTable.series).toBeLessThan(1000);
  });
});
