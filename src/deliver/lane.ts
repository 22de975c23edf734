/**
 * An ordered queue of one tenant's parcels inside one upstream's sender, with at most one request in flight.
 *
 * While a request is in flight, parcels gather, and go together in the next. An idle lane sends at once what is worth a
 * request, or all it has when nothing more is coming, and otherwise waits a little for company. A batch that fails stays
 * at the head and is tried again; one that is refused is sent again in two halves, and so on down to single parcels, so that
 * the refusal reaches only the sender whose parcel it was, and costs the others few requests.
 *
 * What the upstream says of a failed batch is told to the senders of its parcels. Others are told what happened, not in
 * its words, which can be about the data.
 *
 * Every parcel is settled exactly once: when its attempt ends for good, or when it leaves unsent because nothing could be
 * sent before its deadline. By its deadline it is answered in any case; if it is in flight then, it is settled when the
 * attempt ends, and not sent again.
 */
import { Alarm } from "./alarm.ts";
import { backoffMs } from "./backoff.ts";
import { Batch, MAX_BATCH_PLAIN_BYTES } from "./batch.ts";
import { describeToOthers } from "./classify.ts";
import type { AttemptEnd, Retry } from "./classify.ts";
import { answerAll, Delivery, isAnswered, sumItems } from "./delivery.ts";
import type { LaneParcel, OutcomesCallback } from "./delivery.ts";
import type { DeliveryLog } from "./deliveryLog.ts";
import { LaneQueue } from "./laneQueue.ts";
import type { LaneTurns } from "./laneTurns.ts";
import type { DeliveryOptions } from "./options.ts";
import { undelivered } from "./outcome.ts";
import type { ParcelOutcome, Settlement, Undelivered } from "./outcome.ts";
import { laterOf } from "./pauses.ts";
import type { Pause } from "./pauses.ts";
import type { ItemCounts, Parcel } from "../wire/parcel.ts";

/** Which lane it is: a tenant, or what has none (null), has lanes with numbers from 0. */
export interface LaneId {
  readonly number: number;
  readonly tenant: string | null;
}

/** How a lane's batches get to the upstream: one begins in takeTurn(), which follows a request. */
export type LaneAttempts = Pick<LaneTurns, "request" | "begin" | "obstacle">;

export interface LaneTools {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** 0 <= random() < 1 */
  readonly random: () => number;
  readonly log: DeliveryLog;
  /** Told of parcels of one replica for which nothing more will happen here, and what they hold together. Does not throw. */
  readonly settled: (end: Settlement, parcels: number, items: ItemCounts, replica: number) => void;
  /** Told of a lane that holds nothing now, waiting or in flight; possibly more than once. Does not throw. */
  readonly emptied: (lane: Lane) => void;
}

/** The batch that goes before all that waits. */
type Head =
  | { readonly kind: "none" }
  | { readonly kind: "in_flight"; readonly batch: Batch }
  | { readonly kind: "backing_off"; readonly batch: Batch; readonly backoff: Pause };

const NO_HEAD: Head = { kind: "none" };

export class Lane {
  readonly id: LaneId;
  readonly #options: DeliveryOptions;
  readonly #attempts: LaneAttempts;
  readonly #tools: LaneTools;
  readonly #waiting: LaneQueue;
  /** Rings at the latest when the next attempt or the nearest deadline is due, in flight or waiting. */
  readonly #alarm: Alarm;
  #head: Head = NO_HEAD;
  /** Why the last attempt failed, as everybody may hear it; null if it did not. */
  #lastFailure: string | null = null;
  /** No attempt begins before it is over: the upstream asked for it. */
  #pause: Pause;
  /** Whether what waits goes without waiting for company. */
  #isFlushing = false;

