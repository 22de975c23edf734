/**
 * All that the spool does with files. There are two of it: the disk, and in the tests one that forgets what was not synced.
 *
 * Errors are those of node:fs, with their `code`.
 */

/** An open file. Positions are absolute. */
export interface SpoolFile {
  /** Writes all of it. When it fails, any part of it may be in the file. */
  write(parts: readonly Uint8Array[], position: number): Promise<void>;
  /** Fills the target as far as the file reaches. @returns bytes read */
  read(target: Uint8Array, position: number): Promise<number>;
  /** As read(), while everything else waits: for the start, which reads many short pieces. */
  readNow(target: Uint8Array, position: number): number;
  size(): Promise<number>;
  truncate(size: number): Promise<void>;
  /** Returns when the data, and the size, would outlive a power cut. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

export interface FolderEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "other";
}

/** Says that a folder is in use, until it is released. */
export interface FolderLock {
  release(): Promise<void>;
}

export interface SpoolFiles {
  /** `create` fails when the file is there, the others when it is not. */
  open(path: string, use: "read" | "write" | "create"): Promise<SpoolFile>;
  list(folder: string): Promise<readonly FolderEntry[]>;
  /** Makes a folder and those above it that are missing; returns when they would outlive a power cut. */
  makeFolder(path: string): Promise<void>;
  /** Returns when names made, changed and removed in the folder would be so after a power cut. */
  syncFolder(path: string): Promise<void>;
  /** Replaces what has the new name. */
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /**
   * Takes a folder for this process. What a killed process left does not stand in the way.
   *
   * @throws {SpoolError} SPOOL_IN_USE when a process that is alive has it
   */
  lock(folder: string): Promise<FolderLock>;
}
