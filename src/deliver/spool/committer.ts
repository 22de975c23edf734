/**
 * Group commit for one upstream: what is appended while a commit is under way goes into the next, all together.
 *
 * A commit writes the records of a stream with one call and syncs each file once, and the folder if a file was made. What
 * could not be written or synced goes to a new segment, once: the kernel may have forgotten what it failed to write, so that
 * a second sync of the same file would say nothing. While the disk fails, appends fail at once; each second, one finds out
 * whether it still does.
 */
import type { Append, AppendEnd } from "./append.ts";
import type { Room } from "./room.ts";
import { SEGMENT_BYTES } from "./segment.ts";
import type { Segment } from "./segment.ts";
import { formatBytes } from "./formatBytes.ts";
import { describe, isWithin } from "./upstreamFolder.ts";
import type { UpstreamFolder } from "./upstreamFolder.ts";

/** A stream, as far as commits know it. */
export interface CommitStream {
  /** The segment that has room for so many bytes; null if a new one is to be made. */
  segmentFor(bytes: number): Segment | null;
  newSegment(): Segment;
  /** Nothing more is added to the last segment. */
  sealLast(): Promise<void>;
  encode(segment: Segment, appends: readonly Append[]): Uint8Array[];
  /** The commit has nothing more to do with the segment, which got these appends, or none. */
  written(segment: Segment, appends: readonly Append[]): void;
  /** They came to nothing. */
  refused(appends: readonly Append[], end: AppendEnd): void;
}

/** What of a stream goes into one commit. */
interface Group {
  readonly stream: CommitStream;
  readonly appends: readonly Append[];
}

type Written =
  | { readonly kind: "written"; readonly group: Group; readonly segment: Segment; readonly isNew: boolean }
  | { readonly kind: "failed"; readonly group: Group; readonly cause: string };

/** Files that are written at the same time. Node's own pool of threads has four. */
const PARALLEL_FILES = 4;

const RETRY_AFTER_MS = 1000;

export class Committer {
  readonly #folder: UpstreamFolder;
  readonly #name: string;
  readonly #rooms: readonly { readonly room: Room; readonly option: string }[];
  readonly #makeRoom: (bytes: number) => boolean;
  #waiting = new Map<CommitStream, Append[]>();
  #running: Promise<void> | null = null;
  #isClosed = false;
  #isGivenUp = false;
  /** Why the last commit failed; null if it did not. */
  #trouble: string | null = null;
  #failedAt = 0;

