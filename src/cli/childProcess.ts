/** A process of this package that is started, watched and ended. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

interface ChildOptions {
  /** For messages. */
  readonly name: string;
  /** Script and arguments for node. */
  readonly args: readonly string[];
  /** A line of its standard output. */
  readonly output: (line: string) => void;
  /** A line of its standard error. */
  readonly complaint: (line: string) => void;
}

export class NodeChild {
  readonly name: string;
  /** Resolves when the process has ended and all its output was read: with how it ended, for a person. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  #running = true;

  constructor({ name, args, output, complaint }: ChildOptions) {
    this.name = name;
    // In a process group of its own: Ctrl-C reaches this process alone, which then ends the others in order.
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
    this.#child = child;
    readLines(child.stdout, output);
    readLines(child.stderr, complaint);
    this.ended = new Promise((resolve) => {
      child.once("error", (error) => {
        this.#running = false;
        resolve(`could not be started: ${error.message}`);
      });
      child.once("close", (code, signal) => {
        this.#running = false;
        resolve(signal === null ? `ended with exit code ${code ?? "unknown"}` : `was ended by ${signal}`);
      });
    });
  }

  /** Asks it to end and waits until it has; after `graceMs` it is killed. */
  async stop(graceMs: number): Promise<void> {
    if (this.#running) this.#child.kill("SIGTERM");
    const timer = setTimeout(() => {
      this.kill();
    }, graceMs);
    await this.ended;
    clearTimeout(timer);
  }

  /** Ends it at once. */
  kill(): void {
    if (this.#running) this.#child.kill("SIGKILL");
  }
}

function readLines(stream: Readable, take: (line: string) => void): void {
  createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on("line", take);
}
