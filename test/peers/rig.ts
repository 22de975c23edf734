/**
 * What one test has running: a temporary folder, the processes that live in it, and their logs.
 *
 * `end()` stops everything, last started first, and removes the folder; the logs are in that folder, so a test that failed
 * calls `showLogs()` before.
 */
import { rmSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Program, type ProgramOptions } from "./program.ts";

/** Folders of rigs that have not ended: a test process that exits early leaves none behind. */
const folders = new Set<string>();
process.once("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Something else that ends with the rig, such as a server in the test's own process. */
export interface Closable {
  close(): Promise<void>;
}

export class Rig {
  readonly folder: string;
  readonly #programs: Program[] = [];
  readonly #closables: Closable[] = [];
  #logsShown = false;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async create(): Promise<Rig> {
    const folder = await mkdtemp(join(tmpdir(), "stream-metrics-route-test-"));
    folders.add(folder);
    return new Rig(folder);
  }

  /** Starts a program in a folder of its own, `NAME`, with the log `NAME.log` beside it; a second start goes on with both. */
  async start(options: Omit<ProgramOptions, "folder" | "logFile">): Promise<Program> {
    const program = await this.launch(options);
    await program.ready();
    return program;
  }

  /** As start(), without waiting until it is ready. */
  async launch(options: Omit<ProgramOptions, "folder" | "logFile">): Promise<Program> {
    const program = Program.launch({
      ...options,
      folder: await this.subfolder(options.name),
      logFile: join(this.folder, `${options.name}.log`),
    });
    this.#programs.push(program);
    return program;
  }

  async subfolder(name: string): Promise<string> {
    const folder = join(this.folder, name);
    await mkdir(folder, { recursive: true });
    return folder;
  }

  closeAtEnd(closable: Closable): void {
    this.#closables.push(closable);
  }

  /** Does what prepares a test; when that fails, the logs are shown before the failure is passed on. */
  async prepare<T>(preparation: () => Promise<T>): Promise<T> {
    try {
      return await preparation();
    } catch (error) {
      this.showLogs();
      throw error;
    }
  }

  /** Prints the end of every program's log, once. */
  showLogs(): void {
    if (this.#logsShown) return;
    this.#logsShown = true;
    // A program that was started again has one log for both runs.
    const logs = new Map(this.#programs.map((program) => [program.name, program.logEnd()]));
    for (const [name, log] of logs) process.stderr.write(`---- end of the log of ${name}\n${log}\n`);
  }

  async end(): Promise<void> {
    for (const program of this.#programs.toReversed()) await program.stop();
    for (const closable of this.#closables) await closable.close();
    await rm(this.folder, { recursive: true, force: true });
    folders.delete(this.folder);
  }
}
