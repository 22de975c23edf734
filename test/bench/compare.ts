/** The programs under the same load, in turns: what disturbs the machine for a while disturbs them alike. */
import { QUIET_CORES, waitForQuiet } from "./quiet.ts";
import type { Scenario } from "./scenarios.ts";
import type { Subject } from "./subjects.ts";
import type { Tools } from "./tools.ts";
import { measureWindow, type Timing, type Window } from "./window.ts";

/** One window of each program, one after another. */
export interface Round {
  readonly windows: ReadonlyMap<Subject["name"], Window>;
  /** Others used much of the machine during one of them. */
  readonly isNoisy: boolean;
}

export interface Comparison {
  readonly scenario: Scenario;
  readonly rounds: readonly Round[];
}

export interface CompareOptions extends Timing {
  readonly rounds: number;
  readonly waitSeconds: number;
}

/** Makes rounds until enough were quiet, at most twice as many. Only noisy ones are kept if there are no others. */
export async function compare(
  tools: Tools,
  subjects: readonly Subject[],
  scenario: Scenario,
  corpus: string,
  options: CompareOptions,
): Promise<Comparison> {
  const rounds: Round[] = [];
  const quiet = (): Round[] => rounds.filter(({ isNoisy }) => !isNoisy);
  while (quiet().length < options.rounds && rounds.length < 2 * options.rounds) {
    rounds.push(await makeRound(tools, subjects, scenario, corpus, options));
  }
  return { scenario, rounds: quiet().length > 0 ? quiet() : rounds };
}

async function makeRound(
  tools: Tools,
  subjects: readonly Subject[],
  scenario: Scenario,
  corpus: string,
  options: CompareOptions,
): Promise<Round> {
  const windows = new Map<Subject["name"], Window>();
  let isNoisy = false;
  for (const subject of subjects) {
    await waitForQuiet(options.waitSeconds);
    const window = await measureWindow(tools, subject, { ...scenario, corpus }, options);
    windows.set(subject.name, window);
    isNoisy ||= window.othersCores > QUIET_CORES;
    process.stderr.write(`${scenario.name} ${subject.name}: ${summaryOf(window)}\n`);
  }
  return { windows, isNoisy };
}

function summaryOf(window: Window): string {
  const thousands = (value: number): string => (value / 1000).toFixed(0);
  const { samplesPerCpuSecond, deliveredPerSecond, latencies, cores, othersCores } = window;
  return [
    `${thousands(samplesPerCpuSecond)} k samples per CPU-second`,
    `${thousands(deliveredPerSecond)} k/s delivered`,
    `ack ${latencies.p50Ms.toFixed(1)} / ${latencies.p99Ms.toFixed(1)} ms`,
    `${cores.toFixed(2)} cores`,
    `others ${othersCores.toFixed(2)}`,
  ].join(", ");
}
