/**
 * HTTP to one upstream: what every request to it carries, and the connections to it. An exchange (see exchange.ts) is one
 * request and its reply.
 */
import type { LookupFunction } from "node:net";
import tls from "node:tls";
import type { Dispatcher } from "undici";
import type { Reply } from "./classify.ts";
import { Connections } from "./connections.ts";
import { DeliveryError } from "./errors.ts";
import { describeFailure, Exchange } from "./exchange.ts";
import type { DeliveryOptions, UpstreamAuth, UpstreamOptions, UpstreamTls } from "./options.ts";

/** Far above any round trip, and short enough that a host which is gone costs one attempt little. */
const CONNECT_TIMEOUT_MS = 5_000;
/** Stands for credentials that an upstream repeats in its reply. */
const MASK = "<secret>";
/** A shorter header or parameter is a number or a name, whose masking would spoil other words. */
const SHORTEST_SECRET = 8;

type TlsConnection = Pick<tls.ConnectionOptions, "secureContext" | "rejectUnauthorized" | "servername">;

/** Of the delivery options, what requests and connections depend on. */
type ClientOptions = Pick<DeliveryOptions, "remoteTimeoutMs" | "tenantHeader">;

interface Tools {
  readonly lookup: LookupFunction;
  readonly userAgent: string;
}

/**
 * Whether an upstream can be reached with what is configured for it.
 *
 * @throws {DeliveryError} DELIVERY_TLS when tls_config cannot be used
 */
export function checkUpstream(upstream: UpstreamOptions): void {
  buildTls(upstream);
}

/** Connections to one upstream, and what every request to it carries. */
export class UpstreamClient {
  readonly #connections: Connections;
  readonly #request: Dispatcher.DispatchOptions;
  readonly #tenantHeader: string | null;
  /** Of a request that names its tenant, without the tenant. */
  readonly #headersBesideTenant: readonly string[];
  readonly #secrets: readonly string[];
  readonly #timeoutMs: number;
  readonly #identity: string;
  /** Exchanges under way. */
  #underWay = 0;
  #onIdle: (() => void) | null = null;

  /**
   * @param maxConnections how many requests can be under way at a time; further ones wait for a connection
   * @throws {DeliveryError} DELIVERY_TLS when tls_config cannot be used
   */
  constructor(
    upstream: UpstreamOptions,
    delivery: ClientOptions,
    maxConnections: number,
    { lookup, userAgent }: Tools,
  ) {
    const { remoteTimeoutMs: timeoutMs, tenantHeader } = delivery;
    this.#connections = new Connections(upstream.url.origin, maxConnections, {
      timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs),
      lookup,
      ...buildTls(upstream),
    });
    const headers = buildHeaders(upstream, userAgent);
    this.#request = {
      method: "POST",
      path: upstream.url.pathname + upstream.url.search,
      headers: headers.flat(),
    };
    this.#tenantHeader = tenantHeader;
    // A header that is configured for the upstream stands for the tenant of requests that name none.
    this.#headersBesideTenant = headers
      .filter(([name]) => name.toLowerCase() !== tenantHeader?.toLowerCase())
      .flat();
    this.#secrets = secretsOf(upstream);
    this.#timeoutMs = timeoutMs;
    this.#identity = identityOf(upstream, delivery, maxConnections);
  }

  /** Whether one that is made of these would send the same requests, over connections of the same kind. */
  isMadeOf(upstream: UpstreamOptions, delivery: ClientOptions, maxConnections: number): boolean {
    return this.#identity === identityOf(upstream, delivery, maxConnections);
  }

  /**
   * Starts to send a remote write 1.0 request body.
   *
   * When the upstream closes a connection that was used before, and has not begun to answer, the request goes out once more
   * at once. It can have been processed all the same, for what broke may have been the way back: delivery is at least once,
   * and receivers of remote write take equal samples twice.
   *
   * @param body    not to be changed any more
   * @param tenant  whose it is, for the tenant header, which it leaves in as it is: each byte a character (latin1)
   * @param onReply called once, after this has returned; does not throw
   */
  post(body: Uint8Array, tenant: string | null, onReply: (reply: Reply) => void): Exchange {
    const request = { ...this.#request, ...this.#tenantHeaders(tenant), body };
    this.#underWay += 1;
    const exchange = new Exchange(
      this.#timeoutMs,
      (reply) => {
        this.#underWay -= 1;
        onReply(this.#mask(reply));
        if (this.#underWay === 0) this.#onIdle?.();
      },
      (error) => {
        if (!this.#connections.isStale(error)) return false;
        this.#connections.dispatchAlone(request, exchange);
        return true;
      },
    );
    this.#connections.dispatch(request, exchange);
    return exchange;
  }

  /** Nothing is posted any more. @returns when what is under way has ended, and its connections are closed */
  async retire(): Promise<void> {
    if (this.#underWay > 0) {
      // Until then the pools stay open: what is sent again needs a connection of its own.
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    await this.#connections.close();
  }

  /** Closes all connections. What is under way should have ended or been aborted. */
  async close(): Promise<void> {
    await this.#connections.destroy();
  }

  /** The headers of a request that names its tenant; nothing for another. */
  #tenantHeaders(tenant: string | null): Pick<Dispatcher.DispatchOptions, "headers"> {
    if (tenant === null || this.#tenantHeader === null) return {};
    return { headers: [...this.#headersBesideTenant, this.#tenantHeader, tenant] };
  }

  #mask(reply: Reply): Reply {
    if (reply.kind === "failed") return { kind: "failed", cause: this.#maskText(reply.cause) };
    if (reply.text === "" && reply.location === null) return reply;
    const location = reply.location === null ? null : this.#maskText(reply.location);
    return { ...reply, text: this.#maskText(reply.text), location };
  }

  #maskText(text: string): string {
    return this.#secrets.reduce((masked, secret) => masked.replaceAll(secret, MASK), text);
  }
}

function identityOf(
  { url, auth, headers, tls: options }: UpstreamOptions,
  { remoteTimeoutMs, tenantHeader }: ClientOptions,
  maxConnections: number,
): string {
  return JSON.stringify([url, auth, headers, options, remoteTimeoutMs, tenantHeader, maxConnections]);
}

function buildHeaders(upstream: UpstreamOptions, userAgent: string): [name: string, value: string][] {
  const headers: Record<string, string> = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
    "User-Agent": userAgent,
    ...authHeader(upstream.auth),
    ...upstream.headers,
  };
  return Object.entries(headers);
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
  const perhaps = [...Object.values(headers), ...url.searchParams.values()];
  const secrets = [...authSecrets(auth), ...perhaps.filter(({ length }) => length >= SHORTEST_SECRET)];
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
