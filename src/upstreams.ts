/**
 * The senders to all upstreams of all routes, wired to their metrics, their memory and their part of the spool, as
 * configurations come and go.
 *
 * A sender belongs to an upstream of a route, by their names. It goes on as long as a configuration names these, whatever else
 * changes; then it drains, and ends when it holds nothing any more.
 */
import { randomInt } from "node:crypto";
import { lookup } from "node:dns";
import { setTimeout as pause } from "node:timers/promises";
import type { Logger } from "pino";
import { now } from "./clock.ts";
import type { Config, RouteConfig } from "./config/config.ts";
import type { UpstreamOptions } from "./deliver/options.ts";
import { Sender, type SenderChange, type SenderEvents } from "./deliver/sender.ts";
import { diskFiles } from "./deliver/spool/diskFiles.ts";
import { type Orphan, SpoolStore } from "./deliver/spool/spoolStore.ts";
import type { UpstreamSpool } from "./deliver/spool/upstreamSpool.ts";
import { checkUpstream } from "./deliver/upstreamClient.ts";
import type { MemoryBudget } from "./memoryBudget.ts";
import { retirements } from "./route/retirement.ts";
import type { Metrics, UpstreamMetrics } from "./telemetry/metrics.ts";
import { VERSION } from "./version.ts";

/** The spool has so long to close, however late it is. */
const SPOOL_CLOSE_MS = 500;
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
  /** As they were at the start: the folder stays. */
  readonly spool: Config["spool"];
  /** An upstream has answered. */
  readonly answered: () => void;
}

/** The senders of another configuration, ready to be put in the place of those of the one before: one of these is called, once. */
export interface UpstreamsChange {
  /** Cannot fail. @returns by route and upstream, as parcels are addressed */
  apply(): Destination[][];
  /** Leaves everything as it is. */
  discard(): void;
}

/** A sender and what it has. */
interface Served {
  readonly sender: Sender;
  readonly metrics: UpstreamMetrics;
  hasSpool: boolean;
  /** While it drains: resolves when it has ended and left nothing, is wanted again, or was closed. */
  drained: Promise<void> | null;
}

/** An upstream that a configuration names. */
interface Wanted {
  readonly key: string;
  readonly route: RouteConfig;
  readonly upstream: UpstreamOptions;
}

/** The senders of one gateway. */
export class Upstreams {
  readonly #tools: UpstreamTools;
  /** null as long as no route has spooled. */
  #store: SpoolStore | null = null;
  /** By the names of route and upstream. */
  readonly #served = new Map<string, Served>();
  #sendsFromSpool = false;

  constructor(tools: UpstreamTools) {
    this.#tools = tools;
  }

