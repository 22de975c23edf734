/**
 * `npm start`: a gateway and, as a second process, receivers for its upstreams, so that there is something to see at once.
 *
 * Both are processes of this package's command line, started as anyone would start them. All of them end together.
 */
import { createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Config } from "../config/config.ts";
import { loadConfig } from "../config/load.ts";
import { formatProblem } from "../config/problem.ts";
import type { ListenAddress } from "../receive/options.ts";
import { placementFault } from "../hash/placementFault.ts";
import { faultOf } from "../relabel/rules.ts";
import { VERSION } from "../version.ts";
import { NodeChild } from "./childProcess.ts";
import { runDemo } from "./demo.ts";
import { logLineText } from "./logLine.ts";
import { printable } from "./printable.ts";
import type { Screen } from "./screen.ts";

export interface StartOptions {
  /** The gateway's configuration; its upstreams on this machine get a receiver each. */
  readonly configFile: string;
  /** The package's command line, built. */
  readonly mainFile: string;
  readonly demo: boolean;
  readonly screen: Screen;
  /** Takes a line about what went wrong. */
  readonly complain: (line: string) => void;
  /** Resolves when this process is asked to end; called again for being asked once more. */
  readonly nextSignal: () => Promise<unknown>;
}

interface Receiver {
  /** Its upstream's. */
  readonly name: string;
  readonly address: ListenAddress;
  readonly url: string;
}

type End = { readonly kind: "asked" } | { readonly kind: "broken"; readonly what: string };

const LOOPBACK_HOSTS = ["127.0.0.1", "localhost", "[::1]"];
const READY_WITHIN_MS = 20_000;
const POLL_EVERY_MS = 50;
/** Beyond the time that the gateway gives itself. */
const KILL_AFTER_MS = 5_000;

/**
 * Starts everything and runs until asked to end, or until a part of it ends on its own.
 *
 * @returns exit code: 0 when it was asked to end, else 1; no process is left running either way
 */
export async function start(options: StartOptions): Promise<number> {
  const { config, problems } = loadConfig(options.configFile, {
    legacyHash: "jump",
    checkRule: faultOf,
    checkPlacement: placementFault,
  });
  for (const problem of problems) options.complain(formatProblem(problem));
  if (config === null) return 1;
  const receivers = receiversOf(config);
  const busy = await findBusy([
    { what: "the gateway", address: config.listen },
    ...(config.admin.listen === null ? [] : [{ what: "its admin listener", address: config.admin.listen }]),
    ...receivers.map(({ name, address }) => ({ what: `upstream ${name}`, address })),
  ]);
  if (busy !== null) {
    options.complain(`${busy}: end what uses it, or choose another port in ${options.configFile}`);
    return 1;
  }
  const parts = new Parts(options, receivers, config.shutdown.graceMs + KILL_AFTER_MS);
  const end = await runParts(options, config, receivers, parts);
  if (end.kind === "broken") options.complain(`${end.what}; everything else is ended, too`);
  else options.screen.print("ending: the gateway finishes what it holds (ask again to end at once)");
  void options.nextSignal().then(() => {
    parts.kill();
  });
  await parts.stop();
  return end.kind === "asked" ? 0 : 1;
}

/** The processes, started by the constructor. */
class Parts {
  /** Resolves when one of them ends. */
  readonly broken: Promise<End>;
  /** Whether what the receivers print is shown: not before the overview, and not beside the demo's table. */
  showsReceivers = false;
  readonly #gateway: NodeChild;
  readonly #receivers: NodeChild | null;
  readonly #gatewayGraceMs: number;

  constructor(
    { mainFile, configFile, screen, complain }: StartOptions,
    receivers: readonly Receiver[],
    graceMs: number,
  ) {
    this.#gatewayGraceMs = graceMs;
    this.#receivers =
      receivers.length === 0
        ? null
        : new NodeChild({
            name: "sink",
            args: [mainFile, "sink", "--listen", ...receivers.map(({ url }) => new URL(url).host)],
            output: (line) => {
              if (this.showsReceivers) screen.print(printable(line));
            },
            complaint: (line) => {
              complain(`sink: ${printable(line)}`);
            },
          });
    this.#gateway = new NodeChild({
      name: "gateway",
      // As the image runs it.
      args: ["--single-threaded-gc", mainFile, "serve", "--config", configFile],
      output: (line) => {
        screen.print(printable(line));
      },
      complaint: (line) => {
        const text = logLineText(line);
        if (text !== null) screen.print(`gateway: ${text}`);
      },
    });
    this.broken = Promise.race(
      this.#all.map(async ({ name, ended }): Promise<End> => ({
        kind: "broken",
        what: `${name} ${await ended}`,
      })),
    );
  }

  /** Ends them in order: the gateway may still have something for the receivers. */
  async stop(): Promise<void> {
    await this.#gateway.stop(this.#gatewayGraceMs);
    await this.#receivers?.stop(KILL_AFTER_MS);
  }

  kill(): void {
    for (const part of this.#all) part.kill();
  }

  get #all(): readonly NodeChild[] {
    return this.#receivers === null ? [this.#gateway] : [this.#receivers, this.#gateway];
  }
}

