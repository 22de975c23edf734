/**
 * HTTP to one upstream: one POST, one reply, in bounded time and memory.
 *
 * It judges nothing (see classify.ts) and never tries again. Every exchange has its own abort controller and its own timer,
 * the hard deadline from waiting for a connection to the last byte of the response; undici's own timeouts for head and
 * body are off, so none is shorter or longer.
 */
import tls from "node:tls";
import type { Readable } from "node:stream";
import { Pool } from "undici";
import type { Dispatcher } from "undici";
import type { Reply } from "./classify.ts";
import { formatMs } from "./cleanText.ts";
import { DeliveryError } from "./errors.ts";
import type { UpstreamAuth, UpstreamOptions, UpstreamTls } from "./options.ts";

/**
 * More requests than this wait for a connection. A sender of remote write has one request under way per shard, 50 at most
 * by default; a receiver that is slow with 64 would be slower with more, and every connection holds a parcel.
 */
const MAX_CONNECTIONS = 64;
/** Far above any round trip, and short enough that a host which is gone costs one attempt little. */
const CONNECT_TIMEOUT_MS = 5_000;
/** Enough for the one line that is made of a reply; what is longer costs its connection. */
const MAX_TEXT_BYTES = 1024;
/** The status is what matters: its text is not waited for any longer. */
const TEXT_TIMEOUT_MS = 1_000;
/** A 2xx body is thrown away up to this length so that the connection can be used again. */
const MAX_IGNORED_BYTES = 16 * 1024;
/** Stands for credentials that an upstream repeats in its reply. */
const MASK = "<secret>";

type TlsConnection = Pick<tls.ConnectionOptions, "secureContext" | "rejectUnauthorized" | "servername">;

/** One POST under way. */
export interface Exchange {
  /** Never rejects. */
  readonly reply: Promise<Reply>;
  /** Ends it now: `reply` fails with this cause, unless it is there already. */
  abort(cause: string): void;
}

/** Connections to one upstream, and what every request to it carries. */
export class UpstreamClient {
  readonly #pool: Pool;
  readonly #path: string;
  readonly #headers: string[];
  readonly #secrets: readonly string[];
  readonly #timeoutMs: number;

  /** @throws {DeliveryError} DELIVERY_TLS when tls_config cannot be used */
  constructor(upstream: UpstreamOptions, timeoutMs: number, userAgent: string) {
    this.#pool = new Pool(upstream.url.origin, {
      connections: MAX_CONNECTIONS,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { timeout: CONNECT_TIMEOUT_MS, ...buildTls(upstream) },
    });
    this.#path = upstream.url.pathname + upstream.url.search;
    this.#headers = buildHeaders(upstream, userAgent);
    this.#secrets = secretsOf(upstream);
    this.#timeoutMs = timeoutMs;
  }

  /** Starts to send a remote write 1.0 request body. */
  post(body: Uint8Array): Exchange {
    const controller = new AbortController();
    let rejectAborted: (error: Error) => void;
    const aborted = new Promise<never>((_resolve, reject) => {
      rejectAborted = reject;
    });
    const abort = (cause: string): void => {
      const error = new Error(cause);
      controller.abort(error);
      // undici notices the signal only once the request has a connection.
      rejectAborted(error);
    };
    const timer = setTimeout(() => {
      abort(`no answer within ${formatMs(this.#timeoutMs)}`);
    }, this.#timeoutMs);
    const end = (): void => {
      clearTimeout(timer);
    };
    return { reply: this.#converse(body, controller.signal, aborted, end), abort };
  }

  /** Closes all connections. What is under way should have ended or been aborted. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  /** @param end called when the exchange needs its timer no more */
  async #converse(
    body: Uint8Array,
    signal: AbortSignal,
    aborted: Promise<never>,
    end: () => void,
  ): Promise<Reply> {
    const request = { method: "POST", path: this.#path, headers: this.#headers, body, signal } as const;
    try {
      const response = await Promise.race([this.#pool.request(request), aborted]);
      if (response.statusCode >= 200 && response.statusCode < 300) {
        // It is accepted, whatever becomes of its body; the timer still bounds the time that takes.
        void response.body.dump({ limit: MAX_IGNORED_BYTES }).then(end);
        return { kind: "answered", status: response.statusCode, text: "", retryAfter: null, location: null };
      }
      const text = await readStart(response.body);
      end();
      return this.#describe(response, text);
    } catch (error) {
      end();
      return { kind: "failed", cause: this.#mask(describeFailure(error)) };
    }
  }

  #describe(response: Dispatcher.ResponseData, text: string): Reply {
    const location = header(response, "location");
    return {
      kind: "answered",
      status: response.statusCode,
      text: this.#mask(text),
      retryAfter: header(response, "retry-after"),
      location: location === null ? null : this.#mask(location),
    };
  }

  #mask(text: string): string {
    return this.#secrets.reduce((masked, secret) => masked.replaceAll(secret, MASK), text);
  }
}

/** A header that is there once; twice, it says nothing clear. */
function header(response: Dispatcher.ResponseData, name: string): string | null {
  const value = response.headers[name];
  return typeof value === "string" ? value : null;
}

/** Reads the beginning of a body. One that breaks off or takes its time is worth what arrived of it. */
async function readStart(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  const timer = setTimeout(() => body.destroy(), TEXT_TIMEOUT_MS);
  body.on("error", () => undefined); // destroying it early is an "error" event too, after the loop has gone
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > MAX_TEXT_BYTES) break;
    }
  } catch {
    // The status has been read, and it alone decides.
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(chunks).toString("utf8", 0, MAX_TEXT_BYTES);
}

