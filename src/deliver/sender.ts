/**
 * Delivery to one upstream of one route.
 *
 * Parcels go through lanes, each in its order; lanes go side by side. They share the upstream's connections and its
 * breaker. Every parcel that was given here is answered by its deadline and settled exactly once, and no attempt, wait or
 * close outlasts its bound.
 *
 * At its deadline a parcel is answered although an attempt may be under way. That attempt goes on, since it may well
 * succeed; what its sender sends again waits behind it, if it comes to the same lane.
 */
import type { LookupFunction } from "node:net";
import type { Logger } from "pino";
import { Attempts } from "./attempts.ts";
import type { BreakerState } from "./breaker.ts";
import type { AttemptEnd } from "./classify.ts";
import { sumItems } from "./delivery.ts";
import type { LateCallback, OutcomesCallback, Settled } from "./delivery.ts";
import { DeliveryLog } from "./deliveryLog.ts";
import { Lanes, maxAttempts } from "./lanes.ts";
import type { UpstreamMemory } from "./memory.ts";
import { MetadataQueue } from "./metadataQueue.ts";
import type { DeliveryOptions, UpstreamOptions } from "./options.ts";
import type { UpstreamSpool } from "./spool/upstreamSpool.ts";
import { UpstreamClient } from "./upstreamClient.ts";
import type { ItemCounts, Parcel } from "../wire/parcel.ts";

/** What a sender tells its owner, who counts. None of these may throw. */
export interface SenderEvents {
  /**
   * Parcels of a replica have moved in the ledger. Every parcel given to deliver() leaves
   * `in_flight` exactly once, which can be after it was answered `undelivered`, when an attempt was still under way; one
   * that is spooled then, or was found in the spool at the start, leaves `spooled` once, if not after the process ends.
   */
  readonly settled: Settled;
  /** One attempt to deliver a batch ended, after this many milliseconds. */
  attempted(result: AttemptEnd["kind"], durationMs: number): void;
  /** The upstream has accepted data of which nothing is newer than this; milliseconds since the epoch. */
  delivered(newestTimestampMs: number): void;
  breakerChanged(state: BreakerState): void;
}

export interface SenderTools {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** 0 <= random() < 1 */
  readonly random: () => number;
  readonly log: Logger;
  /** Finds the addresses of an upstream's host: for each connection that is opened, so that an upstream may move. */
  readonly lookup: LookupFunction;
  /** Of this sender alone. */
  readonly memory: UpstreamMemory;
  /** The User-Agent header. */
  readonly userAgent: string;
}

/** Delivers parcels to one upstream. */
export class Sender {
  readonly #tools: SenderTools;
  readonly #attempts: Attempts;
  readonly #lanes: Lanes;
  readonly #metadata: MetadataQueue;
  #closing: Promise<void> | null = null;

  /**
   * @param spool the upstream's, with `on_outage: spool`; what it holds is sent from resume() on
   * @throws {DeliveryError} DELIVERY_TLS when the upstream's tls_config cannot be used
   */
  constructor(
    upstream: UpstreamOptions,
    delivery: DeliveryOptions,
    tools: SenderTools,
    events: SenderEvents,
    spool: UpstreamSpool | null,
  ) {
    this.#tools = tools;
    const log = new DeliveryLog(tools.log, upstream.name, tools.now);
    const { withoutTenant, ofTenants } = maxAttempts(delivery);
    const connections = withoutTenant + ofTenants + 1; // one for metadata
    const client = new UpstreamClient(upstream, delivery, connections, tools);
    this.#attempts = new Attempts(client, delivery, tools, log, {
      attempted: (result, durationMs) => {
        events.attempted(result, durationMs);
      },
      delivered: (newestTimestampMs) => {
        events.delivered(newestTimestampMs);
      },
      breakerChanged: (state) => {
        events.breakerChanged(state);
        this.#onBreakerChange();
      },
      throttled: (tenant, pause) => {
        this.#lanes.pause(tenant, pause);
      },
    });
    const { now, random, memory } = tools;
    const laneTools = { now, random, log, memory, settled: events.settled };
    this.#lanes = new Lanes(delivery, this.#attempts, laneTools, spool);
    this.#metadata = new MetadataQueue(this.#attempts, memory);
  }

  /** For how long the oldest parcel has been here that is in memory alone; 0 without any. */
  get oldestAgeMs(): number {
    return Math.max(0, this.#tools.now() - this.#lanes.oldestAt);
  }

  /** Begins to send what a process before has left on disk. */
  resume(): void {
    this.#lanes.resume();
  }

  /**
   * Sends parcels through a lane of their tenant, in order, together with those of other calls. A refused one stops
   * nothing, and one that fails stops no other tenant.
   *
   * @param lane       0 <= lane < DeliveryOptions.lanes
   * @param tenant     whose they are; each byte a character (latin1)
   * @param deadline   on the clock of now(); the outcomes are there by then
   * @param onOutcomes called once, after this has returned, with the outcomes in the order of the parcels; does not throw
   * @param onLate     called afterwards for each parcel that is accepted after all
   */
  deliver(
    lane: number,
    parcels: readonly Parcel[],
    tenant: string | null,
    deadline: number,
    onOutcomes: OutcomesCallback,
    onLate?: LateCallback,
  ): void {
    if (parcels.length === 0) {
      queueMicrotask(() => {
        onOutcomes([]);
      });
      return;
    }
    this.#lanes.deliver({ number: lane, tenant }, parcels, deadline, onOutcomes, onLate);
  }

  /** How many lanes have what comes for them written to disk first. */
  get lanesBehind(): number {
    return this.#lanes.behind;
  }

  /** What of a replica is in memory alone and has not come to an end; it is counted parcel by parcel, for whoever looks. */
  inFlight(replica: number): ItemCounts {
    const parcels = [...this.#lanes.inFlight()].filter(({ parcel }) => parcel.replica === replica);
    return sumItems(parcels);
  }

  /** Lets no parcel wait for company any longer: the caller knows that no more are coming soon. */
  flush(): void {
    this.#lanes.flush();
  }

  /**
   * Sends metadata in its turn: one attempt, best effort. Lost unless the breaker is closed, and when too much waits.
   *
   * @param body   a whole request body, a snappy block
   * @param tenant whose it is; each byte a character (latin1)
   * @returns whether it was accepted; never rejects
   */
  deliverMetadata(body: Uint8Array, tenant: string | null): Promise<boolean> {
    return this.#metadata.send(body, tenant);
  }

  /**
   * Ends delivery: what is not delivered goes to the spool, or, without one, what waits is given back at once. Attempts under
   * way are waited for until `deadline` (on the clock of now()) and then aborted. By its end every parcel is settled, and
   * connections and timers are gone. A second call waits for the first, of which it can only bring the deadline forward.
   */
  close(deadline: number): Promise<void> {
    this.#attempts.giveUpIn(deadline - this.#tools.now());
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  async #shutDown(): Promise<void> {
    this.#attempts.stopBeginning();
    this.#giveUpIfHopeless();
    await this.#attempts.finish();
    await this.#lanes.spooled();
    this.#lanes.stop();
    this.#tools.memory.close();
  }

  #onBreakerChange(): void {
    this.#giveUpIfHopeless();
    this.#lanes.handOnTurns();
  }

  #giveUpIfHopeless(): void {
    const obstacle = this.#attempts.obstacle();
    if (obstacle !== null) this.#lanes.giveUpWaiting(obstacle);
  }
}
