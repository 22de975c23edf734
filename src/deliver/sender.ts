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
import type { Logger } from "pino";
import { Attempts } from "./attempts.ts";
import type { BreakerState } from "./breaker.ts";
import type { AttemptEnd } from "./classify.ts";
import type { OutcomesCallback } from "./delivery.ts";
import { DeliveryLog } from "./deliveryLog.ts";
import { Lanes, maxAttempts } from "./lanes.ts";
import { MetadataQueue } from "./metadataQueue.ts";
import type { DeliveryOptions, UpstreamOptions } from "./options.ts";
import type { Settlement } from "./outcome.ts";
import { UpstreamClient } from "./upstreamClient.ts";
import type { ItemCounts, Parcel } from "../wire/parcel.ts";

/** What a sender tells its owner, who counts. None of these may throw. */
export interface SenderEvents {
  /**
   * So many parcels of a replica, which hold these items together, are settled: the upstream has them, or they are refused, by
   * the upstream or because they were not accepted in time. Every parcel given to deliver() is among them exactly once, which
   * can be after it was answered `undelivered`, when an attempt was still under way.
   */
  settled(end: Settlement, parcels: number, items: ItemCounts, replica: number): void;
  /** One attempt to deliver a batch ended, after this many milliseconds. */
  attempted(result: AttemptEnd["kind"], durationMs: number): void;
  breakerChanged(state: BreakerState): void;
}

export interface SenderTools {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** 0 <= random() < 1 */
  readonly random: () => number;
  readonly log: Logger;
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

  /** @throws {DeliveryError} DELIVERY_TLS when the upstream's tls_config cannot be used */
  constructor(
    upstream: UpstreamOptions,
    delivery: DeliveryOptions,
    tools: SenderTools,
    events: SenderEvents,
  ) {
    this.#tools = tools;
    const log = new DeliveryLog(tools.log, upstream.name, tools.now);
    const { withoutTenant, ofTenants } = maxAttempts(delivery);
    const connections = withoutTenant + ofTenants + 1; // one for metadata
    const client = new UpstreamClient(upstream, delivery, connections, tools.userAgent);
    this.#attempts = new Attempts(client, delivery, tools, log, {
      attempted: (result, durationMs) => {
        events.attempted(result, durationMs);
      },
      breakerChanged: (state) => {
        events.breakerChanged(state);
        this.#onBreakerChange();
      },
      throttled: (tenant, pause) => {
        this.#lanes.pause(tenant, pause);
      },
    });
    const settled: SenderEvents["settled"] = (end, parcels, items, replica) => {
      events.settled(end, parcels, items, replica);
    };
    this.#lanes = new Lanes(delivery, this.#attempts, { now: tools.now, random: tools.random, log, settled });
    this.#metadata = new MetadataQueue(this.#attempts);
  }

  /**
   * Sends parcels through a lane of their tenant, in order, together with those of other calls. A refused one stops
   * nothing, and one that fails stops no other tenant.
   *
   * @param lane       0 <= lane < DeliveryOptions.lanes
   * @param tenant     whose they are; each byte a character (latin1)
   * @param deadline   on the clock of now(); the outcomes are there by then
   * @param onOutcomes called once, after this has returned, with the outcomes in the order of the parcels; does not throw
   */
  deliver(
    lane: number,
    parcels: readonly Parcel[],
    tenant: string | null,
    deadline: number,
    onOutcomes: OutcomesCallback,
  ): void {
    if (parcels.length === 0) {
      queueMicrotask(() => {
        onOutcomes([]);
      });
      return;
    }
    this.#lanes.deliver({ number: lane, tenant }, parcels, deadline, onOutcomes);
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
   * Ends delivery: what waits is given back at once, attempts under way are waited for until `deadline` (on the clock of
   * now()) and then aborted. By its end every parcel is settled, and connections and timers are gone; a second call waits
   * for the first.
   */
  close(deadline: number): Promise<void> {
    this.#closing ??= this.#shutDown(deadline);
    return this.#closing;
  }

  async #shutDown(deadline: number): Promise<void> {
    this.#attempts.stopBeginning();
    this.#giveBackIfHopeless();
    await this.#attempts.finish(deadline - this.#tools.now());
    this.#lanes.stop();
  }

  #onBreakerChange(): void {
    this.#giveBackIfHopeless();
    this.#lanes.handOnTurns();
  }

  #giveBackIfHopeless(): void {
    const obstacle = this.#attempts.obstacle();
    if (obstacle !== null) this.#lanes.giveBackWaiting(obstacle);
  }
}
