/** The files of the spool on a real disk. */
import { readSync } from "node:fs";
import { mkdir, open, readdir, rename, unlink } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import type { FolderEntry, SpoolFile, SpoolFiles } from "./files.ts";
import { lockFolder } from "./folderLock.ts";

const FLAGS = { read: "r", write: "r+", create: "wx+" } as const;

class DiskFile implements SpoolFile {
  readonly #handle: FileHandle;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  async write(parts: readonly Uint8Array[], position: number): Promise<void> {
    let rest = parts;
    let at = position;
    while (rest.length > 0) {
      const { bytesWritten } = await this.#handle.writev(rest, at); // a full disk takes a part, and says so next time
      at += bytesWritten;
      rest = behind(rest, bytesWritten);
    }
  }

  async read(target: Uint8Array, position: number): Promise<number> {
    let filled = 0;
    let bytesRead = -1;
    while (filled < target.length && bytesRead !== 0) {
      ({ bytesRead } = await this.#handle.read(target, filled, target.length - filled, position + filled));
      filled += bytesRead;
    }
    return filled;
  }

  readNow(target: Uint8Array, position: number): number {
    let filled = 0;
    let bytesRead = -1;
    while (filled < target.length && bytesRead !== 0) {
      bytesRead = readSync(this.#handle.fd, target, filled, target.length - filled, position + filled);
      filled += bytesRead;
    }
    return filled;
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size;
  }

  truncate(size: number): Promise<void> {
    return this.#handle.truncate(size);
  }

  sync(): Promise<void> {
    return this.#handle.datasync(); // what reading needs: the size is part of it, the times are not
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

export const diskFiles: SpoolFiles = {
  async open(path, use) {
    return new DiskFile(await open(path, FLAGS[use], 0o600));
  },

  async list(folder) {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.map((entry): FolderEntry => {
      const kind = entry.isDirectory() ? "folder" : entry.isFile() ? "file" : "other";
      return { name: entry.name, kind };
    });
  },

  async makeFolder(path) {
    const first = await mkdir(path, { recursive: true, mode: 0o700 });
    if (first === undefined) return;
    // Each name that was made is an entry of the folder above it.
    for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
  },

  syncFolder,
  rename,
  remove: unlink,
  lock: lockFolder,
};

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** What is left of them behind the first bytes. */
function behind(parts: readonly Uint8Array[], bytes: number): readonly Uint8Array[] {
  let rest = bytes;
  const first = parts.findIndex((part) => {
    if (part.length > rest) return true;
    rest -= part.length;
    return false;
  });
  const [cut, ...whole] = first === -1 ? [] : parts.slice(first);
  return cut === undefined ? [] : [cut.subarray(rest), ...whole];
}
