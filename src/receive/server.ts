/**
 * The listener that senders talk to: write paths, /metrics and health.
 *
 * It reads a request within its bounds and hands its body on; what is wrong with a request is
 * answered here with 4xx, and nothing of it is forwarded.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Connections, type ConnectionTools } from "./connections.ts";
import { WireError } from "../wire/errors.ts";
import type { WriteAnswer } from "./answer.ts";
import { BodyClaim, type BodyMemory, type BodyResult, declaredBytes, readBody } from "./body.ts";
import { unsupportedReason } from "./negotiate.ts";
import type { BodyLimits, ConnectionOptions, ListenAddress } from "./options.ts";

export const WRITE_PATHS = [
  "/api/v1/write",
  "/api/v1/receive",
  "/api/v1/push",
  "/prometheus/api/v1/write",
] as const;
export const HEALTH_PATHS = ["/-/healthy", "/-/health", "/health"];
export const READY_PATH = "/-/ready";
const METRICS_PATH = "/metrics";

/** Longer than senders keep idle connections (Go's 90 s), so that it is they who close and no request meets a reset. */
const KEEP_ALIVE_TIMEOUT_MS = 95_000;
const HEADERS_TIMEOUT_MS = 30_000;

/** Values by their headers' names in lower case, as often as they came; each byte of a value is a character (latin1). */
export type RequestHeaders = Readonly<Partial<Record<string, readonly string[]>>>;

/** What the listener needs of the gateway. */
export interface WriteHandler {
  /**
   * Routes and delivers one request.
   * @param body    a snappy block, not empty, in the pieces that it came in
   * @param headers of the request
   * @param onRouted to be called as soon as the body is not needed any more
   * @throws {WireError} when it is malformed; then nothing was forwarded
   */
  write(body: readonly Uint8Array[], headers: RequestHeaders, onRouted: () => void): Promise<WriteAnswer>;
  /** The answer to a request that there is no memory for. */
  refuse(): WriteAnswer;
  /** The exposition of all metrics and its content type. */
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** What the caller reports. */
export interface ReceiveEvents {
  /** A connection was accepted. Others may wait: one is accepted in each round of the event loop. */
  connected(): void;
  /** A write request came to its end. `status` is null when the connection was closed without one. */
  answered(status: number | null, durationMs: number): void;
  /** A write request's head came, or its body is complete. */
  arrived(): void;
  /** A body was read completely; its compressed length. */
  bodyRead(bytes: number): void;
  /** A body could not be read as remote write; `code` says why. */
  malformed(error: WireError): void;
  /** The handler threw something else than a WireError: a bug. The sender got 500 and will come again. */
  failed(error: unknown): void;
}

export class IngestServer {
  #limits: BodyLimits;
  readonly #handler: WriteHandler;
  readonly #events: ReceiveEvents;
  readonly #now: () => number;
  readonly #memoryFor: (bytes: number) => BodyMemory;
  readonly #server: Server;
  readonly #connections: Connections;
  #ready = false;
  #isLeaving = false;
  #stopping = false;

