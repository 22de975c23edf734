/** Reads the records of a stream that nobody has read, as many as make a batch. */
import { crc32c } from "./crc32c.ts";
import { SpoolError } from "./errors.ts";
import { ReadBatch } from "./readBatch.ts";
import type { ReadLimits, SpooledParcel } from "./readBatch.ts";
import type { RecordHeader } from "./record.ts";
import { RecordReader } from "./recordReader.ts";
import type { Segment } from "./segment.ts";
import type { StreamSegments } from "./streamSegments.ts";
import { Ticket } from "./ticket.ts";
import { describe, hasCode } from "./upstreamFolder.ts";
import type { UpstreamFolder } from "./upstreamFolder.ts";

/** A batch of usual parcels is read with one call or two. */
const WINDOW_BYTES = 256 * 1024;

/** What a segment has left is given up when the disk has failed to read it for so long. */
const GIVE_UP_AFTER_MS = 60_000;

export class StreamReader {
  readonly #folder: UpstreamFolder;
  readonly #segments: StreamSegments;
  /** See encodeOwner(). */
  readonly #owner: Buffer;

  constructor(folder: UpstreamFolder, segments: StreamSegments, owner: Buffer) {
    this.#folder = folder;
    this.#segments = segments;
    this.#owner = owner;
  }

  /** See SpoolStream.next(). */
  async next(limits: ReadLimits): Promise<readonly SpooledParcel[]> {
    const batch = new ReadBatch(limits);
    let takesMore = true;
    while (takesMore) {
      const segment = this.#segments.firstUnread;
      takesMore = segment !== undefined && (await this.#read(segment, batch));
    }
    return batch.parcels;
  }

  /** @returns whether the batch takes more */
  async #read(segment: Segment, batch: ReadBatch): Promise<boolean> {
    try {
      const takesMore = await this.#readFile(segment, batch);
      segment.unreadableSince = null;
      return takesMore;
    } catch (error) {
      if (segment.isGone) return true;
      const what = `${this.#folder.pathOf(segment)}: ${describe(error)}`;
      if (this.#isHopeless(segment, error)) {
        this.#segments.giveUpOn(segment, what);
        return true;
      }
      if (batch.parcels.length > 0) return false;
      throw new SpoolError("SPOOL_UNREADABLE", `${what}; the next call tries again`, error);
    }
  }

  /** Whether the file is gone, or its place on the disk is bad. All else can pass, as a lack of file descriptors. */
  #isHopeless(segment: Segment, error: unknown): boolean {
    if (hasCode(error, "ENOENT")) return true;
    if (!hasCode(error, "EIO")) return false;
    const now = this.#folder.tools.now();
    segment.unreadableSince ??= now;
    return now - segment.unreadableSince >= GIVE_UP_AFTER_MS;
  }

  async #readFile(segment: Segment, batch: ReadBatch): Promise<boolean> {
    const end = segment.size; // it can grow meanwhile
    const file = await this.#folder.open(segment);
    try {
      const reader = new RecordReader({
        read: (target, position) => file.read(target, position),
        start: segment.recordStart,
        end,
        windowBytes: WINDOW_BYTES,
        belongs: (owner) => owner.equals(this.#owner),
      });
      return await this.#readRecords(segment, reader, batch);
    } finally {
      await file.close();
    }
  }

  /** Reads on in the segment where the last call has stopped. */
  async #readRecords(segment: Segment, reader: RecordReader, batch: ReadBatch): Promise<boolean> {
    while (segment.readTo < reader.end && !segment.isGone) {
      if (segment.passReleased()) continue;
      const start = segment.readTo;
      const header = await reader.headerAt(start);
      if (header === null) {
        this.#passUnknown(segment, await reader.findRecord(start + 1));
      } else {
        if (!batch.fits(header)) return false;
        this.#pass(segment, header, await reader.payloadOf(start, header), batch);
      }
    }
    return true;
  }

  #pass(segment: Segment, header: RecordHeader, payload: Buffer, batch: ReadBatch): void {
    if (segment.isGone) return; // it had to make room meanwhile, and this record is dropped
    const start = segment.readTo;
    const end = start + header.headerBytes + header.payloadBytes;
    const ticket = new Ticket(segment, start, end, header.replica, header.items);
    this.#segments.passRecord(ticket);
    if (crc32c(payload) === header.payloadSum) {
      this.#segments.giveOut([ticket]);
      batch.add(header, payload, ticket);
    } else {
      this.#segments.dropDamaged(ticket);
    }
    this.#segments.settleIfRead(segment);
  }

  #passUnknown(segment: Segment, end: number): void {
    if (segment.isGone) return;
    this.#segments.passUnknown(segment, end);
    this.#segments.settleIfRead(segment);
  }
}
