/**
 * Says that a folder is in use, by a file that tells which process has it: `lock.<n>`, the one with the highest number counts.
 *
 * A process that is killed leaves its file. On the same machine, or in the same container, the next one sees at once that no
 * such process is alive: numbers of processes come again, but not with the same time of start. A file from elsewhere is watched
 * for a while, as its process, if it is alive, touches it every second.
 *
 * Nothing is taken over by changing what another process could change too: a new file with the next number is made, which only
 * one process can do, and older ones are removed after that.
 */
import { readFile, readdir, readlink, stat, unlink, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { SpoolError } from "./errors.ts";
import type { FolderLock } from "./files.ts";

/** How often a holder touches its file, and how long one from elsewhere is watched. */
export interface LockTimes {
  readonly touchMs: number;
  readonly watchMs: number;
}

const LOCK_TIMES: LockTimes = { touchMs: 1000, watchMs: 3000 };

const LOCK_FILE = /^lock\.(\d{1,15})$/;

/** A process, as its lock file tells. */
interface Holder {
  readonly pid: number;
  /** When it started, as its kernel counts; "" where the kernel does not tell. */
  readonly start: string;
  /** The kernel since its start, and the set of process numbers that it is in: only there the above means something. */
  readonly world: string;
}

/**
 * @throws {SpoolError} SPOOL_IN_USE when a process that is alive has the folder
 */
export async function lockFolder(folder: string, times: LockTimes = LOCK_TIMES): Promise<FolderLock> {
  const self = await thisProcess();
  for (;;) {
    const numbers = await lockNumbers(folder);
    for (const number of numbers) await refuseIfAlive(folder, number, self, times);
    const mine = (numbers.at(-1) ?? 0) + 1;
    if (!(await makeLockFile(folder, mine, self))) continue; // another one was faster: look again
    const later = (await lockNumbers(folder)).filter((number) => number > mine);
    if (later.length > 0) {
      await removeIfThere(lockPath(folder, mine));
      continue;
    }
    for (const number of numbers) await removeIfThere(lockPath(folder, number));
    return keepTouching(lockPath(folder, mine), times);
  }
}

function keepTouching(path: string, { touchMs }: LockTimes): FolderLock {
  const touch = (): void => {
    const now = new Date();
    // If it cannot be touched, it may count as left behind, but only to processes elsewhere.
    utimes(path, now, now).catch(() => undefined);
  };
  const timer = setInterval(touch, touchMs).unref();
  return {
    release: async () => {
      clearInterval(timer);
      await removeIfThere(path);
    },
  };
}

async function refuseIfAlive(folder: string, number: number, self: Holder, times: LockTimes): Promise<void> {
  const path = lockPath(folder, number);
  const holder = await readHolder(path);
  const isSameWorld = holder !== null && holder.world === self.world;
  const isAlive = isSameWorld ? await isRunning(holder) : await isTouched(path, times.watchMs);
  if (!isAlive) return;
  const who = holder === null ? "another process" : `process ${holder.pid}`;
  const where = isSameWorld ? "" : " of another machine or container";
  throw new SpoolError(
    "SPOOL_IN_USE",
    `spool folder ${folder} is in use by ${who}${where}, which is alive (${path}); each gateway needs a spool.path of its own`,
  );
}

async function isTouched(path: string, watchMs: number): Promise<boolean> {
  const before = await touchedAt(path);
  if (before === null) return false;
  const until = performance.now() + watchMs;
  while (performance.now() < until) {
    await wait(watchMs / 30);
    const after = await touchedAt(path);
    if (after !== before) return after !== null;
  }
  return false;
}

async function touchedAt(path: string): Promise<number | null> {
  try {
    return (await stat(path)).mtimeMs;
  } catch {
    return null; // it is given back
  }
}

/** Who wrote it; null if it is not there, or not written yet. */
async function readHolder(path: string): Promise<Holder | null> {
  try {
    const [pid, start, world] = (await readFile(path, "utf8")).split("\n");
    return world === undefined ? null : { pid: Number(pid), start: start ?? "", world };
  } catch {
    return null;
  }
}

/** @returns whether it was made: it was not there */
async function makeLockFile(folder: string, number: number, { pid, start, world }: Holder): Promise<boolean> {
  try {
    await writeFile(lockPath(folder, number), `${pid}\n${start}\n${world}\n`, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

/** Smallest first. */
async function lockNumbers(folder: string): Promise<readonly number[]> {
  const names = await readdir(folder);
  const numbers = names.map((name) => LOCK_FILE.exec(name)?.[1]).filter((number) => number !== undefined);
  return numbers.map(Number).sort((left, right) => left - right);
}

function lockPath(folder: string, number: number): string {
  return join(folder, `lock.${number}`);
}

async function removeIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
}

async function thisProcess(): Promise<Holder> {
  const { pid } = process;
  try {
    const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
    const world = `${boot.trim()} ${await readlink("/proc/self/ns/pid")}`;
    return { pid, start: (await startOf(pid)) ?? "", world };
  } catch {
    return { pid, start: "", world: hostname() }; // no Linux
  }
}

async function isRunning({ pid, start }: Holder): Promise<boolean> {
  if (start !== "") return (await startOf(pid)) === start;
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** When a process started, as /proc/<pid>/stat tells; null if there is none, or only its parent has not noticed its end yet. */
async function startOf(pid: number): Promise<string | null> {
  try {
    const stats = await readFile(`/proc/${pid}/stat`, "latin1");
    const fields = stats.slice(stats.lastIndexOf(")") + 2).split(" "); // the name before may hold anything
    const [state, start] = [fields[0], fields[19]];
    return state === "Z" || state === "X" ? null : (start ?? null);
  } catch {
    return null;
  }
}
