import { pino } from "pino";
import { beforeEach, describe, expect, it } from "vitest";
import { DeliveryLog } from "../../src/deliver/deliveryLog.ts";
import { makeParcel } from "./senderUnderTest.ts";

const BREAKER = { consecutiveFailures: 5, resetAfterMs: 10_000 };
const PARCEL = makeParcel(512, 40 * 1024);

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

describe("the log of an upstream in trouble", () => {
  it("warns of the first failed attempt, and then once a minute with the number of others", () => {
    log.retry(PARCEL, 3, "429", "next attempt in 8.0 s (Retry-After)");
    for (let attempt = 4; attempt < 10; attempt += 1)
      log.retry(PARCEL, attempt, "503", "next attempt in 30 ms");
    now += 60_000;
    log.retry(PARCEL, 1, "500", "next attempt in 30 ms");
    expect(lines).toEqual([
      "warn: upstream vmagent-2: 429 for a parcel of 512 series (40 KiB), attempt 3; next attempt in 8.0 s (Retry-After)",
      "warn: upstream vmagent-2: 500 for a parcel of 512 series (40 KiB), attempt 1; next attempt in 30 ms (and 6 more since the last such line)",
    ]);
  });

  it("keeps kinds of trouble apart: a refusal and a redirect are errors", () => {
    log.retry(PARCEL, 1, "503", "next attempt in 30 ms");
    log.refused(makeParcel(1, 100), 2, 400, "out of order");
    log.refused(PARCEL, 1, 413, "");
    log.redirected(PARCEL, 1, "301 to http://other/, which is not followed", "next attempt in 30 ms");
    expect(lines).toEqual([
      "warn: upstream vmagent-2: 503 for a parcel of 512 series (40 KiB), attempt 1; next attempt in 30 ms",
      "error: upstream vmagent-2: 400 for a parcel of 1 series (100 B), attempt 2; refused, its sender is told: out of order",
      "error: upstream vmagent-2: 301 to http://other/, which is not followed, for a parcel of 512 series (40 KiB), attempt 1; set url to where the receiver is; next attempt in 30 ms",
    ]);
  });

  it("tells when the breaker opens and closes, not every time it tries", () => {
    log.breakerChanged("open", BREAKER, "503");
    log.breakerChanged("half_open", BREAKER, "503");
    log.breakerChanged("open", BREAKER, "503");
    log.breakerChanged("half_open", BREAKER, "503");
    log.breakerChanged("closed", BREAKER, "503");
    expect(lines).toEqual([
      "warn: upstream vmagent-2: breaker open after 5 failed attempts in a row, last: 503; nothing is sent for 10.0 s",
      "info: upstream vmagent-2: breaker closed, parcels are sent again",
    ]);
  });
});
