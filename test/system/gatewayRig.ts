/** A gateway in this process between the test and receivers of the test, on real sockets. */
import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Logger, pino } from "pino";
import type { Config } from "../../src/config/config.ts";
import { loadConfig, type LoadOptions, parseConfig, parseSentConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";
import { Gateway } from "../../src/gateway.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";
import { Reloads } from "../../src/reload/reloads.ts";
import type { LedgerReport } from "../../src/telemetry/ledgerReport.ts";
import { Metrics } from "../peers/metrics.ts";
import { Receiver } from "./receiver.ts";

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly retryAfter: string | null;
}

/** Of a request of remote write 1.0. */
export const WRITE_HEADERS = {
  "Content-Encoding": "snappy",
  "Content-Type": "application/x-protobuf",
} as const;

const LOAD_OPTIONS: LoadOptions = {
  legacyHash: "jump",
  checkRule: faultOf,
  checkPlacement: placementFault,
};

/** Reads a native configuration that must be valid. */
export function configOf(text: string): Config {
  const { config, problems } = parseConfig(text, "test.yaml", LOAD_OPTIONS);
  if (config === null) throw new Error(problems.map(formatProblem).join("\n"));
  return config;
}

export interface RigOptions {
  /** Further options of the spool, each with a comma in front. */
  readonly spool?: string;
  /** Where operators are served. */
  readonly adminListen?: string;
  /** Where it logs; by default nowhere. */
  readonly log?: Logger;
}

/** What stays when it starts again. */
interface Lasting {
  /** Of its configuration file and its spool. */
  readonly folder: string;
  readonly options: Required<RigOptions>;
}

export class GatewayRig {
  readonly receivers: readonly Receiver[];
  /** Write addresses of the receivers. */
  readonly urls: readonly string[];
  readonly #lasting: Lasting;
  #config: Config;
  #gateway: Gateway;

  private constructor(
    receivers: readonly Receiver[],
    urls: readonly string[],
    lasting: Lasting,
    opened: Opened,
  ) {
    this.receivers = receivers;
    this.urls = urls;
    this.#lasting = lasting;
    this.#config = opened.config;
    this.#gateway = opened.gateway;
  }

  /** @param configText given the receivers' write addresses, the routes of a configuration */
  static async start(
    receiverCount: number,
    configText: (urls: readonly string[]) => string,
    { spool = "", adminListen = "off", log = pino({ level: "silent" }) }: RigOptions = {},
  ): Promise<GatewayRig> {
    const receivers = Array.from({ length: receiverCount }, () => new Receiver());
    const urls = await Promise.all(receivers.map((receiver) => receiver.start()));
    const folder = await mkdtemp(join(tmpdir(), "gateway-rig-"));
    const lasting = { folder, options: { spool, adminListen, log } };
    return new GatewayRig(receivers, urls, lasting, await open(lasting, configText(urls)));
  }

