/** Asks a program for its health again and again: how long that takes at most shows how long its event loop is held up. */
import { Agent, get } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

const ASK_EVERY_MS = 100;

export class HealthWatch {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #watching: Promise<void>;
  #slowestMs = 0;
  #isOver = false;

  constructor(port: number) {
    this.#watching = this.#watch(port);
  }

  /** Ends, and answers the longest time that an answer took. */
  async end(): Promise<number> {
    this.#isOver = true;
    await this.#watching;
    this.#agent.destroy();
    return this.#slowestMs;
  }

  async #watch(port: number): Promise<void> {
    while (!this.#isOver) {
      const asked = performance.now();
      await this.#ask(port);
      this.#slowestMs = Math.max(this.#slowestMs, performance.now() - asked);
      await pause(ASK_EVERY_MS);
    }
  }

  #ask(port: number): Promise<void> {
    return new Promise((resolve) => {
      const request = get({ port, host: "127.0.0.1", path: "/health", agent: this.#agent }, (response) => {
        response.resume();
        response.once("end", resolve);
      });
      // A program that is stopped, or a kept connection that it has just closed.
      request.once("error", () => {
        resolve();
      });
    });
  }
}
