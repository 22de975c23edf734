/** `npm start -- --demo`: feeds a gateway a synthetic load and shows how it spreads over the upstreams. */
import { setTimeout as delay } from "node:timers/promises";
import { DemoFeed } from "./demoFeed.ts";
import { type DemoProgress, demoLine, demoTable } from "./demoTable.ts";
import type { Screen } from "./screen.ts";
import type { SinkStats } from "./sinkCounts.ts";

export interface DemoOptions {
  /** Write path of the gateway. */
  readonly gatewayUrl: string;
  /** Upstreams by their names, with the addresses of their receivers' pages. */
  readonly receivers: readonly { readonly name: string; readonly url: string }[];
}

const SERIES = 3_000;
const ROUND_MS = 5_000;
const REQUESTS_PER_ROUND = 10;
const SEED = 20_260_501;
const TABLE_EVERY_MS = 1_000;
const LINE_EVERY_MS = 2_000;

/** Runs until `signal` is aborted. A receiver that does not answer is told of, and asked again. */
export async function runDemo(options: DemoOptions, screen: Screen, signal: AbortSignal): Promise<void> {
  const startedAt = Date.now();
  const feed = new DemoFeed({
    url: options.gatewayUrl,
    series: SERIES,
    roundMs: ROUND_MS,
    requestsPerRound: REQUESTS_PER_ROUND,
    seed: SEED,
  });
  while (await sleeps(screen.redraws ? TABLE_EVERY_MS : LINE_EVERY_MS, signal)) {
    try {
      const upstreams = await Promise.all(
        options.receivers.map(async ({ name, url }) => ({ name, stats: await statsOf(url, signal) })),
      );
      show(screen, {
        seconds: Math.round((Date.now() - startedAt) / 1000),
        series: SERIES,
        samplesPerSecond: (SERIES * 1000) / ROUND_MS,
        ok: feed.ok,
        failed: feed.failed,
        lastFailure: feed.lastFailure,
        upstreams,
      });
    } catch (error) {
      if (!signal.aborted)
        screen.print(`demo: a receiver does not tell its counts: ${(error as Error).message}`);
    }
  }
  await feed.stop();
}

function show(screen: Screen, progress: DemoProgress): void {
  if (screen.redraws) screen.draw(demoTable(progress));
  else screen.print(demoLine(progress));
}

async function statsOf(url: string, signal: AbortSignal): Promise<SinkStats> {
  const response = await fetch(new URL("stats", url), { signal });
  return (await response.json()) as SinkStats;
}

/** Waits; answers whether there is more to do. */
async function sleeps(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await delay(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return !signal.aborted;
}
