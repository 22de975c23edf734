/**
 * `npm run torture -- outage`: one of three upstreams refuses, is silent or slow for minutes under a constant load.
 *
 * First short windows with and without the trouble take turns, and are compared; then it lasts. Driver, receivers and gateway
 * are processes of their own, the same as those of the bench.
 */
import { setTimeout as pause } from "node:timers/promises";
import { ensureCorpus, REQUESTS, SERIES_PER_REQUEST } from "../bench/corpus/corpus.ts";
import { Driver, type DriverCounters } from "../bench/driver.ts";
import { memoryOf } from "../bench/procfs.ts";
import { QUIET_CORES, waitForQuiet } from "../bench/quiet.ts";
import { gateway } from "../bench/subjects.ts";
import { BENCH_FOLDER, buildTools, type Tools } from "../bench/tools.ts";
import { type Rig, withRig } from "../bench/window.ts";
import { Metrics } from "../peers/metrics.ts";
import { until } from "../peers/until.ts";
import { ledgerGaps } from "../system/ledger.ts";
import { say, type Verdict } from "./verdict.ts";
import { type Trouble, TroubledFront } from "./troubledFront.ts";

export interface OutageOptions {
  readonly troubles: readonly Trouble[];
  /** How long the trouble lasts. */
  readonly minutes: number;
  readonly samplesPerSecond: number;
  /** Pairs of windows that are compared, and how long one is. */
  readonly pairs: number;
  readonly windowSeconds: number;
  /** To wait at most for a quiet machine. */
  readonly waitSeconds: number;
}

const UPSTREAMS = 3;
const TROUBLED = 1;
const CONNECTIONS = 8;
const ROUTE = "bench";
const CONFIG = "spool: {max_bytes: 8GiB}\n";
/** Longer than `spool_after` by default: the upstream is behind then. */
const SETTLE_MS = 3_000;
const REPORT_EVERY_MS = 10_000;
const WARM_WITHIN_MS = 180_000;
const DRAINED_WITHIN_MS = 600_000;

/** What one window saw. */
interface Window {
  readonly p99Ms: number;
  /** Samples that reached the other upstreams, a second. */
  readonly others: number;
}

/** All that drivers did until now. */
interface Sent {
  accepted: number;
  notTaken: number;
}

/** A gateway before two receivers and a third that can be made to be in trouble. */
interface Scene {
  readonly tools: Tools;
  readonly rig: Rig;
  readonly front: TroubledFront;
  readonly corpus: string;
  readonly options: OutageOptions;
  readonly sent: Sent;
}

export async function tortureByOutages(options: OutageOptions): Promise<Verdict[]> {
  const tools = buildTools();
  const corpus = ensureCorpus(BENCH_FOLDER, 0);
  const verdicts: Verdict[] = [];
  for (const trouble of options.troubles) {
    await waitForQuiet(options.waitSeconds);
    verdicts.push(...(await outage(tools, corpus, options, trouble)));
  }
  return verdicts;
}

async function outage(
  tools: Tools,
  corpus: string,
  options: OutageOptions,
  trouble: Trouble,
): Promise<Verdict[]> {
  const fronts: TroubledFront[] = [];
  const subject = gateway({ extraConfig: CONFIG });
  const withFront: typeof subject = {
    ...subject,
    start: async (urls, folder) => {
      const front = await TroubledFront.start(urls[TROUBLED] ?? "");
      fronts.push(front);
      return subject.start(urls.with(TROUBLED, front.url), folder);
    },
  };
  try {
    return await withRig(tools, withFront, UPSTREAMS, async (rig) => {
      const [front] = fronts;
      if (front === undefined) throw new Error("the gateway was started without its receivers");
      const scene = { tools, rig, front, corpus, options, sent: { accepted: 0, notTaken: 0 } };
      await compare(scene, trouble);
      await last(scene, trouble);
      return judge(scene, trouble);
    });
  } finally {
    for (const front of fronts) await front.close();
  }
}

/** Prints medians of windows with and without the trouble, which take turns. */
async function compare(scene: Scene, trouble: Trouble): Promise<void> {
  const { pairs, windowSeconds } = scene.options;
  say(`${trouble}: ${pairs} pairs of windows of ${windowSeconds} s, without and with the trouble`);
  const before: Window[] = [];
  const during: Window[] = [];
  await warmUp(scene);
  for (let pair = 0; pair < pairs; pair++) {
    await scene.front.become("well");
    await drained(scene);
    before.push(await measure(scene));
    await scene.front.become(trouble);
    during.push(await measure(scene));
    say(`  ${pair + 1}: ${describe(before.at(-1))}; with the trouble ${describe(during.at(-1))}`);
  }
  const ratio = (of: (window: Window) => number): string =>
    median(before.map((window, pair) => of(during[pair] ?? window) / of(window))).toFixed(3);
  say(
    `${trouble}: with the trouble over without, median of ${pairs} pairs: ` +
      `p99 ${ratio(({ p99Ms }) => p99Ms)} (want at most 1.05), ` +
      `samples a second at the others ${ratio(({ others }) => others)} (want at least 0.95); ` +
      `on a machine where others use more than ${QUIET_CORES} processors this says little`,
  );
}

