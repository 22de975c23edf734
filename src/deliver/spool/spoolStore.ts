/**
 * What waits on disk for all upstreams: the folder, who may use it, and how much it may hold.
 *
 * `<path>/<process>/<route>/<upstream>/` has the segments of one upstream of one route, `<path>/<process>/lock.<n>` says
 * which process has the folder.
 */
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { SpoolError } from "./errors.ts";
import type { SpoolEvents } from "./events.ts";
import type { FolderLock } from "./files.ts";
import { formatBytes } from "./formatBytes.ts";
import { invariant } from "./invariant.ts";
import type { SpoolOptions } from "./options.ts";
import { Room } from "./room.ts";
import { scanFolder } from "./scanFolder.ts";
import type { FoundAtStart, FoundFolder } from "./scanFolder.ts";
import { escapeName } from "./segmentName.ts";
import type { SpoolTools } from "./tools.ts";
import { describe, UpstreamFolder } from "./upstreamFolder.ts";
import { UpstreamSpool } from "./upstreamSpool.ts";

/** Each process of a gateway has a folder of its own; there is one. */
const PROCESS_FOLDER = "0";

/** What an upstream left behind that nobody has now. */
export interface Orphan {
  readonly route: string;
  readonly upstream: string;
  /** That nobody has read. */
  readonly records: number;
  /** Of its segments on disk. */
  readonly bytes: number;
}

/** The spool of an upstream, and who has it. */
interface Shelf {
  readonly route: string;
  readonly upstream: string;
  readonly spool: UpstreamSpool;
  /** `found`: nobody has asked for it in this process. `given_back`: somebody had it; what it holds is in the ledger. */
  use: "found" | "in_use" | "given_back";
}

export class SpoolStore {
  readonly #options: SpoolOptions;
  readonly #tools: SpoolTools;
  readonly #path: string;
  readonly #lock: FolderLock;
  readonly #room: Room;
  /** By folder. */
  readonly #shelves = new Map<string, Shelf>();

  private constructor(options: SpoolOptions, tools: SpoolTools, path: string, lock: FolderLock) {
    this.#options = options;
    this.#tools = tools;
    this.#path = path;
    this.#lock = lock;
    this.#room = new Room(options.maxBytes, null);
  }

  /**
   * Takes the folder, which is made if it is not there, and finds what is in it.
   *
   * @throws {SpoolError} SPOOL_IN_USE, SPOOL_UNUSABLE
   */
  static async open(options: SpoolOptions, tools: SpoolTools): Promise<SpoolStore> {
    const path = join(options.path, PROCESS_FOLDER);
    try {
      await tools.files.makeFolder(path);
      const lock = await tools.files.lock(path);
      try {
        const store = new SpoolStore(options, tools, path, lock);
        await store.#findAll();
        return store;
      } catch (error) {
        await lock.release();
        throw error;
      }
    } catch (error) {
      if (error instanceof SpoolError) throw error;
      const wanted = "want a folder that this process may make, list, read and write";
      throw new SpoolError(
        "SPOOL_UNUSABLE",
        `spool.path ${options.path}: ${describe(error)}; ${wanted}`,
        error,
      );
    }
  }

