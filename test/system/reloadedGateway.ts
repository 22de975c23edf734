/** The built gateway with its admin listener, whose configuration file a test changes while it runs. */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PlanReport } from "../../src/plan/report.ts";
import type { LedgerReport } from "../../src/telemetry/ledgerReport.ts";
import { freePort } from "../peers/program.ts";
import { MAIN } from "../peers/repository.ts";
import type { Rig } from "../peers/rig.ts";

export interface ReloadAnswer {
  readonly status: number;
  readonly text: string;
}

/** Something that a configuration file can be written from. */
export interface Configured {
  /** All but where it listens and the path of its spool. */
  readonly text: string;
}

export class ReloadedGateway<Setup extends Configured> {
  readonly name: string;
  readonly origin: string;
  /** What it ran with, oldest first; a reload that is refused adds the one before again. */
  readonly history: Setup[];
  /** Reloads that were asked for, and that have ended; both are indexes into the history. */
  begun = 0;
  ended = 0;
  readonly #admin: string;
  readonly #file: string;
  readonly #head: string;

  private constructor(rig: Rig, name: string, setup: Setup, ports: readonly [number, number]) {
    const [address, admin] = ports.map((port) => `127.0.0.1:${port}`);
    this.name = name;
    this.origin = `http://${address}`;
    this.history = [setup];
    this.#admin = `http://${admin}`;
    this.#file = join(rig.folder, `${name}.yaml`);
    this.#head = `listen: ${address}\nadmin_listen: ${admin}\nspool: {path: "${join(rig.folder, name, "spool")}"}\n`;
  }

  /** Starts it, and waits until it is ready. */
  static async start<Setup extends Configured>(
    rig: Rig,
    name: string,
    setup: Setup,
  ): Promise<ReloadedGateway<Setup>> {
    if (!existsSync(MAIN)) throw new Error(`${MAIN} is missing: npm run build makes it`);
    const gateway = new ReloadedGateway(rig, name, setup, [await freePort(), await freePort()]);
    await gateway.#write(setup);
    await rig.start({
      name,
      command: process.execPath,
      args: ["--single-threaded-gc", MAIN, "serve", "--config", gateway.#file],
      readyUrl: `${gateway.origin}/-/ready`,
    });
    return gateway;
  }

  /** Changes the file, and has it read. */
  async reload(setup: Setup, force = false): Promise<ReloadAnswer> {
    this.begun += 1;
    await this.#write(setup);
    const response = await fetch(`${this.#admin}/-/reload${force ? "?force=true" : ""}`, { method: "POST" });
    const text = await response.text();
    const before = this.history.at(-1) ?? setup;
    this.history.push(response.status === 200 ? setup : before);
    this.ended = this.begun;
    return { status: response.status, text };
  }

  /** What it says that another configuration would move. */
  async plan({ text }: Setup): Promise<PlanReport> {
    const body = JSON.stringify({ to: this.#head + text });
    const response = await fetch(`${this.#admin}/api/v1/plan`, { method: "POST", body });
    return dataOf(response);
  }

  async ledger(): Promise<LedgerReport> {
    return dataOf(await fetch(`${this.#admin}/api/v1/status/ledger`));
  }

  async #write({ text }: Setup): Promise<void> {
    await writeFile(this.#file, this.#head + text);
  }
}

async function dataOf<Data>(response: Response): Promise<Data> {
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.url} answered ${response.status}: ${text}`);
  return (JSON.parse(text) as { data: Data }).data;
}
