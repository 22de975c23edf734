/** Real vmagents that aggregate what is written to them, and what each of them puts out. */
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { compress } from "snappyjs";

import { decodeBody, encodeReference, type ReferenceSeries } from "../reference/writeRequest.ts";
import type { Peers } from "./installed.ts";
import { freePort } from "./program.ts";
import type { Rig } from "./rig.ts";
import { until } from "./until.ts";

/** One sample that a vmagent has put out. */
export interface AggregatedSample {
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
  readonly timestampMs: number;
}

export interface SentSeries {
  readonly labels: readonly (readonly [string, string])[];
  readonly samples: readonly { readonly value: number; readonly timestampMs: number }[];
}

/** Series in one request: less than a vmagent takes in one go. */
const SERIES_A_REQUEST = 3000;
const MARKER = "marker";
const SEEN_WITHIN_MS = 30_000;

/** Aggregation rules as values; JSON is YAML. */
export interface AggregatorFiles {
  readonly aggregation: readonly object[];
  readonly relabel: readonly object[];
}

export class Aggregators<Name extends string> {
  readonly #names: readonly Name[];
  readonly #ports = new Map<Name, number>();
  readonly #seen = new Map<string, AggregatedSample[]>();
  readonly #server: Server;

  private constructor(names: readonly Name[]) {
    this.#names = names;
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        this.#take(request.url?.slice(1) ?? "", Buffer.concat(chunks));
        response.writeHead(204).end();
      });
    });
  }

  /**
   * Starts a vmagent for each name, all with the same files.
   *
   * @param interval of the rules, e.g. `5s`
   */
  static async start<Name extends string>(
    rig: Rig,
    peers: Peers,
    names: readonly Name[],
    { aggregation, relabel }: AggregatorFiles,
    interval: string,
  ): Promise<Aggregators<Name>> {
    const aggregators = new Aggregators(names);
    await new Promise<void>((resolve) => aggregators.#server.listen(0, "127.0.0.1", resolve));
    rig.closeAtEnd(aggregators);
    const marker = { match: MARKER, interval, outputs: ["count_samples"], enable_windows: true };
    const files = {
      aggregation: join(rig.folder, "aggregation.yml"),
      relabel: join(rig.folder, "relabel.yml"),
    };
    await writeFile(files.aggregation, JSON.stringify([...aggregation, marker]));
    await writeFile(files.relabel, JSON.stringify(relabel));
    await Promise.all(names.map((name) => aggregators.#startOne(rig, peers, name, files)));
    return aggregators;
  }

  async #startOne(
    rig: Rig,
    peers: Peers,
    name: Name,
    files: { readonly aggregation: string; readonly relabel: string },
  ): Promise<void> {
    const port = await freePort();
    this.#ports.set(name, port);
    this.#seen.set(name, []);
    const sink = (this.#server.address() as AddressInfo).port;
    await rig.start({
      name,
      command: peers.vmagent,
      args: [
        `-httpListenAddr=127.0.0.1:${port}`,
        `-remoteWrite.url=http://127.0.0.1:${sink}/${name}`,
        `-remoteWrite.relabelConfig=${files.relabel}`,
        `-streamAggr.config=${files.aggregation}`,
        "-streamAggr.dropInput",
        "-remoteWrite.forcePromProto",
        "-remoteWrite.queues=1",
        "-remoteWrite.flushInterval=100ms",
        "-remoteWrite.tmpDataPath=queue",
        "-memory.allowedBytes=256MiB",
        "-loggerLevel=WARN",
      ],
      readyUrl: `http://127.0.0.1:${port}/health`,
    });
  }

  /** Requests that write series, made beforehand: encoding takes a while. */
  encode(series: readonly SentSeries[]): Buffer[] {
    const bodies: Buffer[] = [];
    for (let from = 0; from < series.length; from += SERIES_A_REQUEST) {
      const some = series.slice(from, from + SERIES_A_REQUEST).map(asReference);
      bodies.push(Buffer.from(compress(encodeReference({ series: some, metadata: [] }))));
    }
    return bodies;
  }

  /** @param path one of those at which a vmagent takes remote write */
  async write(name: Name, bodies: readonly Buffer[], path = "/api/v1/write"): Promise<void> {
    for (const body of bodies) {
      const response = await fetch(`http://127.0.0.1:${this.#ports.get(name) ?? 0}${path}`, {
        method: "POST",
        headers: {
          "Content-Encoding": "snappy",
          "Content-Type": "application/x-protobuf",
          "X-Prometheus-Remote-Write-Version": "0.1.0",
        },
        body: new Uint8Array(body),
      });
      if (response.status !== 204)
        throw new Error(`${name} answered ${response.status}: ${await response.text()}`);
    }
  }

  /** Waits until all have put out what belongs to a window: what comes of a later one comes after it. */
  async putOut(windowEndMs: number): Promise<void> {
    await until("all vmagents to have put out a later window", SEEN_WITHIN_MS, async () => {
      const now = Date.now();
      const marker = this.encode([
        { labels: [["__name__", MARKER]], samples: [{ value: 1, timestampMs: now }] },
      ]);
      await Promise.all(this.#names.map((name) => this.write(name, marker)));
      return this.#names.every((name) =>
        this.samples(name).some(
          ({ labels, timestampMs }) =>
            labels.get("__name__")?.startsWith(`${MARKER}:`) === true && timestampMs > windowEndMs,
        ),
      );
    });
  }

  /** Everything that a vmagent has put out. */
  samples(name: Name): readonly AggregatedSample[] {
    return this.#seen.get(name) ?? [];
  }

  #take(name: string, body: Buffer): void {
    for (const { labels, samples } of decodeBody(body).series) {
      const named = new Map(labels.map(([label, value]) => [label, value] as const));
      for (const { valueBits, timestamp } of samples) {
        const value = Buffer.from(valueBits, "hex").readDoubleBE();
        this.#seen.get(name)?.push({ labels: named, value, timestampMs: Number(timestamp) });
      }
    }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** All texts are ASCII here, which the reference takes as it is. */
function asReference({ labels, samples }: SentSeries): ReferenceSeries {
  return {
    labels,
    samples: samples.map(({ value, timestampMs }) => {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleBE(value);
      return { valueBits: bytes.toString("hex"), timestamp: timestampMs.toString() };
    }),
    exemplars: [],
    histograms: [],
  };
}
