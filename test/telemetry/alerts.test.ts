import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { DELIVERY_DROP_REASONS } from "../../src/deliver/outcome.ts";
import { DROP_REASONS, UNROUTED_REASONS } from "../../src/route/tally.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";

const PAGE = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const TABLE = PAGE.split("### What is worth an alert\n")[1]?.split("\n## ")[0] ?? "";
const [METRIC, WHEN] = [1, 2];

function wordsIn(column: number): string[] {
  const cells = TABLE.split("\n").map((row) => row.split(/(?<!\\)\|/)[column] ?? "");
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word));
}

describe("the README's table of what is worth an alert", () => {
  it("has every reason for which samples are dropped", () => {
    const reasons = [...DROP_REASONS, ...UNROUTED_REASONS, ...DELIVERY_DROP_REASONS];
    expect(new Set(wordsIn(WHEN))).toEqual(new Set([...reasons, "predict_linear"]));
  });

  it("names metrics that there are", async () => {
    const metrics = new Metrics("1", { refusal: [], drop: [], unrouted: [], delivery: [] });
    const { text } = await metrics.exposition();
    const names = [...text.matchAll(/^# TYPE stream_metrics_route_(\w+)/gm)].map(([, name = ""]) => name);
    const named = wordsIn(METRIC).flatMap((word) => /[a-z]+_[a-z_]+/.exec(word)?.[0] ?? []);
    expect(named.length).toBeGreaterThan(10);
    for (const name of named) expect(names).toContain(name);
  });
});
