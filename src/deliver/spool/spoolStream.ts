/**
 * One ordered stream of records on disk: what waits for one lane of one upstream.
 *
 * Records are given out in the order in which they were appended, each once, and are gone when they are released. Segments of
 * an earlier process are read, not added to.
 */
import type { Parcel } from "../../wire/parcel.ts";
import type { Append, AppendEnd } from "./append.ts";
import type { Committer, CommitStream } from "./committer.ts";
import { invariant } from "./invariant.ts";
import type { Losses } from "./losses.ts";
import type { ReadLimits, SpooledParcel } from "./readBatch.ts";
import { encodeHeader, headerBytes } from "./record.ts";
import { SEGMENT_BYTES } from "./segment.ts";
import type { Segment } from "./segment.ts";
import { StreamReader } from "./streamReader.ts";
import { StreamSegments } from "./streamSegments.ts";
import { encodeSummary } from "./summary.ts";
import { Ticket } from "./ticket.ts";
import type { UpstreamFolder } from "./upstreamFolder.ts";

export interface StreamTools {
  readonly folder: UpstreamFolder;
  readonly committer: Committer;
  readonly losses: Losses;
  /** See streamKey(). */
  readonly key: string;
  /** See encodeOwner(). */
  readonly owner: Buffer;
}

export class SpoolStream implements CommitStream {
  readonly #tools: StreamTools;
  readonly #segments: StreamSegments;
  readonly #reader: StreamReader;
  #appending = 0;
  #appendingUnheld = 0;
  #reading: Promise<readonly SpooledParcel[]> | null = null;

  /** @param found segments of an earlier process, oldest first */
  constructor(tools: StreamTools, found: readonly Segment[]) {
    this.#tools = tools;
    this.#segments = new StreamSegments(tools.folder, tools.losses, found);
    this.#reader = new StreamReader(tools.folder, this.#segments, tools.owner);
  }

  /** Whether no record is unreleased and no append is under way. */
  get isEmpty(): boolean {
    return this.#segments.isEmpty && this.#appending === 0;
  }

  /** Whether there are synced records that next() would give out. */
  get hasUnread(): boolean {
    return this.#segments.firstUnread !== undefined;
  }

  /** Its files, oldest first. */
  get segments(): readonly Segment[] {
    return this.#segments.all;
  }

  /** Bytes of segments that dropOldest() could free. */
  get droppableBytes(): number {
    return this.#segments.droppableBytes;
  }

  /**
   * Puts parcels behind all others, in their order: all of them or none.
   *
   * @param parcels at least one; their elements must not change until the end
   * @param held    the caller keeps the parcels and tries them itself: next() does not give them out, but in a later process.
   *                Only where nothing is unread and no append that is not held is under way.
   * @param onEnd   called once, after append() has returned; must not throw
   */
  append(parcels: readonly Parcel[], held: boolean, onEnd: (end: AppendEnd) => void): void {
    invariant(parcels.length > 0, "an append of nothing");
    invariant(!held || (!this.hasUnread && this.#appendingUnheld === 0), "held parcels behind others");
    const bytes = parcels.reduce((sum, parcel) => sum + this.#recordBytes(parcel), 0);
    this.#appending += 1;
    if (!held) this.#appendingUnheld += 1;
    const at = this.#tools.folder.tools.now();
    this.#tools.committer.append(this, { parcels, held, bytes, at, onEnd });
  }

  /**
   * Reads the next records, in order. Not called again before it has ended.
   *
   * @returns those that were read; none if nothing is unread, or all of it was damaged. Their elements have the free bytes
   *   in front that a parcel has.
   * @throws {SpoolError} SPOOL_UNREADABLE when the disk fails: the same records are tried again by the next call. What fails
   *   for a minute is dropped as damaged.
   */
  async next(limits: ReadLimits): Promise<readonly SpooledParcel[]> {
    invariant(this.#reading === null, "a stream is read twice at a time");
    this.#reading = this.#reader.next(limits);
    try {
      return await this.#reading;
    } finally {
      this.#reading = null;
    }
  }

  /** Takes back what the caller has, who will not release it, once what it reads is read. The next one reads it again. */
  async takeBack(): Promise<void> {
    await this.#reading?.catch(() => undefined); // the caller has been told
    this.#segments.takeBack();
  }

  /** Takes records out of the spool for good, which the caller delivered or dropped. Any order will do. */
  release(tickets: readonly Ticket[]): void {
    this.#segments.release(tickets);
  }

  /** Drops the oldest segment. Tickets that are out stay good. */
  dropOldest(): void {
    this.#segments.dropOldest();
  }

  segmentFor(bytes: number): Segment | null {
    const last = this.#segments.all.at(-1);
    return last !== undefined && !last.isSealed && last.size + bytes <= SEGMENT_BYTES ? last : null;
  }

  async sealLast(): Promise<void> {
    const last = this.#segments.all.at(-1);
    if (last === undefined || last.isSealed) return;
    last.isSealed = true;
    const summary = { firstAt: last.firstAt, replicas: last.written.replicas };
    await this.#tools.folder.writeHint(
      last,
      encodeSummary(last.recordStart, this.#tools.owner, last.size, summary),
    );
  }

  newSegment(): Segment {
    const previous = this.#segments.all.at(-1)?.name.sequence ?? 0;
    return this.#tools.folder.newSegment(this.#tools.key, previous);
  }

  encode(segment: Segment, appends: readonly Append[]): Uint8Array[] {
    const start = segment.recordStart;
    return appends.flatMap(({ parcels, at }) =>
      parcels.flatMap(({ elements, replica, series, items, plainBytes, newestTimestampMs }) => {
        const facts = { replica, series, items, plainBytes, newestTimestampMs, appendedAt: at };
        return [encodeHeader(start, this.#tools.owner, facts, elements), elements];
      }),
    );
  }

  written(segment: Segment, appends: readonly Append[]): void {
    segment.isBeingWritten = false;
    if (appends.length > 0) this.#segments.add(segment);
    const tickets = appends.map((append) => this.#place(segment, append));
    this.#segments.discardDrained();
    appends.forEach((append, index) => {
      this.#finish(append, { kind: "synced", tickets: tickets[index] ?? [] });
    });
  }

  refused(appends: readonly Append[], end: AppendEnd): void {
    for (const append of appends) this.#finish(append, end);
  }

  #finish({ held, onEnd }: Append, end: AppendEnd): void {
    this.#appending -= 1;
    if (!held) this.#appendingUnheld -= 1;
    onEnd(end);
  }

  /** Counts what was written. @returns the tickets of what the caller holds */
  #place(segment: Segment, { parcels, held }: Append): readonly Ticket[] {
    const tickets = parcels.map((parcel) => {
      const start = segment.size;
      segment.size += this.#recordBytes(parcel);
      return new Ticket(segment, start, segment.size, parcel.replica, parcel.items);
    });
    for (const ticket of tickets) {
      segment.written.add(ticket);
      if (!held) segment.unread.add(ticket);
    }
    if (!held) return [];
    segment.readTo = segment.size;
    this.#segments.giveOut(tickets);
    return tickets;
  }

  #recordBytes({ elements }: Parcel): number {
    return headerBytes(this.#tools.owner) + elements.length;
  }
}
