/**
 * Delivery to one upstream of one route.
 *
 * Parcels go through lanes, each in its order; lanes go side by side. They share the upstream's connections and its
 * breaker. Every parcel that was given here is answered by its deadline and settled exactly once, and no attempt, wait or
 * close outlasts its bound.
 *
 * Its upstream may get another url, credentials or options while it works, see prepare(); what it holds, its breaker and its
 * waits stay. One that is not wanted any more is retired: it goes on until it holds nothing, and ends by itself.
 *
 * At its deadline a parcel is answered although an attempt may be under way. That attempt goes on, since it may well
 * succeed; what its sender sends again waits behind it, if it comes to the same lane.
 */
import type { LookupFunction } from "node:net";
import type { Logger } from "pino";
import { Alarm } from "./alarm.ts";
import { Attempts } from "./attempts.ts";
import type { BreakerState } from "./breaker.ts";
import type { AttemptEnd } from "./classify.ts";
import { Delivery, LaneParcel, settleEach, sumItems } from "./delivery.ts";
import type { LateCallback, OutcomesCallback, Settled } from "./delivery.ts";
import { DeliveryLog } from "./deliveryLog.ts";
import { Lanes, maxAttempts } from "./lanes.ts";
import type { UpstreamMemory } from "./memory.ts";
import { MetadataQueue } from "./metadataQueue.ts";
import type { DeliveryInForce, DeliveryOptions, UpstreamOptions } from "./options.ts";
import { undelivered } from "./outcome.ts";
import type { ParcelOutcome, Settlement } from "./outcome.ts";
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

/** A change of a sender that is ready to be made: either apply() or discard() is called, once. */
export interface SenderChange {
  /** Whether apply() wants the upstream's spool, since the sender has none and shall spool from now on. */
  readonly needsSpool: boolean;
  /**
   * Makes the change, and takes a sender back that was retired. Cannot fail.
   *
   * @param spool if it needs one; what it holds is sent
   */
  apply(spool?: UpstreamSpool): void;
  /** Leaves the sender as it is. */
  discard(): void;
}

/**
 * How the retirement of a sender ended: it has closed, holding nothing; it is wanted again; or close() came before, and
 * what it had on disk stays there.
 */
export type Retirement = "drained" | "taken_back" | "closed";

/** How long the disk has after the last attempt: far longer than a sync takes that ends at all. */
const SPOOL_MS = 250;
/** How long the sender of a request should stay away that came for a sender which has closed: it is routed anew then. */
const COME_AGAIN_MS = 1_000;