  /**
   * @param name     of the upstream, for messages
   * @param makeRoom drops records until so many bytes are free; false, without dropping any, if that cannot be
   */
  constructor(folder: UpstreamFolder, name: string, allRoom: Room, makeRoom: (bytes: number) => boolean) {
    this.#folder = folder;
    this.#name = name;
    this.#rooms = [
      { room: folder.room, option: "spool.max_bytes_per_upstream" },
      { room: allRoom, option: "spool.max_bytes" },
    ];
    this.#makeRoom = makeRoom;
  }

  append(stream: CommitStream, append: Append): void {
    const obstacle = this.#obstacle(append.bytes);
    if (obstacle !== null) {
      queueMicrotask(() => {
        stream.refused([append], obstacle);
      });
      return;
    }
    this.#folder.room.take(append.bytes);
    const waiting = this.#waiting.get(stream);
    if (waiting === undefined) this.#waiting.set(stream, [append]);
    else waiting.push(append);
    this.#running ??= this.#run();
  }

  /** Returns when nothing is under way. */
  async settled(): Promise<void> {
    await this.#running;
  }

  /** Writes nothing more, when nobody waits for the ends of appends any longer. A call of the disk under way goes on. */
  giveUp(): void {
    this.#isClosed = true;
    this.#isGivenUp = true;
  }

  /** Finishes what was appended; appends fail from now on. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
  }

  #obstacle(bytes: number): AppendEnd | null {
    if (this.#isClosed) return { kind: "failed", cause: `${this.#name}: the spool is closed` };
    if (this.#trouble !== null && isWithin(RETRY_AFTER_MS, this.#failedAt, this.#folder.tools.now())) {
      return { kind: "failed", cause: this.#trouble };
    }
    const full = this.#rooms.find(({ room }) => room.excess(bytes) > 0);
    if (full === undefined) return null;
    const excess = Math.max(...this.#rooms.map(({ room }) => room.excess(bytes)));
    if (this.#makeRoom(excess)) return null;
    const { used, maxBytes } = full.room;
    const limit = `${formatBytes(used)} of ${full.option} ${formatBytes(maxBytes)} are used`;
    return { kind: "full", cause: `${this.#name} is full: no room for ${formatBytes(bytes)}, ${limit}` };
  }

  async #run(): Promise<void> {
    await Promise.resolve(); // so that all that is appended in one go is in one commit
    while (this.#waiting.size > 0 && !this.#isGivenUp) await this.#commit(this.#takeGroups());
    this.#running = null;
  }

  /** Of each stream what one segment takes. */
  #takeGroups(): readonly Group[] {
    const groups: Group[] = [];
    for (const [stream, waiting] of this.#waiting) {
      const appends = waiting.splice(0, countThatFit(waiting));
      if (waiting.length === 0) this.#waiting.delete(stream);
      groups.push({ stream, appends });
    }
    return groups;
  }

  async #commit(groups: readonly Group[]): Promise<void> {
    const ends = await this.#writeAll(groups);
    this.#noteTrouble(ends);
    for (const end of ends) {
      const { stream, appends } = end.group;
      if (end.kind === "written") {
        stream.written(end.segment, appends);
      } else {
        this.#folder.room.give(bytesOf(appends));
        stream.refused(appends, { kind: "failed", cause: end.cause });
      }
    }
  }

  async #writeAll(groups: readonly Group[]): Promise<readonly Written[]> {
    try {
      await this.#folder.prepare();
    } catch (error) {
      return groups.map((group) => this.#failed(group, error));
    }
    const ends: Written[] = [];
    const rest = groups.values();
    const writer = async (): Promise<void> => {
      for (const group of rest) ends.push(await this.#write(group));
    };
    await Promise.all(Array.from({ length: PARALLEL_FILES }, writer));
    return this.#syncFolder(ends);
  }

  /** Names of new files are synced too before their records count. */
  async #syncFolder(ends: readonly Written[]): Promise<readonly Written[]> {
    if (!ends.some((end) => end.kind === "written" && end.isNew)) return ends;
    try {
      await this.#folder.sync();
      return ends;
    } catch (error) {
      return Promise.all(
        ends.map(async (end) => {
          if (end.kind === "failed" || !end.isNew) return end;
          await this.#giveBack(end.group.stream, end.segment);
          return this.#failed(end.group, error);
        }),
      );
    }
  }

  async #write(group: Group): Promise<Written> {
    const { stream, appends } = group;
    const current = stream.segmentFor(bytesOf(appends));
    if (current !== null && (await this.#tryWrite(group, current)) === null) {
      return { kind: "written", group, segment: current, isNew: false };
    }
    if (current === null) await stream.sealLast();
    const attempts = current === null ? 2 : 1;
    let cause: unknown = "the spool is closed";
    for (let attempt = 0; attempt < attempts && !this.#isGivenUp; attempt++) {
      const segment = stream.newSegment();
      const failure = await this.#tryWrite(group, segment);
      if (failure === null) return { kind: "written", group, segment, isNew: true };
      cause = failure.cause;
    }
    return this.#failed(group, cause);
  }

  /** @returns null when the records are on disk */
  async #tryWrite({ stream, appends }: Group, segment: Segment): Promise<{ readonly cause: unknown } | null> {
    segment.isBeingWritten = true;
    try {
      await this.#folder.write(segment, stream.encode(segment, appends));
      return null;
    } catch (cause) {
      await this.#giveBack(stream, segment);
      return { cause };
    }
  }

  /** Leaves the segment as it was before the commit. Nothing is added to it any more. */
  async #giveBack(stream: CommitStream, segment: Segment): Promise<void> {
    segment.isSealed = true;
    await this.#folder.cutBack(segment);
    stream.written(segment, []);
  }

  #failed(group: Group, error: unknown): Written {
    return { kind: "failed", group, cause: `${this.#name}: ${describe(error)}` };
  }

  #noteTrouble(ends: readonly Written[]): void {
    const failed = ends.find((end) => end.kind === "failed");
    const { log, now } = this.#folder.tools;
    if (failed === undefined) {
      if (this.#trouble !== null) log.info(`${this.#name}: can be written again`);
      this.#trouble = null;
      return;
    }
    const next = "what needs it is refused; tried again at most once a second";
    if (this.#trouble === null) log.error(`${failed.cause}; ${next}`);
    this.#trouble = failed.cause;
    this.#failedAt = now();
  }
}

function bytesOf(appends: readonly Append[]): number {
  return appends.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** How many of them make a segment that is not too large: at least one. */
function countThatFit(appends: readonly Append[]): number {
  let count = 0;
  let bytes = 0;
  for (const append of appends) {
    bytes += append.bytes;
    if (count > 0 && bytes > SEGMENT_BYTES) break;
    count += 1;
  }
  return count;
}