  /**
   * The spool of an upstream of a route, for one at a time: asked for again only after release().
   *
   * What it holds is all that was left for this upstream, at the start or by who had it before. Only the first of them is told
   * of it as `foundAtStart`.
   */
  upstream(route: string, upstream: string, events: SpoolEvents): UpstreamSpool {
    const path = this.#pathOf(route, upstream);
    let shelf = this.#shelves.get(path);
    invariant(shelf?.use !== "in_use", `the spool of ${route}/${upstream} is asked for twice`);
    shelf ??= { route, upstream, spool: this.#newSpool(route, upstream, path, null), use: "found" };
    shelf.use = "in_use";
    shelf.spool.tell(events);
    this.#shelves.set(path, shelf);
    return shelf.spool;
  }

  /**
   * Gives the spool of an upstream back, when its sender has closed. What it holds stays, as an orphan until somebody asks for
   * it again, in this process or the next. Returns when nothing is under way: only then may it be asked for.
   */
  async release(route: string, upstream: string): Promise<void> {
    const shelf = this.#shelves.get(this.#pathOf(route, upstream));
    invariant(shelf?.use === "in_use", `the spool of ${route}/${upstream} is given back, and nobody has it`);
    await shelf.spool.handBack();
    shelf.use = "given_back";
  }

  #pathOf(route: string, upstream: string): string {
    return join(this.#path, escapeName(route), escapeName(upstream));
  }

  /** What is there that nobody has now. */
  orphans(): readonly Orphan[] {
    return [...this.#shelves.values()]
      .filter(({ use, spool }) => use !== "in_use" && spool.bytes > 0)
      .map(({ route, upstream, spool: { unread, bytes } }) => ({ route, upstream, records: unread, bytes }));
  }

  /** Removes orphans of an earlier process. What somebody had in this one is in the ledger, and left to the next start. */
  async dropOrphans(): Promise<void> {
    const orphans = [...this.#shelves.values()].filter(({ use }) => use === "found");
    await Promise.all(orphans.map(({ spool }) => spool.discard()));
  }

  /** Of all segments on disk, orphans' as well, and of appends under way. Damaged files kept aside are not counted. */
  get bytes(): number {
    return this.#room.used;
  }

  /**
   * Ends: finishes commits under way, notes how far each stream was released, gives the folder back. Appends fail from now on.
   *
   * @param patienceMs how long a disk that hangs is waited for
   */
  async close(patienceMs = Infinity): Promise<void> {
    const spools = [...this.#shelves.values()].map(({ spool }) => spool);
    const closed = Promise.all(spools.map((spool) => spool.close())).then(() => true);
    if (!(await within(patienceMs, closed))) {
      this.#tools.log.error(
        `spool.path ${this.#options.path}: the disk hangs, it is not waited for any longer`,
      );
      for (const spool of spools) spool.giveUp();
    }
    await this.#lock.release();
  }

  async #findAll(): Promise<void> {
    for (const route of await this.#foldersIn(this.#path)) {
      for (const upstream of await this.#foldersIn(join(this.#path, route)))
        await this.#find(route, upstream);
    }
  }

  /** @param route    the folder's name, as that of the upstream */
  async #find(route: string, upstream: string): Promise<void> {
    const path = join(this.#path, route, upstream);
    const found = await scanFolder(
      this.#tools,
      path,
      (owner) => escapeName(owner.route) === route && escapeName(owner.upstream) === upstream,
    );
    const owner = found.owner ?? { route, upstream };
    const spool = this.#newSpool(owner.route, owner.upstream, path, found);
    this.#shelves.set(path, { route: owner.route, upstream: owner.upstream, spool, use: "found" });
    this.#logFound(`spool of ${owner.route}/${owner.upstream}`, spool);
  }

  #logFound(name: string, { bytes, foundAtStart }: UpstreamSpool): void {
    const records = recordsIn(foundAtStart);
    const { tornBytes } = foundAtStart;
    if (records > 0)
      this.#tools.log.info(`${name}: ${records} records (${formatBytes(bytes)}) wait from before`);
    if (tornBytes > 0) {
      const what = `${formatBytes(tornBytes)} that the last process had not finished writing are cut off`;
      this.#tools.log.warn(`${name}: ${what}; none of it was acknowledged`);
    }
  }

  #newSpool(route: string, upstream: string, path: string, found: FoundFolder | null): UpstreamSpool {
    const { maxBytesPerUpstream, whenFull } = this.#options;
    const folder = new UpstreamFolder(path, this.#tools, new Room(maxBytesPerUpstream, this.#room));
    return new UpstreamSpool({ route, upstream, whenFull, allRoom: this.#room }, folder, found);
  }

  async #foldersIn(path: string): Promise<readonly string[]> {
    const entries = await this.#tools.files.list(path);
    return entries.filter(({ kind }) => kind === "folder").map(({ name }) => name);
  }
}

/** @returns false if it has not ended in so long */
async function within(ms: number, ends: Promise<boolean>): Promise<boolean> {
  if (ms === Infinity) return ends;
  const haste = new AbortController();
  const over = wait(ms, false, { signal: haste.signal }).catch(() => false);
  const isInTime = await Promise.race([ends, over]);
  haste.abort();
  return isInTime;
}

function recordsIn({ replicas }: FoundAtStart): number {
  return replicas.reduce((sum, { records }) => sum + records, 0);
}