  /**
   * @param memoryFor where a body of so many bytes, NaN if that is not known, is counted from the time that it is announced
   *                  until it is routed
   */
  constructor(
    options: BodyLimits & ConnectionOptions,
    handler: WriteHandler,
    events: ReceiveEvents,
    tools: ConnectionTools,
    memoryFor: (bytes: number) => BodyMemory,
  ) {
    this.#limits = options;
    this.#handler = handler;
    this.#events = events;
    this.#now = tools.now;
    this.#connections = new Connections(options.maxConnectionAgeMs, tools);
    this.#memoryFor = memoryFor;
    this.#server = createServer(
      // A body has its own timeout, since Node's answers 408.
      { keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS, headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: 0 },
      (request, response) => {
        this.#connections.track(request, response);
        this.#serve(request, response).catch((error: unknown) => {
          events.failed(error);
          if (!response.headersSent) this.#answer(response, 500, "internal error, see the gateway's log");
        });
      },
    );
    this.#server.on("connection", (socket) => {
      this.#connections.add(socket);
      events.connected();
    });
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
      this.#rejectBrokenRequest(error, socket);
    });
  }

  /** Starts listening; rejects with the system's error when the address cannot be had. Answers the port. */
  async listen({ host, port }: ListenAddress): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject);
        resolve();
      });
    });
    return (this.#server.address() as AddressInfo).port;
  }

  /**
   * What /-/ready answers: whether senders should come. Write requests are served either way; but once it is ready no longer,
   * every answer closes its connection, so that senders come to another place in time and not to a connection that ends.
   */
  setReady(ready: boolean): void {
    this.#isLeaving = this.#ready && !ready;
    this.#ready = ready;
  }

  /** For requests from now on. */
  setLimits(limits: BodyLimits): void {
    this.#limits = limits;
  }

  get isReady(): boolean {
    return this.#ready;
  }

  /** Accepts no further connections or requests, and resolves when those under way are answered. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
      this.#connections.closeUnused();
    });
  }

  /** Closes every connection at once, answered or not. */
  abort(): void {
    this.#server.closeAllConnections();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    if (WRITE_PATHS.some((write) => write === path)) {
      await this.#serveWrite(request, response);
    } else if (path === METRICS_PATH || path === READY_PATH || HEALTH_PATHS.includes(path)) {
      await this.#serveRead(path, request, response);
    } else {
      this.#answer(response, 404, `no such path; remote write goes to ${WRITE_PATHS.join(", ")}`);
    }
  }

  async #serveRead(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("Allow", "GET, HEAD");
      this.#answer(response, 405, `${path} takes GET`);
    } else if (path === METRICS_PATH) {
      const { contentType, text } = await this.#handler.metrics();
      this.#answer(response, 200, text, contentType);
    } else if (path === READY_PATH && !this.#ready) {
      this.#answer(response, 503, "not ready");
    } else {
      this.#answer(response, 200, path === READY_PATH ? "ready" : "healthy");
    }
  }

  async #serveWrite(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const start = this.#now();
    const finish = (status: number, text: string): void => {
      this.#answer(response, status, text);
      this.#events.answered(status, this.#now() - start);
    };
    if (request.method !== "POST") {
      response.setHeader("Allow", "POST");
      finish(405, `a write path takes POST, got ${request.method ?? "no method"}`);
      return;
    }
    const result = await this.#receive(request);
    if (result === null) {
      response.destroy();
      this.#events.answered(null, this.#now() - start);
      return;
    }
    if (result.retryAfterSeconds !== undefined) response.setHeader("Retry-After", result.retryAfterSeconds);
    finish(result.status, result.body);
  }

  /**
   * Reads a request and has it written; null when its client is gone.
   *
   * No async function here waits for the delivery: its frame would hold the body, which nobody needs by then.
   */
  #receive(request: IncomingMessage): Promise<WriteAnswer | null> {
    const { maxBodyBytes, bodyTimeoutMs } = this.#limits;
    // The body is read before it is refused, too: a sender that is still writing would see a reset instead.
    this.#events.arrived();
    const claim = new BodyClaim(this.#memoryFor(declaredBytes(request)));
    const release = (): void => {
      claim.release();
    };
    return readBody(request, maxBodyBytes, bodyTimeoutMs, claim)
      .then((body) => {
        this.#events.arrived();
        return this.#understand(request, body);
      })
      .then((understood) =>
        isBody(understood) ? this.#handler.write(understood, request.headersDistinct, release) : understood,
      )
      .catch((error: unknown) => this.#describeMalformed(error))
      .finally(release);
  }

  /** The body, or the answer to a request that is not supported. */
  #understand(request: IncomingMessage, body: BodyResult): readonly Uint8Array[] | WriteAnswer | null {
    if (body.kind === "gone") return null;
    if (body.kind === "no_memory") return this.#handler.refuse();
    const unsupported = unsupportedReason(request.headers);
    if (unsupported !== null) return { status: 415, body: `${unsupported}; nothing was forwarded` };
    if (body.kind === "too_large") {
      const got = body.declared ? `declares ${body.bytes} bytes` : `has at least ${body.bytes} bytes`;
      const limit = `the limit is ${this.#limits.maxBodyBytes} bytes`;
      throw new WireError("WIRE_TOO_LARGE", 0, `the body ${got}, ${limit}`);
    }
    if (body.bytes === 0) throw new WireError("WIRE_EMPTY", 0, "the body is empty, want a snappy block");
    this.#events.bodyRead(body.bytes);
    return body.pieces;
  }

  #describeMalformed(error: unknown): WriteAnswer {
    if (!(error instanceof WireError)) throw error;
    this.#events.malformed(error);
    const status = error.code === "WIRE_VERSION_2" ? 415 : 400;
    return { status, body: `${error.message}; nothing was forwarded` };
  }

  /** Answers in plain text; a client that has left in the meantime is no error. */
  #answer(
    response: ServerResponse,
    status: number,
    text: string,
    contentType = "text/plain; charset=utf-8",
  ): void {
    if (this.#isLastAnswer(response.req)) response.setHeader("Connection", "close");
    if (text === "") response.writeHead(status).end();
    else response.writeHead(status, { "Content-Type": contentType }).end(text);
  }

  /**
   * Whether the connection ends with the answer. While stopping, one that is kept open after its last answer would hold up the
   * end, or end under its sender's next request; and a body that is not read to its end would be taken for the next request.
   */
  #isLastAnswer(request: IncomingMessage): boolean {
    const isStopping = this.#stopping || this.#isLeaving;
    return isStopping || this.#connections.isOld(request.socket) || this.#connections.isSending(request);
  }

  /** What is no HTTP gets 400; what is too slow gets nothing, since a 408 would make Prometheus drop its batch. */
  #rejectBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
    const isSilent = error.code === "ERR_HTTP_REQUEST_TIMEOUT" || error.code === "ECONNRESET";
    // An answer now would be taken for that of the request under way.
    if (isSilent || !socket.writable || this.#connections.isUsed(socket)) {
      socket.destroy();
      return;
    }
    const status =
      error.code === "HPE_HEADER_OVERFLOW" ? "431 Request Header Fields Too Large" : "400 Bad Request";
    socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  }
}

function isBody(understood: readonly Uint8Array[] | WriteAnswer | null): understood is readonly Uint8Array[] {
  return Array.isArray(understood);
}
