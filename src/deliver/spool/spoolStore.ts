/** What waits on disk for all upstreams: the folder, who may use it, and how much it may hold. */
import type { Logger } from "pino";
import type { ItemCounts } from "../../wire/parcel.ts";
import type { SpoolEvents } from "./events.ts";
import type { SpoolFiles } from "./files.ts";
import type { SpoolOptions } from "./options.ts";
import type { UpstreamSpool } from "./upstreamSpool.ts";

export interface SpoolTools {
  readonly files: SpoolFiles;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** 0 <= random() < 1; senders must not be able to guess it. */
  readonly random: () => number;
  readonly log: Pick<Logger, "error" | "warn" | "info">;
}

/** What an upstream left behind that nobody asked for. */
export interface Orphan {
  readonly route: string;
  readonly upstream: string;
  readonly records: number;
  /** Of its segments on disk. */
  readonly bytes: number;
  readonly items: ItemCounts;
}

export class SpoolStore {
  /**
   * Takes the folder, which is made if it is not there, and finds what is in it.
   *
   * @throws {SpoolError} SPOOL_IN_USE, SPOOL_UNUSABLE
   */
  static open(options: SpoolOptions, tools: SpoolTools): Promise<SpoolStore> {
    return Promise.reject(new Error(`not built yet ${options.path} ${tools.now()}`));
  }

  /** The spool of an upstream of a route; asked for once. */
  upstream(route: string, upstream: string, events: SpoolEvents): UpstreamSpool {
    throw new Error(`not built yet ${route} ${upstream} ${events.dropped.length}`);
  }

  /** What was found that nobody has asked for until now. */
  orphans(): readonly Orphan[] {
    throw new Error("not built yet");
  }

  /** Removes what orphans() tells. */
  dropOrphans(): Promise<void> {
    return Promise.reject(new Error("not built yet"));
  }

  /** Of all segments on disk, orphans' as well, and of appends under way. Damaged files kept aside are not counted. */
  get bytes(): number {
    throw new Error("not built yet");
  }

  /** Ends: finishes commits under way, notes how far each stream was released, gives the folder back. Appends fail from now on. */
  close(): Promise<void> {
    return Promise.reject(new Error("not built yet"));
  }
}
