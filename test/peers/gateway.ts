/** The gateway as its users run it: the built command line in a process of its own. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

import { Metrics } from "./metrics.ts";
import { freePort, type Program } from "./program.ts";
import { MAIN } from "./repository.ts";
import type { Rig } from "./rig.ts";

const MOST_EXPLAIN_BYTES = 64 * 1024 * 1024;

/** Where explain says that a series goes; the test configuration has one route. */
export interface Explained {
  readonly task: number;
  readonly slots: readonly number[];
  readonly upstreams: readonly string[];
}

export class Gateway {
  readonly program: Program;
  readonly #address: string;
  readonly #configFile: string;
  readonly #rig: Rig;

  private constructor(rig: Rig, program: Program, address: string, configFile: string) {
    this.#rig = rig;
    this.program = program;
    this.#address = address;
    this.#configFile = configFile;
  }

  /**
   * Starts it with one route of 128 tasks, `key: task`, everything else as it is by default.
   * @param upstreamUrls write addresses of vmagent-0, vmagent-1, ...
   * @param delivery     value of `delivery`
   */
  static async start(rig: Rig, upstreamUrls: readonly string[], delivery = "{}"): Promise<Gateway> {
    if (!existsSync(MAIN)) throw new Error(`${MAIN} is missing: npm run build makes it`);
    const address = `127.0.0.1:${await freePort()}`;
    const configFile = join(rig.folder, "gateway.yaml");
    await writeFile(configFile, configText(address, upstreamUrls, delivery));
    const program = await rig.start({
      name: "gateway",
      command: process.execPath,
      args: [MAIN, "serve", "--config", configFile],
      readyUrl: `http://${address}/-/ready`,
    });
    return new Gateway(rig, program, address, configFile);
  }

  get writeUrl(): string {
    return `http://${this.#address}/api/v1/write`;
  }

  metrics(): Promise<Metrics> {
    return Metrics.fetch(`http://${this.#address}/metrics`);
  }

  /**
   * Asks the command line where series of these label sets go.
   * @returns one answer per label set, in their order
   */
  async explain(labelSets: readonly Readonly<Record<string, string>>[]): Promise<Explained[]> {
    const input = join(this.#rig.folder, "explain.ndjson");
    await writeFile(
      input,
      labelSets.map((labels) => `${JSON.stringify({ labels: Object.entries(labels) })}\n`).join(""),
    );
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [MAIN, "explain", "--config", this.#configFile, "--input", input, "--json"],
      { maxBuffer: MOST_EXPLAIN_BYTES },
    );
    return stdout.trimEnd().split("\n").map(parseExplained);
  }
}

function configText(address: string, upstreamUrls: readonly string[], delivery: string): string {
  const upstreams = upstreamUrls.map((url, slot) => `      - {name: vmagent-${slot}, url: "${url}"}\n`);
  return `listen: ${address}
admin_listen: off
shutdown: {drain_delay: 0s}
routes:
  - name: aggregation
    tasks: {count: 128}
    placement: {key: task}
    delivery: ${delivery}
    upstreams:
${upstreams.join("")}`;
}

function parseExplained(line: string): Explained {
  const { routes } = JSON.parse(line) as { routes?: Explained[] };
  const [route] = routes ?? [];
  if (route === undefined) throw new Error(`explain names no route: ${line}`);
  return route;
}
