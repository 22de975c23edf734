/** The programs under test: the built gateway, and vmagent beside it. */
import { accessSync, constants, existsSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { freePort } from "../peers/program.ts";
import { Child } from "./child.ts";
import { REPOSITORY } from "./tools.ts";

const GATEWAY = join(REPOSITORY, "dist/cmd/main.js");
/** As the image starts it. */
const NODE_OPTIONS = ["--single-threaded-gc"];
const PEERS = join(REPOSITORY, ".peers/bin");

export interface Running {
  readonly child: Child;
  readonly port: number;
}

/** A program that takes remote write and spreads the series over upstreams. */
export interface Subject {
  readonly name: "gateway" | "vmagent";
  /** @param folder its working directory */
  start(upstreamUrls: readonly string[], folder: string): Promise<Running>;
}

/**
 * The gateway: one route of 128 tasks. With few upstreams a task lives on one of them (`key: task`); 128 tasks leave many
 * of a hundred slots empty, so from there on series are placed by themselves.
 *
 * @param extraConfig further top-level lines of its configuration
 */
export function gateway(extraConfig = ""): Subject {
  if (!existsSync(GATEWAY)) throw new Error(`${GATEWAY} is missing: npm run build makes it`);
  return {
    name: "gateway",
    start: async (upstreamUrls, folder) => {
      const port = await freePort();
      const config = join(folder, "gateway.yaml");
      writeFileSync(config, gatewayConfig(port, upstreamUrls) + extraConfig);
      return started(
        "gateway",
        process.execPath,
        [...NODE_OPTIONS, GATEWAY, "serve", "--config", config],
        port,
        folder,
      );
    },
  };
}

const MOST_UPSTREAMS_BY_TASK = 40;

function gatewayConfig(port: number, upstreamUrls: readonly string[]): string {
  const key = upstreamUrls.length <= MOST_UPSTREAMS_BY_TASK ? "task" : "series";
  const upstreams = upstreamUrls.map((url, slot) => `      - {name: upstream-${slot}, url: "${url}"}\n`);
  return `listen: 127.0.0.1:${port}
shutdown: {drain_delay: 0s}
routes:
  - name: bench
    tasks: {count: 128}
    placement: {key: ${key}}
    upstreams:
${upstreams.join("")}`;
}

/** vmagent from .peers (bash test/peers/install.sh) or the PATH; null where there is none. */
export function vmagent(): Subject | null {
  const program = [PEERS, ...(process.env["PATH"] ?? "").split(delimiter)]
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, "vmagent"))
    .find(isExecutable);
  if (program === undefined) return null;
  return {
    name: "vmagent",
    start: async (upstreamUrls, folder) => {
      const port = await freePort();
      const args = [
        `-httpListenAddr=127.0.0.1:${port}`,
        ...upstreamUrls.map((url) => `-remoteWrite.url=${url}`),
        "-remoteWrite.shardByURL",
        "-remoteWrite.forcePromProto",
        "-remoteWrite.tmpDataPath=queue",
        "-loggerLevel=WARN",
      ];
      return started("vmagent", program, args, port, folder);
    },
  };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // Not there, or not for us: both mean that it cannot be used.
    return false;
  }
}

async function started(
  name: string,
  command: string,
  args: readonly string[],
  port: number,
  folder: string,
): Promise<Running> {
  const child = new Child(name, command, args, folder);
  try {
    await child.ready(async () => (await fetch(`http://127.0.0.1:${port}/health`)).ok);
  } catch (error) {
    await child.stop();
    throw error;
  }
  return { child, port };
}
