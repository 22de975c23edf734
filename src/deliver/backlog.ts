/**
 * What a lane keeps on disk while it is behind: its upstream is away, or slower than what comes for it.
 *
 * *Direct*, a lane has its parcels in memory alone. *Behind*, parcels are appended to the lane's stream of the spool, and
 * their senders have their answer when that is synced; they are read back in order, a batch at a time. *Returning*, new
 * parcels stay in memory again, behind the few that have still to be read: a lane that is never without something to do
 * would not find its stream empty at any moment.
 *
 * A lane whose upstream's data is spooled no longer, since a reload has changed that, is never behind: it returns until its
 * stream is empty.
 *
 * A parcel that is on disk and in memory as well has a ticket. It is released, which deletes it, when the upstream has it.
 */
import { answerAll, Delivery, LaneParcel, settleEach } from "./delivery.ts";
import type { Settled } from "./delivery.ts";
import { Deque } from "./deque.ts";
import { describeFailure } from "./exchange.ts";
import type { BatchLimits } from "./laneQueue.ts";
import { bytesOf } from "./memory.ts";
import type { UpstreamMemory } from "./memory.ts";
import type { DeliveryInForce } from "./options.ts";
import { undelivered } from "./outcome.ts";
import type { Settlement } from "./outcome.ts";
import type { AppendEnd } from "./spool/append.ts";
import type { SpooledParcel } from "./spool/readBatch.ts";
import type { SpoolStream } from "./spool/spoolStream.ts";

export type Course = "direct" | "behind" | "returning";

/** So many quick attempts in a row show that the upstream is well again. */
const QUICK_ATTEMPTS = 10;
/** An attempt is quick when it takes no more than this part of `spool_after`. */
const QUICK_PART = 10;
/** After so many times `spool_after` without use nothing speaks against the upstream any more. */
const IDLE_TIMES = 10;

const NOT_IN_TIME = "the spool's disk has not taken it in time";

export interface BacklogTools {
  readonly now: () => number;
  readonly settled: Settled;
  /** Where parcels are counted that are read, and those that are in memory no longer. */
  readonly memory: UpstreamMemory;
  /** How long a sender should stay away whose parcels cannot be spooled. */
  readonly retryAfterMs: () => number;
  /** Told when there is something to do for the lane: records to read, or an append of the head that has ended. */
  readonly moved: () => void;
  /** Told that parcels could not be spooled, and why. */
  readonly notSpooled: (parcels: number, cause: string) => void;
  /** Told that the disk does not give back what it has; it is tried again a little later. */
  readonly unreadable: (cause: string) => void;
  /** Told that the lane is direct again. */
  readonly returned: () => void;
}

export class Backlog {
  readonly #stream: SpoolStream;
  readonly #delivery: Readonly<DeliveryInForce>;
  readonly #limits: BatchLimits;
  readonly #tools: BacklogTools;
  readonly #appends = new Deque<readonly LaneParcel[]>();
  #course: Course;
  #quickInARow = 0;
  /** What the lane has at its head, while that is being appended. */
  #holding: readonly LaneParcel[] | null = null;
  #isReading = false;
  #onAppend: (() => void) | null = null;
  /** The disk is not waited for any more: parcels on their way there have been given back. */
  #isGivenUp = false;
  /** When parcels came last, or an attempt ended. */
  #usedAt: number;

  /** @param stream what it holds is what another has left: a process before, or a sender that has closed */
  constructor(
    stream: SpoolStream,
    delivery: Readonly<DeliveryInForce>,
    limits: BatchLimits,
    tools: BacklogTools,
  ) {
    this.#stream = stream;
    this.#delivery = delivery;
    this.#limits = limits;
    this.#tools = tools;
    this.#course = stream.isEmpty ? "direct" : "behind";
    this.#usedAt = tools.now();
  }

  get course(): Course {
    return this.#course;
  }

  /** Whether nothing is on disk, or on its way there. */
  get isEmpty(): boolean {
    return this.#stream.isEmpty;
  }