async function runParts(
  { demo, screen, configFile, mainFile, nextSignal }: StartOptions,
  config: Config,
  receivers: readonly Receiver[],
  parts: Parts,
): Promise<End> {
  const over = new AbortController();
  const end = Promise.race([parts.broken, nextSignal().then((): End => ({ kind: "asked" }))]).finally(() => {
    over.abort();
  });
  const gateway = gatewayUrl(config.listen);
  const urls = [`${gateway}/-/ready`, ...receivers.map(({ url }) => `${url}stats`)];
  const notReady = await Promise.race([end, waitUntilReady(urls, over.signal)]);
  if (notReady !== null) {
    over.abort();
    return notReady;
  }
  for (const line of overview(gateway, receivers, `${mainFile} explain --config ${configFile}`))
    screen.print(line);
  if (demo) await runDemo({ gatewayUrl: `${gateway}/api/v1/write`, receivers }, screen, over.signal);
  parts.showsReceivers = !demo;
  return end;
}

/** Answers null when all answer with 2xx, or what is wrong when that takes too long. */
async function waitUntilReady(urls: readonly string[], signal: AbortSignal): Promise<End | null> {
  const deadline = Date.now() + READY_WITHIN_MS;
  for (const url of urls) {
    while (!(await answers(url, signal))) {
      if (signal.aborted) return null;
      if (Date.now() > deadline) {
        return { kind: "broken", what: `${url} did not answer within ${READY_WITHIN_MS / 1000} s` };
      }
      await delay(POLL_EVERY_MS);
    }
  }
  return null;
}

async function answers(url: string, signal: AbortSignal): Promise<boolean> {
  try {
    const response = await fetch(url, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(READY_WITHIN_MS)]),
    });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    // Not listening yet: what a process has to say when it cannot, it says itself.
    return false;
  }
}

/** One receiver for every address on this machine that an upstream has. */
function receiversOf(config: Config): Receiver[] {
  const byAddress = new Map<string, Receiver>();
  for (const { name, url } of config.routes.flatMap(({ upstreams }) => upstreams)) {
    if (!LOOPBACK_HOSTS.includes(url.hostname) || byAddress.has(url.host)) continue;
    const address = { host: url.hostname.replace(/^\[(.*)\]$/, "$1"), port: Number(url.port || "80") };
    byAddress.set(url.host, { name, address, url: `http://${url.hostname}:${address.port}/` });
  }
  return [...byAddress.values()];
}

/** Answers which of the addresses cannot be listened on, and why, or null. */
async function findBusy(wanted: readonly { what: string; address: ListenAddress }[]): Promise<string | null> {
  for (const { what, address } of wanted) {
    const error = await tryToListen(address);
    if (error !== null) {
      const reason =
        error.code === "EADDRINUSE" ? "is in use by another program" : `cannot be had (${error.message})`;
      return `port ${address.port} on ${address.host || "all addresses"} for ${what} ${reason}`;
    }
  }
  return null;
}

function tryToListen({ host, port }: ListenAddress): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", resolve);
    server.listen(port, host, () => {
      server.close(() => {
        resolve(null);
      });
    });
  });
}

/** Where this machine reaches the gateway. */
function gatewayUrl({ host, port }: ListenAddress): string {
  const reachable = ["", "0.0.0.0", "::"].includes(host) ? "127.0.0.1" : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}

function overview(gateway: string, receivers: readonly Receiver[], explain: string): string[] {
  const rows: [string, string, string][] = [
    ["gateway", `${gateway}/api/v1/write`, "takes remote write"],
    ["", `${gateway}/metrics`, "tells what it did"],
    ...receivers.map(({ name, url }): [string, string, string] => [
      name,
      url,
      "shows what arrived at this upstream",
    ]),
  ];
  const widthOf = (column: 0 | 1): number => Math.max(...rows.map((row) => row[column].length)) + 2;
  const [names, urls] = [widthOf(0), widthOf(1)];
  return [
    `stream-metrics-route ${VERSION}`,
    "",
    ...rows.map(([name, url, what]) => `  ${name.padEnd(names)}${url.padEnd(urls)}${what}`),
    "",
    "To send a Prometheus' series there, in its prometheus.yml:",
    "",
    "  remote_write:",
    `    - url: ${gateway}/api/v1/write`,
    "",
    `To see where a series goes:  node ${explain} 'up{job="node"}'`,
    "Ctrl-C ends all of it.",
    "",
  ];
}
