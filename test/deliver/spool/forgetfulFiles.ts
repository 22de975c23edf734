/**
 * A disk in memory that forgets, when its power is cut, what was not synced: bytes in files, and names in folders. Which part
 * of that survives is left to chance, as on a real one.
 *
 * It is used through processes. One that is killed has no further effect, and hears nothing of what it had begun.
 */
import { basename, dirname } from "node:path";
import type { FolderEntry, FolderLock, SpoolFile, SpoolFiles } from "../../../src/deliver/spool/files.ts";

class Inode {
  bytes: Buffer = Buffer.alloc(0);
  synced: Buffer = Buffer.alloc(0);
  /** A sync failed: what was not on disk then is lost, and later syncs would not tell. */
  hasFailed = false;
}

type Change =
  | { readonly kind: "add"; readonly name: string; readonly inode: Inode }
  | { readonly kind: "remove"; readonly name: string }
  | { readonly kind: "rename"; readonly name: string; readonly to: string };

class Folder {
  names = new Map<string, Inode>();
  synced = new Map<string, Inode>();
  changes: Change[] = [];

  change(change: Change): void {
    apply(this.names, change);
    this.changes.push(change);
  }
}

/** What a call does instead of what it should; null: nothing. */
export type Fault = (
  call: "open" | "write" | "sync" | "syncFolder" | "read" | "truncate",
  path: string,
) => string | null;

export class ForgetfulDisk {
  readonly #random: () => number;
  readonly #folders = new Map<string, Folder>();
  #process: Process | null = null;
  fault: Fault = () => null;
  /** Bytes of all files. */
  capacity = Infinity;
  /** Calls so far. */
  readonly calls = { sync: 0, syncFolder: 0, write: 0, open: 0 };
  openFiles = 0;
  /** Files that were synced again after that had failed. */
  readonly syncedAgain: string[] = [];

  /** @param random decides what survives */
  constructor(random: () => number) {
    this.#random = random;
  }

  /** A new process; the one before is killed. */
  start(): SpoolFiles {
    this.kill();
    this.#process = new Process(this);
    return this.#process;
  }

