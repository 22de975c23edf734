/** A sender that sends the same requests over and over, each until it is accepted. */
import { setTimeout as pause } from "node:timers/promises";
import { WRITE_HEADERS } from "./gatewayRig.ts";

/** As Prometheus waits at least before it tries again. */
const TRY_AGAIN_AFTER_MS = 30;

export class Resender {
  /** Attempts that came to nothing: the gateway was not there, or could not deliver. */
  repeated = 0;
  /** Answers after which a sender gives up; each as status and text. */
  readonly refused: string[] = [];
  readonly #url: string;
  readonly #bodies: readonly Uint8Array<ArrayBuffer>[];
  readonly #connections: readonly Promise<void>[];
  #stopped = false;

  /** Begins at once. @param connections how many requests are under way at a time */
  constructor(url: string, bodies: readonly Uint8Array<ArrayBuffer>[], connections: number) {
    this.#url = url;
    this.#bodies = bodies;
    this.#connections = Array.from({ length: connections }, (_, first) => this.#run(first, connections));
  }

  async close(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#connections);
  }

  /** Every `step`th body, for ever. */
  async #run(first: number, step: number): Promise<void> {
    for (let at = first; !this.#stopped;) {
      if (await this.#send(this.#bodies[at])) {
        at = (at + step) % this.#bodies.length;
      } else {
        this.repeated += 1;
        await pause(TRY_AGAIN_AFTER_MS);
      }
    }
  }

  /** Answers whether this request is done with. */
  async #send(body: Uint8Array<ArrayBuffer> | undefined): Promise<boolean> {
    try {
      const response = await fetch(this.#url, { method: "POST", headers: WRITE_HEADERS, body: body ?? null });
      const text = await response.text();
      if (response.status >= 500) return false;
      if (!response.ok) this.refused.push(`${response.status}: ${text}`);
      return true;
    } catch {
      // Nobody listens, or the connection broke: the gateway is being restarted.
      return false;
    }
  }
}
