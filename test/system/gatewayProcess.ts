/** The built gateway at one address and with one spool, killed and started again as a test wants it. */
import { existsSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Metrics } from "../peers/metrics.ts";
import { type Ending, freePort, type Program } from "../peers/program.ts";
import { MAIN } from "../peers/repository.ts";
import type { Rig } from "../peers/rig.ts";

export class GatewayProcess {
  readonly origin: string;
  /** How long the last start took. */
  startMs = 0;
  readonly #rig: Rig;
  readonly #spool: string;
  readonly #configFile: string;
  #program: Program | null = null;

  private constructor(rig: Rig, address: string) {
    this.#rig = rig;
    this.origin = `http://${address}`;
    this.#spool = join(rig.folder, "spool");
    this.#configFile = join(rig.folder, "gateway.yaml");
  }

  /** @param configText all of its configuration but where it listens and the path of its spool */
  static async create(rig: Rig, configText: string, spoolOptions = ""): Promise<GatewayProcess> {
    if (!existsSync(MAIN)) throw new Error(`${MAIN} is missing: npm run build makes it`);
    const address = `127.0.0.1:${await freePort()}`;
    const gateway = new GatewayProcess(rig, address);
    const spool = `spool: {path: "${gateway.#spool}"${spoolOptions}}`;
    await writeFile(gateway.#configFile, `listen: ${address}\nadmin_listen: off\n${spool}\n${configText}`);
    return gateway;
  }

  /** Starts it, and waits until it is ready. */
  async start(): Promise<void> {
    const began = performance.now();
    await this.launch();
    await this.#running.ready();
    this.startMs = performance.now() - began;
  }

  /** Starts it, and waits for nothing. */
  async launch(): Promise<void> {
    this.#program = await this.#rig.launch({
      name: "gateway",
      command: process.execPath,
      args: ["--single-threaded-gc", MAIN, "serve", "--config", this.#configFile],
      readyUrl: `${this.origin}/-/ready`,
    });
  }

  async kill(): Promise<Ending> {
    return this.#running.kill();
  }

  /** Asks it to end (SIGTERM). */
  async stop(): Promise<Ending> {
    return this.#running.stop();
  }

  /** Asks it to end, and waits for nothing. */
  askToEnd(): void {
    this.#running.signal("SIGTERM");
  }

  metrics(): Promise<Metrics> {
    return Metrics.fetch(`${this.origin}/metrics`);
  }

  log(): string {
    return this.#running.log();
  }

  /** Segments in the spool, and those that were kept aside since something in them was damaged. */
  async segments(): Promise<string[]> {
    const files = await readdir(this.#spool, { recursive: true });
    return files.filter((file) => file.includes(".segment"));
  }

  get #running(): Program {
    if (this.#program === null) throw new Error("the gateway has not been started");
    return this.#program;
  }
}
