/**
 * A sender of numbered series: one request at a time, each sent again, byte for byte, until it is answered with a 2xx, so
 * that what came before is acknowledged when the next leaves.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "undici";
import { WRITE_HEADERS } from "./gatewayRig.ts";
import { type NumberedSeries, requestOf } from "./numberedSeries.ts";

/** As Prometheus waits at least before it tries again. */
const TRY_AGAIN_AFTER_MS = 30;

export class NumberedSender {
  readonly series: readonly NumberedSeries[];
  /** Samples of each series that are acknowledged. */
  acknowledged = 0;
  /** Attempts without an answer: the gateway was not there, or was killed meanwhile. */
  unanswered = 0;
  /** Attempts that were answered with 5xx. */
  pushedBack = 0;
  /** Answers after which a sender gives up; each as status and text. */
  readonly refused: string[] = [];
  readonly #client: Client;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #everyMs: number;
  readonly #running: Promise<void>;
  #isStopping = false;

  /**
   * Begins at once.
   *
   * @param everyMs between an answer and the next request
   * @param headers besides those of remote write
   */
  constructor(
    origin: string,
    series: readonly NumberedSeries[],
    everyMs: number,
    headers: Readonly<Record<string, string>> = {},
  ) {
    this.series = series;
    this.#client = new Client(origin);
    this.#everyMs = everyMs;
    this.#headers = { ...WRITE_HEADERS, ...headers };
    this.#running = this.#run();
  }

  /** Ends when the request under way is acknowledged. */
  async finish(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
  }

  /** Ends, and leaves the request under way. */
  async close(): Promise<void> {
    this.#isStopping = true;
    await this.#client.destroy();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      const body = requestOf(this.series, this.acknowledged + 1);
      while (!(await this.#send(body))) {
        if (this.#client.destroyed) return;
        await pause(TRY_AGAIN_AFTER_MS);
      }
      this.acknowledged += 1;
      await pause(this.#everyMs);
    }
  }

  /** Answers whether this request is done with. */
  async #send(body: Uint8Array): Promise<boolean> {
    try {
      const request = { path: "/api/v1/write", method: "POST", headers: this.#headers, body } as const;
      const { statusCode, body: answer } = await this.#client.request(request);
      const text = await answer.text();
      if (statusCode >= 500) {
        this.pushedBack += 1;
        return false;
      }
      if (statusCode >= 300) this.refused.push(`${statusCode}: ${text}`);
      return true;
    } catch {
      // Nobody listens, or the connection broke.
      this.unanswered += 1;
      return false;
    }
  }
}
