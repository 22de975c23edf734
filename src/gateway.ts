/**
 * The assembly: builds the stages from a Config and wires them.
 *
 * A request's journey: IngestServer reads it, Router gives every series to its upstreams, a Sender per (route, upstream)
 * delivers, composeAnswer() tells the sender. What happens is counted here, since the stages know no metrics.
 */
import { randomBytes } from "node:crypto";
import { setImmediate } from "node:timers";
import type { Logger } from "pino";
import type { Config, RouteConfig } from "./config/config.ts";
import { MAX_BATCH_PLAIN_BYTES } from "./deliver/batch.ts";
import type { ParcelOutcome } from "./deliver/outcome.ts";
import { Sender } from "./deliver/sender.ts";
import { composeAnswer, type WriteAnswer, type WriteReport } from "./receive/answer.ts";
import { IngestServer } from "./receive/server.ts";
import { compileRoute } from "./route/decide.ts";
import { REFUSAL_REASONS } from "./route/door.ts";
import type { Consignment, RoutedRequest } from "./route/requestParts.ts";
import type { DecisionTableLimits } from "./route/options.ts";
import { Router, ROUTER_KEY_BYTES } from "./route/router.ts";
import { warmUp } from "./route/warmUp.ts";
import { Metrics, type UpstreamMetrics } from "./telemetry/metrics.ts";
import { Rarely } from "./telemetry/rarely.ts";
import { Turns } from "./turns.ts";
import { VERSION } from "./version.ts";

/** Milliseconds since the epoch that go on evenly: a clock that is set must not move deadlines. */
const now = (): number => performance.timeOrigin + performance.now();

const MAX_METADATA_PER_SEND = 5_000;
/** How long requests are routed before others are served. */
const ROUTING_BUDGET_MS = 10;
/** Enough for the last 503s to be sent and read. */
const LAST_ANSWERS_MS = 1_000;
// For the router that warms the process up, whatever is configured for real requests.
const WARM_UP_BYTES = 1024 * 1024;
const WARM_UP_TABLE: DecisionTableLimits = { maxSeries: 10_000, maxBytes: 4 * 1024 * 1024 };
const SAME_WARNING_EVERY_MS = 60_000;

/** One upstream of one route. */
interface Destination {
  readonly name: string;
  readonly sender: Sender;
  readonly metrics: UpstreamMetrics;
  readonly deliveryDeadlineMs: number;
}

export class Gateway {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #metrics = new Metrics(VERSION, REFUSAL_REASONS);
  readonly #rarely = new Rarely(now, SAME_WARNING_EVERY_MS);
  readonly #router: Router;
  readonly #turns = new Turns(now, ROUTING_BUDGET_MS);
  /** By route and slot. */
  readonly #destinations: readonly (readonly Destination[])[];
  readonly #server: IngestServer;
  /** Senders that got parcels which may wait for company. */
  readonly #unflushed = new Set<Sender>();
  #watchesForIdle = false;
  /** Grows with whatever reaches the gateway: requests, their bodies, and upstreams' answers. */
  #arrivals = 0;
  #port = 0;

  /** @throws {DeliveryError} when an upstream's tls_config cannot be used */
  constructor(config: Config, log: Logger) {
    this.#config = config;
    this.#log = log;
    this.#router = buildRouter(config, config.limits.maxDecodedBytes, config.decisionTable);
    this.#metrics.watchDecisionTable(() => this.#router.decisionTable);
    this.#destinations = config.routes.map((route) => this.#buildDestinations(route));
    this.#server = this.#buildServer();
  }