/** Until every series is known. */
async function warmUp(scene: Scene): Promise<void> {
  const driver = await startDriver(scene);
  try {
    await until("every body to be sent", WARM_WITHIN_MS, () => driver.counters().accepted >= REQUESTS);
    await driver.end();
    count(scene.sent, driver.counters());
  } finally {
    await driver.stop();
  }
}

async function measure({ tools, rig, corpus, options, sent }: Scene): Promise<Window> {
  const driver = await startDriver({ tools, rig, corpus, options });
  try {
    await pause(SETTLE_MS);
    driver.forgetLatencies();
    const began = performance.now();
    const arrived = atOthers(rig);
    await pause(options.windowSeconds * 1000);
    const others = (atOthers(rig) - arrived) / ((performance.now() - began) / 1000);
    const { p99Ms } = await driver.end();
    count(sent, driver.counters());
    return { p99Ms, others };
  } finally {
    await driver.stop();
  }
}

/** Has the trouble last, and prints how the gateway does. */
async function last(scene: Scene, trouble: Trouble): Promise<void> {
  const { rig, front, options } = scene;
  await front.become("well");
  await drained(scene);
  say(`${trouble} for ${options.minutes} minutes`);
  await front.become(trouble);
  const driver = await startDriver(scene);
  try {
    const began = performance.now();
    for (let tick = 1; tick * REPORT_EVERY_MS <= options.minutes * 60_000; tick++) {
      const arrived = atOthers(rig);
      await pause(began + tick * REPORT_EVERY_MS - performance.now());
      const { rssMiB } = memoryOf(rig.running.child.pid);
      say(
        `  minute ${((performance.now() - began) / 60_000).toFixed(1)}: RSS ${rssMiB.toFixed(0)} MiB, ` +
          `${((atOthers(rig) - arrived) / REPORT_EVERY_MS).toFixed(0)} k samples a second at the others, ` +
          `${(await spooled(scene)).toFixed(0)} samples in the spool`,
      );
    }
    await front.become("well");
    const { p99Ms, slowestMs } = await driver.end();
    say(`  p99 ${p99Ms.toFixed(1)} ms, the slowest ${slowestMs.toFixed(0)} ms`);
    count(scene.sent, driver.counters());
  } finally {
    await driver.stop();
  }
  await drained(scene);
  const { rssMiB, peakRssMiB } = memoryOf(rig.running.child.pid);
  say(`  drained; RSS ${rssMiB.toFixed(0)} MiB, at most ${peakRssMiB.toFixed(0)} MiB`);
}

async function judge(scene: Scene, trouble: Trouble): Promise<Verdict[]> {
  const { rig, sent } = scene;
  const gaps = ledgerGaps(await metricsOf(rig), [ROUTE]);
  const wanted = sent.accepted * SERIES_PER_REQUEST;
  const arrived = rig.receivers.samplesByPort().reduce((sum, samples) => sum + samples, 0);
  return [
    {
      passed: arrived >= wanted,
      text: `${trouble}: ${wanted} samples were accepted, ${arrived} arrived`,
    },
    { passed: sent.notTaken === 0, text: `${trouble}: ${sent.notTaken} attempts of senders were not taken` },
    { passed: gaps.length === 0, text: `${trouble}: gaps in the ledger: ${gaps.join("; ") || "none"}` },
  ];
}

function startDriver({
  tools,
  rig,
  corpus,
  options,
}: Pick<Scene, "tools" | "rig" | "corpus" | "options">): Promise<Driver> {
  const requestsPerSecond = options.samplesPerSecond / SERIES_PER_REQUEST;
  const load = { port: rig.running.port, connections: CONNECTIONS, requestsPerSecond, corpus };
  return Driver.start(tools, load, rig.folder);
}

function count(sent: Sent, { accepted, refused, pushedBack, connectionErrors }: DriverCounters): void {
  sent.accepted += accepted;
  sent.notTaken += refused + pushedBack + connectionErrors;
}

function atOthers({ receivers }: Rig): number {
  return receivers
    .samplesByPort()
    .reduce((sum, samples, slot) => (slot === TROUBLED ? sum : sum + samples), 0);
}

/** Waits until the gateway holds nothing. */
async function drained(scene: Scene): Promise<void> {
  await until("the gateway to hold nothing", DRAINED_WITHIN_MS, async () => (await spooled(scene)) === 0);
}

/** Samples in the gateway: in memory or on disk. */
async function spooled({ rig }: Scene): Promise<number> {
  const metrics = await metricsOf(rig);
  const samples = (name: string): number => metrics.sum(`stream_metrics_route_samples_${name}`);
  return samples("spooled") + samples("in_flight");
}

function metricsOf({ running }: Rig): Promise<Metrics> {
  return Metrics.fetch(`http://127.0.0.1:${running.port}/metrics`);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

function describe(window: Window | undefined): string {
  if (window === undefined) return "nothing";
  return `p99 ${window.p99Ms.toFixed(1)} ms, ${(window.others / 1000).toFixed(1)} k samples a second at the others`;
}
