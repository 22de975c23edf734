/** A receiver of numbered series, well or not, that keeps what came in the books and says what is wrong with it. */
import { createServer, type Server, type ServerResponse } from "node:http";
import { uncompressSync } from "snappy";
import { freePort } from "../peers/program.ts";
import { samplesIn } from "./numberedSeries.ts";
import { seriesMessages } from "./seriesMessages.ts";

/**
 * How it is: away refuses connections, failing answers 503 and keeps nothing; cutting keeps what came and breaks the
 * connection in place of an answer, silent keeps nothing and never answers.
 */
export type Condition = "well" | "slow" | "failing" | "cutting" | "silent" | "away";

export const CONDITIONS = [
  "well",
  "slow",
  "failing",
  "cutting",
  "silent",
  "away",
] as const satisfies readonly Condition[];

const SHOWN_PROBLEMS = 20;

export class NumberedReceiver {
  /** Samples that arrived again. */
  repeated = 0;
  /** As text, the first of them. */
  readonly problems: string[] = [];
  readonly #slowMs: number;
  /** Samples that have arrived without a gap, by number of the series. */
  readonly #arrived = new Map<number, number>();
  #belongs: (number: number) => boolean = () => true;
  #condition: Condition = "away";
  #server: Server | null = null;
  #port = 0;

  /** @param slowMs how long it takes to answer when it is slow */
  constructor(slowMs: number) {
    this.#slowMs = slowMs;
  }

  /** Listens, and answers its write address. */
  async start(): Promise<string> {
    this.#port = await freePort();
    await this.become("well");
    return `http://127.0.0.1:${this.#port}/api/v1/write`;
  }

  /** @param belongs whether a series belongs here, by its number */
  expect(belongs: (number: number) => boolean): void {
    this.#belongs = belongs;
  }

  /** Requests that nobody has answered yet are answered as it is from now on, or not at all. */
  async become(condition: Condition): Promise<void> {
    const [before, now] = [this.#condition, condition];
    this.#condition = condition;
    if (before === "silent" && now !== "silent") this.#server?.closeAllConnections();
    if (now === "away") await this.#stopListening();
    else if (before === "away") await this.#listen();
  }

  async close(): Promise<void> {
    await this.become("away");
  }

  /** Samples of a series that have arrived, counted from the first to the first that has not. */
  arrived(number: number): number {
    return this.#arrived.get(number) ?? 0;
  }

  async #listen(): Promise<void> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        this.#take(Buffer.concat(chunks), response);
      });
    });
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, "127.0.0.1", resolve);
    });
  }

  async #stopListening(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  #take(body: Buffer, response: ServerResponse): void {
    switch (this.#condition) {
      case "well":
        this.#keep(body);
        response.writeHead(204).end();
        return;
      case "slow":
        this.#keep(body);
        setTimeout(() => response.writeHead(204).end(), this.#slowMs);
        return;
      case "cutting":
        this.#keep(body);
        response.destroy();
        return;
      case "failing":
        response.writeHead(503).end();
        return;
      case "silent":
      case "away":
    }
  }

  #keep(body: Buffer): void {
    for (const message of seriesMessages(uncompressSync(body) as Buffer)) {
      for (const { number, place } of samplesIn(message)) {
        const before = this.arrived(number);
        if (!this.#belongs(number)) this.#report(`series ${number} does not belong here`);
        if (place <= before) this.repeated += 1;
        else this.#arrived.set(number, place);
        // Its sender sends a sample when the one before is acknowledged.
        if (place > before + 1) this.#report(`series ${number}: sample ${place} came after ${before}`);
      }
    }
  }

  #report(problem: string): void {
    if (this.problems.length < SHOWN_PROBLEMS) this.problems.push(problem);
  }
}
