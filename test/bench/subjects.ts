/** The programs under test: the built gateway, and vmagent beside it. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findPeer } from "../peers/installed.ts";
import { freePort } from "../peers/program.ts";
import { Child } from "./child.ts";
import { indentedRules, RULES_FILE } from "./rules.ts";
import type { Scenario } from "./scenarios.ts";
import { REPOSITORY } from "./tools.ts";

const GATEWAY = join(REPOSITORY, "dist/cmd/main.js");
/** As the image starts it. */
const NODE_OPTIONS = ["--single-threaded-gc"];

export interface Running {
  readonly child: Child;
  readonly port: number;
}

/** A program that takes remote write and spreads the series over upstreams. */
export interface Subject {
  readonly name: "gateway" | NonNullable<Scenario["twin"]> | "vmagent";
  /** @param folder its working directory */
  start(upstreamUrls: readonly string[], folder: string): Promise<Running>;
}

/** The programs of a scenario, in the order in which they take turns: the gateway, its twin, and what it is compared with. */
export function subjectsOf({ hasRules, hasPeriods, twin }: Scenario, alone: boolean): Subject[] {
  const subjects = [gateway({ hasRules, hasPeriods })];
  if (twin === "gateway without rules") subjects.push({ ...gateway(), name: twin });
  if (twin === "gateway without a spool") subjects.push({ ...gateway({ hasSpool: false }), name: twin });
  if (twin === "gateway without periods") subjects.push({ ...gateway(), name: twin });
  const peer = alone ? null : vmagent(hasRules);
  if (peer !== null) subjects.push(peer);
  return subjects;
}

export interface GatewayOptions {
  /** Whether its route has the rules of rules.yaml. */
  readonly hasRules?: boolean;
  /** Whether it spools what an upstream does not take; nothing is written while all are well. */
  readonly hasSpool?: boolean;
  /** Whether it has topology periods before and behind the one that the load falls into, with other upstreams. */
  readonly hasPeriods?: boolean;
  /** Further top-level lines of its configuration. */
  readonly extraConfig?: string;
}

/**
 * The gateway: one route of 128 tasks. With few upstreams a task lives on one of them (`key: task`); 128 tasks leave many
 * of a hundred slots empty, so from there on series are placed by themselves.
 */
export function gateway(options: GatewayOptions = {}): Subject {
  if (!existsSync(GATEWAY)) throw new Error(`${GATEWAY} is missing: npm run build makes it`);
  return {
    name: "gateway",
    start: async (upstreamUrls, folder) => {
      const port = await freePort();
      const config = join(folder, "gateway.yaml");
      writeFileSync(config, gatewayConfig(port, upstreamUrls, options));
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

function gatewayConfig(
  port: number,
  upstreamUrls: readonly string[],
  { hasRules = false, hasSpool = true, hasPeriods = false, extraConfig = "" }: GatewayOptions,
): string {
  const key = upstreamUrls.length <= MOST_UPSTREAMS_BY_TASK ? "task" : "series";
  const upstreams = upstreamUrls.map((url, slot) => `{name: upstream-${slot}, url: "${url}"}`);
  const rules = hasRules ? `    relabel_configs:\n${indentedRules(RULES_FILE, 6)}` : "";
  return `listen: 127.0.0.1:${port}
admin_listen: off
shutdown: {drain_delay: 0s}
routes:
  - name: bench
${rules}    tasks: {count: 128}
    placement: {key: ${key}}
    delivery: {on_outage: ${hasSpool ? "spool" : "refuse"}}
${hasPeriods ? periods(upstreams) : `    upstreams: [${upstreams.join(", ")}]\n`}${extraConfig}`;
}

/** The one that the load falls into has all upstreams, the one before it one fewer, and the one behind it another one fewer. */
function periods(upstreams: readonly string[]): string {
  const listed = (some: readonly string[]): string => `upstreams: [${some.join(", ")}]`;
  return `    topology:
      - {${listed(upstreams.slice(0, -1))}}
      - {from: 2020-01-01T00:00:00Z, ${listed(upstreams)}}
      - {from: 2100-01-01T00:00:00Z, ${listed(upstreams.slice(1))}}
`;
}

/**
 * vmagent from .peers (bash test/peers/install.sh) or the PATH; null where there is none.
 *
 * @param hasRules whether it applies the rules of rules.yaml before it spreads the series
 */
export function vmagent(hasRules: boolean): Subject | null {
  const program = findPeer("vmagent");
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
        ...(hasRules ? [`-remoteWrite.relabelConfig=${RULES_FILE}`] : []),
        "-loggerLevel=WARN",
      ];
      return started("vmagent", program, args, port, folder);
    },
  };
}

export function isVmagentInstalled(): boolean {
  return findPeer("vmagent") !== undefined;
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
