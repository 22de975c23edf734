/** The load driver: a process that sends the bodies of a corpus, see native/loadgen.c. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { Child } from "./child.ts";
import { readCounters } from "./counters.ts";
import type { Tools } from "./tools.ts";

export interface Load {
  readonly port: number;
  readonly connections: number;
  /** 0: as many as are answered. */
  readonly requestsPerSecond: number;
  /** Folder of bodies. */
  readonly corpus: string;
}

// In the order of enum counter in loadgen.c.
const COUNTERS = ["sent", "accepted", "refused", "pushedBack", "connectionErrors", "slowestUs"] as const;
export type DriverCounters = Readonly<Record<(typeof COUNTERS)[number], number>>;

/** From sending to the final answer. */
export interface Latencies {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly slowestMs: number;
}

const WRITE_PATH = "/api/v1/write";

export class Driver {
  readonly #child: Child;
  readonly #countersFile: string;

  private constructor(child: Child, countersFile: string) {
    this.#child = child;
    this.#countersFile = countersFile;
  }

  /** @param name of what it leaves in `folder`, if it is not the only driver there */
  static async start(tools: Tools, load: Load, folder: string, name = "driver"): Promise<Driver> {
    const countersFile = join(folder, `${name}.counters`);
    // One that a driver before has left would say that this one is ready.
    rmSync(countersFile, { force: true });
    const { port, connections, requestsPerSecond, corpus } = load;
    const args = [port, WRITE_PATH, connections, requestsPerSecond, countersFile, corpus].map(String);
    const driver = new Driver(new Child(name, tools.loadgen, args, folder), countersFile);
    await driver.#child.ready(() => readCounters(countersFile, COUNTERS).length === 1);
    return driver;
  }

  get pid(): number {
    return this.#child.pid;
  }

  counters(): DriverCounters {
    const [counters] = readCounters(this.#countersFile, COUNTERS);
    if (counters === undefined) throw new Error("the load driver keeps no counters");
    return counters;
  }

  /** Latencies count from here on. */
  forgetLatencies(): void {
    this.#child.signal("SIGUSR1");
  }

  /** Sends no more, and waits for the last answers. */
  async end(): Promise<Latencies> {
    this.#child.signal("SIGTERM");
    await this.#child.ended();
    return JSON.parse(this.#child.output()) as Latencies;
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }
}
