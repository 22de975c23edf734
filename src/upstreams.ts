/**
 * The senders to all upstreams of all routes, wired to their metrics, their memory and their part of the spool.
 */
import { lookup } from "node:dns";
import type { Logger } from "pino";
import { now } from "./clock.ts";
import type { Config, RouteConfig } from "./config/config.ts";
import type { UpstreamOptions } from "./deliver/options.ts";
import { Sender, type SenderEvents } from "./deliver/sender.ts";
import type { SpoolStore } from "./deliver/spool/spoolStore.ts";
import type { UpstreamSpool } from "./deliver/spool/upstreamSpool.ts";
import type { MemoryBudget } from "./memoryBudget.ts";
import type { Metrics, UpstreamMetrics } from "./telemetry/metrics.ts";
import { VERSION } from "./version.ts";

const USER_AGENT = `stream-metrics-route/${VERSION}`;

/** One upstream of one route, as requests find it. */
export interface Destination {
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

/** What senders share. */
export interface UpstreamTools {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly memory: MemoryBudget;
  /** null when no route spools. */
  readonly spool: SpoolStore | null;
  /** An upstream has answered. */
  readonly answered: () => void;
}

/** The senders of one gateway. */
export class Upstreams {
  readonly #tools: UpstreamTools;
  readonly #spoolOptions: Config["spool"];
  /** See Setup. */
  readonly destinations: readonly (readonly Destination[])[];

  /** @throws {DeliveryError} when an upstream's tls_config cannot be used */
  constructor(config: Config, tools: UpstreamTools) {
    this.#tools = tools;
    this.#spoolOptions = config.spool;
    this.destinations = config.routes.map((route, index) => this.#buildDestinations(route, index));
  }

  /** Begins to send what a process before has left in the spool. */
  resume(): void {
    for (const { sender } of this.#all()) sender.resume();
  }

  /** See Sender.close(). */
  async close(deadline: number): Promise<void> {
    await Promise.all(this.#all().map(({ sender }) => sender.close(deadline)));
  }

  #all(): Destination[] {
    return this.destinations.flat();
  }

  #buildDestinations(route: RouteConfig, index: number): Destination[] {
    return route.upstreams.map((upstream) => {
      const { name } = upstream;
      const { sender, metrics } = this.#buildSender(route, upstream);
      const { deliveryDeadlineMs } = route.delivery;
      const passesTenant = route.route.tenant.pass;
      const identity = JSON.stringify([name, upstream.headers, upstream.auth]);
      return { name, sender, metrics, deliveryDeadlineMs, route: index, passesTenant, identity };
    });
  }

  #buildSender(
    { route, delivery }: RouteConfig,
    upstream: UpstreamOptions,
  ): Pick<Destination, "sender" | "metrics"> {
    const { log, metrics: all, memory: budget, answered } = this.#tools;
    const metrics = all.upstream(route.name, upstream.name, route.placement.replicas);
    const memory = budget.holder();
    metrics.watchMemory(() => memory);
    const spool = delivery.onOutage === "spool" ? this.#openSpool(route.name, upstream.name, metrics) : null;
    const events: SenderEvents = {
      settled: (end, from, _parcels, items, replica) => {
        metrics.settled(replica, end, from, items);
      },
      attempted: (result, durationMs) => {
        answered();
        metrics.attempted(result, durationMs / 1000);
      },
      delivered: (newestTimestampMs) => {
        metrics.delivered(newestTimestampMs);
      },
      breakerChanged: (state) => {
        metrics.breaker(state);
      },
    };
    const tools = {
      now,
      random: Math.random,
      log: log.child({ route: route.name, upstream: upstream.name }),
      lookup,
      userAgent: USER_AGENT,
      memory,
    };
    const sender = new Sender(upstream, delivery, tools, events, spool);
    metrics.watchLanes(sender);
    metrics.watchAge(() => sender.oldestAgeMs);
    return { sender, metrics };
  }

  #openSpool(route: string, upstream: string, metrics: UpstreamMetrics): UpstreamSpool | null {
    const all = this.#tools.spool;
    if (all === null) return null;
    const spool = all.upstream(route, upstream, {
      dropped: (reason, replica, items) => {
        metrics.settled(replica, reason, "spooled", items);
      },
      damaged: (bytes) => {
        metrics.spoolDamaged(bytes);
      },
    });
    for (const { replica, items } of spool.foundAtStart.replicas) metrics.foundInSpool(replica, items);
    metrics.spoolDamaged(spool.foundAtStart.damagedBytes);
    const { maxBytes, maxBytesPerUpstream } = this.#spoolOptions;
    metrics.watchSpool(() => ({
      bytes: spool.bytes,
      oldestAtMs: spool.oldestAt,
      maxBytes: maxBytesPerUpstream,
      all: { bytes: all.bytes, maxBytes },
    }));
    return spool;
  }
}
