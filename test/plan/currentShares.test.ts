import { describe, expect, it } from "vitest";
import { currentShares, type SharesReport } from "../../src/plan/currentShares.ts";
import type { PlanConfig } from "../../src/plan/planConfig.ts";
import type { SampleState } from "../../src/route/liveSample.ts";
import { keep, rulesOf } from "../route/rules.ts";
import { configOf, NOW, numberedSeries, sampleOf, upstreams } from "./planned.ts";

const TASKS = { count: 8, label: "stream_task_id", algorithm: "jump", key: { kind: "all" } } as const;

function sharesOf(config: PlanConfig, sample: SampleState): SharesReport {
  const steps = currentShares(config, sample, NOW, () => false);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

describe("shares of upstreams and tasks", () => {
  const config = configOf([
    { name: "all", tasks: TASKS, upstreams: upstreams("a b -c") },
    { name: "some", tasks: null, relabel: rulesOf(keep("job", "job-1")), upstreams: upstreams("x") },
  ]);

  it("add up, and are exact over all series", () => {
    const series = numberedSeries(700);
    const report = sharesOf(config, sampleOf(series));
    expect(report).toMatchObject({ exact: true, series: { count: 700, standard_error: 0 } });
    const [all, some] = report.routes;
    expect(all).toMatchObject({
      route: "all",
      series: { count: 700 },
      upstreams: [{ name: "a" }, { name: "b" }],
    });
    for (const shares of [all?.upstreams, all?.tasks]) {
      expect(shares?.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 10);
      expect(shares?.every(({ standard_error }) => standard_error === 0)).toBe(true);
    }
    expect(all?.tasks).toHaveLength(8);
    expect(some).toEqual({
      route: "some",
      series: { count: 100, standard_error: 0 },
      upstreams: [{ name: "x", share: 1, standard_error: 0 }],
      tasks: null,
    });
  });

  it("are told with their errors from a sample", () => {
    const [all, some] = sharesOf(config, sampleOf(numberedSeries(700), 0.01)).routes;
    expect(some?.series.count).toBeCloseTo(10_000, 6);
    expect(some?.series.standard_error).toBeCloseTo(1000, -2);
    expect(all?.upstreams[0]?.standard_error).toBeGreaterThan(0.01);
  });

  it("are those of the period in force", () => {
    const periods = [
      { fromMs: null, slots: upstreams("a") },
      { fromMs: NOW, slots: upstreams("b") },
      { fromMs: NOW + 1, slots: upstreams("c") },
    ];
    const [route] = sharesOf(configOf([{ periods }]), sampleOf(numberedSeries(10))).routes;
    expect(route?.upstreams).toEqual([{ name: "b", share: 1, standard_error: 0 }]);
  });
});
