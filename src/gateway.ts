/**
 * The assembly: builds the stages from a Config and wires them.
 *
 * A request's journey: IngestServer reads and decompresses it, Splitter gives every series to its upstreams, a Sender
 * per (route, upstream) delivers, composeAnswer() tells the sender. What happens is counted here, since the stages know
 * no metrics.
 */
import { setImmediate } from "node:timers/promises";
import type { Logger } from "pino";
import type { Config, RouteConfig } from "./config/config.ts";
import type { ParcelOutcome } from "./deliver/outcome.ts";
import { Sender } from "./deliver/sender.ts";
import { composeAnswer, type WriteAnswer, type WriteReport } from "./receive/answer.ts";
import { IngestServer } from "./receive/server.ts";
import { compileRoute } from "./route/decide.ts";
import { REFUSAL_REASONS } from "./route/door.ts";
import { type Consignment, type SplitRequest, Splitter } from "./route/split.ts";
import { Metrics, type UpstreamMetrics } from "./telemetry/metrics.ts";
import { Rarely } from "./telemetry/rarely.ts";
import { VERSION } from "./version.ts";

/** Milliseconds since the epoch that go on evenly: a clock that is set must not move deadlines. */
const now = (): number => performance.timeOrigin + performance.now();

/** Below the 8 MiB that vmagent itself keeps to, and so below every known receiver's limit. */
const MAX_PARCEL_PLAIN_BYTES = 8 * 1024 * 1024;
const MAX_METADATA_PER_SEND = 5_000;
/** Enough for the last 503s to be sent and read. */
const LAST_ANSWERS_MS = 1_000;
const SAME_WARNING_EVERY_MS = 60_000;

/** One upstream of one route. */
interface Destination {
  readonly name: string;
  readonly sender: Sender;
  readonly metrics: UpstreamMetrics;
}

export class Gateway {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #metrics = new Metrics(VERSION, REFUSAL_REASONS);
  readonly #rarely = new Rarely(now, SAME_WARNING_EVERY_MS);
  readonly #splitter: Splitter;
  /** By route and slot. */
  readonly #destinations: readonly (readonly Destination[])[];
  readonly #server: IngestServer;
  #port = 0;

  /** @throws {DeliveryError} when an upstream's tls_config cannot be used */
  constructor(config: Config, log: Logger) {
    this.#config = config;
    this.#log = log;
    this.#splitter = new Splitter(
      config.routes.map(({ route, maxSamplesPerSend }) => ({
        route: compileRoute(route),
        limits: { maxItems: maxSamplesPerSend, maxPlainBytes: MAX_PARCEL_PLAIN_BYTES },
      })),
      config.limits,
      { maxItems: MAX_METADATA_PER_SEND, maxPlainBytes: MAX_PARCEL_PLAIN_BYTES },
    );
    this.#destinations = config.routes.map((route) => this.#buildDestinations(route));
    this.#server = this.#buildServer();
  }

  /** Listens and is ready; when the address cannot be had, rejects with nothing left open. */
  async start(): Promise<void> {
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

  /** Splits first and delivers then, so that nothing holds the plain request while its parts wait for their upstreams. */
  #write(plain: Uint8Array): Promise<WriteAnswer> {
    const started = now();
    return this.#split(plain).then((split) => this.#deliverAll(split, started));
  }

  async #deliverAll(split: SplitRequest, started: number): Promise<WriteAnswer> {
    this.#countReceived(split);
    this.#forwardMetadata(split);
    const parts = await Promise.all(split.consignments.map((part) => this.#deliver(part, started)));
    const report = reportOf(split, parts.flat());
    this.#logProblems(report);
    return composeAnswer(report, Math.random());
  }

  /** A large request lets others run between its steps. */
  async #split(plain: Uint8Array): Promise<SplitRequest> {
    const steps = this.#splitter.split(plain);
    let step = steps.next();
    while (step.done !== true) {
      await setImmediate();
      step = steps.next();
    }
    return step.value;
  }

  async #deliver({ route, slot, parcels }: Consignment, started: number): Promise<NamedOutcome[]> {
    const destination = this.#destinations[route]?.[slot];
    const delivery = this.#config.routes[route]?.delivery;
    if (destination === undefined || delivery === undefined)
      throw new Error(`bug: no upstream in slot ${slot}`);
    for (const { series, items } of parcels) destination.metrics.routed(series, items);
    const outcomes = await destination.sender.deliver(parcels, started + delivery.deliveryDeadlineMs);
    return outcomes.map((outcome) => ({ upstream: destination.name, outcome }));
  }

  /** Best effort, once per upstream name: the answer to the sender neither waits for it nor depends on it. */
  #forwardMetadata(split: SplitRequest): void {
    if (split.metadata.length === 0) return;
    const once = new Map(this.#destinations.flat().map((destination) => [destination.name, destination]));
    for (const { name, sender } of once.values()) {
      for (const { entries, body } of split.metadata) {
        void sender.deliverMetadata(body).then((accepted) => {
          (accepted ? this.#metrics.metadataDelivered : this.#metrics.metadataLost).inc(
            { upstream: name },
            entries,
          );
        });
      }
    }
  }

  #countReceived(split: SplitRequest): void {
    this.#metrics.seriesReceived.inc(split.received.series);
    this.#metrics.received.add({}, split.received);
    this.#metrics.metadataReceived.inc(split.metadataEntries);
    this.#metrics.metadataDropped.inc({ reason: "invalid_utf8" }, split.metadataDropped);
    this.#metrics.unknownFields.inc(split.unknownFields);
    for (const [reason, counts] of split.refused) {
      this.#metrics.seriesRefused.inc({ reason }, counts.series);
      this.#metrics.refusedAtDoor.add({ reason }, counts);
    }
    split.missingKeyLabels.forEach((series, index) => {
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
        settled: (parcel, end) => {
          metrics.settled(end, parcel.items);
        },
        attempted: (result, durationMs) => {
          metrics.attempted(result, durationMs / 1000);
        },
        breakerChanged: (state) => {
          metrics.breaker(state);
        },
      });
      return { name: upstream.name, sender, metrics };
    });
  }

  #buildServer(): IngestServer {
    const handler = {
      write: (plain: Uint8Array) => this.#write(plain),
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

interface NamedOutcome {
  readonly upstream: string;
  readonly outcome: ParcelOutcome;
}

function reportOf(split: SplitRequest, outcomes: readonly NamedOutcome[]): WriteReport {
  let refusedSeries = 0;
  for (const { series } of split.refused.values()) refusedSeries += series;
  return {
    series: split.received.series,
    refusedSeries,
    refusedExamples: split.refusedExamples,
    undelivered: outcomes.flatMap(({ upstream, outcome }) =>
      outcome.kind === "undelivered" ? [{ upstream, ...outcome }] : [],
    ),
    refusals: outcomes.flatMap(({ upstream, outcome }) =>
      outcome.kind === "refused" ? [{ upstream, ...outcome }] : [],
    ),
  };
}
