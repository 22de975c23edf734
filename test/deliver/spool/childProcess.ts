/** Runs spoolProcess.ts in processes of their own. */
import { spawn } from "node:child_process";
import type { ChildProcessByStdio } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { createInterface } from "node:readline";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { build } from "vite";

/** Makes a program that node can run, which has no types. @param folder for it @returns its path */
export async function buildSpoolProcess(folder: string): Promise<string> {
  const ssr = join(import.meta.dirname, "spoolProcess.ts");
  await build({ configFile: false, logLevel: "silent", build: { ssr, outDir: folder, minify: false } });
  return join(folder, "spoolProcess.js");
}

export class SpoolProcess {
  readonly #child: ChildProcessByStdio<null, Readable, null>;
  readonly #said = new EventEmitter();
  readonly lines: string[] = [];

  constructor(program: string, args: readonly string[], nodeOptions: readonly string[] = []) {
    const stdio: ["ignore", "pipe", "inherit"] = ["ignore", "pipe", "inherit"];
    this.#child = spawn(process.execPath, [...nodeOptions, program, ...args], { stdio });
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      this.lines.push(line);
      this.#said.emit("line");
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Returns when it has said so many lines. */
  async said(lines: number): Promise<void> {
    while (this.lines.length < lines) await once(this.#said, "line");
  }

  /** Ends it at once; returns when all that it said is in `lines`. */
  async kill(): Promise<void> {
    const closed = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await closed;
  }

  /** @returns its exit code */
  async ended(): Promise<unknown> {
    return ((await once(this.#child, "close")) as unknown[])[0];
  }
}
