import { pino } from "pino";
import { beforeEach, describe, expect, it } from "vitest";
import { Batch } from "../../src/deliver/batch.ts";
import type { AttemptEnd } from "../../src/deliver/classify.ts";
import { Delivery, LaneParcel } from "../../src/deliver/delivery.ts";
import { DeliveryLog } from "../../src/deliver/deliveryLog.ts";
import { makeParcel } from "./parcels.ts";
import type { Parcel } from "../../src/wire/parcel.ts";

const BREAKER = { consecutiveFailures: 5, resetAfterMs: 10_000 };

let now: number;
let lines: string[];
let log: DeliveryLog;
beforeEach(() => {
  now = 1_000_000;
  lines = [];
  const logger = pino(
    { level: "info", base: null, formatters: { level: (level) => ({ level }) } },
    {
      write: (line: string) => {
        const { level, msg } = JSON.parse(line) as { level: string; msg: string };
        lines.push(`${level}: ${msg}`);
      },
    },
  );
  log = new DeliveryLog(logger, "vmagent-2", () => now);
});

function batchOf(attempts: number, ...parcels: readonly Parcel[]): Batch {
  const delivery = new Delivery(parcels.length, now, now, () => undefined);
  const batch = new Batch(
    parcels.map((parcel, index) => new LaneParcel(parcel, delivery, index)),
    null,
  );
  batch.attempts = attempts;
  return batch;
}

function failed(cause: string, retryAfterMs: number | null = null): Extract<AttemptEnd, { kind: "retry" }> {
  const status = Number.parseInt(cause, 10);
  return { kind: "retry", status, cause, countsAsFailure: true, retryAfterMs };
}

describe("the log of an upstream in trouble", () => {
  it("warns of the first failed attempt, and then once a minute with the number of others", () => {
    const parcel = makeParcel(512, 40 * 1024);
    log.retry(batchOf(3, parcel), failed("429", 8_000), 8_000);
    for (let attempt = 4; attempt < 10; attempt += 1) log.retry(batchOf(attempt, parcel), failed("503"), 30);
    now += 60_000;
    log.retry(batchOf(1, parcel, makeParcel(8)), failed("500"), null);
    expect(lines).toEqual([
      "warn: upstream vmagent-2: 429 for a batch of 512 series (40 KiB), attempt 3; next attempt in 8.0 s (Retry-After)",
      "warn: upstream vmagent-2: 500 for a batch of 520 series (40 KiB), attempt 1; its senders are told to come again (and 6 more since the last such line)",
    ]);
  });

  it("keeps kinds of trouble apart: a refusal and a redirect are errors", () => {
    log.retry(batchOf(1, makeParcel(512)), failed("503"), 30);
    log.refused(batchOf(2, makeParcel(1)), 400, "out of order");
    log.refused(batchOf(1, makeParcel(512)), 413, "");
    log.retry(batchOf(1, makeParcel(512)), failed("301 to http://other/, which is not followed"), 30);
    expect(lines).toEqual([
      "warn: upstream vmagent-2: 503 for a batch of 512 series (106 B), attempt 1; next attempt in 30 ms",
      "error: upstream vmagent-2: 400 for a batch of 1 series (106 B), attempt 2; refused, its sender is told: out of order",
      "error: upstream vmagent-2: 301 to http://other/, which is not followed, for a batch of 512 series (106 B), attempt 1; set url to where the receiver is; next attempt in 30 ms",
    ]);
  });

  it("says nothing yet of a refusal that can be about any of several parcels", () => {
    log.refused(batchOf(1, makeParcel(1), makeParcel(2)), 400, "out of order");
    expect(lines).toEqual([]);
  });

  it("tells when the breaker opens and closes, not every time it tries", () => {
    log.breakerChanged("open", BREAKER, "503");
    log.breakerChanged("half_open", BREAKER, "503");
    log.breakerChanged("open", BREAKER, "503");
    log.breakerChanged("half_open", BREAKER, "503");
    log.breakerChanged("closed", BREAKER, "503");
    expect(lines).toEqual([
      "warn: upstream vmagent-2: breaker open after 5 failed attempts in a row, last: 503; nothing is sent for 10.0 s",
      "info: upstream vmagent-2: breaker closed, batches are sent again",
    ]);
  });
});
