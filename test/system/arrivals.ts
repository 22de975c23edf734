/** Receivers that remember where each of many numbered series arrived, and forget it when told. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import protobuf from "protobufjs";
import { uncompressSync } from "snappy";
import { seriesMessages } from "./seriesMessages.ts";

/** The label that carries a series' number. */
export const NUMBER_LABEL = "number";

// message TimeSeries { repeated Label labels = 1; ... }; message Label { string name = 1; string value = 2; }
const LABEL = (1 << 3) | 2;

const NOWHERE = 0xff;

export class Arrivals {
  /** Series that have arrived at two receivers of one path. */
  strays = 0;
  /** What has not arrived yet, of all series on all paths. */
  missing = 0;
  readonly #servers: readonly Server[];
  /** Receivers by path and number of the series. */
  readonly #places: ReadonlyMap<string, Uint8Array>;

  /** @param paths of write addresses, as "/tasks": each is expected to get all `series` */
  constructor(receivers: number, paths: readonly string[], series: number) {
    this.#places = new Map(paths.map((path) => [path, new Uint8Array(series)]));
    this.#servers = Array.from({ length: receivers }, (_, receiver) => this.#server(receiver));
    this.forget();
  }

  #server(receiver: number): Server {
    return createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        this.#note(receiver, request.url ?? "", Buffer.concat(chunks));
        response.writeHead(204).end();
      });
    });
  }

  #note(receiver: number, path: string, body: Buffer): void {
    const places = this.#places.get(path);
    if (places === undefined) throw new Error(`no such path: ${path}`);
    for (const message of seriesMessages(uncompressSync(body) as Buffer)) {
      const number = numberOf(message);
      const place = places[number];
      if (place === NOWHERE) this.missing -= 1;
      else if (place !== receiver) this.strays += 1;
      places[number] = receiver;
    }
  }

  /** Receivers by number of the series; a copy. */
  at(path: string): Uint8Array {
    return Uint8Array.from(this.#places.get(path) ?? []);
  }

  /** As if nothing had arrived. */
  forget(): void {
    for (const places of this.#places.values()) places.fill(NOWHERE);
    this.missing = [...this.#places.values()].reduce((sum, places) => sum + places.length, 0);
    this.strays = 0;
  }

  /** Answers their origins. */
  async start(): Promise<string[]> {
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
}

function numberOf(message: Uint8Array): number {
  const reader = protobuf.Reader.create(message);
  while (reader.pos < reader.len && reader.uint32() === LABEL) {
    const end = reader.uint32() + reader.pos;
    reader.skip(1);
    const name = reader.string();
    reader.skip(1);
    if (name === NUMBER_LABEL) return Number(reader.string());
    reader.pos = end;
  }
  throw new Error("a series without number arrived");
}
