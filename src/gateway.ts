/**
 * The assembly: builds the stages from a Config and wires them.
 *
 * A request's journey: IngestServer reads it, Router gives every series to its upstreams, a Sender per (route, upstream)
 * delivers, composeAnswer() tells the sender. What happens is counted here, since the stages know no metrics.
 */
import { randomBytes, randomInt } from "node:crypto";
import { lookup } from "node:dns";
import { setImmediate } from "node:timers";
import type { Logger } from "pino";
import type { Config, RouteConfig } from "./config/config.ts";
import { MAX_BATCH_PLAIN_BYTES } from "./deliver/batch.ts";
import { DELIVERY_DROP_REASONS, type ParcelOutcome } from "./deliver/outcome.ts";
import { AcceptedParcels, Resends } from "./deliver/resends.ts";
import { Sender, type SenderEvents } from "./deliver/sender.ts";
import { diskFiles } from "./deliver/spool/diskFiles.ts";
import { SpoolStore } from "./deliver/spool/spoolStore.ts";
import type { UpstreamSpool } from "./deliver/spool/upstreamSpool.ts";
import { MemoryBudget } from "./memoryBudget.ts";
import { composeAnswer, refuseForMemory, type WriteAnswer, type WriteReport } from "./receive/answer.ts";
import { IngestServer, type RequestHeaders, type WriteHandler } from "./receive/server.ts";
import { REFUSAL_REASONS } from "./route/door.ts";
import type { Consignment, RoutedRequest, SeriesCounts } from "./route/requestParts.ts";
import type { DecisionTableLimits } from "./route/options.ts";
import { Router, ROUTER_KEY_BYTES } from "./route/router.ts";
import { DROP_REASONS, type Tally, UNROUTED_REASONS } from "./route/tally.ts";
import { type RequestTenants, Tenants } from "./route/tenants.ts";
import { warmUp } from "./route/warmUp.ts";
import { Metrics, type UpstreamMetrics } from "./telemetry/metrics.ts";
import { Rarely } from "./telemetry/rarely.ts";
import { Turns } from "./turns.ts";
import { VERSION } from "./version.ts";
import { warmUpHttp } from "./warmUpHttp.ts";

/** Milliseconds since the epoch that go on evenly: a clock that is set must not move deadlines. */
const now = (): number => performance.timeOrigin + performance.now();

const MAX_METADATA_PER_SEND = 5_000;
/** How long requests are routed before others are served. */
const ROUTING_BUDGET_MS = 10;
/** Enough for the last 503s to be sent and read. */
const LAST_ANSWERS_MS = 1_000;
const LAST_ANSWERS_IN_HASTE_MS = 500;
// For the router that warms the process up, whatever is configured for real requests.
const WARM_UP_BYTES = 1024 * 1024;
const WARM_UP_TABLE: DecisionTableLimits = { maxSeries: 10_000, maxBytes: 4 * 1024 * 1024 };
/** No step begins after this, so that a gateway of a thousand rules starts in time. */
const LONGEST_WARM_UP_MS = 1_000;
const SAME_WARNING_EVERY_MS = 60_000;

/** One upstream of one route. */
interface Destination {
  readonly name: string;
  readonly sender: Sender;
  readonly metrics: UpstreamMetrics;
  readonly deliveryDeadlineMs: number;
  /** Index of the route, and whether its upstreams are told the tenant. */
  readonly route: number;
  readonly passesTenant: boolean;
  /** Of an upstream: equal where requests of two routes to it cannot be told apart by it, tenants aside. */
  readonly identity: string;
}

export class Gateway {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #metrics: Metrics;
  readonly #rarely = new Rarely(now, SAME_WARNING_EVERY_MS);
  readonly #turns = new Turns(now, ROUTING_BUDGET_MS);
  readonly #router: Router;
  readonly #tenants: Tenants;
  readonly #resends = new Resends(now);
  readonly #memory: MemoryBudget;
  /** null when no route spools. */
  readonly #spool: SpoolStore | null;
  /** By route and slot. */
  readonly #destinations: readonly ReadonlyMap<number, Destination>[];
  readonly #server: IngestServer;
  /** Senders that got parcels which may wait for company. */
  readonly #unflushed = new Set<Sender>();
  #watchesForIdle = false;
  /** Grows with whatever reaches the gateway: requests, their bodies, and upstreams' answers. */
  #arrivals = 0;
  #port = 0;