  /** Listens and is ready; when the address cannot be had, rejects with nothing left open. */
  async start(): Promise<void> {
    warmUp(buildRouter(this.#config, WARM_UP_BYTES, WARM_UP_TABLE));
    try {
      this.#port = await this.#server.listen(this.#config.listen);
    } catch (error) {
      await this.#closeSenders(now());
      throw error;
    }
    this.#server.setReady(true);
  }

  /** The port it listens on once it has started. */
  get port(): number {
    return this.#port;
  }

  /**
   * Ends in order: not ready, still serving for the drain delay, then no new connections while requests under way are
   * finished, all within the grace period; what is not delivered by then is refused to its sender.
   */
  async stop(): Promise<void> {
    const { drainDelayMs, graceMs } = this.#config.shutdown;
    const deadline = now() + graceMs;
    this.#server.setReady(false);
    await new Promise((resolve) => setTimeout(resolve, Math.min(drainDelayMs, graceMs)));
    const served = this.#server.stop();
    // What is still under way shortly before the end is given back, so that its sender gets an answer and not a reset.
    const giveBack = setTimeout(
      () => {
        void this.#closeSenders(now());
      },
      deadline - now() - Math.min(LAST_ANSWERS_MS, graceMs / 4),
    );
    const overdue = setTimeout(() => {
      this.#server.abort();
    }, deadline - now());
    await served;
    clearTimeout(giveBack);
    clearTimeout(overdue);
    await this.#closeSenders(deadline);
  }

  async #closeSenders(deadline: number): Promise<void> {
    await Promise.all(this.#destinations.flat().map(({ sender }) => sender.close(deadline)));
  }

  /** Routes first and delivers then, so that nothing holds the request while its parts wait for their upstreams. */
  #write(body: readonly Uint8Array[]): Promise<WriteAnswer> {
    return this.#turns.run(this.#router.route(body)).then((routed) => this.#deliverAll(routed));
  }

  async #deliverAll(routed: RoutedRequest): Promise<WriteAnswer> {
    this.#countReceived(routed);
    this.#forwardMetadata(routed);
    const outcomes = this.#deliver(routed.consignments);
    this.#flushWhenIdle();
    const report = reportOf(routed, await outcomes);
    this.#logProblems(report);
    return composeAnswer(report, Math.random());
  }