/** Delivers parcels to one upstream. */
export class Sender {
  readonly #tools: SenderTools;
  readonly #settled: Settled;
  readonly #delivery: DeliveryInForce;
  readonly #attempts: Attempts;
  readonly #lanes: Lanes;
  readonly #metadata: MetadataQueue;
  /** Rings when a close() waits for the disk no longer. */
  readonly #giveUpSpooling: Alarm;
  #spool: UpstreamSpool | null;
  #retiresAtMs: number;
  /** Told of the end of its retirement; null while it is not retired. */
  #onRetired: ((how: Retirement) => void) | null = null;
  #retirement: Promise<Retirement> | null = null;
  /** Changes that are prepared: it does not end before it is clear what becomes of them. */
  #prepared = 0;
  #closing: Promise<void> | null = null;
  #isDrained = false;
  #isOver = false;
  /** Why what comes is turned away, since it has ended; null while lanes take it. */
  #end: string | null = null;

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
    this.#settled = events.settled;
    this.#delivery = { options: delivery };
    this.#spool = spool;
    this.#retiresAtMs = upstream.retiresAtMs ?? Infinity;
    const log = new DeliveryLog(tools.log, upstream.name, tools.now);
    const client = new UpstreamClient(upstream, delivery, connectionsFor(delivery), tools);
    this.#attempts = new Attempts(client, this.#delivery, tools, log, {
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
      idle: () => {
        this.#endIfDrained();
      },
    });
    const { now, random, memory } = tools;
    const laneTools = { now, random, log, memory, settled: events.settled };
    this.#lanes = new Lanes(this.#delivery, this.#attempts, laneTools, spool, () => {
      this.#endIfDrained();
    });
    this.#metadata = new MetadataQueue(this.#attempts, memory);
    this.#giveUpSpooling = new Alarm(now, () => {
      this.#lanes.giveUpSpooling();
    });
  }

  /**
   * Makes ready to go on with other options for the same upstream, which changes nothing yet. What is under way then ends as
   * it began; connections are kept unless they, or what requests say, would differ.
   *
   * @param upstream of the same name
   * @throws {DeliveryError} DELIVERY_TLS when the upstream's tls_config cannot be used
   */
  prepare(upstream: UpstreamOptions, delivery: DeliveryOptions): SenderChange {
    if (this.hasEnded) throw new Error(`bug: the sender of ${upstream.name} has ended and is to be changed`);
    const connections = connectionsFor(delivery);
    const { client } = this.#attempts;
    const next = client.isMadeOf(upstream, delivery, connections)
      ? client
      : new UpstreamClient(upstream, delivery, connections, this.#tools);
    this.#prepared += 1;
    return {
      needsSpool: delivery.onOutage === "spool" && this.#spool === null,
      apply: (spool) => {
        this.#prepared -= 1;
        if (this.hasEnded) return; // the gateway stops
        this.#delivery.options = delivery;
        this.#retiresAtMs = upstream.retiresAtMs ?? Infinity;
        this.#spool ??= spool ?? null;
        this.#endRetirement("taken_back");
        this.#attempts.use(next);
        this.#lanes.reconfigure(this.#spool);
        this.#giveUpIfHopeless();
      },
      discard: () => {
        this.#prepared -= 1;
        this.#endIfDrained();
      },
    };
  }

  /**
   * Goes on until nothing is held, in memory or on disk, and then ends by itself: for an upstream that is not configured any
   * more. What comes nevertheless is delivered until then; afterwards its senders are told to come again.
   *
   * @returns how it ended, once connections and timers are gone or it was taken back
   */
  retire(): Promise<Retirement> {
    this.#retirement ??= this.#untilRetired();
    return this.#retirement;
  }

  async #untilRetired(): Promise<Retirement> {
    if (this.#closing !== null) {
      await this.#closing;
      return "closed";
    }
    const retired = new Promise<Retirement>((resolve) => {
      this.#onRetired = resolve;
    });
    this.#endIfDrained();
    return retired;
  }

  /** Whether it has begun to end, by close() or drained: then it cannot be taken back. */
  get hasEnded(): boolean {
    return this.#closing !== null;
  }

  /** Whether the last topology period that has its upstream is over for so long that it takes nothing more. */
  get isPeriodRetired(): boolean {
    return this.#tools.now() >= this.#retiresAtMs;
  }

  #endRetirement(how: Retirement): void {
    this.#onRetired?.(how);
    this.#onRetired = null;
    this.#retirement = null;
  }

  #endIfDrained(): void {
    if (this.#onRetired === null || this.#prepared > 0 || this.#isDrained || this.#closing !== null) return;
    if (!this.#attempts.isIdle || !this.#lanes.isEmpty) return;
    this.#isDrained = true;
    this.#end = "it is not configured any more";
    this.#closing = this.#shutDown("drained");
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
   * @param lane       below DeliveryOptions.lanes, or what that was when the request was routed
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
    if (this.isPeriodRetired) {
      this.#turnAway(parcels, "period_retired", { kind: "dropped", reason: "period_retired" }, onOutcomes);
      return;
    }
    if (this.#end !== null) {
      this.#turnAway(parcels, "refused", undelivered(this.#end, COME_AGAIN_MS), onOutcomes);
      return;
    }
    this.#lanes.deliver({ number: lane, tenant }, parcels, deadline, onOutcomes, onLate);
  }

  /** Settles and answers parcels that no lane gets. */
  #turnAway(
    parcels: readonly Parcel[],
    end: Settlement,
    outcome: ParcelOutcome,
    onOutcomes: OutcomesCallback,
  ): void {
    const nobody = new Delivery(parcels.length, 0, Infinity, () => undefined);
    const laneParcels = parcels.map((parcel, index) => new LaneParcel(parcel, nobody, index));
    settleEach(this.#settled, end, "in_flight", laneParcels);
    queueMicrotask(() => {
      onOutcomes(parcels.map(() => outcome));
    });
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
    return this.isPeriodRetired ? Promise.resolve(false) : this.#metadata.send(body, tenant);
  }

  /**
   * Ends delivery: what is not delivered goes to the spool, or, without one, what waits is given back at once. Attempts under
   * way are waited for until `deadline` (on the clock of now()) and then aborted. By its end every parcel is settled, and
   * connections and timers are gone. A second call waits for the first, of which it can only bring the deadlines forward.
   *
   * @param spoolBy when the disk is waited for no longer: what it has not taken is given back then
   */
  close(deadline: number, spoolBy = deadline + SPOOL_MS): Promise<void> {
    this.#attempts.giveUpIn(deadline - this.#tools.now());
    if (!this.#isOver) this.#giveUpSpooling.ringBy(spoolBy);
    this.#closing ??= this.#shutDown("closed");
    return this.#closing;
  }

  async #shutDown(how: Retirement): Promise<void> {
    this.#attempts.stopBeginning();
    this.#giveUpIfHopeless();
    await this.#attempts.finish();
    await this.#lanes.spooled();
    this.#isOver = true;
    this.#giveUpSpooling.cancel();
    this.#lanes.stop();
    this.#tools.memory.close();
    this.#end ??= "the gateway is shutting down";
    this.#endRetirement(how);
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

function connectionsFor(delivery: DeliveryOptions): number {
  const { withoutTenant, ofTenants } = maxAttempts(delivery);
  return withoutTenant + ofTenants + 1; // one for metadata
}
