/**
 * Sends made-up requests through a listener and a sender of its own, so that a process has its ways in and out compiled when
 * the first senders come: before that, a burst of them holds up everything else for hundreds of milliseconds.
 *
 * Nothing of it is counted or logged, and nothing is left of it.
 */
import { lookup } from "node:dns";
import { pino, type Logger } from "pino";
import { Pool, type Dispatcher } from "undici";
import type { DeliveryOptions } from "./deliver/options.ts";
import { Sender } from "./deliver/sender.ts";
import { MemoryBudget } from "./memoryBudget.ts";
import type { WriteAnswer } from "./receive/answer.ts";
import { IngestServer, WRITE_PATHS, type WriteHandler } from "./receive/server.ts";
import { type Parcel, withHeadroom } from "./wire/parcel.ts";

const CONNECTIONS = 8;
const ROUNDS = 8;
/** No round begins after this, so that a slow machine starts in time all the same. */
const LONGEST_MS = 400;
/** For what takes a few milliseconds. */
const TIMEOUT_MS = 2_000;
const SERIES = 2_000;
const BODY = new Uint8Array(70 * 1024);
/** More than all of it takes. */
const MEMORY_BYTES = 64 * 1024 * 1024;
const [WRITE_PATH] = WRITE_PATHS;

const DELIVERY: DeliveryOptions = {
  lanes: 2,
  maxSamplesPerSend: 10_000,
  batchSendDeadlineMs: 1,
  remoteTimeoutMs: TIMEOUT_MS,
  minBackoffMs: 10,
  maxBackoffMs: 100,
  retryOnHttp429: true,
  retryOn: [],
  breaker: { consecutiveFailures: 5, resetAfterMs: TIMEOUT_MS },
  tenantHeader: null,
  deliveryDeadlineMs: TIMEOUT_MS,
  ack: "safe",
  onOutage: "refuse",
  spoolAfterMs: TIMEOUT_MS,
  sampleAgeLimitMs: 0,
};

/**
 * Resolves when it is done, or has warned that it cannot be: requests are served without it too.
 *
 * @param host an address of the loopback
 * @param now  milliseconds since the epoch
 */
export async function warmUpHttp(host: string, log: Logger, now: () => number): Promise<void> {
  try {
    await sendAround(host, now);
  } catch (error) {
    log.warn({ err: error, host }, "cannot send requests to itself before it starts: the first will be slow");
  }
}

async function sendAround(host: string, now: () => number): Promise<void> {
  const upstream = buildServer(() => Promise.resolve({ status: 204, body: "" }), now);
  const sender = buildSender(await listen(upstream, host), now);
  const server = buildServer((body) => deliver(sender, body, now), now);
  try {
    await sendTo(await listen(server, host), now);
  } finally {
    await Promise.all([sender.close(now()), close(server), close(upstream)]);
  }
}

async function sendTo(origin: string, now: () => number): Promise<void> {
  const pool = new Pool(origin, { connections: CONNECTIONS });
  const newConnections = new Pool(origin, { connections: CONNECTIONS });
  try {
    const end = now() + LONGEST_MS;
    for (let round = 0; round < ROUNDS && now() < end; round++) {
      const requests = Array.from({ length: CONNECTIONS }, () => [
        exchange(pool, { method: "POST", path: WRITE_PATH, body: BODY }),
        exchange(newConnections, { method: "GET", path: "/-/healthy", reset: true }),
      ]);
      await Promise.all(requests.flat());
    }
  } finally {
    await Promise.all([pool.destroy(), newConnections.destroy()]);
  }
}

async function exchange(pool: Pool, request: Dispatcher.RequestOptions): Promise<void> {
  const { statusCode, body } = await pool.request({ ...request, signal: AbortSignal.timeout(TIMEOUT_MS) });
  await body.dump();
  if (statusCode >= 300) throw new Error(`${request.method} ${request.path} is answered with ${statusCode}`);
}

function buildServer(write: WriteHandler["write"], now: () => number): IngestServer {
  const metrics: WriteHandler["metrics"] = () => Promise.resolve({ contentType: "text/plain", text: "" });
  const ignore = (): void => undefined;
  const memory = new MemoryBudget(MEMORY_BYTES).holder();
  return new IngestServer(
    { maxBodyBytes: CONNECTIONS * BODY.length, bodyTimeoutMs: TIMEOUT_MS, maxConnectionAgeMs: 0 },
    { write, metrics, refuse: () => ({ status: 503, body: "" }) },
    {
      connected: ignore,
      answered: ignore,
      arrived: ignore,
      bodyRead: ignore,
      malformed: ignore,
      failed: ignore,
    },
    { now, random: Math.random },
    () => memory,
  );
}

async function listen(server: IngestServer, host: string): Promise<string> {
  return `http://${host}:${await server.listen({ host, port: 0 })}`;
}

async function close(server: IngestServer): Promise<void> {
  server.abort();
  await server.stop();
}

function buildSender(origin: string, now: () => number): Sender {
  return new Sender(
    {
      name: "warm-up",
      url: new URL(WRITE_PATH, origin),
      auth: { kind: "none" },
      headers: {},
      tls: { insecureSkipVerify: false },
    },
    DELIVERY,
    {
      now,
      random: Math.random,
      log: pino({ level: "silent" }),
      lookup,
      userAgent: "warm-up",
      memory: new MemoryBudget(MEMORY_BYTES).holder(),
    },
    {
      settled: () => undefined,
      attempted: () => undefined,
      delivered: () => undefined,
      breakerChanged: () => undefined,
    },
    null,
  );
}

/** Sends the body on as if all of it went to one upstream, whatever it is. */
function deliver(sender: Sender, body: readonly Uint8Array[], now: () => number): Promise<WriteAnswer> {
  const elements = withHeadroom(...body);
  const parcels: Parcel[] = Array.from({ length: DELIVERY.lanes }, () => ({
    elements,
    plainBytes: elements.length,
    series: SERIES,
    items: { samples: SERIES, histograms: 0, exemplars: 0 },
    replica: 0,
    newestTimestampMs: 0,
  }));
  return Promise.all(
    parcels.map(
      (parcel, lane) =>
        new Promise<boolean>((resolve) => {
          sender.deliver(lane, [parcel], null, now() + TIMEOUT_MS, ([outcome]) => {
            resolve(outcome?.kind === "delivered");
          });
        }),
    ),
  ).then((delivered) => ({ status: delivered.every(Boolean) ? 204 : 503, body: "" }));
}