  /** Whether what the lane has at its head is being appended: until that has ended, nothing may happen to it. */
  get isHolding(): boolean {
    return this.#holding !== null;
  }

  /** Whether parcels are on disk, or on their way there, that go before those which are in memory alone. */
  get goesFirst(): boolean {
    return this.#isReading || this.#stream.hasUnread || this.#appends.length > 0;
  }

  /** When the first parcel came that is on its way to the disk; Infinity for none. */
  get oldestAt(): number {
    const [first] = this.#appends.first ?? [];
    return first?.delivery.startedAt ?? Infinity;
  }

  /** Of the parcels on their way to the disk, those that are over aside; Infinity for none. */
  nearestDeadline(now: number): number {
    let nearest = Infinity;
    for (const parcels of this.#appends) {
      for (const { delivery } of parcels) {
        if (delivery.deadline > now) nearest = Math.min(nearest, delivery.deadline);
      }
    }
    return nearest;
  }

  /**
   * Goes behind with all that the lane has in memory alone.
   *
   * @param head    parcels that the lane goes on trying itself; where others go first they stay in memory alone, since they
   *                are those of an earlier course that could not be written
   * @param waiting parcels that the lane has no more to do with
   */
  begin(head: readonly LaneParcel[], waiting: readonly LaneParcel[]): void {
    this.#course = "behind";
    this.#quickInARow = 0;
    if (head.length > 0 && !this.goesFirst) {
      this.#holding = head;
      this.#append(head, true);
    }
    if (waiting.length > 0) this.#append(waiting, false);
  }

