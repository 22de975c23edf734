/**
 * One measured window: a fresh program under test, a warm-up, some seconds of load, and everything delivered at the end.
 *
 * Driver, receivers and the program under test are processes of their own, and only the CPU time of the last counts.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { REQUESTS, SERIES_PER_REQUEST } from "./corpus/corpus.ts";
import { Driver, type DriverCounters, type Latencies } from "./driver.ts";
import { HealthWatch } from "./health.ts";
import { cpuSecondsOf, memoryOf, othersCpuSeconds } from "./procfs.ts";
import { Receivers } from "./receivers.ts";
import type { Running, Subject } from "./subjects.ts";
import { BENCH_FOLDER, type Tools } from "./tools.ts";

export interface Timing {
  readonly warmUpSeconds: number;
  readonly windowSeconds: number;
}

/** Around a window: looking whether the machine is quiet, starting the programs, and waiting for what is under way. */
const SECONDS_AROUND = 4;

/** How long a window takes on a quiet machine, all in all. */
export function secondsOfWindow({ warmUpSeconds, windowSeconds }: Timing): number {
  return warmUpSeconds + windowSeconds + SECONDS_AROUND;
}

export interface Setup {
  readonly upstreams: number;
  readonly connections: number;
  /** Folder of bodies. */
  readonly corpus: string;
}

export interface Window {
  readonly samplesPerCpuSecond: number;
  /** Samples that arrived at the upstreams. */
  readonly deliveredPerSecond: number;
  readonly latencies: Latencies;
  readonly peakRssMiB: number;
  readonly slowestHealthMs: number;
  /** Processors that the program under test used, and that others used (neither it nor driver, receivers and us). */
  readonly cores: number;
  readonly othersCores: number;
  /** Samples that were accepted and had not arrived in the end; below zero when some arrived twice. */
  readonly lostSamples: number;
  readonly driver: DriverCounters;
}

const WARM_UP_AT_MOST_MS = 180_000;
const DRAIN_AT_MOST_MS = 40_000;
const DRAIN_STALLED_MS = 3_000;
const LOOK_EVERY_MS = 100;

/** A program under load: what a window, and the soak, measure. */
export interface Rig {
  readonly folder: string;
  readonly running: Running;
  readonly receivers: Receivers;
}

/** Starts receivers and the program under test, does the work, and ends them. */
export async function withRig<T>(
  tools: Tools,
  subject: Subject,
  upstreams: number,
  work: (rig: Rig) => Promise<T>,
): Promise<T> {
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const folder = mkdtempSync(join(BENCH_FOLDER, "run-"));
  const receivers = await Receivers.start(tools, upstreams, folder);
  try {
    const running = await subject.start(receivers.urls, folder);
    try {
      return await work({ folder, running, receivers });
    } finally {
      await running.child.stop();
    }
  } finally {
    await receivers.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

export async function measureWindow(
  tools: Tools,
  subject: Subject,
  { upstreams, connections, corpus }: Setup,
  timing: Timing,
): Promise<Window> {
  return withRig(tools, subject, upstreams, async (rig) => {
    const load = { port: rig.running.port, connections, requestsPerSecond: 0, corpus };
    const driver = await Driver.start(tools, load, rig.folder);
    try {
      await warmUp(driver, timing.warmUpSeconds);
      return await measure(rig, driver, timing.windowSeconds);
    } finally {
      await driver.stop();
    }
  });
}

/** Some seconds, and long enough for every body to have been sent once. */
async function warmUp(driver: Driver, seconds: number): Promise<void> {
  const began = performance.now();
  await pause(seconds * 1000);
  while (driver.counters().accepted < REQUESTS && performance.now() - began < WARM_UP_AT_MOST_MS) {
    await pause(LOOK_EVERY_MS);
  }
  const { accepted } = driver.counters();
  if (accepted < REQUESTS) {
    throw new Error(`${accepted} of ${REQUESTS} requests in ${WARM_UP_AT_MOST_MS / 1000} s of warming up`);
  }
}

async function measure({ running, receivers }: Rig, driver: Driver, seconds: number): Promise<Window> {
  const look = (): Look => lookAt(running.child.pid, driver, receivers);
  const health = new HealthWatch(running.port);
  driver.forgetLatencies();
  const before = look();
  await pause(seconds * 1000);
  const after = look();
  const slowestHealthMs = await health.end();
  const latencies = await driver.end();
  const { peakRssMiB } = memoryOf(running.child.pid);
  const lostSamples = await drain(driver, receivers, 0);

  const elapsed = after.seconds - before.seconds;
  const cpuSeconds = after.cpuSeconds - before.cpuSeconds;
  const delivered = after.samples - before.samples;
  return {
    samplesPerCpuSecond: delivered / cpuSeconds,
    deliveredPerSecond: delivered / elapsed,
    latencies,
    peakRssMiB,
    slowestHealthMs,
    cores: cpuSeconds / elapsed,
    othersCores: (after.othersCpuSeconds - before.othersCpuSeconds) / elapsed,
    lostSamples,
    driver: driver.counters(),
  };
}

interface Look {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly othersCpuSeconds: number;
  readonly samples: number;
}

function lookAt(pid: number, driver: Driver, receivers: Receivers): Look {
  return {
    seconds: performance.now() / 1000,
    cpuSeconds: cpuSecondsOf(pid),
    othersCpuSeconds: othersCpuSeconds([pid, driver.pid, receivers.pid]),
    samples: receivers.counters().samples,
  };
}

/**
 * Waits until what was accepted has arrived, or no more arrives.
 *
 * @param before samples that had arrived before this driver began
 * @returns how many samples are missing
 */
export async function drain(driver: Driver, receivers: Receivers, before: number): Promise<number> {
  const wanted = before + driver.counters().accepted * SERIES_PER_REQUEST;
  const began = performance.now();
  let { samples } = receivers.counters();
  let moved = began;
  while (
    samples < wanted &&
    performance.now() - began < DRAIN_AT_MOST_MS &&
    performance.now() - moved < DRAIN_STALLED_MS
  ) {
    await pause(LOOK_EVERY_MS);
    const { samples: now } = receivers.counters();
    if (now > samples) moved = performance.now();
    samples = now;
  }
  return wanted - samples;
}
