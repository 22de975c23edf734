/**
 * A sender of timed items to one of several gateways: half of all series in each request, the other half in the next, so that
 * every series comes through every gateway.
 *
 * Besides a sample of now, some of the series have an exemplar and a histogram of now, and what is late by a minute and by
 * an hour. Each request is kept with the configurations that the gateway may have had while it was under way.
 */
import { setTimeout as pause } from "node:timers/promises";
import { compressSync } from "snappy";
import { Client } from "undici";
import { WRITE_HEADERS } from "./gatewayRig.ts";
import type { Configured, ReloadedGateway } from "./reloadedGateway.ts";
import { ITEM_KINDS, labelFields, type TimedItem, timedSeries, type TimedSeries } from "./timedItems.ts";

const PAUSE_MS = 100;
/** Of the series of a request. */
const EXTRAS_EVERY = 16;
const LATE_MS = [60_000, 3_600_000];

/** Timestamps for all senders, each later than the one before: 2 ms past multiples of 4 ms, to leave others to others. */
export class Clock {
  #last = 0;

  next(): number {
    this.#last = Math.max(this.#last + 4, Math.floor(Date.now() / 4) * 4 + 2);
    return this.#last;
  }
}

/** A request that was accepted. */
export interface SentRequest {
  readonly series: readonly TimedSeries[];
  /** Indexes into the gateway's history: what it had when the request left, and what it was getting when the answer came. */
  readonly earliest: number;
  readonly latest: number;
  /** The timestamp of what is not late; null for requests of others than the sender itself. */
  readonly timestampMs: number | null;
}

export class ItemSender<Setup extends Configured> {
  readonly gateway: ReloadedGateway<Setup>;
  readonly sent: SentRequest[] = [];
  /** What was not accepted, as status and text. */
  readonly refused: string[] = [];
  readonly #labels: readonly Buffer[];
  readonly #clock: Clock;
  readonly #client: Client;
  readonly #running: Promise<void>;
  #isStopping = false;

  /** Begins at once. */
  constructor(gateway: ReloadedGateway<Setup>, seriesCount: number, clock: Clock) {
    this.gateway = gateway;
    this.#labels = Array.from({ length: seriesCount }, (_, number) => labelFields(number));
    this.#clock = clock;
    this.#client = new Client(gateway.origin);
    this.#running = this.#run();
  }

  /** Ends when the request under way is answered. */
  async close(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
    if (!this.#client.closed) await this.#client.close();
  }

  /** Sends items of both sides of a moment, for every fourth series from `first` on, in one message for each series. */
  async sendAround(momentMs: number, first: number): Promise<void> {
    const around = ITEM_KINDS.flatMap((kind) => [
      { kind, timestampMs: momentMs - 1 },
      { kind, timestampMs: momentMs },
    ]);
    await this.#send(
      this.#some(4, first, () => around),
      null,
    );
  }

  async #run(): Promise<void> {
    for (let turn = 0; !this.#isStopping; turn += 1) {
      const timestampMs = this.#clock.next();
      const plain: TimedItem[] = [{ kind: "sample", timestampMs }];
      const extras = [timestampMs, ...LATE_MS.map((lateMs) => timestampMs - lateMs - 1)].flatMap((each) =>
        ITEM_KINDS.map((kind) => ({ kind, timestampMs: each })),
      );
      const hasExtras = (number: number): boolean => ((number >> 1) + turn) % EXTRAS_EVERY === 0;
      await this.#send(
        this.#some(2, turn % 2, (number) => (hasExtras(number) ? extras : plain)),
        timestampMs,
      );
      await pause(PAUSE_MS);
    }
  }

  /** Every so many-th series. */
  #some(step: number, first: number, itemsOf: (number: number) => readonly TimedItem[]): TimedSeries[] {
    return Array.from({ length: this.#labels.length / step }, (_, index) => {
      const number = index * step + first;
      return { number, items: itemsOf(number) };
    });
  }

  async #send(series: readonly TimedSeries[], timestampMs: number | null): Promise<void> {
    const body = compressSync(
      Buffer.concat(
        series.map(({ number, items }) => timedSeries(this.#labels[number] ?? Buffer.alloc(0), items)),
      ),
    );
    const earliest = this.gateway.ended;
    const request = { path: "/api/v1/write", method: "POST", headers: WRITE_HEADERS, body } as const;
    const { statusCode, body: answer } = await this.#client.request(request);
    const text = await answer.text();
    if (statusCode === 204) this.sent.push({ series, earliest, latest: this.gateway.begun, timestampMs });
    else this.refused.push(`${statusCode}: ${text}`);
  }
}