  /** Answers, when all parcels have an outcome, with those that were not delivered. */
  #deliver(consignments: readonly Consignment[]): Promise<NamedOutcome[]> {
    const started = now();
    return new Promise((resolve) => {
      const failed: NamedOutcome[] = [];
      let open = consignments.length;
      if (open === 0) resolve(failed);
      for (const { route, slot, lane, parcels } of consignments) {
        const destination = this.#destinations[route]?.[slot];
        if (destination === undefined) throw new Error(`bug: no upstream in slot ${slot}`);
        for (const { series, items } of parcels) destination.metrics.routed(series, items);
        this.#unflushed.add(destination.sender);
        destination.sender.deliver(lane, parcels, started + destination.deliveryDeadlineMs, (outcomes) => {
          for (const outcome of outcomes) {
            if (outcome.kind !== "delivered") failed.push({ upstream: destination.name, outcome });
          }
          open -= 1;
          if (open === 0) resolve(failed);
        });
      }
    });
  }

  /**
   * Lets parcels go that wait for company, as soon as a turn of the event loop brings nothing new: while something arrives,
   * more parcels for the same upstreams are likely to come, and the time is not lost. It ends at batch_send_deadline.
   */
  #flushWhenIdle(): void {
    if (this.#watchesForIdle) return;
    this.#watchesForIdle = true;
    let seen = this.#arrivals;
    const look = (): void => {
      if (this.#turns.waiting > 0 || seen !== this.#arrivals) {
        seen = this.#arrivals;
        setImmediate(look);
        return;
      }
      this.#watchesForIdle = false;
      for (const sender of this.#unflushed) sender.flush();
      this.#unflushed.clear();
    };
    setImmediate(look);
  }

  /** Best effort, once per upstream name: the answer to the sender neither waits for it nor depends on it. */
  #forwardMetadata(routed: RoutedRequest): void {
    if (routed.metadata.length === 0) return;
    const once = new Map(this.#destinations.flat().map((destination) => [destination.name, destination]));
    for (const { name, sender } of once.values()) {
      for (const { entries, body } of routed.metadata) {
        void sender.deliverMetadata(body).then((accepted) => {
          (accepted ? this.#metrics.metadataDelivered : this.#metrics.metadataLost).inc(
            { upstream: name },
            entries,
          );
        });
      }
    }
  }

  #countReceived(routed: RoutedRequest): void {
    this.#metrics.seriesReceived.inc(routed.received.series);
    this.#metrics.received.add({}, routed.received);
    this.#metrics.metadataReceived.inc(routed.metadataEntries);
    this.#metrics.metadataDropped.inc({ reason: "invalid_utf8" }, routed.metadataDropped);
    this.#metrics.metadataDropped.inc({ reason: "too_many" }, routed.metadataBeyondLimit);
    this.#metrics.unknownFields.inc(routed.unknownFields);
    for (const [reason, counts] of routed.refused) {
      this.#metrics.seriesRefused.inc({ reason }, counts.series);
      this.#metrics.refusedAtDoor.add({ reason }, counts);
    }
    routed.missingKeyLabels.forEach((series, index) => {
      const route = this.#config.routes[index]?.route.name ?? "";
      if (series === 0) return;
      this.#metrics.missingKeyLabels.inc({ route }, series);
      this.#rarely.say(`missing key labels of ${route}`, (heldBack) => {
        this.#log.warn(
          { route, series, heldBack },
          `${series} series have none of the labels that the route keys by`,
        );
      });
    });
  }

  #logProblems(report: WriteReport): void {
    for (const { reason, series } of report.refusedExamples) {
      this.#rarely.say(`refused ${reason}`, (heldBack) => {
        this.#log.warn({ reason, series, heldBack }, "a series is refused, its sender has been told");
      });
    }
  }

  #buildDestinations({ route, upstreams, delivery }: RouteConfig): Destination[] {
    return upstreams.map((upstream) => {
      const metrics = this.#metrics.upstream(route.name, upstream.name);
      const log = this.#log.child({ route: route.name, upstream: upstream.name });
      const tools = { now, random: Math.random, log, userAgent: `stream-metrics-route/${VERSION}` };
      const sender = new Sender(upstream, delivery, tools, {
        settled: (end, _parcels, items) => {
          metrics.settled(end, items);
        },
        attempted: (result, durationMs) => {
          this.#arrivals += 1;
          metrics.attempted(result, durationMs / 1000);
        },
        breakerChanged: (state) => {
          metrics.breaker(state);
        },
      });
      return { name: upstream.name, sender, metrics, deliveryDeadlineMs: delivery.deliveryDeadlineMs };
    });
  }

  #buildServer(): IngestServer {
    const handler = {
      write: (body: readonly Uint8Array[]) => this.#write(body),
      metrics: () => this.#metrics.exposition(),
    };
    return new IngestServer(
      this.#config.limits,
      handler,
      {
        answered: (status, durationMs) => {
          this.#metrics.requests.inc({ code: status ?? "closed" });
          this.#metrics.requestSeconds.observe(durationMs / 1000);
          this.#log.debug({ status, durationMs }, "request");
        },
        arrived: () => {
          this.#arrivals += 1;
        },
        bodyRead: (bytes) => {
          this.#metrics.bodyBytes.inc(bytes);
        },
        malformed: ({ code, message }) => {
          this.#metrics.malformed.inc({ code });
          this.#rarely.say(code, (heldBack) => {
            this.#log.warn({ code, heldBack }, `a request is refused whole: ${message}`);
          });
        },
        failed: (error) => {
          this.#log.error({ err: error }, "a request failed by a bug, its sender got 500");
        },
      },
      now,
    );
  }
}

function buildRouter(config: Config, maxPlainBytes: number, table: DecisionTableLimits): Router {
  return new Router(
    config.routes.map(({ route, delivery }) => ({
      route: compileRoute(route),
      limits: { maxItems: delivery.maxSamplesPerSend, maxPlainBytes: MAX_BATCH_PLAIN_BYTES },
      lanes: delivery.lanes,
    })),
    {
      labels: config.limits,
      maxPlainBytes,
      metadata: { maxItems: MAX_METADATA_PER_SEND, maxPlainBytes: MAX_BATCH_PLAIN_BYTES },
      table,
    },
    randomBytes(ROUTER_KEY_BYTES),
  );
}

interface NamedOutcome {
  readonly upstream: string;
  readonly outcome: Exclude<ParcelOutcome, { kind: "delivered" }>;
}

function reportOf(routed: RoutedRequest, outcomes: readonly NamedOutcome[]): WriteReport {
  let refusedSeries = 0;
  for (const { series } of routed.refused.values()) refusedSeries += series;
  return {
    series: routed.received.series,
    refusedSeries,
    refusedExamples: routed.refusedExamples,
    undelivered: outcomes.flatMap(({ upstream, outcome }) =>
      outcome.kind === "undelivered" ? [{ upstream, ...outcome }] : [],
    ),
    refusals: outcomes.flatMap(({ upstream, outcome }) =>
      outcome.kind === "refused" ? [{ upstream, ...outcome }] : [],
    ),
  };
}
