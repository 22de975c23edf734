/** When a soak has passed. */
import { spreadOf } from "../../src/cli/bench/spread.ts";
import { mean, slopeOf } from "./statistics.ts";

/** Resident memory at a time since the beginning. */
export interface MemoryReading {
  readonly minute: number;
  readonly rssMiB: number;
}

export interface Soak {
  readonly memory: readonly MemoryReading[];
  readonly slowestMs: number;
  /** Requests that were sent and not accepted in the end. */
  readonly unaccepted: number;
  /** Samples that were accepted and did not arrive. */
  readonly lostSamples: number;
}

export interface Verdict {
  readonly passed: boolean;
  readonly text: string;
}

/** The memory of a program that has just started grows: what counts is what comes behind. */
export const SETTLING_MINUTES = 2;
const MOST_GROWTH_PERCENT_A_MINUTE = 1;
const MOST_ABOVE_MEDIAN = 1.1;
const SLOWEST_MS = 1_000;

/** @param soak with readings of more than SETTLING_MINUTES */
export function judge(soak: Soak): Verdict[] {
  return [judgeMemory(soak.memory), judgeSlowest(soak.slowestMs), judgeLosses(soak)];
}

function judgeMemory(readings: readonly MemoryReading[]): Verdict {
  const settled = readings.filter(({ minute }) => minute > SETTLING_MINUTES);
  const sizes = settled.map(({ rssMiB }) => rssMiB);
  const slope = slopeOf(settled.map(({ minute, rssMiB }) => ({ x: minute, y: rssMiB })));
  const growth = (100 * slope) / mean(sizes);
  const { median, max } = spreadOf(sizes);
  return {
    passed: growth < MOST_GROWTH_PERCENT_A_MINUTE && max <= MOST_ABOVE_MEDIAN * median,
    text:
      `RSS after minute ${SETTLING_MINUTES}: ${growth.toFixed(2)} % growth a minute ` +
      `(want below ${MOST_GROWTH_PERCENT_A_MINUTE} %), at most ${max.toFixed(0)} MiB, ` +
      `${(max / median).toFixed(2)} of the median (want at most ${MOST_ABOVE_MEDIAN})`,
  };
}

function judgeSlowest(slowestMs: number): Verdict {
  return {
    passed: slowestMs <= SLOWEST_MS,
    text: `slowest request: ${slowestMs.toFixed(0)} ms (want at most ${SLOWEST_MS} ms)`,
  };
}

function judgeLosses({ unaccepted, lostSamples }: Soak): Verdict {
  return {
    passed: unaccepted === 0 && lostSamples <= 0,
    text: `${unaccepted} requests not accepted, ${Math.max(0, lostSamples)} accepted samples not delivered (want 0)`,
  };
}
