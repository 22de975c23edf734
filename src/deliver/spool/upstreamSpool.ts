/**
 * What waits on disk for one upstream.
 *
 * It lets an upstream be away for hours while memory stays bounded and the other upstreams keep receiving. Parcels leave a
 * stream in the order they came. A record is removed only after its parcel was released: a crash may send one twice, which
 * stores accept when the values are equal, but loses none whose append ended as synced.
 */
import type { LaneId } from "../lane.ts";
import { Committer } from "./committer.ts";
import type { SpoolEvents } from "./events.ts";
import { Losses } from "./losses.ts";
import { encodeOwner } from "./record.ts";
import type { Room } from "./room.ts";
import type { FoundAtStart, FoundFolder } from "./scanFolder.ts";
import type { Segment } from "./segment.ts";
import { streamKey } from "./segmentName.ts";
import { SpoolStream } from "./spoolStream.ts";
import type { UpstreamFolder } from "./upstreamFolder.ts";

export interface UpstreamSpoolOptions {
  readonly route: string;
  readonly upstream: string;
  readonly whenFull: "refuse" | "drop_oldest";
  /** Of all upstreams. */
  readonly allRoom: Room;
}

const NOTHING_FOUND: FoundAtStart = { replicas: [], tornBytes: 0, damagedBytes: 0 };

export class UpstreamSpool {
  #foundAtStart: FoundAtStart;
  readonly #options: UpstreamSpoolOptions;
  readonly #folder: UpstreamFolder;
  readonly #losses = new Losses();
  readonly #committer: Committer;
  readonly #streams = new Map<string, { readonly id: LaneId; readonly stream: SpoolStream }>();

  /** @param found what was in the folder; null if there was none */
  constructor(options: UpstreamSpoolOptions, folder: UpstreamFolder, found: FoundFolder | null) {
    const name = `spool of ${options.route}/${options.upstream}`;
    this.#options = options;
    this.#folder = folder;
    this.#committer = new Committer(folder, name, options.allRoom, (bytes) => this.#makeRoom(bytes));
    folder.segments = () => this.#segments();
    this.#foundAtStart = found?.found ?? NOTHING_FOUND;
    for (const [key, { id, segments }] of found?.streams ?? []) {
      this.#streams.set(key, { id, stream: this.#newStream(id, segments) });
    }
    for (const { size } of this.#segments()) folder.room.take(size);
    if (found !== null) folder.takeOver(found.lastSequence, found.spent);
  }

  /** What of it was there at the start, and that nobody was told of before. */
  get foundAtStart(): FoundAtStart {
    return this.#foundAtStart;
  }

  /** Streams that have something. */
  get found(): readonly LaneId[] {
    return [...this.#streams.values()].filter(({ stream }) => !stream.isEmpty).map(({ id }) => id);
  }

  /** Records that nobody has read. */
  get unread(): number {
    let records = 0;
    for (const { unread } of this.#segments()) records += unread.records;
    return records;
  }

  /** The stream of a lane, the same one until it is forgotten. One that is empty has no file. */
  stream(id: LaneId): SpoolStream {
    const key = streamKey(id);
    const { stream } = this.#streams.get(key) ?? { stream: this.#newStream(id, []) };
    this.#streams.set(key, { id, stream });
    return stream;
  }

  /** Forgets a stream that is empty, which nobody uses any more; does nothing if it is not empty. */
  forget(id: LaneId): void {
    const key = streamKey(id);
    if (this.#streams.get(key)?.stream.isEmpty === true) this.#streams.delete(key);
  }

  /** Of its segments on disk, and of appends under way. Damaged files that are kept aside are not counted. */
  get bytes(): number {
    return this.#folder.room.used;
  }

  /**
   * When the oldest unreleased record was appended, in milliseconds since the epoch; null with none on disk. It is the time
   * of the first record of the oldest segment, so a little early once part of that is released.
   */
  get oldestAt(): number | null {
    let oldest: number | null = null;
    for (const { stream } of this.#streams.values()) {
      const firstAt = stream.segments[0]?.firstAt ?? Infinity;
      if (firstAt < (oldest ?? Infinity)) oldest = firstAt;
    }
    return oldest;
  }

  /** Who is told of what happens from now on. */
  tell(events: SpoolEvents): void {
    this.#losses.events = events;
  }

  /** Removes all that it holds, uncounted. Only for what nobody asked for. */
  async discard(): Promise<void> {
    for (const { stream } of this.#streams.values()) while (stream.segments.length > 0) stream.dropOldest();
    this.#foundAtStart = NOTHING_FOUND;
    await this.#folder.settled();
  }

  /**
   * Makes ready for the next who asks for it, when who had it has closed and touches none of its streams any more: what that
   * one had read and not released is there again. Returns when nothing is under way.
   */
  async handBack(): Promise<void> {
    await this.#committer.settled();
    await Promise.all([...this.#streams.values()].map(({ stream }) => stream.takeBack()));
    for (const { id } of [...this.#streams.values()]) this.forget(id);
    this.#foundAtStart = NOTHING_FOUND;
    if (this.#streams.size > 0) this.#folder.writePositions();
    await this.#folder.settled();
  }

  /** Finishes what was begun; appends fail from now on. */
  async close(): Promise<void> {
    await this.#committer.close();
    if (this.#streams.size > 0) this.#folder.writePositions();
    await this.#folder.close();
  }

  /** Writes nothing more, and waits for nothing. What the disk is busy with was acknowledged to nobody. */
  giveUp(): void {
    this.#committer.giveUp();
    this.#folder.giveUp();
  }

  *#segments(): Iterable<Segment> {
    for (const { stream } of this.#streams.values()) yield* stream.segments;
  }

  #newStream(id: LaneId, found: readonly Segment[]): SpoolStream {
    const { route, upstream } = this.#options;
    const owner = encodeOwner({ route, upstream, lane: id });
    const [folder, committer, losses] = [this.#folder, this.#committer, this.#losses];
    return new SpoolStream({ folder, committer, losses, key: streamKey(id), owner }, found);
  }

  /** Drops the oldest segments, of the largest stream first, until so many bytes are free; false if that cannot be. */
  #makeRoom(bytes: number): boolean {
    if (this.#options.whenFull === "refuse") return false;
    const streams = [...this.#streams.values()].map(({ stream }) => stream);
    const droppable = streams.reduce((sum, stream) => sum + stream.droppableBytes, 0);
    if (droppable < bytes) return false;
    const enough = this.#folder.room.used - bytes;
    while (this.#folder.room.used > enough) {
      const largest = streams.reduce((best, stream) =>
        stream.droppableBytes > best.droppableBytes ? stream : best,
      );
      largest.dropOldest();
    }
    return true;
  }
}
