/** A process of a measurement. Whatever happens, it does not outlive the process that started it. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../peers/until.ts";

const READY_WITHIN_MS = 30_000;
const STOP_GRACE_MS = 15_000;
const SHOWN_LOG_CHARACTERS = 2_000;

const living = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});
// The default action would end us without the above.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

export class Child {
  readonly pid: number;
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #outputFile: string;
  readonly #logFile: string;
  readonly #ended: Promise<void>;

  /** @param folder working directory and home; output and log go there too, as NAME.out and NAME.log */
  constructor(name: string, command: string, args: readonly string[], folder: string) {
    this.#name = name;
    this.#outputFile = join(folder, `${name}.out`);
    this.#logFile = join(folder, `${name}.log`);
    const output = openSync(this.#outputFile, "w");
    const log = openSync(this.#logFile, "w");
    const child = spawn(command, args, {
      cwd: folder,
      env: { PATH: process.env["PATH"], HOME: folder },
      stdio: ["ignore", output, log],
    });
    closeSync(output);
    closeSync(log);
    if (child.pid === undefined) throw new Error(`cannot start ${command}`);
    this.pid = child.pid;
    this.#child = child;
    living.add(child);
    this.#ended = new Promise((resolve) => {
      child.once("exit", () => {
        living.delete(child);
        resolve();
      });
    });
  }

  /** What it has written to its standard output. */
  output(): string {
    return readFileSync(this.#outputFile, "utf8");
  }

  get running(): boolean {
    return living.has(this.#child);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /**
   * Waits until a probe finds that it is ready.
   * @throws {Error} with the end of its log when it ends or does not get ready in time
   */
  async ready(probe: () => boolean | Promise<boolean>): Promise<void> {
    try {
      await until(`${this.#name} to be ready`, READY_WITHIN_MS, async () => !this.running || (await probe()));
    } catch (cause) {
      throw new Error(this.#problem("is not ready"), { cause });
    }
    if (!this.running) throw new Error(this.#problem("has ended"));
  }

  /** Waits for its end. */
  ended(): Promise<void> {
    return this.#ended;
  }

  /** Asks it to end, and kills it when it does not in time. */
  async stop(): Promise<void> {
    this.signal("SIGTERM");
    const killer = setTimeout(() => {
      this.signal("SIGKILL");
    }, STOP_GRACE_MS);
    await this.#ended;
    clearTimeout(killer);
  }

  #problem(what: string): string {
    const log = this.output() + readFileSync(this.#logFile, "utf8");
    return `${this.#name} ${what}; it said:\n${log.slice(-SHOWN_LOG_CHARACTERS)}`;
  }
}