  /** @param pause to keep from the beginning; it may be over */
  constructor(id: LaneId, options: DeliveryOptions, attempts: LaneAttempts, tools: LaneTools, pause: Pause) {
    this.id = id;
    this.#options = options;
    this.#attempts = attempts;
    this.#tools = tools;
    this.#pause = this.#spread(pause);
    this.#waiting = new LaneQueue({
      maxItems: options.maxSamplesPerSend,
      maxPlainBytes: MAX_BATCH_PLAIN_BYTES,
    });
    this.#alarm = new Alarm(tools.now, () => {
      this.#onAlarm();
    });
  }

  /** Takes parcels, at least one. See Sender.deliver(). */
  deliver(parcels: readonly Parcel[], deadline: number, onOutcomes: OutcomesCallback): void {
    const now = this.#tools.now();
    const delivery = new Delivery(parcels.length, now, deadline, onOutcomes);
    const taken = parcels.map((parcel, index) => ({ parcel, delivery, index, group: null }));
    const hopeless = this.#hopeless(now, deadline);
    if (hopeless !== null) {
      this.#settle("refused", taken);
      queueMicrotask(() => {
        answerAll(taken, hopeless);
      });
      this.#tellIfEmpty();
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
    if (this.#head.kind !== "in_flight") this.#advance(this.#tools.now());
  }

  /** Begins an attempt, if one is still due. */
  takeTurn(): void {
    if (this.#isAttemptDue(this.#tools.now())) this.#begin();
  }

  /** Begins no attempt before that time, and a little more by chance, so that lanes do not come back all at once. */
  pause(pause: Pause): void {
    this.#pause = laterOf(this.#pause, this.#spread(pause));
    const waitMs = pause.until - this.#tools.now();
    this.#giveBackDue(this.#pause.until, () => undelivered(pause.cause, waitMs));
    this.#tellIfEmpty();
  }

  /** Gives back what is not in flight. */
  giveBackWaiting(outcome: Undelivered): void {
    this.#giveBackDue(Infinity, () => outcome);
    this.#tellIfEmpty();
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
    if (deadline <= now) return this.#notTried(this.#lastFailure);
    const { until, cause } = this.#notBefore;
    return deadline > until ? null : undelivered(cause, until - now);
  }

  /** Until when no attempt may begin. */
  get #notBefore(): Pause {
    return this.#head.kind === "backing_off" ? laterOf(this.#pause, this.#head.backoff) : this.#pause;
  }

  #onAlarm(): void {
    const now = this.#tools.now();
    if (this.#head.kind === "in_flight") this.#answerInFlight(this.#head.batch, now);
    this.#advance(now);
    this.#alarm.ringBy(this.#nearestDeadline(now));
    this.#tellIfEmpty();
  }

  #tellIfEmpty(): void {
    if (this.#head.kind === "none" && this.#waiting.length === 0) this.#tools.emptied(this);
  }

  /** Of what waits, and of what is at the head and not answered yet; Infinity with nothing. */
  #nearestDeadline(now: number): number {
    let nearest = this.#waiting.nearestDeadline;
    for (const { delivery } of this.#headBatch?.parcels ?? []) {
      if (delivery.deadline > now) nearest = Math.min(nearest, delivery.deadline);
    }
    return nearest;
  }

  /** Asks for a turn if an attempt is due. */
  #advance(now: number): void {
    if (this.#isAttemptDue(now)) this.#attempts.request(this);
  }

  /** Gives back what has come to its deadline; of the rest, whether an attempt is due. If it will be, the alarm rings then. */
  #isAttemptDue(now: number): boolean {
    const lastWords = this.#headBatch?.lastFailure ?? this.#lastFailure;
    this.#giveBackDue(
      now,
      () => this.#notTried(lastWords),
      () => this.#notTried(this.#lastFailure),
    );
    const attemptAt = this.#nextAttemptAt();
    if (attemptAt > now) this.#alarm.ringBy(attemptAt);
    return attemptAt <= now;
  }

  /** Infinity while one is in flight, or nothing is there. */
  #nextAttemptAt(): number {
    if (this.#head.kind === "in_flight") return Infinity;
    if (this.#head.kind === "backing_off") return this.#notBefore.until;
    const oldest = this.#waiting.first;
    if (oldest === undefined) return Infinity;
    const waitsForCompany = !this.#isFlushing && !this.#waiting.isWorthSending;
    const companyMs = waitsForCompany ? this.#options.batchSendDeadlineMs : 0;
    return Math.max(this.#notBefore.until, oldest.delivery.startedAt + companyMs);
  }

  #begin(): void {
    const batch = this.#headBatch ?? new Batch(this.#waiting.takeBatch(), this.id.tenant);
    if (this.#waiting.length === 0) this.#isFlushing = false;
    this.#head = { kind: "in_flight", batch };
    this.#attempts.begin(batch, (end) => {
      this.#onEnd(batch, end);
    });
  }

  #onEnd(batch: Batch, end: AttemptEnd): void {
    this.#head = NO_HEAD;
    this.#lastFailure = end.kind === "retry" ? describeToOthers(end) : null;
    if (end.kind === "retry") this.#backOff(batch, end);
    else if (end.kind === "refused" && batch.parcels.length > 1) this.#halve(batch);
    else this.#finish(batch.parcels, end);
    const obstacle = this.#attempts.obstacle();
    if (obstacle !== null) this.giveBackWaiting(obstacle);
    this.#advance(this.#tools.now());
    this.#tellIfEmpty();
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
  #backOff(batch: Batch, end: Retry): void {
    const waitMs = end.retryAfterMs ?? this.#backoff(batch.attempts);
    const backoff = { until: this.#tools.now() + waitMs, cause: describeToOthers(end) };
    const outcomeAfter = (cause: string): Undelivered =>
      this.#attempts.obstacle(cause) ?? undelivered(cause, waitMs);
    batch.lastFailure = end.cause;
    this.#head = { kind: "backing_off", batch, backoff };
    const keepsTrying = this.#attempts.obstacle() === null;
    const due = keepsTrying ? backoff.until : Infinity;
    const isKept = batch.parcels.some(({ delivery }) => delivery.deadline > due);
    this.#tools.log.retry(batch, end, isKept ? waitMs : null);
    this.#giveBackDue(
      due,
      () => outcomeAfter(end.cause),
      () => outcomeAfter(backoff.cause),
    );
  }

  /** Gives back what is not in flight and has its deadline at `at` or before: what failed already, and what waits behind. */
  #giveBackDue(at: number, ofFailed: () => Undelivered, ofWaiting = ofFailed): void {
    const failed = this.#takeDueOfHead(at);
    const waiting = this.#waiting.takeDue(at);
    if (failed.length > 0) this.#finish(failed, ofFailed());
    if (waiting.length > 0) this.#finish(waiting, ofWaiting());
  }

  #takeDueOfHead(at: number): readonly LaneParcel[] {
    if (this.#head.kind !== "backing_off") return [];
    const { batch, backoff } = this.#head;
    const rest = batch.reducedTo(batch.parcels.filter(({ delivery }) => delivery.deadline > at));
    this.#head = rest === null ? NO_HEAD : { kind: "backing_off", batch: rest, backoff };
    return batch.parcels.filter(({ delivery }) => delivery.deadline <= at);
  }

  /** Answers the parcels in flight whose deadline is over. They are settled when the attempt ends. */
  #answerInFlight({ parcels, attempts, lastFailure }: Batch, now: number): void {
    const due = parcels.filter(({ delivery }) => delivery.deadline <= now);
    const last = describeLast(lastFailure ?? this.#lastFailure);
    const cause = `no answer to attempt ${attempts} by the deadline${last}`;
    answerAll(due, undelivered(cause, this.#backoff(attempts)));
  }

  #notTried(lastFailure: string | null): Undelivered {
    const cause = `no attempt could start before the deadline${describeLast(lastFailure)}`;
    return undelivered(cause, this.#backoff(1));
  }

  #spread({ until, cause }: Pause): Pause {
    return { until: until + this.#backoff(1), cause };
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
    const replica = parcels[0]?.parcel.replica;
    if (replica === undefined) return;
    // Parcels of several replicas share requests, and each replica is counted by itself.
    const counted = parcels.filter(({ parcel }) => parcel.replica === replica);
    this.#tools.settled(end, counted.length, sumItems(counted), replica);
    const others = parcels.filter(({ parcel }) => parcel.replica !== replica);
    this.#settle(end, others);
  }
}

function describeLast(failure: string | null): string {
  return failure === null ? "" : `; the last one: ${failure}`;
}