  /**
   * Builds a gateway, which begins its work with start().
   *
   * @throws {SpoolError} when the spool cannot be used
   * @throws {DeliveryError} when an upstream's tls_config cannot be used
   */
  static async open(config: Config, log: Logger): Promise<Gateway> {
    const spools = config.routes.some(({ delivery }) => delivery.onOutage === "spool");
    const tools = { files: diskFiles, now: Date.now, random: unguessable, log };
    const spool = spools ? await SpoolStore.open(config.spool, tools) : null;
    try {
      return new Gateway(config, log, spool);
    } catch (error) {
      await spool?.close();
      throw error;
    }
  }

  private constructor(config: Config, log: Logger, spool: SpoolStore | null) {
    this.#config = config;
    this.#log = log;
    this.#spool = spool;
    this.#memory = new MemoryBudget(config.memory.inFlightBytes);
    this.#metrics = new Metrics(VERSION, {
      refusal: REFUSAL_REASONS,
      drop: DROP_REASONS,
      unrouted: UNROUTED_REASONS,
      delivery: DELIVERY_DROP_REASONS,
    });
    this.#router = buildRouter(
      config,
      config.limits.maxDecodedBytes,
      config.memory.decisionTable,
      () => this.#turns.isDue,
    );
    this.#tenants = new Tenants(
      config.routes.map(({ route }) => route.tenant),
      config.limits.maxLabelValueBytes,
    );
    this.#metrics.watchDecisionTable(() => this.#router.decisionTable);
    this.#destinations = config.routes.map((route, index) => this.#buildDestinations(route, index));
    this.#server = this.#buildServer();
  }

  /** Listens and is ready; when the address cannot be had, rejects with nothing left open. */
  async start(): Promise<void> {
    const startedAt = now();
    const isOver = (): boolean => now() - startedAt >= LONGEST_WARM_UP_MS;
    warmUp(buildRouter(this.#config, WARM_UP_BYTES, WARM_UP_TABLE, isOver), isOver);
    await warmUpHttp("127.0.0.1", this.#log, now);
    try {
      this.#port = await this.#server.listen(this.#config.listen);
    } catch (error) {
      await this.#closeSenders(now());
      await this.#spool?.close();
      throw error;
    }
    await this.#reportOrphans();
    for (const { sender } of this.#allDestinations()) sender.resume();
    this.#server.setReady(true);
  }

  /** The port it listens on once it has started. */
  get port(): number {
    return this.#port;
  }

  /**
   * Ends in order: not ready, still serving for the drain delay, then no new connections while requests under way are
   * finished, all within the grace period; what is not delivered by then is spooled, or refused to its sender.
   *
   * @param haste when it is aborted, nothing is waited for any longer: what is not delivered is spooled or refused at once
   */
  async stop(haste: AbortSignal = new AbortController().signal): Promise<void> {
    const { drainDelayMs, graceMs } = this.#config.shutdown;
    const deadline = now() + graceMs;
    this.#server.setReady(false);
    await waitFor(Math.min(drainDelayMs, graceMs), haste);
    const served = this.#server.stop();
    let overdueInHaste: NodeJS.Timeout | undefined;
    whenAborted(haste, () => {
      void this.#closeSenders(now());
      overdueInHaste = setTimeout(() => {
        this.#server.abort();
      }, LAST_ANSWERS_IN_HASTE_MS);
    });
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
    clearTimeout(overdueInHaste);
    await this.#closeSenders(deadline);
    await this.#spool?.close();
  }

  /** What upstreams have left in the spool that the configuration does not name any more. */
  async #reportOrphans(): Promise<void> {
    const orphans = this.#spool?.orphans() ?? [];
    const drops = this.#config.spool.orphans === "drop";
    for (const { route, upstream, records, bytes } of orphans) {
      const fate = drops ? "dropped (spool.orphans: drop)" : "kept until the upstream is configured again";
      const message = `the spool holds ${records} parcels for an upstream that is not configured: ${fate}`;
      this.#log.warn({ route, upstream, records, bytes }, message);
      this.#metrics.orphans(route, upstream, records, bytes, drops);
    }
    if (drops) await this.#spool?.dropOrphans();
  }

  async #closeSenders(deadline: number): Promise<void> {
    await Promise.all(this.#allDestinations().map(({ sender }) => sender.close(deadline)));
  }

  #allDestinations(): Destination[] {
    return this.#destinations.flatMap((bySlot) => [...bySlot.values()]);
  }

  /** Routes first and delivers then, so that nothing holds the request while its parts wait for their upstreams. */
  #write(body: readonly Uint8Array[], headers: RequestHeaders, onRouted: () => void): Promise<WriteAnswer> {
    const tenants = this.#tenants.of((name) => headers[name]);
    return this.#turns.run(this.#router.route(body, tenants)).then((routed) => {
      onRouted();
      return this.#deliverAll(routed, tenants);
    });
  }

  async #deliverAll(routed: RoutedRequest, tenants: RequestTenants): Promise<WriteAnswer> {
    this.#countReceived(routed);
    this.#forwardMetadata(routed, tenants);
    const key = JSON.stringify([routed.blockHash, tenants.byRoute.map((tenant) => tenant?.header)]);
    const delivered = this.#deliver(routed.consignments, tenants, this.#resends.take(key));
    this.#flushWhenIdle();
    const { failed, accepted } = await delivered;
    const report = reportOf(routed, failed);
    this.#logProblems(report);
    const answer = composeAnswer(report, Math.random());
    if (answer.status === 503) this.#resends.remember(key, accepted);
    return answer;
  }

  /**
   * Delivers what was not accepted before.
   *
   * @returns when all parcels have an outcome
   */
  #deliver(
    consignments: readonly Consignment[],
    tenants: RequestTenants,
    acceptedBefore: AcceptedParcels,
  ): Promise<Delivered> {
    const started = now();
    return new Promise((resolve) => {
      const failed: NamedOutcome[] = [];
      const accepted = new AcceptedParcels();
      let open = consignments.length;
      if (open === 0) resolve({ failed, accepted });
      for (const [place, { route, slot, replica, lane, parcels }] of consignments.entries()) {
        const destination = this.#destinations[route]?.get(slot);
        if (destination === undefined) throw new Error(`bug: no upstream in slot ${slot}`);
        for (const { series, items } of parcels) destination.metrics.routed(replica, series, items);
        const indexes = [...parcels.keys()].filter((index) => !acceptedBefore.has(place, index));
        for (const [index, { items }] of parcels.entries()) {
          if (!acceptedBefore.has(place, index)) continue;
          accepted.add(place, index);
          destination.metrics.settled(replica, "skipped_resend", "in_flight", items);
        }
        this.#unflushed.add(destination.sender);
        const tenant = tenants.byRoute[route]?.header ?? null;
        const deadline = started + destination.deliveryDeadlineMs;
        destination.sender.deliver(
          lane,
          parcels.filter((_, index) => !acceptedBefore.has(place, index)),
          tenant,
          deadline,
          (outcomes) => {
            for (const [number, outcome] of outcomes.entries()) {
              if (outcome.kind === "refused" || outcome.kind === "undelivered") {
                failed.push({ upstream: destination.name, outcome });
              } else accepted.add(place, indexes[number] ?? 0);
            }
            open -= 1;
            if (open === 0) resolve({ failed, accepted });
          },
          (number) => {
            accepted.add(place, indexes[number] ?? 0);
          },
        );
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

  /**
   * Best effort: the answer to the sender neither waits for it nor depends on it. Metadata belongs to no route, so an upstream
   * of several gets it once, unless their requests to it differ.
   */
  #forwardMetadata(routed: RoutedRequest, tenants: RequestTenants): void {
    if (routed.metadata.length === 0) return;
    const once = new Map<
      string,
      { readonly sender: Sender; readonly name: string; readonly tenant: string | null }
    >();
    for (const { name, sender, identity, route, passesTenant } of this.#allDestinations()) {
      const tenant = passesTenant ? (tenants.byRoute[route]?.header ?? null) : null;
      const header = this.#config.routes[route]?.route.tenant.header;
      once.set(tenant === null ? identity : JSON.stringify([identity, header, tenant]), {
        sender,
        name,
        tenant,
      });
    }
    for (const { sender, name, tenant } of once.values()) {
      for (const { entries, body } of routed.metadata) {
        void sender.deliverMetadata(body, tenant).then((accepted) => {
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
    for (const { tally, counts } of routed.tallies) this.#countTally(tally, counts);
  }

  #countTally(tally: Tally, counts: SeriesCounts): void {
    if (tally.kind === "unrouted") {
      this.#metrics.unrouted(tally.reason, counts);
      return;
    }
    const route = this.#config.routes[tally.route]?.route.name ?? "";
    switch (tally.kind) {
      case "not_selected":
        this.#metrics.notSelected.add({ route }, counts);
        return;
      case "dropped":
        this.#metrics.dropped(route, tally.replica, tally.reason, counts);
        // Rules of an upstream are there to drop; the others have made what cannot be sent.
        if (tally.reason !== "write_relabel_configs") this.#warnOfDrop(route, tally.reason, counts.series);
        return;
      case "missing_key_labels":
        this.#metrics.missingKeyLabels.inc({ route }, counts.series);
        this.#rarely.say(`missing key labels of ${route}`, (heldBack) => {
          const message = `${counts.series} series have none of the labels that the route keys by`;
          this.#log.warn({ route, series: counts.series, heldBack }, message);
        });
    }
  }

  #warnOfDrop(route: string, reason: string, series: number): void {
    this.#rarely.say(`dropped ${reason} of ${route}`, (heldBack) => {
      const message = `${series} series are dropped: rules of the route, or of its upstreams, leave them unfit to be sent (${reason})`;
      this.#log.warn({ route, reason, series, heldBack }, message);
    });
  }

  #logProblems(report: WriteReport): void {
    for (const { reason, series } of report.refusedExamples) {
      this.#rarely.say(`refused ${reason}`, (heldBack) => {
        this.#log.warn({ reason, series, heldBack }, "a series is refused, its sender has been told");
      });
    }
  }

  #buildDestinations({ route, upstreams, delivery }: RouteConfig, index: number): Map<number, Destination> {
    const slots = route.upstreams.map(({ name }) => name);
    const destinations = upstreams.map((upstream): [number, Destination] => {
      const metrics = this.#metrics.upstream(route.name, upstream.name, route.placement.replicas);
      const log = this.#log.child({ route: route.name, upstream: upstream.name });
      const memory = this.#memory.holder();
      metrics.watchMemory(() => memory);
      const userAgent = `stream-metrics-route/${VERSION}`;
      const tools = { now, random: Math.random, log, lookup, userAgent, memory };
      const spool =
        delivery.onOutage === "spool" ? this.#openSpool(route.name, upstream.name, metrics) : null;
      const events: SenderEvents = {
        settled: (end, from, _parcels, items, replica) => {
          metrics.settled(replica, end, from, items);
        },
        attempted: (result, durationMs) => {
          this.#arrivals += 1;
          metrics.attempted(result, durationMs / 1000);
        },
        delivered: (newestTimestampMs) => {
          metrics.delivered(newestTimestampMs);
        },
        breakerChanged: (state) => {
          metrics.breaker(state);
        },
      };
      const sender = new Sender(upstream, delivery, tools, events, spool);
      metrics.watchLanes(sender);
      metrics.watchAge(() => sender.oldestAgeMs);
      const { deliveryDeadlineMs } = delivery;
      const passesTenant = route.tenant.pass;
      const { name } = upstream;
      const identity = JSON.stringify([name, upstream.headers, upstream.auth]);
      return [
        slots.indexOf(name),
        { name, sender, metrics, deliveryDeadlineMs, route: index, passesTenant, identity },
      ];
    });
    return new Map(destinations);
  }

  #openSpool(route: string, upstream: string, metrics: UpstreamMetrics): UpstreamSpool | null {
    if (this.#spool === null) return null;
    const spool = this.#spool.upstream(route, upstream, {
      dropped: (reason, replica, items) => {
        metrics.settled(replica, reason, "spooled", items);
      },
      damaged: (bytes) => {
        metrics.spoolDamaged(bytes);
      },
    });
    for (const { replica, items } of spool.foundAtStart.replicas) metrics.foundInSpool(replica, items);
    metrics.spoolDamaged(spool.foundAtStart.damagedBytes);
    const { maxBytes, maxBytesPerUpstream } = this.#config.spool;
    const all = this.#spool;
    metrics.watchSpool(() => ({
      bytes: spool.bytes,
      oldestAtMs: spool.oldestAt,
      maxBytes: maxBytesPerUpstream,
      all: { bytes: all.bytes, maxBytes },
    }));
    return spool;
  }

  #buildServer(): IngestServer {
    const bodies = this.#memory.holder();
    this.#metrics.watchMemory(
      this.#memory.maxBytes,
      () => this.#memory.heldBytes,
      () => bodies,
    );
    const handler: WriteHandler = {
      write: (body, headers, onRouted) => this.#write(body, headers, onRouted),
      refuse: () => {
        this.#rarely.say("memory", (heldBack) => {
          this.#log.warn({ heldBack }, "requests are refused unread, as much is under way as memory allows");
        });
        return refuseForMemory(Math.random());
      },
      metrics: () => this.#metrics.exposition(),
    };
    return new IngestServer(
      { ...this.#config.limits, maxConnectionAgeMs: this.#config.maxConnectionAgeMs },
      handler,
      {
        answered: (status, durationMs) => {
          this.#metrics.requests.inc({ code: status ?? "closed" });
          this.#metrics.requestSeconds.observe(durationMs / 1000);
          this.#log.debug({ status, durationMs }, "request");
        },
        connected: () => {
          this.#turns.giveWay();
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
      { now, random: Math.random },
      bodies,
    );
  }
}

/** Calls back at once if it is aborted already. */
function whenAborted(signal: AbortSignal, callback: () => void): void {
  if (signal.aborted) callback();
  else signal.addEventListener("abort", callback, { once: true });
}

async function waitFor(ms: number, haste: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    whenAborted(haste, () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function buildRouter(
  config: Config,
  maxPlainBytes: number,
  table: DecisionTableLimits,
  isDue: () => boolean,
): Router {
  return new Router(
    config.relabel,
    config.routes.map(({ route, delivery }) => ({
      route,
      limits: { maxItems: delivery.maxSamplesPerSend, maxPlainBytes: MAX_BATCH_PLAIN_BYTES },
      lanes: delivery.lanes,
    })),
    {
      labels: config.limits,
      maxPlainBytes,
      metadata: { maxItems: MAX_METADATA_PER_SEND, maxPlainBytes: MAX_BATCH_PLAIN_BYTES },
      table,
    },
    { hashKey: randomBytes(ROUTER_KEY_BYTES), isDue },
  );
}

/** A random number from 0 up to 1 that nobody can tell from others that he has seen, unlike Math.random(). */
function unguessable(): number {
  return randomInt(2 ** 47) / 2 ** 47;
}

interface NamedOutcome {
  readonly upstream: string;
  readonly outcome: Extract<ParcelOutcome, { kind: "refused" | "undelivered" }>;
}

interface Delivered {
  /** What was not accepted. */
  readonly failed: readonly NamedOutcome[];
  readonly accepted: AcceptedParcels;
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
