/**
 * One receiver of the sink: takes remote write 1.0 at any path, decodes, counts and forgets it.
 *
 * It answers as a well-behaved receiver does: 204, 400 for what is broken, 415 for other encodings and messages. Nothing
 * of a request that is refused is counted.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { BodyClaim, type BodyMemory, readBody } from "../receive/body.ts";
import { unsupportedReason } from "../receive/negotiate.ts";
import type { ListenAddress } from "../receive/options.ts";
import { WireError } from "../wire/errors.ts";
import { uncompressBlock } from "../wire/snappy.ts";
import { DecodeError, decodeWriteRequest, type RawWriteRequest } from "./referenceDecoder.ts";
import { SinkCounts, type SinkStats } from "./sinkCounts.ts";
import { sinkPage } from "./sinkPage.ts";

/** Of a body, and of what it decompresses to. */
const MAX_BYTES = 64 * 1024 * 1024;
const BODY_TIMEOUT_MS = 60_000;
/** A sink has one reader at a time, and nothing else to keep. */
const UNLIMITED: BodyMemory = { tryTake: () => true, release: () => undefined };
/** Longer than senders keep idle connections, so that none of them meets a reset. */
const KEEP_ALIVE_TIMEOUT_MS = 95_000;

/** What the receiver tells of requests as they come. */
export interface SinkEvents {
  /** A request was decoded and counted; `plain` is its message. */
  accepted?(request: RawWriteRequest, plain: Uint8Array): void;
  /** A write request was answered, with 204 or with an error. */
  answered?(stats: () => SinkStats): void;
}

type Verdict = { readonly status: 204 } | { readonly status: 400 | 415; readonly reason: string };

export class SinkReceiver {
  readonly #server: Server;
  readonly #counts: SinkCounts;
  readonly #address: ListenAddress;
  readonly #events: SinkEvents;
  readonly #now: () => number;

  private constructor(
    server: Server,
    address: ListenAddress,
    now: () => number,
    eventsFor: (receiver: SinkReceiver) => SinkEvents,
  ) {
    this.#server = server;
    this.#address = address;
    this.#counts = new SinkCounts(hostAndPort(address));
    this.#now = now;
    this.#events = eventsFor(this);
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      this.#serve(request, response).catch((error: unknown) => {
        // Only a bug of ours comes here; the page and the terminal show it as a refusal.
        this.#counts.refuse(500, `bug in the sink: ${String(error)}`);
        if (!response.headersSent) answerText(response, 500, "internal error\n");
        this.#events.answered?.(() => this.stats());
      });
    });
  }

  /** Listens; rejects with the system's error when the address cannot be had. */
  static async start(
    wanted: ListenAddress,
    now: () => number,
    eventsFor: (receiver: SinkReceiver) => SinkEvents = () => ({}),
  ): Promise<SinkReceiver> {
    const server = createServer({ keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS, requestTimeout: 0 });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(wanted.port, wanted.host, () => {
        server.off("error", reject);
        resolve();
      });
    });
    const { port } = server.address() as AddressInfo;
    return new SinkReceiver(server, { host: wanted.host, port }, now, eventsFor);
  }

  /** Where it listens, with the port that the system chose. */
  get address(): ListenAddress {
    return this.#address;
  }

  /** Where its page is; write requests go to any path below. */
  get url(): string {
    return `http://${hostAndPort(this.#address)}/`;
  }

  stats(): SinkStats {
    return this.#counts.stats();
  }

  /** Ends listening and closes all connections. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    if (request.method === "POST") {
      await this.#serveWrite(request, response);
    } else if (request.method !== "GET" && request.method !== "HEAD") {
      response.writeHead(405, { Allow: "GET, HEAD, POST" }).end();
    } else if (path === "/") {
      answerText(response, 200, sinkPage(this.stats()));
    } else if (path === "/stats") {
      response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(this.stats()));
    } else {
      answerText(response, 404, "the page is at /, its numbers at /stats; write requests are POSTs\n");
    }
  }

  async #serveWrite(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request, MAX_BYTES, BODY_TIMEOUT_MS, new BodyClaim(UNLIMITED));
    if (body.kind === "gone") {
      response.destroy();
      return;
    }
    this.#counts.seen(request.headers["user-agent"], this.#now());
    const unsupported = unsupportedReason(request.headers);
    let verdict: Verdict;
    if (unsupported !== null) {
      verdict = { status: 415, reason: unsupported };
    } else if (body.kind === "body") {
      verdict = this.#take(Buffer.concat(body.pieces));
    } else {
      response.setHeader("Connection", "close");
      verdict = { status: 400, reason: `the body is longer than the limit of ${MAX_BYTES} bytes` };
    }
    if (verdict.status === 204) {
      response.writeHead(204).end();
    } else {
      this.#counts.refuse(verdict.status, verdict.reason);
      answerText(response, verdict.status, `${verdict.reason}\n`);
    }
    this.#events.answered?.(() => this.stats());
  }

  #take(body: Uint8Array): Verdict {
    if (body.length === 0) return { status: 400, reason: "the body is empty, want a snappy block" };
    let plain: Uint8Array;
    let request: RawWriteRequest;
    try {
      plain = uncompressBlock(body, MAX_BYTES);
      request = decodeWriteRequest(plain);
    } catch (error) {
      if (error instanceof WireError || error instanceof DecodeError) {
        return { status: 400, reason: error.message };
      }
      throw error;
    }
    if (plain.length > 0 && request.timeseries.length === 0 && request.metadata.length === 0) {
      return {
        status: 415,
        reason: "neither series nor metadata in the request: no remote write 1.0, perhaps a 2.0 message",
      };
    }
    this.#counts.accept(request, body.length, plain.length);
    this.#events.accepted?.(request, plain);
    return { status: 204 };
  }
}

/** An address as URLs have it. */
function hostAndPort({ host, port }: ListenAddress): string {
  const shown = host === "" ? "localhost" : host;
  return shown.includes(":") ? `[${shown}]:${port}` : `${shown}:${port}`;
}

function answerText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8" }).end(text);
}
