/** `npm run soak`: the gateway for minutes at 70 % of the load that it can take; says PASS or FAIL. */
import { setTimeout as pause } from "node:timers/promises";
import { atLeast, parseOptions, runCommand, UsageError } from "./command.ts";
import { ensureCorpus, NEW_SHARES, type NewShare, SERIES_PER_REQUEST } from "./corpus/corpus.ts";
import { Driver } from "./driver.ts";
import { memoryOf, othersCpuSeconds } from "./procfs.ts";
import { QUIET_CORES, waitForQuiet } from "./quiet.ts";
import { judge, type MemoryReading, SETTLING_MINUTES, type Soak } from "./soakVerdict.ts";
import { gateway } from "./subjects.ts";
import { BENCH_FOLDER, buildTools, type Tools } from "./tools.ts";
import { drain, type Rig, withRig } from "./window.ts";

const USAGE = `npm run soak -- [--minutes 10] [--new 1] [--wait 120]

  --minutes how long, at least ${SETTLING_MINUTES + 1}: memory is judged after the first ${SETTLING_MINUTES}
  --new     percent of new series: ${NEW_SHARES.join(", ")}
  --wait    seconds to wait at most for a quiet machine before it begins
`;

const UPSTREAMS = 3;
const CONNECTIONS = 8;
const LOAD = 0.7;
const WARM_UP_MS = 5_000;
const CALIBRATION_MS = 15_000;
const REPORT_EVERY_MS = 10_000;
/** The table turns over several times in the first two minutes, so that all of its memory is in use by then. */
const CONFIG = "memory: {decision_table_series: 500000}\n";

interface SoakOptions {
  readonly minutes: number;
  readonly newShare: NewShare;
  readonly waitSeconds: number;
}

function readOptions(args: readonly string[]): SoakOptions {
  const values = parseOptions(args, {
    minutes: { type: "string", default: "10" },
    new: { type: "string", default: "1" },
    wait: { type: "string", default: "120" },
  });
  const newShare = NEW_SHARES.find((share) => String(share) === values.new);
  if (newShare === undefined)
    throw new UsageError(`--new: want one of ${NEW_SHARES.join(", ")}; got ${values.new}`);
  return {
    minutes: atLeast(SETTLING_MINUTES + 1, "--minutes", values.minutes),
    newShare,
    waitSeconds: atLeast(0, "--wait", values.wait),
  };
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  const tools = buildTools();
  const corpus = ensureCorpus(BENCH_FOLDER, options.newShare);
  await waitForQuiet(options.waitSeconds);
  const soak = await withRig(tools, gateway({ extraConfig: CONFIG }), UPSTREAMS, async (rig) => {
    const most = await saturate(tools, rig, corpus);
    const requestsPerSecond = LOAD * most;
    say(`it takes ${thousands(most)} k series a second; ${thousands(requestsPerSecond)} k are sent`);
    return soakAt(tools, rig, corpus, requestsPerSecond, options.minutes);
  });
  const verdicts = judge(soak);
  for (const { passed, text } of verdicts) say(`${passed ? "PASS" : "FAIL"} ${text}`);
  if (!verdicts.every(({ passed }) => passed)) process.exitCode = 1;
}

/** How many requests a second it answers when they come as fast as it does. */
async function saturate(tools: Tools, rig: Rig, corpus: string): Promise<number> {
  const driver = await startDriver(tools, rig, corpus, 0);
  try {
    await pause(WARM_UP_MS);
    const began = performance.now();
    const { accepted } = driver.counters();
    await pause(CALIBRATION_MS);
    return ((driver.counters().accepted - accepted) / (performance.now() - began)) * 1000;
  } finally {
    await driver.stop();
  }
}

async function soakAt(
  tools: Tools,
  rig: Rig,
  corpus: string,
  requestsPerSecond: number,
  minutes: number,
): Promise<Soak> {
  const before = rig.receivers.counters().samples;
  const driver = await startDriver(tools, rig, corpus, requestsPerSecond);
  try {
    const others = new OthersWatch(rig, driver);
    const memory = await watch(rig, driver, minutes);
    tellOfOthers(others.cores());
    const { slowestMs } = await driver.end();
    const lostSamples = await drain(driver, rig.receivers, before);
    const { sent, accepted } = driver.counters();
    return { memory, slowestMs, unaccepted: sent - accepted, lostSamples };
  } finally {
    await driver.stop();
  }
}

/** Prints how it does, every ten seconds. */
async function watch({ running, receivers }: Rig, driver: Driver, minutes: number): Promise<MemoryReading[]> {
  const memory: MemoryReading[] = [];
  const began = performance.now();
  let { samples } = receivers.counters();
  let others = new OthersWatch({ running, receivers }, driver);
  for (let tick = 1; tick * REPORT_EVERY_MS <= minutes * 60_000; tick++) {
    await pause(began + tick * REPORT_EVERY_MS - performance.now());
    const { rssMiB } = memoryOf(running.child.pid);
    const minute = (performance.now() - began) / 60_000;
    memory.push({ minute, rssMiB });
    const { samples: now } = receivers.counters();
    const slowestMs = driver.counters().slowestUs / 1000;
    say(
      `minute ${minute.toFixed(1)}: RSS ${rssMiB.toFixed(0)} MiB, ` +
        `${((now - samples) / REPORT_EVERY_MS).toFixed(0)} k samples a second, ` +
        `slowest request ${slowestMs.toFixed(0)} ms, ` +
        `others used ${others.cores().toFixed(2)} processors`,
    );
    samples = now;
    others = new OthersWatch({ running, receivers }, driver);
  }
  return memory;
}

/** How much of the machine others use from the making of this on: what is slow on a busy machine says little. */
class OthersWatch {
  readonly #pids: readonly number[];
  readonly #beganMs = performance.now();
  readonly #cpuSecondsBefore: number;

  constructor({ running, receivers }: Pick<Rig, "running" | "receivers">, driver: Driver) {
    this.#pids = [running.child.pid, driver.pid, receivers.pid];
    this.#cpuSecondsBefore = othersCpuSeconds(this.#pids);
  }

  /** Processors that others used on average. */
  cores(): number {
    const seconds = (performance.now() - this.#beganMs) / 1000;
    return (othersCpuSeconds(this.#pids) - this.#cpuSecondsBefore) / seconds;
  }
}

function tellOfOthers(cores: number): void {
  const verdict =
    cores <= QUIET_CORES ? "quiet" : `not quiet (want at most ${QUIET_CORES}): times say little`;
  say(`others used ${cores.toFixed(2)} processors on average: the machine was ${verdict}`);
}

function startDriver(tools: Tools, rig: Rig, corpus: string, requestsPerSecond: number): Promise<Driver> {
  const load = { port: rig.running.port, connections: CONNECTIONS, requestsPerSecond, corpus };
  return Driver.start(tools, load, rig.folder);
}

function thousands(requestsPerSecond: number): string {
  return ((requestsPerSecond * SERIES_PER_REQUEST) / 1000).toFixed(0);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

await runCommand(main, USAGE);
