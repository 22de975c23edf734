/**
 * The admin listener: what operators and their tools ask of a gateway, and tell it.
 *
 * What it adds to the port that senders talk to is for those who know the token. Without one it is for everybody who reaches
 * the address, but for web pages that somebody there looks at.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { isUtf8 } from "node:buffer";
import type { ListenAddress } from "../receive/options.ts";
import type { AdminAnswer, Endpoint } from "./endpoint.ts";
import { pageFault } from "./pageRequest.ts";

/** Two configurations of the largest size, as JSON. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;
/** For a whole request. */
const REQUEST_TIMEOUT_MS = 30_000;
const JSON_TYPE = "application/json; charset=utf-8";
const TEXT_TYPE = "text/plain; charset=utf-8";

export class AdminServer {
  readonly #endpoints: readonly Endpoint[];
  readonly #failed: (error: unknown) => void;
  readonly #server: Server;
  #token: Buffer | null;
  #host = "";

  /**
   * @param token  see AdminOptions
   * @param failed is told what an endpoint throws: a bug, which was answered with 500
   */
  constructor(endpoints: readonly Endpoint[], token: string | null, failed: (error: unknown) => void) {
    this.#endpoints = endpoints;
    this.#token = digestOf(token);
    this.#failed = failed;
    this.#server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        failed(error);
        if (!response.headersSent) reply(response, 500, errorText("internal", "internal error, see the log"));
      });
    });
  }

  /** Starts listening; rejects with the system's error when the address cannot be had. Answers the port. */
  async listen({ host, port }: ListenAddress): Promise<number> {
    this.#host = host;
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject);
        this.#server.on("error", this.#failed);
        resolve();
      });
    });
    return (this.#server.address() as AddressInfo).port;
  }

  /** Takes another token, or none, for requests from now on. */
  setToken(token: string | null): void {
    this.#token = digestOf(token);
  }

  /** Ends, answered or not. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(request.url ?? "", "http://admin");
    const atPath = this.#endpoints.filter(({ path }) => path === url?.pathname);
    if (url === null || atPath.length === 0) {
      reply(response, 404, errorText("not_found", `no such path; there is ${this.#overview()}`));
      return;
    }
    const endpoint = atPath.find(({ method }) => method === methodOf(request));
    if (endpoint === undefined) {
      const allowed = atPath.map(({ method }) => method).join(", ");
      response.setHeader("Allow", allowed);
      reply(response, 405, errorText("bad_method", `${url.pathname} takes ${allowed}`));
      return;
    }
    if (endpoint.isPublic !== true && this.#isRefused(request, response)) return;
    const body = await readText(request);
    if (body === null) {
      response.setHeader("Connection", "close");
      const wanted = `want a body of UTF-8 text of at most ${MAX_BODY_BYTES} bytes; nothing was done`;
      reply(response, 400, errorText("bad_data", wanted));
      return;
    }
    send(response, await endpoint.answer({ query: url.searchParams, body }));
  }

  #overview(): string {
    return this.#endpoints.map(({ method, path }) => `${method} ${path}`).join(", ");
  }

  /** Whether this is nothing for who asks, which is answered then. No page knows a token, so it is enough. */
  #isRefused({ headers }: IncomingMessage, response: ServerResponse): boolean {
    if (this.#token === null) {
      const fault = pageFault(headers, this.#host);
      if (fault !== null) reply(response, 403, errorText("forbidden", fault));
      return fault !== null;
    }
    if (isBearerOf(this.#token, headers)) return false;
    response.setHeader("WWW-Authenticate", "Bearer");
    reply(response, 401, errorText("unauthorized", "want the header Authorization: Bearer TOKEN"));
    return true;
  }
}

/** Digests are compared, in the same time whatever they are, so that no answer tells how near a guess was. */
function isBearerOf(digest: Buffer, { authorization = "" }: IncomingHttpHeaders): boolean {
  const [, token = ""] = /^Bearer +(.*)$/i.exec(authorization) ?? [];
  // Node gives header values a character a byte.
  return timingSafeEqual(digest, sha256(Buffer.from(token, "latin1")));
}

function digestOf(token: string | null): Buffer | null {
  return token === null ? null : sha256(Buffer.from(token, "utf8"));
}

function sha256(bytes: Buffer): Buffer {
  return createHash("sha256").update(bytes).digest();
}

/** HEAD is answered as GET; Node leaves the body out. */
function methodOf({ method }: IncomingMessage): string | undefined {
  return method === "HEAD" ? "GET" : method;
}

/** null when it is too long, or no UTF-8. */
async function readText(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  return isUtf8(body) ? body.toString("utf8") : null;
}

function send(response: ServerResponse, answer: AdminAnswer): void {
  switch (answer.kind) {
    case "data":
      reply(response, 200, JSON.stringify({ status: "success", data: answer.data }));
      return;
    case "error":
      reply(response, answer.status, errorText(answer.errorType, answer.error));
      return;
    case "text":
      reply(response, answer.status, answer.text, answer.contentType ?? TEXT_TYPE);
  }
}

function errorText(errorType: string, error: string): string {
  return JSON.stringify({ status: "error", errorType, error });
}

function reply(response: ServerResponse, status: number, text: string, contentType = JSON_TYPE): void {
  response.writeHead(status, { "Content-Type": contentType, "Cache-Control": "no-store" }).end(text);
}
