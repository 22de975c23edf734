/** `sink`: receivers that decode and count what a remote-write sender sends, and show it. */
import { parseListenAddress } from "../config/listenAddress.ts";
import type { ListenAddress } from "../receive/options.ts";
import { seriesLines, viewSeries } from "./captureText.ts";
import { grouped, printable } from "./printable.ts";
import type { RawWriteRequest } from "./referenceDecoder.ts";
import type { SinkStats } from "./sinkCounts.ts";
import { senderText } from "./sinkPage.ts";
import { type SinkEvents, SinkReceiver } from "./sinkReceiver.ts";
import { waitForSignal } from "./stopSignal.ts";

export interface SinkOptions {
  /** At least one. */
  readonly listen: readonly ListenAddress[];
  readonly now: () => number;
  /** What is done with a receiver's requests besides counting them. */
  readonly events?: (receiver: SinkReceiver) => SinkEvents;
}

export interface RunningSink {
  /** In the order of `listen`. */
  readonly receivers: readonly SinkReceiver[];
  /** Ends all receivers. */
  close(): Promise<void>;
}

/** One line per receiver in this time, however much arrives. */
const LINE_EVERY_MS = 5_000;

/** Starts receivers; when one address cannot be had, none is left listening and the system's error is thrown. */
export async function startSink({ listen, now, events }: SinkOptions): Promise<RunningSink> {
  const receivers: SinkReceiver[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(receivers.map((receiver) => receiver.close()));
  };
  try {
    for (const address of listen) receivers.push(await SinkReceiver.start(address, now, events));
  } catch (error) {
    await close();
    throw error;
  }
  return { receivers, close };
}

/**
 * Runs receivers until SIGTERM or SIGINT.
 *
 * @param options `listen`: PORT (on 127.0.0.1) or HOST:PORT each; `print`: every series as it comes
 * @returns exit code 0
 * @throws {SyntaxError} for an address that is none, and the system's error when one cannot be had
 */
export async function sink(
  options: { readonly listen: readonly string[]; readonly print: boolean },
  print: (line: string) => void,
): Promise<number> {
  const progress: ProgressLines[] = [];
  const running = await startSink({
    listen: options.listen.map(readAddress),
    now: Date.now,
    events: () => {
      const lines = new ProgressLines(print);
      progress.push(lines);
      return {
        answered: (stats) => {
          lines.arrived(stats);
        },
        ...(options.print && { accepted: printSeries(print) }),
      };
    },
  });
  for (const { url } of running.receivers) print(`listening on ${url} for remote write at any path`);
  await waitForSignal("SIGTERM", "SIGINT", "SIGHUP");
  for (const lines of progress) lines.stop();
  await running.close();
  return 0;
}

function readAddress(text: string): ListenAddress {
  const address = parseListenAddress(/^\d+$/.test(text) ? `127.0.0.1:${text}` : text);
  if (address === null) {
    throw new SyntaxError(
      `--listen: want PORT or HOST:PORT with a port up to 65535, got ${JSON.stringify(text)}`,
    );
  }
  return address;
}

function printSeries(print: (line: string) => void): (request: RawWriteRequest) => void {
  return ({ timeseries }) => {
    for (const series of timeseries) seriesLines(viewSeries(series)).forEach(print);
  };
}

/** Tells what has arrived at one receiver: at once, and then no more often than LINE_EVERY_MS. */
class ProgressLines {
  readonly #print: (line: string) => void;
  #told: SinkStats | null = null;
  #timer: NodeJS.Timeout | null = null;
  #latest: (() => SinkStats) | null = null;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  arrived(stats: () => SinkStats): void {
    this.#latest = stats;
    if (this.#timer === null) this.#tellAndWait();
  }

  /** Tells what has not been told yet, and ends. */
  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#tell();
  }

  #tellAndWait(): void {
    this.#tell();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#latest !== null) this.#tellAndWait();
    }, LINE_EVERY_MS);
  }

  #tell(): void {
    if (this.#latest === null) return;
    const stats = this.#latest();
    this.#latest = null;
    this.#print(progressLine(stats, this.#told));
    this.#told = stats;
  }
}

/** What came since `before`, and what is there by now. */
function progressLine(stats: SinkStats, before: SinkStats | null): string {
  const since = (
    field: "requests" | "samples" | "histograms" | "exemplars" | "metadata" | "refused",
  ): number => stats[field] - (before?.[field] ?? 0);
  const items = (["samples", "histograms", "exemplars", "metadata"] as const)
    .filter((field) => since(field) > 0)
    .map((field) => `${grouped(since(field))} ${field}`);
  const refused =
    since("refused") === 0
      ? ""
      : `, ${grouped(since("refused"))} refused (${printable(stats.last_refusal ?? "").slice(0, 200)})`;
  const came = `+${grouped(since("requests"))} requests with ${items.join(", ") || "no items"}${refused}`;
  const known = `${grouped(stats.series)} series, ${grouped(stats.tasks.length)} tasks so far`;
  return `${stats.listen}: ${came}${senderText(stats)}; ${known}`;
}
