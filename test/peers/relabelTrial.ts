/**
 * What a peer makes of label sets, read off the wire: one request in, and for every list of rules a receiver of its own.
 *
 * Rules can change every label but not the sample, so each label set carries a value that tells it apart: 1 for the first, 2
 * for the second and so on.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { compress } from "snappyjs";

import type { Labels } from "../../src/cli/seriesLines.ts";
import { decodeBody, encodeReference } from "../reference/writeRequest.ts";
import type { Outcomes } from "../relabel/differences.ts";
import { GaveUp } from "./until.ts";

/** Receives what came of every list, each at an address of its own. */
export class OutcomeReceiver {
  readonly #server: Server;
  readonly #outcomes: Map<number, Labels>[];
  #failure: GaveUp | undefined;

  private constructor(lists: number) {
    this.#outcomes = Array.from({ length: lists }, () => new Map<number, Labels>());
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        try {
          this.#take(Number(request.url?.slice(1)), Buffer.concat(chunks));
        } catch (error) {
          this.#failure ??= new GaveUp("a receiver got what cannot be", { cause: error });
        }
        response.writeHead(204).end();
      });
    });
  }

  static async start(lists: number): Promise<OutcomeReceiver> {
    const receiver = new OutcomeReceiver(lists);
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  url(list: number): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${list}`;
  }

  #take(list: number, body: Buffer): void {
    const outcomes = this.#outcomes[list];
    if (outcomes === undefined) throw new Error(`there is no list ${list}`);
    for (const { labels, samples } of decodeBody(body).series) {
      for (const { valueBits } of samples) {
        const set = Buffer.from(valueBits, "hex").readDoubleBE() - 1;
        if (outcomes.has(set)) throw new Error(`list ${list}: label set ${set} came twice`);
        outcomes.set(
          set,
          labels.map(([name, value]) => [utf8(name), utf8(value)] as const),
        );
      }
    }
  }

  /**
   * How many series came, of all lists.
   * @throws {GaveUp} when something came that cannot be
   */
  get arrived(): number {
    if (this.#failure !== undefined) throw this.#failure;
    return this.#outcomes.reduce((sum, outcomes) => sum + outcomes.size, 0);
  }

  /** @param sets how many label sets went in */
  outcomes(sets: number): Outcomes[] {
    return this.#outcomes.map((outcomes) =>
      Array.from({ length: sets }, (_, set) => outcomes.get(set) ?? null),
    );
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/**
 * Writes the label sets to a peer in one request.
 * @param timestampMs of every sample
 */
export async function writeLabelSets(
  url: string,
  sets: readonly Labels[],
  timestampMs: number,
): Promise<void> {
  const plain = encodeReference({
    series: sets.map((labels, set) => ({
      labels: labels.map(([name, value]) => [latin1(name), latin1(value)] as const),
      samples: [{ valueBits: bitsHex(set + 1), timestamp: timestampMs.toString() }],
      exemplars: [],
      histograms: [],
    })),
    metadata: [],
  });
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "Content-Encoding": "snappy",
      "Content-Type": "application/x-protobuf",
      "X-Prometheus-Remote-Write-Version": "0.1.0",
    },
    body: compress(plain),
  });
  if (response.status !== 204)
    throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
}

function bitsHex(value: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return bytes.toString("hex");
}

/** The reference decoder and encoder take a character for a byte. */
function utf8(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString("utf8");
}

function latin1(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}
