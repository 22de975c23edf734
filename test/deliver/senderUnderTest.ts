/** A sender as the gateway would make it, and a record of all that it reports. */
import { lookup } from "node:dns";
import type { LookupFunction } from "node:net";
import { pino } from "pino";
import type { BreakerState } from "../../src/deliver/breaker.ts";
import type { BreakerOptions, DeliveryOptions, UpstreamOptions } from "../../src/deliver/options.ts";
import type { ParcelOutcome, SettledFrom, Settlement } from "../../src/deliver/outcome.ts";
import { Sender, type SenderChange } from "../../src/deliver/sender.ts";
import type { UpstreamSpool } from "../../src/deliver/spool/upstreamSpool.ts";
import { MemoryBudget, type MemoryHolder } from "../../src/memoryBudget.ts";
import type { ItemCounts, Parcel } from "../../src/wire/parcel.ts";

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly msg: string;
}

export interface Settings {
  readonly upstream?: Partial<UpstreamOptions>;
  readonly delivery?: Partial<Omit<DeliveryOptions, "breaker">>;
  readonly breaker?: BreakerOptions;
  readonly random?: () => number;
  readonly spool?: UpstreamSpool;
  readonly lookup?: LookupFunction;
  /** Of which the sender has all that it gets. */
  readonly budget?: MemoryBudget;
}

/** What waits goes at once. */
export const DELIVERY: DeliveryOptions = {
  lanes: 1,
  maxSamplesPerSend: Number.MAX_SAFE_INTEGER,
  batchSendDeadlineMs: 0,
  remoteTimeoutMs: 10_000,
  minBackoffMs: 1,
  maxBackoffMs: 5,
  retryOnHttp429: true,
  retryOn: [],
  breaker: { consecutiveFailures: 1_000, resetAfterMs: 60_000 },
  tenantHeader: null,
  deliveryDeadlineMs: 10_000,
  ack: "safe",
  onOutage: "refuse",
  spoolAfterMs: 60_000,
  sampleAgeLimitMs: 0,
};

/** What was told to be settled. */
export class Settlements {
  readonly #told: {
    readonly end: Settlement;
    readonly from: SettledFrom;
    readonly parcels: number;
    readonly items: ItemCounts;
  }[] = [];

  add(end: Settlement, from: SettledFrom, parcels: number, items: ItemCounts): void {
    this.#told.push({ end, from, parcels, items });
  }

  /** How many samples are spooled now, without those that were at the start. */
  get spooledSamples(): number {
    return this.#told.reduce((sum, { end, from, items: { samples } }) => {
      return sum + (end === "spooled" ? samples : 0) - (from === "spooled" ? samples : 0);
    }, 0);
  }

  /** How each parcel of makeParcels() was settled; one that was not, or twice, shows. */
  of(parcels: readonly Parcel[]): string[] {
    return parcels.map(({ items: { exemplars: bit } }) => {
      const told = this.#told.filter(({ items }) => Math.floor(items.exemplars / bit) % 2 === 1);
      return told.length === 0 ? "not" : told.map(({ end }) => end).join(" and ");
    });
  }

  /** How many parcels were settled, and with how many samples in all. */
  total(end: Settlement): { parcels: number; samples: number } {
    const told = this.#told.filter((each) => each.end === end);
    return {
      parcels: told.reduce((sum, { parcels }) => sum + parcels, 0),
      samples: told.reduce((sum, { items }) => sum + items.samples, 0),
    };
  }
}

export class SenderUnderTest {
  readonly sender: Sender;
  readonly memory: MemoryHolder;
  readonly settled = new Settlements();
  readonly attempts: ("delivered" | "refused" | "retry")[] = [];
  readonly durationsMs: number[] = [];
  readonly breakerStates: BreakerState[] = [];
  readonly #lines: string[] = [];
  readonly #url: string;

  constructor(url: string, settings: Settings = {}) {
    this.#url = url;
    const { upstream, delivery } = optionsOf(url, settings);
    const log = pino(
      { level: "debug", base: null, formatters: { level: (level) => ({ level }) } },
      { write: (line: string) => this.#lines.push(line) },
    );
    this.memory = (settings.budget ?? new MemoryBudget(Infinity)).holder();
    const random = settings.random ?? Math.random;
    this.sender = new Sender(
      upstream,
      delivery,
      {
        now: Date.now,
        random,
        log,
        lookup: settings.lookup ?? lookup,
        userAgent: "stream-metrics-route/test",
        memory: this.memory,
      },
      {
        settled: (end, from, parcels, items) => {
          this.settled.add(end, from, parcels, items);
        },
        attempted: (result, durationMs) => {
          this.attempts.push(result);
          this.durationsMs.push(durationMs);
        },
        delivered: () => undefined,
        breakerChanged: (state) => this.breakerStates.push(state),
      },
      settings.spool ?? null,
    );
  }

  /** Makes ready to go on with these settings, and the url of before if they have none. */
  prepare(settings: Pick<Settings, "upstream" | "delivery" | "breaker">): SenderChange {
    const { upstream, delivery } = optionsOf(this.#url, settings);
    return this.sender.prepare(upstream, delivery);
  }

  deliver(
    parcels: readonly Parcel[],
    deadline: number,
    lane = 0,
    tenant: string | null = null,
  ): Promise<readonly ParcelOutcome[]> {
    return new Promise((resolve) => {
      this.sender.deliver(lane, parcels, tenant, deadline, resolve);
    });
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

function optionsOf(
  url: string,
  settings: Pick<Settings, "upstream" | "delivery" | "breaker">,
): { upstream: UpstreamOptions; delivery: DeliveryOptions } {
  const upstream: UpstreamOptions = {
    name: "vmagent-2",
    url: new URL(url),
    auth: { kind: "none" },
    headers: {},
    tls: { insecureSkipVerify: false },
    ...settings.upstream,
  };
  const breaker = settings.breaker === undefined ? {} : { breaker: settings.breaker };
  return { upstream, delivery: { ...DELIVERY, ...settings.delivery, ...breaker } };
}