  /** Takes nothing more: what is on disk, or on its way there, is all that it will have. */
  stopTaking(): void {
    if (this.#course === "behind") this.#course = "returning";
  }

  /** Takes parcels while it is behind. */
  add(parcels: readonly LaneParcel[]): void {
    this.#append(parcels, false);
  }

  /**
   * Reads what comes next, unless that is under way or nothing is there.
   *
   * @param onRead called later with parcels that have tickets; with none, damage was all there was. Does not throw
   */
  read(onRead: (parcels: readonly LaneParcel[]) => void): void {
    if (this.#isReading || !this.#stream.hasUnread) return;
    this.#isReading = true;
    this.#stream.next(this.#limits).then(
      (records) => {
        this.#isReading = false;
        const parcels = this.#withTickets(records);
        this.#tools.memory.take(bytesOf(parcels));
        onRead(parcels);
      },
      (error: unknown) => {
        this.#isReading = false;
        this.#tools.unreadable(describeFailure(error));
      },
    );
  }

  /** Deletes parcels that have tickets. */
  release(parcels: readonly LaneParcel[]): void {
    const tickets = parcels.map(({ ticket }) => ticket).filter((ticket) => ticket !== null);
    if (tickets.length > 0) this.#stream.release(tickets);
  }

  /** Takes note of how an attempt went. */
  attempted(isAnswered: boolean, durationMs: number): void {
    const isQuick = isAnswered && durationMs * QUICK_PART <= this.#delivery.options.spoolAfterMs;
    this.#quickInARow = isQuick ? this.#quickInARow + 1 : 0;
    this.#usedAt = this.#tools.now();
  }

  /**
   * Changes course if the upstream is well and little is left on disk, or if nothing has come for long.
   *
   * @returns when to look again at the latest, if nothing happens until then; null if it is direct
   */
  look(now: number): number | null {
    const isWell = this.#quickInARow >= QUICK_ATTEMPTS;
    const idleAt = this.#usedAt + IDLE_TIMES * this.#delivery.options.spoolAfterMs;
    if (this.#course === "behind" && !this.#stream.hasUnread && (isWell || now >= idleAt)) {
      this.#course = "returning";
    }
    if (this.#course === "returning" && !this.goesFirst) {
      this.#course = "direct";
      this.#tools.returned();
    }
    return this.#course === "direct" ? null : idleAt;
  }

  /** Waits until no append is under way. */
  async appended(): Promise<void> {
    while (this.#appends.length > 0) {
      await new Promise<void>((resolve) => {
        this.#onAppend = resolve;
      });
    }
  }

  /**
   * Waits for the disk no longer: what is on its way there is given back, and so is all that comes. The disk may get it all
   * the same, which sends it twice after a restart.
   */
  giveUp(): void {
    const unheld = [...this.unheld()];
    this.#isGivenUp = true;
    this.#holding = null;
    while (this.#appends.length > 0) this.#appends.dropFirst();
    if (unheld.length > 0) this.#tools.notSpooled(unheld.length, NOT_IN_TIME);
    this.#giveBack(unheld, "failed", NOT_IN_TIME);
    this.#onAppend?.();
    this.#tools.moved();
  }

  /** Parcels on their way to the disk that the lane has not itself. */
  *unheld(): Iterable<LaneParcel> {
    for (const parcels of this.#appends) if (parcels !== this.#holding) yield* parcels;
  }

  /** Answers the parcels on their way to the disk whose deadline is over. */
  answerOverdue(now: number): void {
    for (const parcels of this.#appends) {
      const due = parcels.filter(({ delivery }) => delivery.deadline <= now);
      answerAll(due, undelivered("not spooled by the deadline", this.#tools.retryAfterMs()));
    }
  }

  #withTickets(records: readonly SpooledParcel[]): LaneParcel[] {
    const nobody = new Delivery(records.length, this.#tools.now(), Infinity, () => undefined);
    return records.map(({ parcel, ticket, appendedAt }, index) => {
      const read = new LaneParcel(parcel, nobody, index, appendedAt);
      read.ticket = ticket;
      return read;
    });
  }

  #append(parcels: readonly LaneParcel[], isHeld: boolean): void {
    if (this.#isGivenUp) {
      if (isHeld) this.#holding = null;
      else
        queueMicrotask(() => {
          this.#giveBack(parcels, "failed", NOT_IN_TIME);
        });
      return;
    }
    this.#appends.push(parcels);
    this.#usedAt = this.#tools.now();
    const records = parcels.map(({ parcel }) => parcel);
    this.#stream.append(records, isHeld, (end) => {
      if (this.#isGivenUp) return;
      this.#appends.dropFirst();
      this.#onAppended(parcels, isHeld, end);
      if (isHeld) this.#holding = null;
      this.#onAppend?.();
      this.#tools.moved();
    });
  }

  #onAppended(parcels: readonly LaneParcel[], isHeld: boolean, end: AppendEnd): void {
    if (end.kind !== "synced") {
      this.#tools.notSpooled(parcels.length, end.cause);
      // What is held goes on as if nothing had been tried: its lane still has it.
      if (!isHeld) this.#giveBack(parcels, end.kind, end.cause);
      return;
    }
    // What is not held is in memory no longer, and has no tickets.
    for (const [index, ticket] of end.tickets.entries()) {
      const parcel = parcels[index];
      if (parcel !== undefined) parcel.ticket = ticket;
    }
    if (!isHeld) this.#tools.memory.release(bytesOf(parcels));
    this.#settle("spooled", parcels);
    answerAll(parcels, { kind: "spooled" });
  }

  #giveBack(parcels: readonly LaneParcel[], kind: "full" | "failed", cause: string): void {
    this.#tools.memory.release(bytesOf(parcels));
    const accepted = parcels.filter(({ isAccepted }) => isAccepted);
    this.#settle(kind === "full" ? "spool_full" : "undelivered", accepted);
    this.#settle(
      "refused",
      parcels.filter(({ isAccepted }) => !isAccepted),
    );
    answerAll(parcels, undelivered(cause, this.#tools.retryAfterMs()));
  }

  #settle(end: Settlement, parcels: readonly LaneParcel[]): void {
    settleEach(this.#tools.settled, end, "in_flight", parcels);
  }
}
