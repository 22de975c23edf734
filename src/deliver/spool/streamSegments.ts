/**
 * The segments of a stream, oldest first, and what is unread, in somebody's hands, and gone of them.
 *
 * A segment is removed when all of it is released, and all before it were: so one that is missing between others is lost.
 */
import { invariant } from "./invariant.ts";
import type { Losses } from "./losses.ts";
import type { Segment } from "./segment.ts";
import type { Ticket } from "./ticket.ts";
import type { UpstreamFolder } from "./upstreamFolder.ts";

export class StreamSegments {
  readonly #folder: UpstreamFolder;
  readonly #losses: Losses;
  readonly #segments: Segment[];
  /** Tickets that the caller has. */
  readonly #out = new Set<Ticket>();

  /** @param found segments of an earlier process, oldest first */
  constructor(folder: UpstreamFolder, losses: Losses, found: readonly Segment[]) {
    this.#folder = folder;
    this.#losses = losses;
    this.#segments = [...found];
  }

  /** Whether no record is unreleased. */
  get isEmpty(): boolean {
    return this.#segments.length === 0 && this.#out.size === 0;
  }

  /** Oldest first. */
  get all(): readonly Segment[] {
    return this.#segments;
  }

  /** The first segment that has records which nobody has read: all of a segment is read before anything of the next. */
  get firstUnread(): Segment | undefined {
    const last = this.#segments.at(-1);
    if (last === undefined || last.readTo === last.size) return undefined;
    return this.#segments.find(({ readTo, size }) => readTo < size);
  }

  /** Bytes of segments that dropOldest() could free. */
  get droppableBytes(): number {
    const end = this.#segments.findIndex(({ isBeingWritten }) => isBeingWritten);
    const droppable = end === -1 ? this.#segments : this.#segments.slice(0, end);
    return droppable.reduce((sum, { size }) => sum + size, 0);
  }

  /** Adds a segment behind the others, unless it is the last already. */
  add(segment: Segment): void {
    if (this.#segments.at(-1) !== segment) this.#segments.push(segment);
  }

  /** The caller has these records. */
  giveOut(tickets: readonly Ticket[]): void {
    for (const ticket of tickets) this.#out.add(ticket);
  }

  /** The caller is gone: what it had, and has not released, is given out again. */
  takeBack(): void {
    for (const segment of this.#segments) segment.rewind();
    // Of files that had to make room, what the caller had was all that was left.
    const [kept, lost]: [Ticket[], Ticket[]] = [[], []];
    for (const ticket of this.#out) (ticket.segment.isGone ? lost : kept).push(ticket);
    for (const ticket of kept) ticket.segment.unread.add(ticket);
    this.#losses.drop("spool_full", lost);
    this.#out.clear();
  }

  /** The caller is done with these records. */
  release(tickets: readonly Ticket[]): void {
    for (const { segment, start, end } of tickets) segment.release(start, end);
    for (const ticket of tickets) this.#out.delete(ticket);
    this.discardDrained();
    this.#folder.notePositions();
  }

  /** Drops the oldest segment. Tickets that are out stay good. */
  dropOldest(): void {
    const segment = this.#segments.shift();
    invariant(segment !== undefined && !segment.isBeingWritten, "nothing to drop");
    segment.isGone = true;
    this.#folder.discard(segment);
    this.#losses.drop("spool_full", segment.takeUnread());
  }

  /** A record is read up to its end; whoever reads takes care of it. */
  passRecord(ticket: Ticket): void {
    ticket.segment.unread.subtract(ticket);
    ticket.segment.readTo = ticket.end;
  }

  /** A record whose header is intact, and its payload is not. */
  dropDamaged(ticket: Ticket): void {
    const { segment, start, end, items } = ticket;
    const lost = `${items.samples} samples, ${items.histograms} histograms and ${items.exemplars} exemplars are dropped`;
    this.#folder.tools.log.error(`${this.#place(segment, start, end)} of a parcel are damaged: ${lost}`);
    this.#passDamage(segment, start, end);
    this.#losses.drop("spool_damaged", [ticket]);
  }

  /** Bytes up to `end` in which no record can be recognised. */
  passUnknown(segment: Segment, end: number): void {
    const start = segment.readTo;
    segment.readTo = end;
    this.#passDamage(segment, start, end);
    if (segment.knownDamage.has(start)) return;
    this.#folder.tools.log.error(
      `${this.#place(segment, start, end)} are damaged; reading goes on behind them`,
    );
    this.#losses.damaged(end - start);
  }

  /** Records that were counted when they were written or found, and did not come up when all was read, were in what is damaged. */
  settleIfRead(segment: Segment): void {
    if (segment.readTo === segment.size) this.#losses.drop("spool_damaged", segment.takeUnread());
  }

  /** What nobody has read of the segment cannot be read. */
  giveUpOn(segment: Segment, why: string): void {
    this.#folder.tools.log.error(`${why}; what it has left is given up`);
    segment.isDamaged = true;
    if (segment.readTo < segment.size) this.passUnknown(segment, segment.size);
    this.settleIfRead(segment);
    this.discardDrained();
  }

  discardDrained(): void {
    for (let first = this.#segments[0]; first?.isDrained === true; first = this.#segments[0]) {
      this.#segments.shift();
      this.#folder.discard(first);
    }
  }

  /** Afterwards the file is kept aside, not removed. */
  #passDamage(segment: Segment, start: number, end: number): void {
    segment.isDamaged = true;
    segment.release(start, end);
    this.discardDrained();
  }

  #place(segment: Segment, start: number, end: number): string {
    return `${this.#folder.pathOf(segment)}: bytes ${start} to ${end}`;
  }
}