function buildHeaders(upstream: UpstreamOptions, userAgent: string): string[] {
  const headers: Record<string, string> = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
    "User-Agent": userAgent,
    ...authHeader(upstream.auth),
    ...upstream.headers,
  };
  return Object.entries(headers).flat();
}

function authHeader(auth: UpstreamAuth): Record<string, string> {
  switch (auth.kind) {
    case "none":
      return {};
    case "basic":
      return { Authorization: `Basic ${basicCredentials(auth.username, auth.password)}` };
    case "authorization":
      return { Authorization: `${auth.type} ${auth.credentials}` };
  }
}

function basicCredentials(username: string, password: string): string {
  return Buffer.from(`${username}:${password}`).toString("base64");
}

/** What must not come back in a log or an answer when an upstream repeats its request: the longest first. */
function secretsOf({ auth, headers, url }: UpstreamOptions): readonly string[] {
  const secrets = [...authSecrets(auth), ...Object.values(headers), ...url.searchParams.values()];
  return secrets.filter((secret) => secret !== "").sort((a, b) => b.length - a.length);
}

function authSecrets(auth: UpstreamAuth): readonly string[] {
  switch (auth.kind) {
    case "none":
      return [];
    case "basic":
      return [basicCredentials(auth.username, auth.password), auth.password];
    case "authorization":
      return [auth.credentials];
  }
}

/** The certificates are read once, not for every connection, and unusable ones are found before anything is sent. */
function buildTls({ name, url, tls: options }: UpstreamOptions): TlsConnection {
  if (url.protocol !== "https:") return {};
  return {
    secureContext: buildSecureContext(name, options),
    // With false, the name in the certificate is not checked either. Given always: an environment variable sets the default.
    rejectUnauthorized: !options.insecureSkipVerify,
    ...(options.serverName === undefined ? {} : { servername: options.serverName }),
  };
}

function buildSecureContext(name: string, options: UpstreamTls): tls.SecureContext {
  const { ca, cert, key, minVersion, maxVersion } = options;
  try {
    return tls.createSecureContext({
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(minVersion === undefined ? {} : { minVersion }),
      ...(maxVersion === undefined ? {} : { maxVersion }),
    });
  } catch (error) {
    const message = `upstream ${name}: tls_config cannot be used: ${describeFailure(error)}`;
    throw new DeliveryError("DELIVERY_TLS", message, error);
  }
}

/** What went wrong, for a person. Of several addresses that were tried, the first speaks for all. */
function describeFailure(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return describeFailure(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  if (error.message !== "") return error.message;
  return "code" in error ? String(error.code) : error.name;
}