  /** What its file begins with: where it listens, and its spool. */
  get head(): string {
    return headOf(this.#lasting);
  }

  get config(): Config {
    return this.#config;
  }

  receiver(slot: number): Receiver {
    const receiver = this.receivers[slot];
    if (receiver === undefined) throw new Error(`no receiver in slot ${slot}`);
    return receiver;
  }

  /** Where it listens. */
  get origin(): string {
    return `http://127.0.0.1:${this.#gateway.port}`;
  }

  /** Asks its admin listener. */
  admin(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.#gateway.adminPort}${path}`, init);
  }

  /** Gives its file this text, and asks it to read that. @param head what stands before it */
  async reload(configText: string, query = "", head = this.head): Promise<Pick<Answer, "status" | "text">> {
    await this.write(configText, head);
    const response = await this.admin(`/-/reload${query}`, { method: "POST" });
    return { status: response.status, text: await response.text() };
  }

  /** Gives its file this text. */
  async write(configText: string, head = this.head): Promise<void> {
    await writeFile(fileIn(this.#lasting), head + configText);
  }

  async ledger(): Promise<LedgerReport> {
    const answer = (await (await this.admin("/api/v1/status/ledger")).json()) as { data: LedgerReport };
    return answer.data;
  }

  /** Ends it, and starts another one with its spool. */
  async restart(configText: string): Promise<void> {
    await this.#gateway.stop();
    const { gateway, config } = await open(this.#lasting, configText);
    this.#gateway = gateway;
    this.#config = config;
  }

  /** @param headers besides those of remote write */
  async send(body: Uint8Array, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const response = await fetch(`${this.origin}/api/v1/write`, {
      method: "POST",
      headers: { ...WRITE_HEADERS, ...headers },
      body: new Uint8Array(body),
    });
    return {
      status: response.status,
      text: await response.text(),
      retryAfter: response.headers.get("retry-after"),
    };
  }

  /** The sum of a metric over all its label sets that match, e.g. metric("samples_routed_total", 'upstream="vmagent-1"'). */
  async metric(name: string, labels = ""): Promise<number> {
    const wanted = labels.split(/,(?=\w+=)/);
    const text = await (await fetch(`${this.origin}/metrics`)).text();
    const lines = text
      .split("\n")
      .filter((line) => new RegExp(`^stream_metrics_route_${name}[{ ]`).test(line));
    if (lines.length === 0) throw new Error(`no metric ${name}`);
    return lines
      .filter((line) => wanted.every((label) => line.includes(label)))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
  }

  /** All metrics as they are at one moment. */
  metrics(): Promise<Metrics> {
    return Metrics.fetch(`${this.origin}/metrics`);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#gateway.stop(), ...this.receivers.map((receiver) => receiver.stop())]);
    await rm(this.#lasting.folder, { recursive: true });
  }

  /** The segments in its spool, each with what tells whether it is as before. @param upstream whose; without it, all */
  async segments(upstream = ""): Promise<string[]> {
    const folder = spoolIn(this.#lasting);
    const files = (await readdir(folder, { recursive: true })).filter(
      (file) => file.includes(upstream) && file.includes(".segment"),
    );
    return Promise.all(
      files.sort().map(async (file) => {
        const { ino, size, mtimeMs } = await stat(join(folder, file));
        return `${file}: inode ${ino}, ${size} bytes, written at ${mtimeMs}`;
      }),
    );
  }
}

interface Opened {
  readonly config: Config;
  readonly gateway: Gateway;
}

/** Starts a gateway whose configuration comes from a file in a folder. */
async function open(lasting: Lasting, configText: string): Promise<Opened> {
  const config = configOf(headOf(lasting) + configText);
  let gateway: Gateway | null = null;
  const reloads = new Reloads({
    load: () => loadConfig(fileIn(lasting), LOAD_OPTIONS),
    apply: async (...change) => {
      const outcome = await gateway?.reload(...change);
      return outcome ?? { kind: "failed", lines: ["the gateway is starting"] };
    },
    ended: (outcome, trigger) => gateway?.countReload(outcome, trigger),
  });
  gateway = await Gateway.open(config, lasting.options.log, {
    reload: (force) => reloads.reload("request", force),
    read: (text, name) => parseSentConfig(text, name, LOAD_OPTIONS),
  });
  await gateway.start();
  return { config, gateway };
}

function fileIn({ folder }: Lasting): string {
  return join(folder, "gateway.yaml");
}

function spoolIn({ folder }: Lasting): string {
  return join(folder, "spool");
}

/** What all configurations of a rig have. */
function headOf(lasting: Lasting): string {
  const { spool, adminListen } = lasting.options;
  return `
listen: 127.0.0.1:0
admin_listen: ${adminListen}
shutdown: {drain_delay: 0s, grace: 5s}
spool: {path: "${spoolIn(lasting)}"${spool}}
`;
}

/** One route of 128 tasks over the receivers. */
export function taskRoute(urls: readonly string[], delivery = "{}"): string {
  const upstreams = urls.map((url, slot) => `      - {name: vmagent-${slot}, url: "${url}"}`).join("\n");
  return `
routes:
  - name: aggregation
    tasks: {count: 128}
    placement: {key: task}
    delivery: ${delivery}
    upstreams:
${upstreams}
`;
}
