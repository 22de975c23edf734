import { describe, expect, it } from "vitest";
import { DemoEncoder, demoSeries } from "../../src/cli/demoLoad.ts";
import { decodeBody } from "../reference/writeRequest.ts";

const SEED = 7;

describe("demo load", () => {
  const series = demoSeries(3_000, SEED);
  const labelSets = series.map(({ labels }) => JSON.stringify(labels));

  it("has as many different series as asked for", () => {
    expect(new Set(labelSets).size).toBe(3_000);
  });

  it("is the same for the same seed, and another for another", () => {
    const again = demoSeries(3_000, SEED).map(({ labels }) => JSON.stringify(labels));
    const other = demoSeries(3_000, SEED + 1).map(({ labels }) => JSON.stringify(labels));
    expect(again).toEqual(labelSets);
    expect(other).not.toEqual(labelSets);
  });

  it("has sorted labels with unique names, and the same ones in all series of a metric", () => {
    const namesByMetric = new Map<string, Set<string>>();
    for (const { labels } of series) {
      const names = labels.map(([name]) => name);
      expect(names).toEqual([...new Set(names)].sort());
      const metric = labels[0]?.[1] ?? "";
      namesByMetric.set(metric, (namesByMetric.get(metric) ?? new Set()).add(names.join()));
    }
    expect(namesByMetric.size).toBeGreaterThan(5);
    expect([...namesByMetric.values()].every(({ size }) => size === 1)).toBe(true);
  });

  it("has counters that never fall and gauges that do", () => {
    const risesOf = (metric: string): boolean[] =>
      series
        .filter(({ labels }) => labels[0]?.[1] === metric)
        .map(({ valueAt }) =>
          Array.from({ length: 50 }, (_, round) => valueAt(round + 1) >= valueAt(round)).every(Boolean),
        );
    expect(risesOf("http_requests_total").every(Boolean)).toBe(true);
    expect(risesOf("container_memory_working_set_bytes").some(Boolean)).toBe(false);
  });

  it("keeps the buckets of a pod cumulative", () => {
    const buckets = series
      .filter(({ labels }) => labels[0]?.[1] === "http_request_duration_seconds_bucket")
      .slice(0, 4);
    const values = buckets.map(({ valueAt }) => valueAt(9));
    expect(values).toHaveLength(4);
    expect(values).toEqual(values.toSorted((a, b) => a - b));
  });

  it("is encoded as remote write 1.0, one sample of each series", () => {
    const some = series.slice(10, 30);
    const request = decodeBody(new DemoEncoder().encode(some, 3, 1_796_006_259_632));
    expect(request.series.map(({ labels }) => labels)).toEqual(some.map(({ labels }) => labels));
    const values = request.series.map(({ samples }) => {
      expect(samples).toHaveLength(1);
      return [Buffer.from(samples[0]?.valueBits ?? "", "hex").readDoubleBE(), samples[0]?.timestamp];
    });
    expect(values).toEqual(some.map(({ valueAt }) => [valueAt(3), "1796006259632"]));
  });
});
