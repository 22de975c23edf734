/** Receivers that remember where each timed item arrived, and count the connections that are closed on them. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { uncompressSync } from "snappy";
import { seriesMessages } from "./seriesMessages.ts";
import { ITEM_KINDS, readTimedSeries, type TimedItem } from "./timedItems.ts";

/** Timestamps of one test are nearer to each other than this: so many milliseconds are three months. */
const TIMESTAMP_RANGE = 2 ** 33;
const SHOWN_PROBLEMS = 20;
/** Longer than any test. */
const KEEP_ALIVE_MS = 600_000;

export class ItemReceivers {
  /** By receiver: how many of the connections to it have been closed. It closes none itself. */
  readonly closed: number[];
  /** Items that arrived more than once, as text, the first of them. */
  readonly doubled: string[] = [];
  readonly #servers: readonly Server[];
  /** Receivers by path and item. */
  readonly #places: ReadonlyMap<string, Map<number, number>>;

  /** @param paths of write addresses, as "/tasks" */
  constructor(receivers: number, paths: readonly string[]) {
    this.#places = new Map(paths.map((path) => [path, new Map<number, number>()]));
    this.closed = Array.from({ length: receivers }, () => 0);
    this.#servers = this.closed.map((_, receiver) => this.#server(receiver));
  }

  /** Where an item has arrived; undefined before. */
  at(path: string, number: number, item: TimedItem): number | undefined {
    return this.#places.get(path)?.get(keyOf(number, item));
  }

  /** Items that have arrived. */
  count(path: string): number {
    return this.#places.get(path)?.size ?? NaN;
  }

  /** Answers their origins. */
  start(): Promise<string[]> {
    return Promise.all(
      this.#servers.map(async (server) => {
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
        return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      }),
    );
  }

  async close(): Promise<void> {
    await Promise.all(
      this.#servers.map((server) => {
        server.closeAllConnections();
        return new Promise((resolve) => server.close(resolve));
      }),
    );
  }

  #server(receiver: number): Server {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        this.#note(receiver, request.url ?? "", Buffer.concat(chunks));
        response.writeHead(204).end();
      });
    });
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    return server.on("connection", (socket) => {
      socket.once("close", () => {
        this.closed[receiver] = (this.closed[receiver] ?? 0) + 1;
      });
    });
  }

  #note(receiver: number, path: string, body: Buffer): void {
    const places = this.#places.get(path);
    if (places === undefined) throw new Error(`no such path: ${path}`);
    for (const message of seriesMessages(uncompressSync(body) as Buffer)) {
      const { number, items } = readTimedSeries(message);
      for (const item of items) {
        const key = keyOf(number, item);
        const before = places.get(key);
        if (before !== undefined && this.doubled.length < SHOWN_PROBLEMS) {
          this.doubled.push(
            `${item.kind} ${item.timestampMs} of series ${number} at receivers ${before} and ${receiver} of ${path}`,
          );
        }
        places.set(key, receiver);
      }
    }
  }
}

function keyOf(number: number, { kind, timestampMs }: TimedItem): number {
  const column = number * ITEM_KINDS.length + ITEM_KINDS.indexOf(kind);
  return column * TIMESTAMP_RANGE + (timestampMs % TIMESTAMP_RANGE);
}
