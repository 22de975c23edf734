import { describe, expect, it } from "vitest";
import { compileRoute } from "../../src/route/decide.ts";
import { warmUp } from "../../src/route/warmUp.ts";
import { exampleRoute } from "./exampleRoute.ts";
import { routerOf } from "./routed.ts";

describe("made-up requests", () => {
  it("take both ways, that of a new series and that of a known one", () => {
    const limits = { maxItems: 10_000, maxPlainBytes: 1 << 23 };
    const router = routerOf([{ route: compileRoute(exampleRoute()), limits }], { tableSeries: 10_000 });
    warmUp(router);
    const { newSeries, knownSeries, series } = router.decisionTable;
    expect(series).toBeGreaterThan(1000);
    expect(newSeries).toBe(series);
    expect(knownSeries).toBe(series);
  });
});
