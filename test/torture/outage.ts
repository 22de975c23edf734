/**
 * `npm run torture -- outage`: one of three upstreams refuses, is silent or slow for minutes under a constant load.
 *
 * First short windows with and without the trouble take turns, and are compared; then it lasts. Drivers, receivers and gateway
 * are processes of their own, the same as those of the bench. Every request of the load has series for all three upstreams,
 * so with the trouble its answer waits for the disk; what the others' senders notice is seen by probes beside it.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { spreadOf } from "../../src/cli/bench/spread.ts";
import { ensureCorpus, REQUESTS, SERIES_PER_REQUEST } from "../bench/corpus/corpus.ts";
import { Driver, type DriverCounters, type Latencies } from "../bench/driver.ts";
import { memoryOf } from "../bench/procfs.ts";
import { QUIET_CORES, waitForQuiet } from "../bench/quiet.ts";
import { gateway } from "../bench/subjects.ts";
import { BENCH_FOLDER, buildTools, type Tools } from "../bench/tools.ts";
import { type Rig, withRig } from "../bench/window.ts";
import { Metrics } from "../peers/metrics.ts";
import { until } from "../peers/until.ts";
import { configOf } from "../system/gatewayRig.ts";
import { ledgerGaps } from "../system/ledger.ts";
import { makeProbes, PROBES_PER_SECOND, SERIES_PER_PROBE } from "./probes.ts";
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
const PROBE_CONNECTIONS = 4;
const ROUTE = "bench";
const CONFIG = "spool: {max_bytes: 8GiB}\n";
/** Longer than `spool_after` by default: the upstream is behind then. */
const SETTLE_MS = 3_000;
const REPORT_EVERY_MS = 10_000;
const WARM_WITHIN_MS = 180_000;
const DRAINED_WITHIN_MS = 600_000;

/** What one window saw. */
interface Window {
  /** Of requests that have series for the upstream in trouble, and of those that have none. */
  readonly loadP99Ms: number;
  readonly probesP99Ms: number;
  /** Samples that reached the other upstreams, a second. */
  readonly others: number;
}

/** All that drivers did until now. */
interface Sent {
  /** Samples. */
  accepted: number;
  /** Attempts that were not taken, by what happened to them. */
  refused: number;
  pushedBack: number;
  broken: number;
}

/** A gateway before two receivers and a third that can be made to be in trouble. */
interface Scene {
  readonly tools: Tools;
  readonly rig: Rig;
  readonly front: TroubledFront;
  readonly corpus: string;
  /** Folder of the probes. */
  readonly probes: string;
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
      const config = configOf(readFileSync(join(rig.folder, "gateway.yaml"), "utf8"));
      const probes = makeProbes(config, `upstream-${TROUBLED}`, rig.folder);
      const sent = { accepted: 0, refused: 0, pushedBack: 0, broken: 0 };
      const scene = { tools, rig, front, corpus, probes, options, sent };
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
  const ratio = (of: (window: Window) => number): string => {
    const ratios = before.map((window, pair) => of(during[pair] ?? window) / of(window));
    const { median, min, max } = spreadOf(ratios);
    return `${median.toFixed(3)} [${min.toFixed(2)}..${max.toFixed(2)}]`;
  };
  say(
    `${trouble}: with the trouble over without, median [lowest..highest] of ${pairs} pairs: ` +
      `p99 of requests for the others alone ${ratio(({ probesP99Ms }) => probesP99Ms)} (want at most 1.05), ` +
      `samples a second at the others ${ratio(({ others }) => others)} (want at least 0.95), ` +
      `p99 of requests for all three, which wait for the disk, ${ratio(({ loadP99Ms }) => loadP99Ms)}; ` +
      `on a machine where others use more than ${QUIET_CORES} processors this says little`,
  );
}

/** Until every series of the load is known. */
async function warmUp(scene: Scene): Promise<void> {
  await underLoad(scene, async ({ load }) => {
    await until("every body to be sent", WARM_WITHIN_MS, () => load.counters().accepted >= REQUESTS);
  });
}

