/** Sends the demo load to a gateway until it is stopped. */
import { setTimeout as delay } from "node:timers/promises";
import { DemoEncoder, demoSeries } from "./demoLoad.ts";

export interface DemoFeedOptions {
  /** Write path of the gateway. */
  readonly url: string;
  readonly series: number;
  /** Each series has a sample in this time. */
  readonly roundMs: number;
  /** Requests that a round is spread over. */
  readonly requestsPerRound: number;
  readonly seed: number;
}

const ATTEMPT_TIMEOUT_MS = 30_000;

export class DemoFeed {
  readonly #options: DemoFeedOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #ok = 0;
  #failed = 0;
  #lastFailure: string | null = null;

  /** Starts sending at once. */
  constructor(options: DemoFeedOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  /** Requests answered with 2xx. */
  get ok(): number {
    return this.#ok;
  }

  /** Requests answered otherwise or not at all; their samples are not sent again. */
  get failed(): number {
    return this.#failed;
  }

  get lastFailure(): string | null {
    return this.#lastFailure;
  }

  /** Ends the request under way and sends no more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { series: count, roundMs, requestsPerRound, seed } = this.#options;
    const series = demoSeries(count, seed);
    const encoder = new DemoEncoder();
    const perRequest = Math.ceil(count / requestsPerRound);
    const everyMs = roundMs / requestsPerRound;
    let due = Date.now();
    for (let sent = 0; !this.#stop.signal.aborted; sent++) {
      const part = sent % requestsPerRound;
      const round = Math.floor(sent / requestsPerRound);
      const slice = series.slice(part * perRequest, (part + 1) * perRequest);
      await this.#send(encoder.encode(slice, round, Date.now()));
      // A slow answer delays what comes after it: the load never piles up.
      due = Math.max(due + everyMs, Date.now());
      await this.#sleep(due - Date.now());
    }
  }

  async #send(body: Uint8Array): Promise<void> {
    try {
      const response = await fetch(this.#options.url, {
        method: "POST",
        headers: {
          "Content-Encoding": "snappy",
          "Content-Type": "application/x-protobuf",
          "X-Prometheus-Remote-Write-Version": "0.1.0",
          "User-Agent": "stream-metrics-route-demo",
        },
        body,
        signal: AbortSignal.any([this.#stop.signal, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS)]),
      });
      const reply = await response.text();
      if (response.ok) this.#ok += 1;
      else this.#fail(`${response.status}: ${reply.trim()}`);
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#fail(reasonOf(error));
    }
  }

  #fail(reason: string): void {
    this.#failed += 1;
    this.#lastFailure = reason;
  }

  async #sleep(ms: number): Promise<void> {
    try {
      await delay(ms, undefined, { signal: this.#stop.signal });
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    }
  }
}

/** fetch() hides what happened in the cause. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error && cause.message !== "" ? cause.message : message;
}
