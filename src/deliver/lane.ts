/**
 * An ordered queue inside one upstream's sender, with at most one request in flight.
 *
 * While a request is in flight, parcels gather, and those of a tenant go together in a next one. An idle lane sends at once what is worth a
 * request, or all it has when nothing more is coming, and otherwise waits a little for company. A batch that fails stays
 * at the head and is tried again; one that is refused is sent again in two halves, and so on down to single parcels, so that
 * the refusal reaches only the sender whose parcel it was, and costs the others few requests.
 *
 * Every parcel is settled exactly once: when its attempt ends for good, or when it leaves unsent because nothing could be
 * sent before its deadline. By its deadline it is answered in any case; if it is in flight then, it is settled when the
 * attempt ends, and not sent again.
 */
import { Alarm } from "./alarm.ts";
import type { Attempts } from "./attempts.ts";
import { backoffMs } from "./backoff.ts";
import { Batch, MAX_BATCH_PLAIN_BYTES } from "./batch.ts";
import type { AttemptEnd } from "./classify.ts";
import { answerAll, Delivery, isAnswered, sumItems } from "./delivery.ts";
import type { LaneParcel, OutcomesCallback } from "./delivery.ts";
import type { DeliveryLog } from "./deliveryLog.ts";
import { LaneQueue } from "./laneQueue.ts";
import type { DeliveryOptions } from "./options.ts";
import { undelivered } from "./outcome.ts";
import type { ParcelOutcome, Settlement, Undelivered } from "./outcome.ts";
import type { ItemCounts, Parcel } from "../wire/parcel.ts";

/** How a lane's batches get to the upstream. */
export type LaneAttempts = Pick<Attempts, "mayBegin" | "begin" | "obstacle" | "lastFailure">;

export interface LaneTools {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** 0 <= random() < 1 */
  readonly random: () => number;
  readonly log: DeliveryLog;
  /** Told of parcels for which nothing more will happen here, and what they hold together. Does not throw. */
  readonly settled: (end: Settlement, parcels: number, items: ItemCounts) => void;
}

type Retry = Extract<AttemptEnd, { kind: "retry" }>;

/** The batch that goes before all that waits. */
type Head =
  | { readonly kind: "none" }
  | { readonly kind: "in_flight"; readonly batch: Batch }
  | { readonly kind: "backing_off"; readonly batch: Batch; readonly until: number };

const NO_HEAD: Head = { kind: "none" };

export class Lane {
  readonly #options: DeliveryOptions;
  readonly #attempts: LaneAttempts;
  readonly #tools: LaneTools;
  readonly #waiting: LaneQueue;
  /** Rings at the latest when the next attempt or the nearest deadline is due, in flight or waiting. */
  readonly #alarm: Alarm;
  #head: Head = NO_HEAD;
  /** Why the last attempt failed; null if it did not. */
  #lastFailure: string | null = null;
  /** No attempt begins before: the upstream asked for it. */
  #pausedUntil = 0;
  /** Whether what waits goes without waiting for company. */
  #isFlushing = false;

