/** A gateway in this process between the test and receivers of the test, on real sockets. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import type { Config } from "../../src/config/config.ts";
import { parseConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";
import { Gateway } from "../../src/gateway.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";
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

/** Reads a native configuration that must be valid. */
export function configOf(text: string): Config {
  const { config, problems } = parseConfig(text, "test.yaml", {
    legacyHash: "jump",
    checkRule: faultOf,
    checkPlacement: placementFault,
  });
  if (config === null) throw new Error(problems.map(formatProblem).join("\n"));
  return config;
}

export class GatewayRig {
  readonly config: Config;
  readonly receivers: readonly Receiver[];
  readonly #gateway: Gateway;
  readonly #folder: string;

  private constructor(config: Config, receivers: readonly Receiver[], gateway: Gateway, folder: string) {
    this.config = config;
    this.receivers = receivers;
    this.#gateway = gateway;
    this.#folder = folder;
  }

  /** @param configText given the receivers' write addresses, the routes of a configuration */
  static async start(
    receiverCount: number,
    configText: (urls: readonly string[]) => string,
  ): Promise<GatewayRig> {
    const receivers = Array.from({ length: receiverCount }, () => new Receiver());
    const urls = await Promise.all(receivers.map((receiver) => receiver.start()));
    const folder = await mkdtemp(join(tmpdir(), "gateway-rig-"));
    const text = `
listen: 127.0.0.1:0
admin_listen: off
shutdown: {drain_delay: 0s, grace: 5s}
spool: {path: "${folder}/spool"}
${configText(urls)}`;
    const config = configOf(text);
    const gateway = await Gateway.open(config, pino({ level: "silent" }));
    await gateway.start();
    return new GatewayRig(config, receivers, gateway, folder);
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
    await rm(this.#folder, { recursive: true });
  }
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
