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
 *
 * A lane is in trouble when its oldest parcel is older than `spool_after`, or nothing can be sent because the breaker is
 * open, the upstream asked for a long pause, or the gateway stops. What happens then is the route's `on_outage`: the lane
 * goes behind, with all it has, to the spool (see backlog.ts); or it refuses or drops what comes, at once.
 *
 * Options may change at any time: what is under way, waits, or is on disk goes on by the new ones.
 */
import { Alarm } from "./alarm.ts";
import { backoffMs } from "./backoff.ts";
import { Backlog } from "./backlog.ts";
import { Batch, MAX_BATCH_PLAIN_BYTES } from "./batch.ts";
import { describeToOthers } from "./classify.ts";
import type { AttemptEnd, Retry } from "./classify.ts";
import { formatMs } from "./cleanText.ts";
import { answerAll, Delivery, isGivenBack, LaneParcel, settleEach } from "./delivery.ts";
import type { LateCallback, OutcomesCallback, Settled } from "./delivery.ts";
import type { DeliveryLog } from "./deliveryLog.ts";
import { describeFailure } from "./exchange.ts";
import { isOlderThanRecords, LaneQueue } from "./laneQueue.ts";
import type { BatchLimits } from "./laneQueue.ts";
import type { LaneTurns } from "./laneTurns.ts";
import { bytesOf } from "./memory.ts";
import type { UpstreamMemory } from "./memory.ts";
import type { DeliveryInForce, DeliveryOptions } from "./options.ts";
import { undelivered } from "./outcome.ts";
import type { ParcelOutcome, SettledFrom, Settlement, Undelivered } from "./outcome.ts";
import { laterOf } from "./pauses.ts";
import type { Pause } from "./pauses.ts";
import { dropOld } from "./sampleAge.ts";
import type { Aged } from "./sampleAge.ts";
import type { SpoolStream } from "./spool/spoolStream.ts";
import type { Parcel } from "../wire/parcel.ts";

/** Which lane it is: a tenant, or what has none (null), has lanes with numbers from 0. */
export interface LaneId {
  readonly number: number;
  readonly tenant: string | null;
}

/** How a lane's batches get to the upstream: one begins in takeTurn(), which follows a request. */
export type LaneAttempts = Pick<LaneTurns, "request" | "begin" | "obstacle" | "isClosing">;

export interface LaneTools {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** 0 <= random() < 1 */
  readonly random: () => number;
  readonly log: DeliveryLog;
  /** Where all that the lane has in memory is counted. */
  readonly memory: UpstreamMemory;
  /** Told of parcels that have moved in the ledger. Does not throw. */
  readonly settled: Settled;
  /**
   * Told of a lane that holds nothing now, waiting, in flight or on disk; possibly more than once. Does not throw.
   *
   * @param isDone whether it can be forgotten: it knows nothing of the upstream that the next parcels would need
   */
  readonly emptied: (lane: Lane, isDone: boolean) => void;
}

/** The batch that goes before all that waits. */
type Head =
  | { readonly kind: "none" }
  | { readonly kind: "in_flight"; readonly batch: Batch }
  | { readonly kind: "backing_off"; readonly batch: Batch; readonly backoff: Pause };

const NO_HEAD: Head = { kind: "none" };
/** Later than every deadline; what is on disk has none, and stays. */
const ALL = Number.MAX_VALUE;
const READ_AGAIN_MS = 1_000;
const NO_MEMORY = "as much waits for it already as the gateway's memory allows";

