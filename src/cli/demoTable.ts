/** How the demo shows what it did: series and share of every upstream, and what became of the requests. */
import { grouped, printable } from "./printable.ts";
import type { SinkStats } from "./sinkCounts.ts";

export interface DemoProgress {
  readonly seconds: number;
  /** Series of the load and the samples it sends in a second. */
  readonly series: number;
  readonly samplesPerSecond: number;
  readonly ok: number;
  readonly failed: number;
  readonly lastFailure: string | null;
  /** Upstreams by their names in the configuration, with the counts of their receivers. */
  readonly upstreams: readonly { readonly name: string; readonly stats: SinkStats }[];
}

const COLUMNS = [8, 9, 8, 12] as const;
const BAR_CHARACTERS = 30;

/** A table for a terminal, drawn again in place: it has as many lines each time. */
export function demoTable(progress: DemoProgress): string[] {
  const { upstreams } = progress;
  const total = sum(upstreams, "series");
  const nameWidth = Math.max(10, ...upstreams.map(({ name }) => printable(name).length + 2));
  const row = (name: string, cells: readonly string[], bar: string): string =>
    `  ${name.padEnd(nameWidth)}${cells.map((cell, index) => cell.padStart(COLUMNS[index] ?? 0)).join("")}${bar}`;
  return [
    `demo: ${grouped(progress.series)} series, ${grouped(progress.samplesPerSecond)} samples/s, ${progress.seconds} s; ${requestsText(progress)}`,
    row("upstream", ["series", "share", "tasks", "samples"], ""),
    ...upstreams.map(({ name, stats }) => {
      const share = total === 0 ? 0 : stats.series / total;
      const cells = [
        grouped(stats.series),
        percent(share),
        grouped(stats.tasks.length),
        grouped(stats.samples),
      ];
      return row(printable(name), cells, `  ${"#".repeat(Math.round(share * BAR_CHARACTERS))}`.trimEnd());
    }),
    row("all", [grouped(total), "", "", grouped(sum(upstreams, "samples"))], ""),
  ];
}

/** The same in one line, for where nothing can be drawn again. */
export function demoLine(progress: DemoProgress): string {
  const total = sum(progress.upstreams, "series");
  const shares = progress.upstreams.map(
    ({ name, stats }) =>
      `${printable(name)} ${grouped(stats.series)} series (${percent(total === 0 ? 0 : stats.series / total)})`,
  );
  return `demo: ${progress.seconds} s; ${shares.join(", ")}; ${requestsText(progress)}`;
}

function requestsText({ ok, failed, lastFailure }: DemoProgress): string {
  const last = lastFailure === null ? "" : ` (last: ${printable(lastFailure)})`;
  return `requests ${grouped(ok)} ok, ${grouped(failed)} failed${last}`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

function sum(upstreams: DemoProgress["upstreams"], field: "series" | "samples"): number {
  return upstreams.reduce((total, { stats }) => total + stats[field], 0);
}
