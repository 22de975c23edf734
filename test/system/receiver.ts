/** A remote write receiver of the tests: decodes with the reference decoder, and answers as told. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  decodeReference,
  type ReferenceMetadata,
  type ReferenceSeries,
  uncompressBody,
} from "../reference/writeRequest.ts";

export class Receiver {
  readonly requests: {
    readonly plain: Uint8Array;
    readonly series: readonly ReferenceSeries[];
    readonly metadata: readonly ReferenceMetadata[];
  }[] = [];
  readonly headers: IncomingMessage["headers"][] = [];
  /** How the next requests are answered; what it leaves open stays open. */
  answer: (response: ServerResponse) => void = (response) => response.writeHead(204).end();
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const plain = uncompressBody(Buffer.concat(chunks));
        this.headers.push(request.headers);
        this.requests.push({ plain, ...decodeReference(plain) });
        this.answer(response);
      });
    });
  }

  /** Listens on a free port, or again on the one it had. Answers the write address. */
  async start(port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    return `http://127.0.0.1:${this.port}/api/v1/write`;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get series(): readonly ReferenceSeries[] {
    return this.requests.flatMap(({ series }) => series);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