async function measure(scene: Scene): Promise<Window> {
  const { rig, options } = scene;
  let others = NaN;
  const { load, probes } = await underLoad(scene, async (drivers) => {
    await pause(SETTLE_MS);
    drivers.load.forgetLatencies();
    drivers.probes.forgetLatencies();
    const began = performance.now();
    const arrived = atOthers(rig);
    await pause(options.windowSeconds * 1000);
    others = (atOthers(rig) - arrived) / ((performance.now() - began) / 1000);
  });
  return { loadP99Ms: load.p99Ms, probesP99Ms: probes.p99Ms, others };
}

/** The load, and the probes beside it. */
interface Drivers {
  readonly load: Driver;
  readonly probes: Driver;
}

/** Does the work while both drivers send, and answers their latencies when the last answer is there. */
async function underLoad(
  { tools, rig, corpus, probes: probesFolder, options, sent }: Scene,
  work: (drivers: Drivers) => Promise<void>,
): Promise<Readonly<Record<keyof Drivers, Latencies>>> {
  const { port } = rig.running;
  const requestsPerSecond = options.samplesPerSecond / SERIES_PER_REQUEST;
  const all = { port, connections: CONNECTIONS, requestsPerSecond, corpus };
  const few = {
    port,
    connections: PROBE_CONNECTIONS,
    requestsPerSecond: PROBES_PER_SECOND,
    corpus: probesFolder,
  };
  const load = await Driver.start(tools, all, rig.folder);
  try {
    const probes = await Driver.start(tools, few, rig.folder, "probes");
    try {
      await work({ load, probes });
      const [ofLoad, ofProbes] = await Promise.all([load.end(), probes.end()]);
      count(sent, load.counters(), SERIES_PER_REQUEST);
      count(sent, probes.counters(), SERIES_PER_PROBE);
      return { load: ofLoad, probes: ofProbes };
    } finally {
      await probes.stop();
    }
  } finally {
    await load.stop();
  }
}

/** Has the trouble last, and prints how the gateway does. */
async function last(scene: Scene, trouble: Trouble): Promise<void> {
  const { rig, front, options } = scene;
  await front.become("well");
  await drained(scene);
  say(`${trouble} for ${options.minutes} minutes`);
  await front.become(trouble);
  const { load, probes } = await underLoad(scene, async () => {
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
  });
  say(
    `  requests for the others alone: ${describeLatencies(probes)}; for all three: ${describeLatencies(load)}`,
  );
  await drained(scene);
  const { rssMiB, peakRssMiB } = memoryOf(rig.running.child.pid);
  say(`  drained; RSS ${rssMiB.toFixed(0)} MiB, at most ${peakRssMiB.toFixed(0)} MiB`);
}

async function judge(scene: Scene, trouble: Trouble): Promise<Verdict[]> {
  const { rig, sent } = scene;
  const { refused, pushedBack, broken } = sent;
  const gaps = ledgerGaps(await metricsOf(rig), [ROUTE]);
  const arrived = rig.receivers.samplesByPort().reduce((sum, samples) => sum + samples, 0);
  return [
    {
      passed: arrived >= sent.accepted,
      text: `${trouble}: ${sent.accepted} samples were accepted, ${arrived} arrived`,
    },
    {
      passed: refused + pushedBack + broken === 0,
      text:
        `${trouble}: of the senders' attempts ${refused} were refused, ${pushedBack} pushed back (429, 5xx), ` +
        `${broken} lost their connection`,
    },
    { passed: gaps.length === 0, text: `${trouble}: gaps in the ledger: ${gaps.join("; ") || "none"}` },
  ];
}

function count(
  sent: Sent,
  { accepted, refused, pushedBack, connectionErrors }: DriverCounters,
  seriesPerRequest: number,
): void {
  sent.accepted += accepted * seriesPerRequest;
  sent.refused += refused;
  sent.pushedBack += pushedBack;
  sent.broken += connectionErrors;
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

function describe(window: Window | undefined): string {
  if (window === undefined) return "nothing";
  const { probesP99Ms, loadP99Ms, others } = window;
  return (
    `p99 ${probesP99Ms.toFixed(1)} ms for the others alone, ${loadP99Ms.toFixed(1)} ms for all three, ` +
    `${(others / 1000).toFixed(1)} k samples a second at the others`
  );
}

function describeLatencies({ p99Ms, slowestMs }: Latencies): string {
  return `p99 ${p99Ms.toFixed(1)} ms, the slowest ${slowestMs.toFixed(0)} ms`;
}