  constructor(options: DeliveryOptions, attempts: LaneAttempts, tools: LaneTools) {
    this.#options = options;
    this.#attempts = attempts;
    this.#tools = tools;
    this.#waiting = new LaneQueue({
      maxItems: options.maxSamplesPerSend,
      maxPlainBytes: MAX_BATCH_PLAIN_BYTES,
    });
    this.#alarm = new Alarm(tools.now, () => {
      this.#onAlarm();
    });
  }

  /** Takes parcels, at least one. See Sender.deliver(). */
  deliver(
    parcels: readonly Parcel[],
    tenant: string | null,
    deadline: number,
    onOutcomes: OutcomesCallback,
  ): void {
    const now = this.#tools.now();
    const delivery = new Delivery(parcels.length, tenant, now, deadline, onOutcomes);
    const taken = parcels.map((parcel, index) => ({ parcel, delivery, index }));
    const hopeless = this.#hopeless(now, deadline);
    if (hopeless !== null) {
      this.#settle("refused", taken);
      queueMicrotask(() => {
        answerAll(taken, hopeless);
      });
      return;
    }
    for (const parcel of taken) this.#waiting.push(parcel);
    this.#alarm.ringBy(deadline);
    if (this.#head.kind !== "in_flight") this.#advance(now);
  }

  /** Sends what waits as soon as it can. */
  flush(): void {
    if (this.#waiting.length === 0) return;
    this.#isFlushing = true;
    this.wake();
  }

  /** Looks whether an attempt may begin now. */
  wake(): void {
    if (this.#head.kind !== "in_flight") this.#advance(this.#tools.now());
  }

  /** Begins no attempt before that time, and a little more by chance, so that lanes do not come back all at once. */
  pauseUntil(until: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, until + this.#backoff(1));
    const waitMs = until - this.#tools.now();
    this.#finish(this.#takeDue(this.#pausedUntil), undelivered(this.#attempts.lastFailure, waitMs));
  }

  /** Gives back what is not in flight. */
  giveBackWaiting(outcome: Undelivered): void {
    this.#finish(this.#takeDue(Infinity), outcome);
  }

  /** Ends its timer, when nothing is left. */
  stop(): void {
    this.#alarm.cancel();
  }

  get #headBatch(): Batch | null {
    return this.#head.kind === "none" ? null : this.#head.batch;
  }

  /** What is to be told at once of a parcel that cannot be tried before its deadline; null if it can. */
  #hopeless(now: number, deadline: number): Undelivered | null {
    const obstacle = this.#attempts.obstacle();
    if (obstacle !== null) return obstacle;
    if (deadline <= now) return this.#notTried();
    const backingOff = this.#head.kind === "backing_off" ? this.#head.until : 0;
    const notBefore = Math.max(this.#pausedUntil, backingOff);
    return deadline > notBefore ? null : undelivered(this.#attempts.lastFailure, notBefore - now);
  }

  #onAlarm(): void {
    const now = this.#tools.now();
    if (this.#head.kind === "in_flight") this.#answerInFlight(this.#head.batch, now);
    this.#advance(now);
    this.#alarm.ringBy(this.#nearestDeadline(now));
  }

  /** Of what waits, and of what is at the head and not answered yet; Infinity with nothing. */
  #nearestDeadline(now: number): number {
    let nearest = this.#waiting.nearestDeadline;
    for (const { delivery } of this.#headBatch?.parcels ?? []) {
      if (delivery.deadline > now) nearest = Math.min(nearest, delivery.deadline);
    }
    return nearest;
  }

  /** Begins the next attempt if it is due and the breaker admits it; if not, the lane is woken when the breaker changes. */
  #advance(now: number): void {
    const due = this.#takeDue(now);
    if (due.length > 0) this.#finish(due, this.#notTried());
    const attemptAt = this.#nextAttemptAt();
    if (attemptAt > now) this.#alarm.ringBy(attemptAt);
    else if (this.#attempts.mayBegin) this.#begin();
  }

  /** Infinity while one is in flight, or nothing is there. */
  #nextAttemptAt(): number {
    if (this.#head.kind === "in_flight") return Infinity;
    if (this.#head.kind === "backing_off") return Math.max(this.#pausedUntil, this.#head.until);
    const oldest = this.#waiting.first;
    if (oldest === undefined) return Infinity;
    const waitsForCompany = !this.#isFlushing && !this.#waiting.isWorthSending;
    const companyMs = waitsForCompany ? this.#options.batchSendDeadlineMs : 0;
    return Math.max(this.#pausedUntil, oldest.delivery.startedAt + companyMs);
  }

  #begin(): void {
    const batch = this.#headBatch ?? new Batch(this.#waiting.takeBatch());
    if (this.#waiting.length === 0) this.#isFlushing = false;
    this.#head = { kind: "in_flight", batch };
    this.#attempts.begin(batch, (end) => {
      this.#onEnd(batch, end);
    });
  }

  #onEnd(batch: Batch, end: AttemptEnd): void {
    this.#head = NO_HEAD;
    this.#lastFailure = end.kind === "retry" ? end.cause : null;
    const obstacle = this.#attempts.obstacle();
    if (end.kind === "retry") this.#backOff(batch, end, obstacle);
    else if (end.kind === "refused" && batch.parcels.length > 1) this.#halve(batch);
    else this.#finish(batch.parcels, end);
    if (obstacle !== null) this.giveBackWaiting(obstacle);
    this.#advance(this.#tools.now());
  }

  /** Sends a refused batch again in two parts, which nothing else joins: the upstream stored nothing of it. */
  #halve({ parcels }: Batch): void {
    this.#settle("refused", parcels.filter(isAnswered));
    const asked = parcels.filter((parcel) => !isAnswered(parcel));
    const half = Math.ceil(asked.length / 2);
    this.#waiting.putBackAsGroup(asked.slice(half));
    this.#waiting.putBackAsGroup(asked.slice(0, half));
  }

  /** Keeps at the head what of a failed batch can be tried again in time. */
  #backOff(batch: Batch, end: Retry, obstacle: Undelivered | null): void {
    const waitMs = end.retryAfterMs ?? this.#backoff(batch.attempts);
    const until = this.#tools.now() + waitMs;
    this.#head = { kind: "backing_off", batch, until };
    const due = this.#takeDue(obstacle === null ? until : Infinity);
    this.#tools.log.retry(batch, end, this.#headBatch === null ? null : waitMs);
    this.#finish(due, obstacle ?? undelivered(end.cause, waitMs));
  }

  /** Takes what is not in flight and has its deadline at `at` or before. */
  #takeDue(at: number): readonly LaneParcel[] {
    const waiting = this.#waiting.takeDue(at);
    if (this.#head.kind !== "backing_off") return waiting;
    const { batch, until } = this.#head;
    const rest = batch.reducedTo(batch.parcels.filter(({ delivery }) => delivery.deadline > at));
    this.#head = rest === null ? NO_HEAD : { kind: "backing_off", batch: rest, until };
    return [...batch.parcels.filter(({ delivery }) => delivery.deadline <= at), ...waiting];
  }

  /** Answers the parcels in flight whose deadline is over. They are settled when the attempt ends. */
  #answerInFlight({ parcels, attempts }: Batch, now: number): void {
    const due = parcels.filter(({ delivery }) => delivery.deadline <= now);
    const cause = `no answer to attempt ${attempts} by the deadline${this.#describeLast()}`;
    answerAll(due, undelivered(cause, this.#backoff(attempts)));
  }

  #notTried(): Undelivered {
    return undelivered(`no attempt could start before the deadline${this.#describeLast()}`, this.#backoff(1));
  }

  #describeLast(): string {
    return this.#lastFailure === null ? "" : `; the last one: ${this.#lastFailure}`;
  }

  /** @param attempts made so far */
  #backoff(attempts: number): number {
    return backoffMs(attempts - 1, this.#options, this.#tools.random());
  }

  #finish(parcels: readonly LaneParcel[], outcome: ParcelOutcome): void {
    this.#settle(outcome.kind === "delivered" ? "delivered" : "refused", parcels);
    answerAll(parcels, outcome);
  }

  #settle(end: Settlement, parcels: readonly LaneParcel[]): void {
    if (parcels.length > 0) this.#tools.settled(end, parcels.length, sumItems(parcels));
  }
}