  /**
   * Makes the senders that a configuration names ready, without a change for requests.
   *
   * @throws {DeliveryError} when an upstream's tls_config cannot be used
   * @throws {SpoolError} when the spool cannot be used
   */
  async prepare(config: Config): Promise<UpstreamsChange> {
    const wanted = config.routes.flatMap(wantedOf);
    const spools = config.routes.some(({ delivery }) => delivery.onOutage === "spool");
    if (spools) this.#store ??= await this.#openStore();
    // One that is about to end has to leave its folder to the one that follows it, and another may begin to end meanwhile.
    for (let ending = this.#ending(wanted); ending.length > 0; ending = this.#ending(wanted)) {
      await Promise.all(ending);
    }
    const changes = new Map<string, SenderChange>();
    const discard = (): void => {
      for (const change of changes.values()) change.discard();
    };
    try {
      for (const { key, route, upstream } of wanted) {
        const served = this.#served.get(key);
        if (served === undefined) checkUpstream(upstream);
        else changes.set(key, served.sender.prepare(upstream, route.delivery));
      }
    } catch (error) {
      discard();
      throw error;
    }
    return { discard, apply: () => this.#apply(config, wanted, changes) };
  }

  /** Begins to send what a process before has left in the spool. */
  resume(): void {
    this.#sendsFromSpool = true;
    for (const { sender } of this.#served.values()) sender.resume();
  }

  /** What upstreams have left in the spool that nobody has now. */
  orphans(): readonly Orphan[] {
    return this.#store?.orphans() ?? [];
  }

  async dropOrphans(): Promise<void> {
    await this.#store?.dropOrphans();
  }

  /** Ends delivery. See Sender.close(). */
  async closeSenders(deadline: number): Promise<void> {
    await Promise.all([...this.#served.values()].map(({ sender }) => sender.close(deadline)));
  }

  /** Ends delivery, and gives the spool's folder back. */
  async close(deadline: number): Promise<void> {
    await this.closeSenders(deadline);
    const patienceMs = Math.max(SPOOL_CLOSE_MS, deadline - now());
    await Promise.race([this.#allDrained(), pause(patienceMs, undefined, { ref: false })]);
    await this.#store?.close(patienceMs);
  }

  /** Until the folders of senders that have drained are given back. */
  async #allDrained(): Promise<void> {
    await Promise.all([...this.#served.values()].map(({ drained }) => drained ?? Promise.resolve()));
  }

  #openStore(): Promise<SpoolStore> {
    const tools = { files: diskFiles, now: Date.now, random: unguessable, log: this.#tools.log };
    return SpoolStore.open(this.#tools.spool, tools);
  }

  /** Of those that have drained and are about to end: resolve when they have. */
  #ending(wanted: readonly Wanted[]): Promise<void>[] {
    return wanted.flatMap(({ key }) => {
      const served = this.#served.get(key);
      return served?.sender.hasEnded === true ? (served.drained ?? []) : [];
    });
  }

  #apply(
    config: Config,
    wanted: readonly Wanted[],
    changes: ReadonlyMap<string, SenderChange>,
  ): Destination[][] {
    for (const { key, route, upstream } of wanted) {
      const served = this.#served.get(key);
      if (served === undefined) this.#served.set(key, this.#serve(route, upstream));
      else this.#change(served, route, upstream, changes.get(key));
    }
    const keys = new Set(wanted.map(({ key }) => key));
    for (const [key, served] of this.#served) if (!keys.has(key)) this.#drain(key, served);
    return config.routes.map((route, index) => this.#destinationsOf(route, index));
  }

  #destinationsOf(route: RouteConfig, index: number): Destination[] {
    return route.upstreams.map((upstream) => {
      const { name, headers, auth } = upstream;
      const served = this.#served.get(keyOf(route, upstream));
      if (served === undefined) throw new Error(`bug: no sender for ${name}`);
      const { sender, metrics } = served;
      return {
        name,
        sender,
        metrics,
        deliveryDeadlineMs: route.delivery.deliveryDeadlineMs,
        route: index,
        passesTenant: route.route.tenant.pass,
        identity: JSON.stringify([name, headers, auth]),
      };
    });
  }

  #change(
    served: Served,
    { route }: RouteConfig,
    { name }: UpstreamOptions,
    change: SenderChange | undefined,
  ): void {
    if (change === undefined) throw new Error(`bug: the change of ${name} is not prepared`);
    const metrics = this.#tools.metrics.upstream(route.name, name, route.placement.replicas);
    served.drained = null;
    if (!change.needsSpool) {
      change.apply();
      return;
    }
    change.apply(this.#openSpool(route.name, name, metrics));
    served.hasSpool = true;
  }

  /** Has a sender go on until it holds nothing. */
  #drain(key: string, served: Served): void {
    if (served.drained !== null) return;
    served.drained = served.sender.retire().then(async (how) => {
      if (how === "closed") served.drained = null;
      if (how !== "drained") return;
      const [route, upstream] = JSON.parse(key) as [string, string];
      if (served.hasSpool) await this.#store?.release(route, upstream);
      served.metrics.close();
      this.#served.delete(key);
      this.#tools.log.info({ route, upstream }, "an upstream that is not configured any more is drained");
    });
  }

  #serve({ route, delivery }: RouteConfig, upstream: UpstreamOptions): Served {
    const { log, metrics: all, memory: budget, answered } = this.#tools;
    const metrics = all.upstream(route.name, upstream.name, route.placement.replicas);
    const memory = budget.holder();
    metrics.watchMemory(() => memory);
    const hasSpool = delivery.onOutage === "spool";
    const spool = hasSpool ? this.#openSpool(route.name, upstream.name, metrics) : null;
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
    if (this.#sendsFromSpool) sender.resume();
    return { sender, metrics, hasSpool, drained: null };
  }

  #openSpool(route: string, upstream: string, metrics: UpstreamMetrics): UpstreamSpool {
    const store = this.#store;
    if (store === null) throw new Error("bug: the spool is wanted before it is open");
    const spool = store.upstream(route, upstream, {
      dropped: (reason, replica, items) => {
        metrics.settled(replica, reason, "spooled", items);
      },
      damaged: (bytes) => {
        metrics.spoolDamaged(bytes);
      },
    });
    for (const { replica, items } of spool.foundAtStart.replicas) metrics.foundInSpool(replica, items);
    metrics.spoolDamaged(spool.foundAtStart.damagedBytes);
    const { maxBytes, maxBytesPerUpstream } = this.#tools.spool;
    metrics.watchSpool(() => ({
      bytes: spool.bytes,
      oldestAtMs: spool.oldestAt,
      maxBytes: maxBytesPerUpstream,
      all: { bytes: store.bytes, maxBytes },
    }));
    return spool;
  }
}

function wantedOf(route: RouteConfig): Wanted[] {
  const retireAt = retirements(route.route);
  return route.upstreams.map((upstream, index) => {
    const retiresAtMs = retireAt[index] ?? null;
    return {
      key: keyOf(route, upstream),
      route,
      upstream: retiresAtMs === null ? upstream : { ...upstream, retiresAtMs },
    };
  });
}

function keyOf({ route }: RouteConfig, { name }: UpstreamOptions): string {
  return JSON.stringify([route.name, name]);
}

/** A random number from 0 up to 1 that nobody can tell from others that he has seen, unlike Math.random(). */
function unguessable(): number {
  return randomInt(2 ** 47) / 2 ** 47;
}
