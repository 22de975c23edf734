/**
 * One call of deliver(): the parcels that a request has for one lane, and who waits for what becomes of them.
 *
 * Parcels are answered one by one, the call once, when the last of its parcels is. A parcel is answered once: one that
 * was undelivered at its deadline can still be accepted afterwards, which its sender does not hear any more.
 */
import type { ItemCounts, Parcel } from "../wire/parcel.ts";
import type { ParcelOutcome } from "./outcome.ts";

/** Takes the outcomes of a call, in the order of its parcels. Does not throw. */
export type OutcomesCallback = (outcomes: readonly ParcelOutcome[]) => void;

export class Delivery {
  /** When it began, and when its outcomes are there at the latest; both on the clock of now(). */
  readonly startedAt: number;
  readonly deadline: number;
  readonly #outcomes: (ParcelOutcome | undefined)[];
  #unanswered: number;
  readonly #onOutcomes: OutcomesCallback;

  /** @param parcels how many; at least one */
  constructor(parcels: number, startedAt: number, deadline: number, onOutcomes: OutcomesCallback) {
    this.startedAt = startedAt;
    this.deadline = deadline;
    this.#outcomes = new Array<ParcelOutcome | undefined>(parcels).fill(undefined);
    this.#unanswered = parcels;
    this.#onOutcomes = onOutcomes;
  }

  isAnswered(index: number): boolean {
    return this.#outcomes[index] !== undefined;
  }

  /** Answers a parcel, unless it is answered already. */
  answer(index: number, outcome: ParcelOutcome): void {
    if (this.#outcomes[index] !== undefined) return;
    this.#outcomes[index] = outcome;
    this.#unanswered -= 1;
    if (this.#unanswered === 0) this.#onOutcomes(this.#outcomes as readonly ParcelOutcome[]);
  }
}

/** A parcel on its way through a lane. */
export interface LaneParcel {
  readonly parcel: Parcel;
  readonly delivery: Delivery;
  /** Its place among the parcels of its delivery. */
  readonly index: number;
  /** Which parcels it shares a request with: those of its number, a part of a refused batch; null for any without one. */
  readonly group: number | null;
}

export function answerAll(parcels: readonly LaneParcel[], outcome: ParcelOutcome): void {
  for (const { delivery, index } of parcels) delivery.answer(index, outcome);
}

export function isAnswered({ delivery, index }: LaneParcel): boolean {
  return delivery.isAnswered(index);
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
