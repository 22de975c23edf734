/**
 * All lanes of one upstream: for each tenant as many as are configured, and as many for what has none.
 *
 * Each tenant has its own order, request in flight, backoff and Retry-After, so that one whose requests fail or are
 * throttled delays no other. A lane of a tenant is there while it holds something: tenants that come and go cost nothing.
 * Thousands may have something to send, so they begin their attempts in turn, some at a time.
 */
import type { LaneParcel, LateCallback, OutcomesCallback } from "./delivery.ts";
import { Lane } from "./lane.ts";
import type { LaneId, LaneTools } from "./lane.ts";
import { LaneTurns } from "./laneTurns.ts";
import type { TurnAttempts } from "./laneTurns.ts";
import type { DeliveryOptions } from "./options.ts";
import type { Undelivered } from "./outcome.ts";
import { NO_PAUSE, Pauses } from "./pauses.ts";
import type { Pause } from "./pauses.ts";
import type { UpstreamSpool } from "./spool/upstreamSpool.ts";
import type { Parcel } from "../wire/parcel.ts";

/** So many attempts at a time are left to the other tenants when the upstream is slow to answer one, in all its lanes. */
const OTHER_TENANTS_ATTEMPTS = 8;

/** How many attempts lanes have under way at a time at most: those without a tenant, and those of all tenants together. */
export function maxAttempts({ lanes }: Pick<DeliveryOptions, "lanes">): {
  withoutTenant: number;
  ofTenants: number;
} {
  return { withoutTenant: lanes, ofTenants: lanes + OTHER_TENANTS_ATTEMPTS };
}

export class Lanes {
  readonly #options: DeliveryOptions;
  readonly #tools: LaneTools;
  /** null: with `on_outage` other than spool. */
  readonly #spool: UpstreamSpool | null;
  readonly #pauses: Pauses;
  readonly #turns: LaneTurns;
  readonly #tenantTurns: LaneTurns;
  readonly #withoutTenant: readonly Lane[];
  readonly #ofTenants = new Map<string, Lane>();
  /** With numbers that were in use before: they send what a process with more lanes has left on disk. */
  readonly #leftOver: Lane[] = [];
  /** Those that have got parcels since the last flush. */
  #unflushed = new Set<Lane>();

  constructor(
    options: DeliveryOptions,
    attempts: TurnAttempts,
    tools: Omit<LaneTools, "emptied">,
    spool: UpstreamSpool | null,
  ) {
    this.#options = options;
    this.#spool = spool;
    this.#tools = {
      ...tools,
      emptied: (lane) => {
        this.#drop(lane);
      },
    };
    this.#pauses = new Pauses(tools.now);
    const { withoutTenant, ofTenants } = maxAttempts(options);
    this.#turns = new LaneTurns(attempts, withoutTenant);
    this.#tenantTurns = new LaneTurns(attempts, ofTenants);
    this.#withoutTenant = Array.from({ length: options.lanes }, (_, number) =>
      this.#build({ number, tenant: null }, this.#turns, NO_PAUSE),
    );
  }

  /** How many there are. */
  get size(): number {
    return this.#withoutTenant.length + this.#ofTenants.size;
  }

  /** When the oldest parcel came that is in memory alone; Infinity without any. */
  get oldestAt(): number {
    return this.#all().reduce((oldest, lane) => Math.min(oldest, lane.oldestAt), Infinity);
  }

  /** See Sender.deliver(); at least one parcel. */
  deliver(
    id: LaneId,
    parcels: readonly Parcel[],
    deadline: number,
    onOutcomes: OutcomesCallback,
    onLate?: LateCallback,
  ): void {
    const lane = this.#laneOf(id);
    this.#unflushed.add(lane);
    lane.deliver(parcels, deadline, onOutcomes, onLate);
  }

  /** How many are behind. */
  get behind(): number {
    return this.#all().filter(({ isBehind }) => isBehind).length;
  }

  /** All parcels that are in memory alone and have not come to an end. */
  *inFlight(): Iterable<LaneParcel> {
    for (const lane of this.#all()) yield* lane.inFlight();
  }

  /** Sends what waits as soon as it can. */
  flush(): void {
    const lanes = this.#unflushed;
    this.#unflushed = new Set();
    for (const lane of lanes) lane.flush();
  }

  /** Begins no attempt of this tenant before a pause is over; of none at all if that is null. */
  pause(tenant: string | null, pause: Pause): void {
    this.#pauses.add(tenant, pause);
    for (const lane of tenant === null ? this.#all() : this.#lanesOf(tenant)) lane.pause(pause);
  }

  /** Sends what a process before has left on disk. */
  resume(): void {
    for (const id of this.#spool?.found ?? []) {
      if (id.number < this.#options.lanes) {
        this.#laneOf(id).resume();
        continue;
      }
      const lane = this.#build(id, id.tenant === null ? this.#turns : this.#tenantTurns, NO_PAUSE);
      this.#leftOver.push(lane);
      lane.resume();
    }
  }

  /** Nothing can be sent for a while. See Lane.giveUpWaiting(). */
  giveUpWaiting(outcome: Undelivered): void {
    for (const lane of this.#all()) lane.giveUpWaiting(outcome);
  }

  /** Waits until what is on its way to the disk is there, or cannot be. */
  async spooled(): Promise<void> {
    await Promise.all(this.#all().map((lane) => lane.spooled()));
  }

  /** Begins the attempts that wait for it, as far as they may begin now. To be called when the breaker has changed. */
  handOnTurns(): void {
    this.#turns.handOn();
    this.#tenantTurns.handOn();
  }

  /** Ends all timers, when nothing is left. */
  stop(): void {
    for (const lane of this.#all()) lane.stop();
  }

  #laneOf(id: LaneId): Lane {
    const { number, tenant } = id;
    const lane = tenant === null ? this.#withoutTenant[number] : this.#ofTenants.get(keyOf(number, tenant));
    if (lane !== undefined) return lane;
    if (tenant === null || number >= this.#options.lanes) {
      throw new RangeError(`bug: lane ${number} of ${this.#options.lanes}`);
    }
    const built = this.#build(id, this.#tenantTurns, this.#pauses.of(tenant));
    this.#ofTenants.set(keyOf(number, tenant), built);
    return built;
  }

  #build(id: LaneId, turns: LaneTurns, pause: Pause): Lane {
    const stream = this.#spool?.stream(id) ?? null;
    return new Lane(id, this.#options, turns, this.#tools, pause, stream);
  }

  #drop(lane: Lane): void {
    const { number, tenant } = lane.id;
    if (tenant === null) return;
    const key = keyOf(number, tenant);
    // Another may be in its place already, when this one is told to be empty again.
    if (this.#ofTenants.get(key) === lane) this.#ofTenants.delete(key);
    this.#unflushed.delete(lane);
    this.#tenantTurns.withdraw(lane);
    this.#spool?.forget(lane.id);
    lane.stop();
  }

  /** A copy, since lanes come and go on the way. */
  #all(): readonly Lane[] {
    return [...this.#withoutTenant, ...this.#leftOver, ...this.#ofTenants.values()];
  }

  #lanesOf(tenant: string): readonly Lane[] {
    return this.#withoutTenant.flatMap((_, number) => this.#ofTenants.get(keyOf(number, tenant)) ?? []);
  }
}

function keyOf(number: number, tenant: string): string {
  return `${number} ${tenant}`;
}
