/**
 * One call of deliver(): the parcels that a request has for one lane, and who waits for what becomes of them.
 *
 * Parcels are answered one by one, the call once, when the last of its parcels is. A parcel is answered once: one that
 * was undelivered at its deadline can still be accepted afterwards, which its sender does not hear any more.
 */
import type { ItemCounts, Parcel } from "../wire/parcel.ts";
import type { ParcelOutcome, SettledFrom, Settlement } from "./outcome.ts";
import type { Ticket } from "./spool/ticket.ts";

/** Takes the outcomes of a call, in the order of its parcels. Does not throw. */
export type OutcomesCallback = (outcomes: readonly ParcelOutcome[]) => void;

/** Told of a parcel, by its place in the call, that was accepted after all although it was `undelivered`. Does not throw. */
export type LateCallback = (index: number) => void;

export class Delivery {
  /** When it began, and when its outcomes are there at the latest; both on the clock of now(). */
  readonly startedAt: number;
  readonly deadline: number;
  readonly #outcomes: (ParcelOutcome | undefined)[];
  #unanswered: number;
  #isAcceptedEarly = false;
  readonly #onOutcomes: OutcomesCallback;
  readonly #onLate: LateCallback;

  /** @param parcels how many; at least one */
  constructor(
    parcels: number,
    startedAt: number,
    deadline: number,
    onOutcomes: OutcomesCallback,
    onLate: LateCallback = () => undefined,
  ) {
    this.startedAt = startedAt;
    this.deadline = deadline;
    this.#outcomes = new Array<ParcelOutcome | undefined>(parcels).fill(undefined);
    this.#unanswered = parcels;
    this.#onOutcomes = onOutcomes;
    this.#onLate = onLate;
  }

  /** Whether its parcels were accepted before anything had become of them. */
  get isAcceptedEarly(): boolean {
    return this.#isAcceptedEarly;
  }

  /** Accepts all parcels, since they are in memory; answers when this has returned. */
  acceptEarly(): void {
    this.#isAcceptedEarly = true;
    queueMicrotask(() => {
      for (let index = 0; index < this.#outcomes.length; index++) this.answer(index, { kind: "enqueued" });
    });
  }

  isAnswered(index: number): boolean {
    return this.#outcomes[index] !== undefined;
  }

  /** Answers a parcel, unless it is answered already. */
  answer(index: number, outcome: ParcelOutcome): void {
    const earlier = this.#outcomes[index];
    if (earlier !== undefined) {
      if (earlier.kind === "undelivered" && isAccepted(outcome)) this.#onLate(index);
      return;
    }
    this.#outcomes[index] = outcome;
    this.#unanswered -= 1;
    if (this.#unanswered === 0) this.#onOutcomes(this.#outcomes as readonly ParcelOutcome[]);
  }
}

/** Whether the sender needs not come again with it, and may not. */
export function isAccepted({ kind }: ParcelOutcome): boolean {
  return kind !== "refused" && kind !== "undelivered";
}

/** A parcel on its way through a lane. */
export class LaneParcel {
  /** What is left of it: old items can be dropped while it waits. */
  parcel: Parcel;
  readonly delivery: Delivery;
  /** Its place among the parcels of its delivery. */
  readonly index: number;
  /** Which parcels it shares a request with: those of its number, a part of a refused batch; null for any without one. */
  group: number | null = null;
  /** Once it is on disk as well: nobody waits for it then, and it has no deadline. */
  ticket: Ticket | null = null;
  /** When the gateway got it. */
  readonly arrivedAt: number;

  constructor(parcel: Parcel, delivery: Delivery, index: number, arrivedAt = delivery.startedAt) {
    this.parcel = parcel;
    this.delivery = delivery;
    this.index = index;
    this.arrivedAt = arrivedAt;
  }

  /** Infinity for none. */
  get deadline(): number {
    return this.ticket === null ? this.delivery.deadline : Infinity;
  }

  /** Whether its sender has been told that it is accepted, so that it cannot be refused any more. */
  get isAccepted(): boolean {
    return this.ticket !== null || this.delivery.isAcceptedEarly;
  }
}

export function answerAll(parcels: readonly LaneParcel[], outcome: ParcelOutcome): void {
  for (const { delivery, index } of parcels) delivery.answer(index, outcome);
}

/** Whether its sender has been told to come again with it. */
export function isGivenBack({ delivery, index, isAccepted }: LaneParcel): boolean {
  return delivery.isAnswered(index) && !isAccepted;
}

/**
 * Told of parcels that have moved in the ledger: how many, of one replica, and what they hold together. Does not throw.
 *
 * @param end where they are now
 */
export type Settled = (
  end: Settlement,
  from: SettledFrom,
  parcels: number,
  items: ItemCounts,
  replica: number,
) => void;

/** Tells of parcels, of each replica by itself: they share requests, but each is counted alone. */
export function settleEach(
  settled: Settled,
  end: Settlement,
  from: SettledFrom,
  parcels: readonly LaneParcel[],
): void {
  const replica = parcels[0]?.parcel.replica;
  if (replica === undefined) return;
  const counted = parcels.filter(({ parcel }) => parcel.replica === replica);
  settled(end, from, counted.length, sumItems(counted), replica);
  if (counted.length === parcels.length) return;
  const others = parcels.filter(({ parcel }) => parcel.replica !== replica);
  settleEach(settled, end, from, others);
}

export function sumItems(parcels: readonly LaneParcel[]): ItemCounts {
  const sum = { samples: 0, histograms: 0, exemplars: 0 };
  for (const { parcel } of parcels) {
    sum.samples += parcel.items.samples;
    sum.histograms += parcel.items.histograms;
    sum.exemplars += parcel.items.exemplars;
  }
  return sum;
}