  /** Ends the process, in the middle of what it does. The system goes on: nothing is forgotten. */
  kill(): void {
    if (this.#process !== null) this.#process.isDead = true;
    this.#process = null;
    this.openFiles = 0;
  }

  /** Ends the process and the system. */
  cutPower(): void {
    this.kill();
    for (const folder of this.#folders.values()) {
      for (const change of folder.changes) if (this.#random() < 0.5) apply(folder.synced, change);
      folder.names = new Map(folder.synced);
      folder.changes = [];
      for (const inode of folder.names.values()) this.#forget(inode);
    }
  }

  /** Paths of all files. */
  get paths(): string[] {
    return [...this.#folders].flatMap(([folder, { names }]) =>
      [...names.keys()].map((name) => `${folder}/${name}`),
    );
  }

  /** The bytes of a file, which the caller may change, and set. */
  bytesOf(path: string): Buffer {
    return this.inode(path).bytes;
  }

  /** The text of the one file of this name; "" if it is not there. */
  textOf(name: string): string {
    const path = this.paths.find((other) => basename(other) === name);
    return path === undefined ? "" : this.bytesOf(path).toString("utf8");
  }

  /** Makes or replaces a file, as somebody else might. */
  put(path: string, bytes: Buffer): void {
    const inode = new Inode();
    inode.bytes = bytes;
    inode.synced = bytes;
    const folder = this.folder(dirname(path));
    folder.names.set(basename(path), inode);
    folder.synced.set(basename(path), inode);
  }

  /** Removes a file, as somebody else might. */
  remove(path: string): void {
    const folder = this.folder(dirname(path));
    folder.names.delete(basename(path));
    folder.synced.delete(basename(path));
  }

  get used(): number {
    const inodes = new Set([...this.#folders.values()].flatMap(({ names }) => [...names.values()]));
    return [...inodes].reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  folder(path: string): Folder {
    const folder = this.#folders.get(path);
    if (folder === undefined) throw failure("ENOENT", path);
    return folder;
  }

  /** In the order of nobody, as folders are listed. */
  shuffled<Item>(items: readonly Item[]): Item[] {
    const keyed = items.map((item) => ({ item, key: this.#random() }));
    return keyed.toSorted((left, right) => left.key - right.key).map(({ item }) => item);
  }

  foldersIn(path: string): string[] {
    return [...this.#folders.keys()]
      .filter((other) => dirname(other) === path)
      .map((other) => basename(other));
  }

  /** Folders are there for good at once. */
  makeFolder(path: string): void {
    if (!this.#folders.has(path)) this.#folders.set(path, new Folder());
    if (dirname(path) !== path) this.makeFolder(dirname(path));
  }

  inode(path: string): Inode {
    const inode = this.folder(dirname(path)).names.get(basename(path));
    if (inode === undefined) throw failure("ENOENT", path);
    return inode;
  }

  /** Of what was not synced, any part may be there: of the size, and of the bytes, which are 0 where they are not. */
  #forget(inode: Inode): void {
    const { bytes, synced } = inode;
    const sizes = [synced.length, bytes.length, Math.floor(bytes.length * this.#random())];
    const size = sizes[Math.floor(sizes.length * this.#random())] ?? 0;
    // What is synced stays, unless it was cut off meanwhile.
    const kept = Buffer.alloc(Math.max(size, Math.min(synced.length, bytes.length)));
    if (this.#random() < 0.7) bytes.copy(kept);
    synced.copy(kept);
    inode.bytes = kept;
    inode.synced = Buffer.from(kept);
    inode.hasFailed = false;
  }
}

class Process implements SpoolFiles {
  readonly #disk: ForgetfulDisk;
  isDead = false;

  constructor(disk: ForgetfulDisk) {
    this.#disk = disk;
  }

  open(path: string, use: "read" | "write" | "create"): Promise<SpoolFile> {
    return this.step(() => {
      this.#disk.calls.open += 1;
      this.#fail("open", path);
      const folder = this.#disk.folder(dirname(path));
      if (use === "create") {
        if (folder.names.has(basename(path))) throw failure("EEXIST", path);
        folder.change({ kind: "add", name: basename(path), inode: new Inode() });
      }
      const file = new MemoryFile(this, this.#disk, path, this.#disk.inode(path));
      this.#disk.openFiles += 1;
      return file;
    });
  }

  list(folder: string): Promise<readonly FolderEntry[]> {
    return this.step(() => {
      const files = [...this.#disk.folder(folder).names.keys()].map((name) => ({
        name,
        kind: "file" as const,
      }));
      const folders = this.#disk.foldersIn(folder).map((name) => ({ name, kind: "folder" as const }));
      return this.#disk.shuffled([...files, ...folders]);
    });
  }

  makeFolder(path: string): Promise<void> {
    return this.step(() => {
      this.#disk.makeFolder(path);
    });
  }

  async syncFolder(path: string): Promise<void> {
    await this.step(() => {
      this.#disk.calls.syncFolder += 1;
      this.#fail("syncFolder", path);
      const folder = this.#disk.folder(path);
      folder.synced = new Map(folder.names);
      folder.changes = [];
    });
    await this.step(() => undefined);
  }

  rename(from: string, to: string): Promise<void> {
    return this.step(() => {
      this.#disk.inode(from);
      this.#disk.folder(dirname(from)).change({ kind: "rename", name: basename(from), to: basename(to) });
    });
  }

  remove(path: string): Promise<void> {
    return this.step(() => {
      this.#disk.inode(path);
      this.#disk.folder(dirname(path)).change({ kind: "remove", name: basename(path) });
    });
  }

  lock(): Promise<FolderLock> {
    return this.step(() => ({ release: () => this.step(() => undefined) }));
  }

  /** Has its effect a little later, as one; in a process that was killed never, and nobody hears of it. */
  step<Result>(effect: () => Result): Promise<Result> {
    return new Promise((resolve, reject) => {
      setImmediate(() => {
        if (this.isDead) return;
        try {
          resolve(effect());
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      });
    });
  }

  #fail(call: Parameters<Fault>[0], path: string): void {
    const code = this.#disk.fault(call, path);
    if (code !== null) throw failure(code, path);
  }
}

class MemoryFile implements SpoolFile {
  readonly #process: Process;
  readonly #disk: ForgetfulDisk;
  readonly #path: string;
  readonly #inode: Inode;
  #isOpen = true;

  constructor(process: Process, disk: ForgetfulDisk, path: string, inode: Inode) {
    this.#process = process;
    this.#disk = disk;
    this.#path = path;
    this.#inode = inode;
  }

  /** In three steps, between which the process can be killed. */
  async write(parts: readonly Uint8Array[], position: number): Promise<void> {
    this.#disk.calls.write += 1;
    const bytes = Buffer.concat(parts);
    const size = Math.ceil(bytes.length / 3);
    for (let at = 0; at < bytes.length; at += size) {
      await this.#process.step(() => {
        this.#put(bytes.subarray(at, at + size), position + at);
        this.#fail("write");
      });
    }
  }

  read(target: Uint8Array, position: number): Promise<number> {
    return this.#process.step(() => {
      this.#fail("read");
      return this.readNow(target, position);
    });
  }

  readNow(target: Uint8Array, position: number): number {
    return this.#inode.bytes.copy(target, 0, position);
  }

  size(): Promise<number> {
    return this.#process.step(() => this.#inode.bytes.length);
  }

  truncate(size: number): Promise<void> {
    return this.#process.step(() => {
      this.#fail("truncate");
      this.#inode.bytes = Buffer.from(this.#inode.bytes.subarray(0, size));
    });
  }

  async sync(): Promise<void> {
    await this.#process.step(() => {
      this.#disk.calls.sync += 1;
      if (this.#inode.hasFailed) this.#disk.syncedAgain.push(this.#path);
      try {
        this.#fail("sync");
      } catch (error) {
        this.#inode.hasFailed = true;
        throw error;
      }
      if (!this.#inode.hasFailed) this.#inode.synced = Buffer.from(this.#inode.bytes);
    });
    await this.#process.step(() => undefined);
  }

  close(): Promise<void> {
    return this.#process.step(() => {
      if (!this.#isOpen) throw failure("EBADF", this.#path);
      this.#isOpen = false;
      this.#disk.openFiles -= 1;
    });
  }

  #put(bytes: Buffer, position: number): void {
    const room = Math.max(0, this.#disk.capacity - this.#disk.used);
    const kept = bytes.subarray(0, Math.min(bytes.length, room));
    const before = this.#inode.bytes;
    const grown = Buffer.alloc(Math.max(before.length, position + kept.length));
    before.copy(grown);
    kept.copy(grown, position);
    this.#inode.bytes = grown;
    if (kept.length < bytes.length) throw failure("ENOSPC", this.#path);
  }

  #fail(call: Parameters<Fault>[0]): void {
    const code = this.#disk.fault(call, this.#path);
    if (code !== null) throw failure(code, this.#path);
  }
}

function apply(names: Map<string, Inode>, change: Change): void {
  if (change.kind === "add") {
    names.set(change.name, change.inode);
    return;
  }
  const inode = names.get(change.name);
  names.delete(change.name);
  if (change.kind === "rename" && inode !== undefined) names.set(change.to, inode);
}

function failure(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: as the test wants it, '${path}'`), { code });
}

/** Numbers 0 <= n < 1 that look random, always the same ones for a seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