export class Lane {
  readonly id: LaneId;
  readonly #delivery: Readonly<DeliveryInForce>;
  readonly #attempts: LaneAttempts;
  readonly #tools: LaneTools;
  readonly #limits: BatchLimits;
  readonly #waiting: LaneQueue;
  /** null: nothing was ever spooled. */
  #backlog: Backlog | null;
  /** Rings at the latest when the next attempt or the nearest deadline is due, in flight or waiting. */
  readonly #alarm: Alarm;
  #head: Head = NO_HEAD;
  /** The end of an attempt that came while its batch was being written to disk. */
  #endOnHold: { readonly batch: Batch; readonly end: AttemptEnd } | null = null;
  #attemptBegan = 0;
  /** Why the last attempt failed, as everybody may hear it; null if it did not. */
  #lastFailure: string | null = null;
  /** No attempt begins before it is over: the upstream asked for it. */
  #pause: Pause;
  /** Whether what waits goes without waiting for company. */
  #isFlushing = false;
  #isStopped = false;

  /**
   * @param delivery whoever changes it calls reconfigure() then
   * @param pause    to keep from the beginning; it may be over
   * @param stream   where parcels wait with `on_outage: spool`; what it holds already is sent first, from resume() on
   */
  constructor(
    id: LaneId,
    delivery: Readonly<DeliveryInForce>,
    attempts: LaneAttempts,
    tools: LaneTools,
    pause: Pause,
    stream: SpoolStream | null,
  ) {
    this.id = id;
    this.#delivery = delivery;
    this.#attempts = attempts;
    this.#tools = tools;
    this.#pause = this.#spread(pause);
    this.#limits = limitsOf(delivery);
    this.#waiting = new LaneQueue(this.#limits);
    this.#backlog = stream === null ? null : this.#newBacklog(stream);
    if (!this.#spools) this.#backlog?.stopTaking();
    this.#alarm = new Alarm(tools.now, () => {
      this.#onAlarm();
    });
  }

  #newBacklog(stream: SpoolStream): Backlog {
    const { now, settled, memory, log } = this.#tools;
    return new Backlog(stream, this.#delivery, this.#limits, {
      now,
      settled,
      memory,
      retryAfterMs: () => this.#backoff(1),
      notSpooled: (parcels, cause) => {
        log.notSpooled(parcels, cause);
      },
      moved: () => {
        this.#onBacklogMoved();
      },
      unreadable: (cause) => {
        log.unreadable(cause);
        this.#alarm.ringBy(now() + READ_AGAIN_MS);
      },
      returned: () => {
        log.returned();
      },
    });
  }

  get #options(): DeliveryOptions {
    return this.#delivery.options;
  }

  /** Whether what cannot be sent goes to disk. */
  get #spools(): boolean {
    return this.#options.onOutage === "spool" && this.#backlog !== null;
  }

  /**
   * Goes on by options that have changed.
   *
   * @param stream as for the constructor; not used if it has one
   */
  reconfigure(stream: SpoolStream | null): void {
    if (this.#backlog === null && stream !== null) {
      this.#backlog = this.#newBacklog(stream);
      // What is on disk goes first, as it would have from the beginning.
      if (this.#backlog.course === "behind") this.#backlog.begin([], this.#waiting.takeNewcomers());
    }
    if (!this.#spools) this.#backlog?.stopTaking();
    this.#onAlarm();
  }

  /** Takes parcels, at least one. See Sender.deliver(). */
  deliver(
    parcels: readonly Parcel[],
    deadline: number,
    onOutcomes: OutcomesCallback,
    onLate?: LateCallback,
  ): void {
    const now = this.#tools.now();
    const lateAt = now + this.#options.spoolAfterMs;
    const until = this.#options.onOutage === "drop" ? Math.min(deadline, lateAt) : deadline;
    const delivery = new Delivery(parcels.length, now, until, onOutcomes, onLate);
    const taken = parcels.map((parcel, index) => new LaneParcel(parcel, delivery, index));
    const trouble = this.#trouble(now, this.#spools ? Math.min(until, lateAt) : until);
    if (this.#spools) {
      if (trouble !== null) this.#goBehind(trouble.cause);
      this.#alarm.ringBy(Math.min(until, lateAt));
    } else if (trouble !== null) {
      this.#turnAway(taken, trouble);
      return;
    }
    if (!this.#tools.memory.tryTake(bytesOf(taken))) {
      this.#turnAway(taken, undelivered(NO_MEMORY, this.#backoff(1)));
      return;
    }
    if (this.#backlog?.course === "behind") {
      this.#backlog.add(taken);
      return;
    }
    if (this.#options.ack === "enqueued") delivery.acceptEarly();
    for (const parcel of taken) this.#waiting.push(parcel);
    this.#alarm.ringBy(until);
    if (this.#head.kind !== "in_flight") this.#advance(now);
  }

  /** Gives parcels back that the lane has not taken. */
  #turnAway(parcels: readonly LaneParcel[], outcome: Undelivered): void {
    const answer = this.#answerOf(outcome);
    settleEach(this.#tools.settled, endOf(answer), "in_flight", parcels);
    queueMicrotask(() => {
      answerAll(parcels, answer);
    });
    this.#tellIfEmpty();
  }

  /** Begins with what is on disk already. */
  resume(): void {
    this.#advance(this.#tools.now());
  }

  /** Sends what waits as soon as it can. */
  flush(): void {
    if (this.#waiting.length === 0) return;
    this.#isFlushing = true;
    if (this.#head.kind !== "in_flight") this.#advance(this.#tools.now());
  }

  /** Begins an attempt, if one is still due. */
  takeTurn(): void {
    while (this.#isAttemptDue(this.#tools.now())) if (this.#begin()) return;
  }

  /** Begins no attempt before that time, and a little more by chance, so that lanes do not come back all at once. */
  pause(pause: Pause): void {
    this.#pause = laterOf(this.#pause, this.#spread(pause));
    const waitMs = pause.until - this.#tools.now();
    this.#giveBackDue(this.#pause.until, () => undelivered(pause.cause, waitMs));
    this.#tellIfEmpty();
  }

  /** Nothing can be sent for a while: what waits goes to the spool, with what is in flight, or is given back without one. */
  giveUpWaiting(outcome: Undelivered): void {
    if (this.#oldest !== null) this.#goBehind(outcome.cause);
    // What could not be written stays in memory, to be tried until its deadline, unless there will be no more attempts.
    if (!this.#spools || this.#attempts.isClosing) this.#giveBack(ALL, () => outcome);
    this.#tellIfEmpty();
  }

  /** Waits until what is on its way to the disk is there, or cannot be. */
  async spooled(): Promise<void> {
    await this.#backlog?.appended();
  }

  /** Waits for the disk no longer, when nothing is sent any more: what is not on it is given back. */
  giveUpSpooling(): void {
    this.#backlog?.giveUp();
  }

  /** All that is in memory alone and has not come to an end. */
  *inFlight(): Iterable<LaneParcel> {
    for (const parcel of this.#headBatch?.parcels ?? []) if (parcel.ticket === null) yield parcel;
    for (const parcel of this.#waiting) if (parcel.ticket === null) yield parcel;
    if (this.#backlog !== null) yield* this.#backlog.unheld();
  }

  /** Whether what comes goes to disk. */
  get isBehind(): boolean {
    return this.#backlog?.course === "behind";
  }

  /** Ends its timer, when nothing is left but on disk. */
  stop(): void {
    this.#isStopped = true;
    this.#alarm.cancel();
  }

  get #headBatch(): Batch | null {
    return this.#head.kind === "none" ? null : this.#head.batch;
  }

  /** The oldest parcel that is in memory alone. */
  get #oldest(): LaneParcel | null {
    return this.#headBatch?.parcels.find(({ ticket }) => ticket === null) ?? this.#waiting.firstUnspooled;
  }

  /** When the oldest parcel came that is not on disk; Infinity without any. */
  get oldestAt(): number {
    return Math.min(this.#oldest?.delivery.startedAt ?? Infinity, this.#backlog?.oldestAt ?? Infinity);
  }

  /** When the oldest parcel has waited for spool_after; Infinity for none. */
  get #lateAt(): number {
    const oldest = this.#oldest;
    return oldest === null ? Infinity : oldest.delivery.startedAt + this.#options.spoolAfterMs;
  }

  /** Why parcels that come now are not to wait here until `until`; null if they may. */
  #trouble(now: number, until: number): Undelivered | null {
    const obstacle = this.#attempts.obstacle();
    if (obstacle !== null) return obstacle;
    if (until <= now) return this.#notTried(this.#lastFailure);
    const notBefore = this.#notBefore;
    if (until <= notBefore.until) return undelivered(notBefore.cause, notBefore.until - now);
    return this.#lateAt <= now ? this.#late() : null;
  }

  /** Until when no attempt may begin. */
  get #notBefore(): Pause {
    return this.#head.kind === "backing_off" ? laterOf(this.#pause, this.#head.backoff) : this.#pause;
  }

  /**
   * Spools all that is in memory alone but parts of a refused batch, whose place is before what is on disk. What is at the head
   * goes on being tried.
   */
  #goBehind(cause: string): void {
    const backlog = this.#backlog;
    if (backlog === null || !this.#spools || backlog.course === "behind") return;
    const head = this.#headBatch?.parcels.filter(({ ticket }) => ticket === null) ?? [];
    backlog.begin(head, this.#waiting.takeNewcomers());
    this.#tools.log.behind(cause);
  }

  #onBacklogMoved(): void {
    const onHold = this.#endOnHold;
    if (onHold !== null && this.#backlog?.isHolding === false) {
      this.#endOnHold = null;
      this.#onEnd(onHold.batch, onHold.end);
      return;
    }
    const obstacle = this.#attempts.isClosing ? this.#attempts.obstacle() : null;
    if (obstacle !== null) this.giveUpWaiting(obstacle);
    if (this.#head.kind !== "in_flight") this.#advance(this.#tools.now());
    this.#tellIfEmpty();
  }

  #onAlarm(): void {
    const now = this.#tools.now();
    if (this.#head.kind === "in_flight") this.#answerInFlight(this.#head.batch, now);
    this.#backlog?.answerOverdue(now);
    if (this.#lateAt <= now) this.#goBehind(this.#late().cause);
    this.#advance(now);
    this.#alarm.ringBy(this.#nearestDeadline(now));
    this.#tellIfEmpty();
  }

  /** Whether it holds nothing, waiting, in flight or on disk. */
  get isEmpty(): boolean {
    return this.#head.kind === "none" && this.#waiting.length === 0 && this.#backlog?.isEmpty !== false;
  }

  #tellIfEmpty(): void {
    if (!this.isEmpty) return;
    const idleAt = this.#backlog?.look(this.#tools.now()) ?? null;
    if (idleAt !== null) this.#alarm.ringBy(idleAt);
    this.#tools.emptied(this, idleAt === null);
  }

  /** Of what waits, of what is at the head and not answered yet, and of what is on its way to the disk; Infinity with nothing. */
  #nearestDeadline(now: number): number {
    let nearest = this.#waiting.nearestDeadline;
    for (const { deadline } of this.#headBatch?.parcels ?? []) {
      if (deadline > now) nearest = Math.min(nearest, deadline);
    }
    if (this.#backlog === null) return nearest;
    const lateAt = !this.#spools || this.#backlog.course === "behind" ? Infinity : this.#lateAt;
    return Math.min(nearest, lateAt, this.#backlog.nearestDeadline(now));
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
    this.#readAhead();
    const attemptAt = this.#nextAttemptAt();
    if (attemptAt > now) this.#alarm.ringBy(attemptAt);
    return attemptAt <= now;
  }

  /** Infinity while one is in flight, or nothing is there that may go. */
  #nextAttemptAt(): number {
    if (this.#head.kind === "in_flight" || this.#backlog?.isHolding === true) return Infinity;
    if (this.#head.kind === "backing_off") return this.#notBefore.until;
    const oldest = this.#waiting.first;
    if (oldest === undefined || this.#isBehindRecords(oldest)) return Infinity;
    const waitsForCompany = !this.#isFlushing && !this.#waiting.isWorthSending;
    const companyMs = waitsForCompany ? this.#options.batchSendDeadlineMs : 0;
    return Math.max(this.#notBefore.until, oldest.delivery.startedAt + companyMs);
  }

  /** Whether what is on disk has to go first. */
  #isBehindRecords(parcel: LaneParcel): boolean {
    return !isOlderThanRecords(parcel) && this.#backlog?.goesFirst === true;
  }

  /** Reads the next batch from disk, unless there is one in memory that was read or refused before. */
  #readAhead(): void {
    const { first } = this.#waiting;
    if (this.#isStopped || (first !== undefined && !this.#isBehindRecords(first))) return;
    this.#backlog?.read((parcels) => {
      // Its parcels share a request with each other only, since what waits may have to wait for more records. The batch that
      // was in flight when the reading began may have been refused meanwhile, and its parts be back.
      this.#waiting.putReadAsGroup(parcels);
      this.#onBacklogMoved();
    });
  }

  /** @returns false when all of what was to be sent is too old */
  #begin(): boolean {
    const batch = this.#nextBatch();
    if (this.#waiting.length === 0) this.#isFlushing = false;
    if (batch === null) {
      this.#setHead(NO_HEAD);
      this.#tellIfEmpty();
      return false;
    }
    this.#setHead({ kind: "in_flight", batch });
    this.#attemptBegan = this.#tools.now();
    this.#attempts.begin(batch, (end) => {
      this.#backlog?.attempted(end.kind !== "retry", this.#tools.now() - this.#attemptBegan);
      this.#onEnd(batch, end);
    });
    this.#readAhead();
    return true;
  }

  #nextBatch(): Batch | null {
    const head = this.#headBatch;
    const parcels = head?.parcels ?? this.#waiting.takeBatch();
    const young = this.#dropOld(parcels);
    if (young.length === 0) return null;
    if (head === null) return new Batch(young, this.id.tenant);
    return young === parcels ? head : head.rebuiltOf(young);
  }

  /** Drops what is older than the route's limit. @returns what is left of parcels; the same list if all of them are */
  #dropOld(parcels: readonly LaneParcel[]): readonly LaneParcel[] {
    const old: LaneParcel[] = [];
    const young: LaneParcel[] = [];
    let isLess = false;
    const unreadable: LaneParcel[] = [];
    for (const laneParcel of parcels) {
      const { parcel, ticket } = laneParcel;
      const aged = this.#aged(laneParcel);
      if (aged === null) {
        // What is not from the disk is sent as it came: its sender hears what the upstream makes of it.
        (ticket === null ? young : unreadable).push(laneParcel);
        continue;
      }
      (aged.parcel === null ? old : young).push(laneParcel);
      isLess ||= aged.parcel !== parcel;
      if (aged.parcel === null || aged.parcel === parcel) continue;
      const from = ticket === null ? "in_flight" : "spooled";
      this.#tools.settled("sample_age_limit", from, 0, aged.dropped, parcel.replica);
      this.#tools.memory.release(bytesOf([laneParcel]));
      laneParcel.parcel = aged.parcel;
      this.#tools.memory.take(bytesOf([laneParcel]));
    }
    if (old.length > 0) this.#finish(old, { kind: "dropped", reason: "sample_age_limit" });
    if (unreadable.length > 0) this.#finish(unreadable, { kind: "dropped", reason: "spool_damaged" });
    return isLess || unreadable.length > 0 ? young : parcels;
  }

  /** @returns null, and says so in the log, if it cannot be opened */
  #aged({ parcel, arrivedAt, ticket }: LaneParcel): Aged | null {
    try {
      return dropOld(parcel, arrivedAt, this.#tools.now(), this.#options.sampleAgeLimitMs);
    } catch (error) {
      this.#tools.log.unopened(parcel, describeFailure(error), ticket !== null);
      return null;
    }
  }

  #onEnd(batch: Batch, end: AttemptEnd): void {
    if (this.#backlog?.isHolding === true) {
      this.#endOnHold = { batch, end };
      return;
    }
    this.#setHead(NO_HEAD);
    this.#lastFailure = end.kind === "retry" ? describeToOthers(end) : null;
    if (end.kind === "retry") this.#backOff(batch, end);
    else if (end.kind === "refused" && batch.parcels.length > 1) this.#halve(batch);
    else this.#finish(batch.parcels, end);
    this.#backlog?.look(this.#tools.now());
    const obstacle = this.#attempts.obstacle();
    if (obstacle !== null) this.giveUpWaiting(obstacle);
    this.#advance(this.#tools.now());
    this.#tellIfEmpty();
  }

  #setHead(head: Head): void {
    this.#tools.memory.release(this.#headBatch?.ownBytes ?? 0);
    this.#head = head;
    this.#tools.memory.take(this.#headBatch?.ownBytes ?? 0);
  }

  /** Sends a refused batch again in two parts, which nothing else joins: the upstream stored nothing of it. */
  #halve({ parcels }: Batch): void {
    this.#settle("refused", parcels.filter(isGivenBack));
    const asked = parcels.filter((parcel) => !isGivenBack(parcel));
    const half = Math.ceil(asked.length / 2);
    this.#waiting.putBackAsGroup(asked.slice(half));
    this.#waiting.putBackAsGroup(asked.slice(0, half));
  }

  /** Keeps at the head what of a failed batch can be tried again in time, or is on disk as well. */
  #backOff(batch: Batch, end: Retry): void {
    const waitMs = end.retryAfterMs ?? this.#backoff(batch.attempts);
    const backoff = { until: this.#tools.now() + waitMs, cause: describeToOthers(end) };
    const outcomeAfter = (cause: string): Undelivered =>
      this.#attempts.obstacle(cause) ?? undelivered(cause, waitMs);
    batch.lastFailure = end.cause;
    this.#setHead({ kind: "backing_off", batch, backoff });
    const keepsTrying = this.#attempts.obstacle() === null;
    const due = keepsTrying ? backoff.until : ALL;
    const isKept = this.#spools || batch.parcels.some(({ deadline }) => deadline > due);
    this.#tools.log.retry(batch, end, isKept ? waitMs : null);
    this.#giveBackDue(
      due,
      () => outcomeAfter(end.cause),
      () => outcomeAfter(backoff.cause),
    );
  }

  /**
   * Gives back what is not in flight and has its deadline at `at` or before: what failed already, and what waits behind.
   * With a spool it goes there instead, and is given back only if it cannot.
   */
  #giveBackDue(at: number, ofFailed: () => Undelivered, ofWaiting = ofFailed): void {
    const isAnyDue = this.#waiting.nearestDeadline <= at || this.#isHeadDue(at);
    if (!isAnyDue) return;
    if (this.#spools) this.#goBehind(ofWaiting().cause);
    this.#giveBack(at, ofFailed, ofWaiting);
  }

  /** Gives back what is in memory alone, neither in flight nor on its way to the disk, and has its deadline then or before. */
  #giveBack(at: number, ofFailed: () => Undelivered, ofWaiting = ofFailed): void {
    const failed = this.#takeDueOfHead(at);
    const waiting = this.#waiting.takeDue(at);
    if (failed.length > 0) this.#finish(failed, ofFailed());
    if (waiting.length > 0) this.#finish(waiting, ofWaiting());
  }

  /** Whether something that failed has its deadline at `at` or before, and is not on its way to the disk. */
  #isHeadDue(at: number): boolean {
    if (this.#head.kind !== "backing_off" || this.#backlog?.isHolding === true) return false;
    return this.#head.batch.parcels.some(({ deadline }) => deadline <= at);
  }

  #takeDueOfHead(at: number): readonly LaneParcel[] {
    if (this.#head.kind !== "backing_off" || !this.#isHeadDue(at)) return [];
    const { batch, backoff } = this.#head;
    const rest = batch.reducedTo(batch.parcels.filter(({ deadline }) => deadline > at));
    this.#setHead(rest === null ? NO_HEAD : { kind: "backing_off", batch: rest, backoff });
    return batch.parcels.filter(({ deadline }) => deadline <= at);
  }

  /** Answers the parcels in flight whose deadline is over. They are settled when the attempt ends. */
  #answerInFlight({ parcels, attempts, lastFailure }: Batch, now: number): void {
    const due = parcels.filter(({ deadline }) => deadline <= now);
    const last = describeLast(lastFailure ?? this.#lastFailure);
    const cause = `no answer to attempt ${attempts} by the deadline${last}`;
    answerAll(due, this.#answerOf(undelivered(cause, this.#backoff(attempts))));
  }

  #notTried(lastFailure: string | null): Undelivered {
    const cause = `no attempt could start before the deadline${describeLast(lastFailure)}`;
    return undelivered(cause, this.#backoff(1));
  }

  #late(): Undelivered {
    const after = formatMs(this.#options.spoolAfterMs);
    return undelivered(
      `what came before waits for more than ${after}${describeLast(this.#lastFailure)}`,
      this.#backoff(1),
    );
  }

  #spread({ until, cause }: Pause): Pause {
    return { until: until + this.#backoff(1), cause };
  }

  /** @param attempts made so far */
  #backoff(attempts: number): number {
    return backoffMs(attempts - 1, this.#options, this.#tools.random());
  }

  #finish(parcels: readonly LaneParcel[], outcome: ParcelOutcome): void {
    const spooled = parcels.filter(({ ticket }) => ticket !== null);
    const accepted = parcels.filter(({ ticket, isAccepted }) => ticket === null && isAccepted);
    const others = parcels.filter(({ isAccepted }) => !isAccepted);
    this.#backlog?.release(spooled);
    const answer = this.#answerOf(outcome);
    this.#settle(endOfAccepted(answer), spooled, "spooled");
    this.#settle(endOfAccepted(answer), accepted);
    this.#settle(endOf(answer), others);
    answerAll(parcels, answer);
  }

  /** With `on_outage: drop` nobody has to come again, unless the gateway is about to go. */
  #answerOf(outcome: ParcelOutcome): ParcelOutcome {
    const drops = this.#options.onOutage === "drop" && !this.#attempts.isClosing;
    return drops && outcome.kind === "undelivered" ? { kind: "dropped", reason: "outage" } : outcome;
  }

  /** Of parcels that leave the lane. */
  #settle(end: Settlement, parcels: readonly LaneParcel[], from: SettledFrom = "in_flight"): void {
    this.#tools.memory.release(bytesOf(parcels));
    settleEach(this.#tools.settled, end, from, parcels);
  }
}

/** What a batch may hold now. */
function limitsOf(delivery: Readonly<DeliveryInForce>): BatchLimits {
  return {
    get maxItems() {
      return delivery.options.maxSamplesPerSend;
    },
    maxPlainBytes: MAX_BATCH_PLAIN_BYTES,
  };
}

function describeLast(failure: string | null): string {
  return failure === null ? "" : `; the last one: ${failure}`;
}

/** How a parcel ends whose sender knows that it is accepted. */
function endOfAccepted(outcome: ParcelOutcome): Settlement {
  if (outcome.kind === "delivered") return "delivered";
  if (outcome.kind === "dropped") return outcome.reason;
  return outcome.kind === "refused" ? "refused_by_upstream" : "undelivered";
}

function endOf(outcome: ParcelOutcome): Settlement {
  if (outcome.kind === "delivered") return "delivered";
  return outcome.kind === "dropped" ? outcome.reason : "refused";
}
