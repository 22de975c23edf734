/**
 * The folder of one upstream: makes, writes, reads, removes its segments, and notes how far they were released.
 *
 * What nobody waits for, as removing a segment, is done in order, one thing at a time. Its failures are logged: they cost disk
 * space, or resending after a restart.
 */
import { join } from "node:path";
import type { SpoolFile } from "./files.ts";
import { formatPositions, POSITIONS_FILE } from "./positions.ts";
import type { Room } from "./room.ts";
import { NONCE_BYTES } from "./record.ts";
import { Segment } from "./segment.ts";
import { DAMAGED_SUFFIX } from "./segmentName.ts";
import type { SpoolTools } from "./tools.ts";

/** The positions are written at most this often. */
const POSITIONS_EVERY_MS = 1000;

export class UpstreamFolder {
  readonly path: string;
  readonly tools: SpoolTools;
  readonly room: Room;
  /** Segments whose positions are worth noting. Set by the owner of the streams. */
  segments: () => Iterable<Segment> = () => [];
  #lastSequence = 0;
  #isMade = false;
  #isClosed = false;
  #chores: Promise<void> = Promise.resolve();
  #positionsAt = -Infinity;
  /** Writing them failed the last time: it is logged once. */
  #hasPositionTrouble = false;

  constructor(path: string, tools: SpoolTools, room: Room) {
    this.path = path;
    this.tools = tools;
    this.room = room;
  }

  /** Goes on where an earlier process ended. @param spent segments that nobody needs */
  takeOver(lastSequence: number, spent: readonly Segment[]): void {
    this.#lastSequence = lastSequence;
    for (const segment of spent) {
      this.room.take(segment.size);
      this.discard(segment);
    }
  }

  newSegment(stream: string, previous: number): Segment {
    this.#lastSequence += 1;
    const nonce = Array.from({ length: NONCE_BYTES }, () => Math.floor(this.tools.random() * 256));
    const name = {
      stream,
      sequence: this.#lastSequence,
      previous,
      nonce: Buffer.from(nonce).toString("hex"),
    };
    return new Segment(name, this.tools.now());
  }

  /** Makes the folder, once, and waits until what had to make room is removed. */
  async prepare(): Promise<void> {
    if (!this.#isMade) await this.tools.files.makeFolder(this.path);
    this.#isMade = true;
    await this.#chores;
  }

  /** Writes and syncs behind what the segment has. Its file is made when it has nothing. */
  async write(segment: Segment, parts: readonly Uint8Array[]): Promise<void> {
    const file = await this.#openToWrite(segment);
    try {
      await file.write(parts, segment.size);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** Writes behind what the segment has, without a sync. Nothing depends on it: it may fail, or the file may be gone. */
  async writeHint(segment: Segment, parts: readonly Uint8Array[]): Promise<void> {
    try {
      const file = await this.tools.files.open(this.pathOf(segment), "write");
      try {
        await file.write(parts, segment.size);
      } finally {
        await file.close();
      }
    } catch (error) {
      if (hasCode(error, "ENOENT")) return;
      this.tools.log.warn(`${this.pathOf(segment)}: has no summary: ${describe(error)}`);
    }
  }

  /** Takes away what was written behind what the segment has, as far as the disk lets us. */
  async cutBack(segment: Segment): Promise<void> {
    const path = this.pathOf(segment);
    try {
      if (segment.size === 0) await this.#removeIfThere(path);
      else await this.#truncate(path, segment.size);
    } catch (error) {
      const what = `${path}: what is behind byte ${segment.size} was refused and could not be cut off`;
      this.tools.log.warn(`${what} (${describe(error)}); after a restart it may be delivered as well`);
    }
  }

  sync(): Promise<void> {
    return this.tools.files.syncFolder(this.path);
  }

  open(segment: Segment): Promise<SpoolFile> {
    return this.tools.files.open(this.pathOf(segment), "read");
  }

  pathOf(segment: Segment): string {
    return join(this.path, segment.fileName);
  }

  /** Removes a segment, or puts it aside if it is damaged. Its room is free at once. */
  discard(segment: Segment): void {
    const path = this.pathOf(segment);
    this.room.give(segment.size);
    this.#doLater(async () => {
      try {
        if (segment.isDamaged) await this.#renameIfThere(path, path + DAMAGED_SUFFIX);
        else await this.#removeIfThere(path);
      } catch (error) {
        const what = `${path}: cannot be removed, its records may be sent again after a restart`;
        this.tools.log.error(`${what}: ${describe(error)}`);
      }
    });
  }

  /** Notes the positions, unless that was done within the last second. */
  notePositions(): void {
    if (!isWithin(POSITIONS_EVERY_MS, this.#positionsAt, this.tools.now())) this.writePositions();
  }

  writePositions(): void {
    this.#positionsAt = this.tools.now();
    this.#doLater(async () => {
      try {
        await this.#replacePositions();
        this.#hasPositionTrouble = false;
      } catch (error) {
        const what = `${this.path}: positions cannot be written, more may be sent again after a restart`;
        if (!this.#hasPositionTrouble) this.tools.log.error(`${what}: ${describe(error)}`);
        this.#hasPositionTrouble = true;
      }
    });
  }

  /** Begins nothing more. */
  giveUp(): void {
    this.#isClosed = true;
  }

  /** Finishes what was begun. Later the folder may be another process's, and is not touched any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#chores;
  }

  /** Returns when everything that was begun is done. */
  settled(): Promise<void> {
    return this.#chores;
  }

  async #openToWrite(segment: Segment): Promise<SpoolFile> {
    try {
      return await this.tools.files.open(this.pathOf(segment), segment.size === 0 ? "create" : "write");
    } catch (error) {
      if (hasCode(error, "ENOENT")) this.#isMade = false; // somebody removed it: it is made again for the next commit
      throw error;
    }
  }

  /** @param chore does not fail */
  #doLater(chore: () => Promise<void>): void {
    if (!this.#isClosed) this.#chores = this.#chores.then(chore);
  }

  async #replacePositions(): Promise<void> {
    const positions = [...this.segments()]
      .filter(({ releasedTo }) => releasedTo > 0)
      .map(({ fileName, releasedTo }) => ({ fileName, releasedTo }));
    const path = join(this.path, POSITIONS_FILE);
    const fresh = `${path}.new`;
    await this.#removeIfThere(fresh);
    if (positions.length === 0) {
      await this.#removeIfThere(path);
      return;
    }
    const file = await this.tools.files.open(fresh, "create");
    try {
      await file.write([formatPositions(positions)], 0);
    } finally {
      await file.close();
    }
    await this.tools.files.rename(fresh, path);
  }

  async #truncate(path: string, size: number): Promise<void> {
    const file = await this.tools.files.open(path, "write");
    try {
      await file.truncate(size);
    } finally {
      await file.close();
    }
  }

  async #removeIfThere(path: string): Promise<void> {
    try {
      await this.tools.files.remove(path);
    } catch (error) {
      if (!hasCode(error, "ENOENT")) throw error;
    }
  }

  async #renameIfThere(from: string, to: string): Promise<void> {
    try {
      await this.tools.files.rename(from, to);
    } catch (error) {
      if (!hasCode(error, "ENOENT")) throw error;
    }
  }
}

/** Whether less time has passed; not if the clock was set back. */
export function isWithin(ms: number, from: number, now: number): boolean {
  return now >= from && now - from < ms;
}

/** Whether a call failed for this reason: ENOENT, for a file or folder that is not there, EIO, ... */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

/** What a failed call says. */
export function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
