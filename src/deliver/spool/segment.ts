/** One file of a stream: how far its records were read and released. Memory for it does not grow with its records. */
import { Tally } from "./counts.ts";
import type { ReplicaCount } from "./counts.ts";
import { invariant } from "./invariant.ts";
import { NONCE_BYTES, recordStart } from "./record.ts";
import { formatSegmentName } from "./segmentName.ts";
import type { SegmentName } from "./segmentName.ts";

/** A segment is not added to beyond this; the parcels of one append stay together, and may be more. */
export const SEGMENT_BYTES = 16 * 1024 * 1024;

export class Segment {
  readonly name: SegmentName;
  /** When its first record was appended, milliseconds since the epoch. */
  firstAt: number;
  /** Synced records that were not given out, nor passed as damaged. */
  readonly unread = new Tally();
  /** All records that this process has written to it. */
  readonly written = new Tally();
  /** Bytes that are synced and acknowledged; what the file has behind them does not count. */
  size = 0;
  /** Records before it were given out, or are damaged. */
  readTo = 0;
  /** Nothing is added to it any more. */
  isSealed = false;
  /** A commit under way adds to it. */
  isBeingWritten = false;
  /** It goes aside instead of being removed. */
  isDamaged = false;
  /** Where the start of the process found damage, and reported it. */
  readonly knownDamage = new Set<number>();
  /** It had to make room: its file is removed, whatever of it is still in somebody's hands. */
  isGone = false;
  /** Since when the disk has failed to read it; null if it has not. */
  unreadableSince: number | null = null;
  #releasedTo = 0;
  /** Released ranges behind that, by their starts. */
  readonly #releasedBeyond = new Map<number, number>();

  constructor(name: SegmentName, firstAt: number) {
    this.name = name;
    this.firstAt = firstAt;
  }

  get fileName(): string {
    return formatSegmentName(this.name);
  }

  get recordStart(): Buffer {
    return recordStart(Buffer.from(this.name.nonce, "hex").subarray(0, NONCE_BYTES));
  }

  /** Everything before it was released. */
  get releasedTo(): number {
    return this.#releasedTo;
  }

  get isDrained(): boolean {
    return this.#releasedTo === this.size && !this.isBeingWritten;
  }

  /** Has all be read again that is not released; whoever had it adds it to what is unread. */
  rewind(): void {
    this.readTo = this.#releasedTo;
  }

  /** Passes what was released where reading stands. @returns whether there was anything */
  passReleased(): boolean {
    const end = this.#releasedBeyond.get(this.readTo);
    if (end === undefined) return false;
    this.readTo = end;
    return true;
  }

  /** What nobody will read any more. */
  takeUnread(): readonly ReplicaCount[] {
    const counts = this.unread.replicas;
    for (const count of counts) this.unread.subtract(count);
    return counts;
  }

  /** @param start of a record or of damage; ranges do not overlap */
  release(start: number, end: number): void {
    invariant(start >= this.#releasedTo && !this.#releasedBeyond.has(start), "a record is released twice");
    if (start !== this.#releasedTo) {
      this.#releasedBeyond.set(start, end);
      return;
    }
    let to: number | undefined = end;
    while (to !== undefined) {
      this.#releasedTo = to;
      const next = this.#releasedBeyond.get(to);
      this.#releasedBeyond.delete(to);
      to = next;
    }
  }
}
