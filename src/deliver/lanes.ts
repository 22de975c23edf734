/**
 * All lanes of one upstream: for each tenant as many as are configured, and as many for what has none.
 *
 * Each tenant has its own order, request in flight, backoff and Retry-After, so that one whose requests fail or are
 * throttled delays no other. A lane of a tenant is there while it holds something: tenants that come and go cost nothing.
 * Thousands may have something to send, so they begin their attempts in turn, some at a time.
 *
 * How many lanes there are may change. One with a number that is not in use any more goes on until it is empty, and a lane
 * with that number is the same one if it is in use again before that: the stream on disk is one lane's.
 */
import type { LaneParcel, LateCallback, OutcomesCallback } from "./delivery.ts";
import { Lane } from "./lane.ts";
import type { LaneId, LaneTools } from "./lane.ts";
import { LaneTurns } from "./laneTurns.ts";
import type { TurnAttempts } from "./laneTurns.ts";
import type { DeliveryInForce, DeliveryOptions } from "./options.ts";
import type { Undelivered } from "./outcome.ts";
import { Pauses } from "./pauses.ts";
import type { Pause } from "./pauses.ts";
import type { SpoolStream } from "./spool/spoolStream.ts";
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
  readonly #delivery: Readonly<DeliveryInForce>;
  readonly #tools: LaneTools;
  /** null: nothing was ever spooled. */
  #spool: UpstreamSpool | null;
  readonly #pauses: Pauses;
  readonly #turns: LaneTurns;
  readonly #tenantTurns: LaneTurns;
  #withoutTenant: readonly Lane[] = [];
  readonly #ofTenants = new Map<string, Lane>();
  #numbersEverUsed = 0;
  /** Without tenant, with numbers that are not in use any more. */
  readonly #leftOver = new Map<number, Lane>();
  /** Those that have got parcels since the last flush. */
  #unflushed = new Set<Lane>();

  /**
   * @param delivery  whoever changes it calls reconfigure() then
   * @param onDrained told when a lane holds nothing any more, possibly more than once; does not throw
   */
  constructor(
    delivery: Readonly<DeliveryInForce>,
    attempts: TurnAttempts,
    tools: Omit<LaneTools, "emptied">,
    spool: UpstreamSpool | null,
    onDrained: () => void,
  ) {
    this.#delivery = delivery;
    this.#spool = spool;
    this.#tools = {
      ...tools,
      emptied: (lane, isDone) => {
        if (isDone) this.#drop(lane);
        onDrained();
      },
    };
    this.#pauses = new Pauses(tools.now);
    const { withoutTenant, ofTenants } = maxAttempts(delivery.options);
    this.#turns = new LaneTurns(attempts, withoutTenant);
    this.#tenantTurns = new LaneTurns(attempts, ofTenants);
    this.#useNumbers();
  }

  /** How many there are. */
  get size(): number {
    return this.#all().length;
  }

  /** Whether none holds anything, waiting, in flight or on disk. */
  get isEmpty(): boolean {
    return this.#all().every((lane) => lane.isEmpty);
  }

  /**
   * Goes on by options that have changed.
   *
   * @param spool see Sender; the same one, if there was one
   */
  reconfigure(spool: UpstreamSpool | null): void {
    const isNew = spool !== this.#spool;
    this.#spool = spool;
    const { withoutTenant, ofTenants } = maxAttempts(this.#delivery.options);
    this.#useNumbers();
    for (const lane of this.#all()) lane.reconfigure(this.#streamOf(lane.id));
    this.#turns.limitTo(withoutTenant);
    this.#tenantTurns.limitTo(ofTenants);
    if (isNew) this.resume();
  }

  /** Has a lane without tenant for each number in use. */
  #useNumbers(): void {
    const { lanes } = this.#delivery.options;
    for (const lane of this.#withoutTenant.slice(lanes)) this.#leftOver.set(lane.id.number, lane);
    this.#withoutTenant = Array.from({ length: lanes }, (_, number) => {
      const lane = this.#withoutTenant[number] ?? this.#leftOver.get(number);
      this.#leftOver.delete(number);
      return lane ?? this.#build({ number, tenant: null });
    });
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
    for (const id of this.#spool?.found ?? []) this.#laneOf(id).resume();
  }

  /** Nothing can be sent for a while. See Lane.giveUpWaiting(). */
  giveUpWaiting(outcome: Undelivered): void {
    for (const lane of this.#all()) lane.giveUpWaiting(outcome);
  }

  /** Waits until what is on its way to the disk is there, or cannot be. */
  async spooled(): Promise<void> {
    await Promise.all(this.#all().map((lane) => lane.spooled()));
  }

  /** Waits for the disk no longer. See Lane.giveUpSpooling(). */
  giveUpSpooling(): void {
    for (const lane of this.#all()) lane.giveUpSpooling();
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

  /** Also with a number that is not in use any more: a request can have been routed before that, or be on disk. */
  #laneOf(id: LaneId): Lane {
    const { number, tenant } = id;
    const lane = this.#find(id);
    if (lane !== undefined) return lane;
    const built = this.#build(id);
    if (tenant === null) this.#leftOver.set(number, built);
    else this.#ofTenants.set(keyOf(number, tenant), built);
    return built;
  }

  #find({ number, tenant }: LaneId): Lane | undefined {
    if (tenant !== null) return this.#ofTenants.get(keyOf(number, tenant));
    return this.#withoutTenant[number] ?? this.#leftOver.get(number);
  }

  #build(id: LaneId): Lane {
    this.#numbersEverUsed = Math.max(this.#numbersEverUsed, id.number + 1);
    const pause = this.#pauses.of(id.tenant);
    return new Lane(id, this.#delivery, this.#turnsOf(id), this.#tools, pause, this.#streamOf(id));
  }

  /** null for a lane that has none: what could be on disk for it has another sender, or none. */
  #streamOf(id: LaneId): SpoolStream | null {
    return this.#spool?.stream(id) ?? null;
  }

  #turnsOf({ tenant }: LaneId): LaneTurns {
    return tenant === null ? this.#turns : this.#tenantTurns;
  }

  /** Forgets a lane that is empty, unless its number has to be there. */
  #drop(lane: Lane): void {
    const { number, tenant } = lane.id;
    if (this.#withoutTenant[number] === lane) return;
    // Another may be in its place already, when this one is told to be empty again.
    if (this.#find(lane.id) === lane) {
      if (tenant === null) this.#leftOver.delete(number);
      else this.#ofTenants.delete(keyOf(number, tenant));
      this.#spool?.forget(lane.id);
    }
    this.#unflushed.delete(lane);
    this.#turnsOf(lane.id).withdraw(lane);
    lane.stop();
  }

  /** A copy, since lanes come and go on the way. */
  #all(): readonly Lane[] {
    return [...this.#withoutTenant, ...this.#leftOver.values(), ...this.#ofTenants.values()];
  }

  #lanesOf(tenant: string): readonly Lane[] {
    const numbers = Array.from({ length: this.#numbersEverUsed }, (_, number) => number);
    return numbers.flatMap((number) => this.#ofTenants.get(keyOf(number, tenant)) ?? []);
  }
}

function keyOf(number: number, tenant: string): string {
  return `${number} ${tenant}`;
}
