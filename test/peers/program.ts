/**
 * One process of a test: started with a log file of its own, ended by its process id.
 *
 * Whatever happens to the test, no process stays behind: those that still live when the test's own process or its test
 * runner ends are killed.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createServer } from "node:net";

import { GaveUp, until } from "./until.ts";

const READY_WITHIN_MS = 15_000;
/** From SIGTERM to SIGKILL. */
const STOP_GRACE_MS = 8_000;
const LOG_LINES_SHOWN = 25;

const living = new Set<ChildProcess>();
function killLiving(): void {
  for (const child of living) child.kill("SIGKILL");
}
process.once("exit", killLiving);
// The test runner that started this process has ended before it: nobody waits for the tests any more.
process.once("disconnect", killLiving);

export interface ProgramOptions {
  /** For logs and messages: "vmagent-1". */
  readonly name: string;
  /** The executable, and its arguments. */
  readonly command: string;
  readonly args: readonly string[];
  /** Working directory, and HOME. */
  readonly folder: string;
  /** Both outputs are appended to it. */
  readonly logFile: string;
  /** The program is ready when a GET of this address answers 200. */
  readonly readyUrl: string;
  /** How long it may take to be ready, if that is more than a moment. */
  readonly readyWithinMs?: number;
}

/** How a process ended: one of the two is null. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class Program {
  readonly name: string;
  readonly #options: ProgramOptions;
  readonly #child: ChildProcess;
  readonly #ended: Promise<Ending>;
  #ending: Ending | undefined;

  private constructor(options: ProgramOptions) {
    this.name = options.name;
    this.#options = options;
    const log = openSync(options.logFile, "a");
    try {
      this.#child = spawn(options.command, options.args, {
        cwd: options.folder,
        // No proxy and no setting of the person who runs the tests changes what the program does.
        env: { PATH: process.env["PATH"], HOME: options.folder, TMPDIR: options.folder },
        stdio: ["ignore", log, log],
      });
    } finally {
      closeSync(log);
    }
    const child = this.#child;
    living.add(child);
    this.#ended = new Promise((resolve, reject) => {
      child.once("exit", (code, signal) => {
        living.delete(child);
        this.#ending = { code, signal };
        resolve(this.#ending);
      });
      child.once("error", (error) => {
        living.delete(child);
        reject(new GaveUp(`could not start ${options.name} (${options.command})`, { cause: error }));
      });
    });
    // Who waits for the end sees the rejection; without anybody waiting it must not end the test process.
    this.#ended.catch(() => undefined);
  }

  /**
   * Starts the program and waits until it is ready.
   * @throws {Error} when it cannot be started, ends, or is not ready in time; it does not run then
   */
  static async start(options: ProgramOptions): Promise<Program> {
    const program = Program.launch(options);
    await program.ready();
    return program;
  }

  /** Starts the program and waits for nothing. */
  static launch(options: ProgramOptions): Program {
    return new Program(options);
  }

  /**
   * Waits until it is ready.
   * @throws {Error} when it could not be started, has ended, or is not ready in time; it does not run then
   */
  async ready(): Promise<void> {
    const { name, readyUrl, readyWithinMs = READY_WITHIN_MS } = this.#options;
    try {
      await until(`${name} to be ready at ${readyUrl}`, readyWithinMs, () => this.#answers());
    } catch (error) {
      await this.kill();
      throw new Error(`${name} did not start; its log ends with\n${this.logEnd()}`, { cause: error });
    }
  }

  async #answers(): Promise<boolean> {
    if (this.#child.pid === undefined) await this.#ended;
    if (this.#ending !== undefined) {
      throw new GaveUp(`${this.name} ended with ${describeEnding(this.#ending)} before it was ready`);
    }
    const response = await fetch(this.#options.readyUrl);
    await response.arrayBuffer();
    return response.status === 200;
  }

  get running(): boolean {
    return this.#child.pid !== undefined && this.#ending === undefined;
  }

  /** @throws {Error} when the process is not there any more */
  signal(signal: NodeJS.Signals): void {
    if (!this.#child.kill(signal)) throw new Error(`${this.name} is not running: cannot send ${signal}`);
  }

  /** Asks it to end (SIGTERM), and kills it when it does not in time. Harmless when it has ended already. */
  async stop(): Promise<Ending> {
    if (!this.running) return this.#endingOrNone();
    this.#child.kill("SIGTERM");
    // One that a test holds (SIGSTOP) cannot end.
    this.#child.kill("SIGCONT");
    const killer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_GRACE_MS);
    try {
      return await this.#ended;
    } finally {
      clearTimeout(killer);
    }
  }

  /** Ends it without warning (SIGKILL). Harmless when it has ended already. */
  async kill(): Promise<Ending> {
    if (!this.running) return this.#endingOrNone();
    this.#child.kill("SIGKILL");
    return this.#ended;
  }

  #endingOrNone(): Ending {
    return this.#ending ?? { code: null, signal: null };
  }

  log(): string {
    return readFileSync(this.#options.logFile, "utf8");
  }

  /** The last lines of the log. */
  logEnd(): string {
    return this.log().trimEnd().split("\n").slice(-LOG_LINES_SHOWN).join("\n");
  }
}

function describeEnding({ code, signal }: Ending): string {
  return signal === null ? `exit code ${code ?? "unknown"}` : signal;
}

const FIRST_PORT = 15_000;
const PORTS = 15_000;

/**
 * A port on 127.0.0.1 that nobody listens on. It lies below the range from which systems number outgoing connections, so
 * that none of the many connections of these tests takes it before its owner listens.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    if (!handedOut.has(port) && (await isFree(port))) {
      handedOut.add(port);
      return port;
    }
  }
  throw new Error(`found no free port on 127.0.0.1 between ${FIRST_PORT} and ${FIRST_PORT + PORTS}`);
}

const handedOut = new Set<number>();

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => {
      resolve(false);
    });
    server.listen(port, "127.0.0.1", () => {
      server.close(() => {
        resolve(true);
      });
    });
  });
}
