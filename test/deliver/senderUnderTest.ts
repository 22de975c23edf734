/** A sender as the gateway would make it, and a record of all that it reports. */
import { pino } from "pino";
import type { BreakerState } from "../../src/deliver/breaker.ts";
import type { BreakerOptions, DeliveryOptions, UpstreamOptions } from "../../src/deliver/options.ts";
import type { Parcel } from "../../src/wire/parcel.ts";
import { Sender } from "../../src/deliver/sender.ts";

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly msg: string;
}

export interface Settings {
  readonly upstream?: Partial<UpstreamOptions>;
  readonly delivery?: Partial<Omit<DeliveryOptions, "breaker">>;
  readonly breaker?: BreakerOptions;
  readonly random?: () => number;
}

const DELIVERY: DeliveryOptions = {
  remoteTimeoutMs: 10_000,
  minBackoffMs: 1,
  maxBackoffMs: 5,
  retryOnHttp429: true,
  retryOn: [],
  breaker: { consecutiveFailures: 1_000, resetAfterMs: 60_000 },
  deliveryDeadlineMs: 10_000,
};

export class SenderUnderTest {
  readonly sender: Sender;
  /** How often and how each parcel was settled. */
  readonly settled = new Map<Parcel, ("delivered" | "refused")[]>();
  readonly attempts: ("delivered" | "refused" | "retry")[] = [];
  readonly durationsMs: number[] = [];
  readonly breakerStates: BreakerState[] = [];
  readonly #lines: string[] = [];

  constructor(url: string, settings: Settings = {}) {
    const upstream: UpstreamOptions = {
      name: "vmagent-2",
      url: new URL(url),
      auth: { kind: "none" },
      headers: {},
      tls: { insecureSkipVerify: false },
      ...settings.upstream,
    };
    const delivery = {
      ...DELIVERY,
      ...settings.delivery,
      ...(settings.breaker === undefined ? {} : { breaker: settings.breaker }),
    };
    const log = pino(
      { level: "debug", base: null, formatters: { level: (level) => ({ level }) } },
      { write: (line: string) => this.#lines.push(line) },
    );
    const random = settings.random ?? Math.random;
    this.sender = new Sender(
      upstream,
      delivery,
      { now: Date.now, random, log, userAgent: "stream-metrics-route/test" },
      {
        settled: (parcel, end) => this.settled.set(parcel, [...(this.settled.get(parcel) ?? []), end]),
        attempted: (result, durationMs) => {
          this.attempts.push(result);
          this.durationsMs.push(durationMs);
        },
        breakerChanged: (state) => this.breakerStates.push(state),
      },
    );
  }

  /** What was written to the log at this level or above. */
  log(level: LogLine["level"]): readonly LogLine[] {
    const levels = ["debug", "info", "warn", "error"];
    const lines = this.#lines.map((line) => JSON.parse(line) as LogLine);
    return lines.filter((line) => levels.indexOf(line.level) >= levels.indexOf(level));
  }

  logText(): string {
    return this.#lines.join("");
  }
}

export function makeParcel(series = 512, bytes = 100): Parcel {
  const body = new Uint8Array(bytes).fill(series % 256);
  return { body, plainBytes: bytes * 3, series, items: { samples: series, histograms: 0, exemplars: 0 } };
}
