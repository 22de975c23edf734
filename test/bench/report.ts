/** The results of comparisons as Markdown. */
import { markdownTable } from "../../src/cli/bench/markdownTable.ts";
import { spreadOf } from "../../src/cli/bench/spread.ts";
import type { Comparison, Round } from "./compare.ts";
import type { Subject } from "./subjects.ts";
import type { Window } from "./window.ts";

/** The first is what is measured, the others what it is compared with. */
const NAMES = [
  "gateway",
  "gateway without rules",
  "gateway without a spool",
  "gateway without periods",
  "vmagent",
] as const satisfies Subject["name"][];
const COLUMNS = [
  "scenario",
  "",
  "k samples per CPU-second",
  "delivered, k/s",
  "ack p50 / p99, ms",
  "peak RSS, MiB",
  "slowest /health, ms",
];

/** A table with a heading for each number of upstreams, and below it what is remarkable. */
export function comparisonTables(comparisons: readonly Comparison[]): string {
  const sizes = new Set(comparisons.map(({ scenario }) => scenario.upstreams));
  return [...sizes]
    .map((upstreams) => tableOf(comparisons.filter(({ scenario }) => scenario.upstreams === upstreams)))
    .join("\n");
}

function tableOf(comparisons: readonly Comparison[]): string {
  const [first] = comparisons;
  if (first === undefined) return "";
  const { upstreams, connections } = first.scenario;
  const rows = comparisons.flatMap(rowsOf);
  const remarks = comparisons.flatMap(remarksOf).map((remark) => `- ${remark}\n`);
  return `### ${upstreams} upstreams, ${connections} connections\n\n${markdownTable(COLUMNS, rows)}\n${remarks.join("")}`;
}

function rowsOf({ scenario, rounds }: Comparison): string[][] {
  const what = `${scenario.newShare} % new${scenario.hasRules ? ", ten rules" : ""}`;
  const present = NAMES.filter((name) => windowsOf(rounds, name).length > 0);
  const rows = present.map((name) => [what, name, ...cellsOf(windowsOf(rounds, name))]);
  const [gateway, ...others] = present;
  for (const other of others) rows.push([what, `${gateway} / ${other}`, ...ratioCells(rounds, other)]);
  return rows;
}

function cellsOf(windows: readonly Window[]): string[] {
  const spread = (pick: (window: Window) => number, digits = 0): string => {
    const { median, min, max } = spreadOf(windows.map(pick));
    return `${median.toFixed(digits)} [${min.toFixed(digits)}..${max.toFixed(digits)}]`;
  };
  const median = (pick: (window: Window) => number): number => spreadOf(windows.map(pick)).median;
  const p50 = median(({ latencies }) => latencies.p50Ms).toFixed(1);
  const p99 = median(({ latencies }) => latencies.p99Ms).toFixed(1);
  return [
    spread(({ samplesPerCpuSecond }) => samplesPerCpuSecond / 1000),
    spread(({ deliveredPerSecond }) => deliveredPerSecond / 1000),
    `${p50} / ${p99}`,
    spread(({ peakRssMiB }) => peakRssMiB),
    spread(({ slowestHealthMs }) => slowestHealthMs),
  ];
}

/** The gateway over another program, round by round. */
function ratioCells(rounds: readonly Round[], other: Subject["name"]): string[] {
  const ratio = (pick: (window: Window) => number): string => {
    const ratios = rounds.flatMap(({ windows }) => {
      const [ours, theirs] = [windows.get("gateway"), windows.get(other)];
      return ours === undefined || theirs === undefined ? [] : [pick(ours) / pick(theirs)];
    });
    const { median, min, max } = spreadOf(ratios);
    return `**${median.toFixed(2)}** [${min.toFixed(2)}..${max.toFixed(2)}]`;
  };
  return [
    ratio(({ samplesPerCpuSecond }) => samplesPerCpuSecond),
    ratio(({ deliveredPerSecond }) => deliveredPerSecond),
    "",
    "",
    "",
  ];
}

function remarksOf({ scenario, rounds }: Comparison): string[] {
  const remarks: string[] = [];
  if (rounds.some(({ isNoisy }) => isNoisy)) {
    remarks.push(`${scenario.name}: the machine was not quiet in any round`);
  }
  for (const name of NAMES) {
    for (const { lostSamples, driver } of windowsOf(rounds, name)) {
      if (lostSamples !== 0) remarks.push(`${scenario.name}: ${name} lost ${lostSamples} samples`);
      const { refused, pushedBack, connectionErrors } = driver;
      if (refused + pushedBack + connectionErrors === 0) continue;
      remarks.push(
        `${scenario.name}: ${name} refused ${refused} requests, pushed back ${pushedBack} (429, 5xx), ` +
          `broke ${connectionErrors} connections`,
      );
    }
  }
  return remarks;
}

function windowsOf(rounds: readonly Round[], name: Subject["name"]): Window[] {
  return rounds.map(({ windows }) => windows.get(name)).filter((window) => window !== undefined);
}
