import { describe, expect, it } from "vitest";
import { composeAnswer, type WriteReport } from "../../src/receive/answer.ts";

const CLEAN: WriteReport = {
  series: 10,
  refusedSeries: 0,
  refusedExamples: [],
  undelivered: [],
  refusals: [],
};
const DOWN = { upstream: "vmagent-1", cause: "connection refused", retryAfterMs: 2500 };
const REFUSED = { upstream: "vmagent-2", status: 400, reply: "cannot parse" };
const BAD_SERIES = {
  refusedSeries: 1,
  refusedExamples: [{ reason: "empty_label_name", series: 'up{""="x"}' }],
};

describe("the answer to a write request", () => {
  it("is 204 without a body when everything was accepted", () => {
    expect(composeAnswer(CLEAN, 0)).toEqual({ status: 204, body: "" });
  });

  it("is 400 that names the refused series and says that the others went on", () => {
    const { status, body } = composeAnswer({ ...CLEAN, ...BAD_SERIES }, 0);
    expect(status).toBe(400);
    expect(body).toBe('1 of 10 series refused, the other 9 were forwarded; empty_label_name: up{""="x"}');
  });

  it("is 400 with the words of an upstream that refused", () => {
    const { status, body } = composeAnswer({ ...CLEAN, refusals: [REFUSED] }, 0);
    expect(status).toBe(400);
    expect(body).toBe("upstream vmagent-2 refused its part with 400: cannot parse");
  });

  it("is 503 as long as anything may still be delivered, whatever else was refused", () => {
    const answer = composeAnswer({ ...CLEAN, ...BAD_SERIES, undelivered: [DOWN], refusals: [REFUSED] }, 0);
    expect(answer.status).toBe(503);
    expect(answer.body).toContain("upstream vmagent-1: connection refused");
  });

  it("says once what is the same of several parcels", () => {
    expect(composeAnswer({ ...CLEAN, refusals: [REFUSED, REFUSED] }, 0).body.split("\n")).toHaveLength(1);
    expect(composeAnswer({ ...CLEAN, undelivered: [DOWN, DOWN] }, 0).body.match(/vmagent-1/g)).toHaveLength(
      1,
    );
  });

  it.each([
    { name: "a part of a second", retryAfterMs: 10, random: 0.99, seconds: 1 },
    { name: "2.5 s, least", retryAfterMs: 2500, random: 0, seconds: 1 },
    { name: "2.5 s, most", retryAfterMs: 2500, random: 0.99, seconds: 3 },
    { name: "an hour, most", retryAfterMs: 3_600_000, random: 0.99, seconds: 5 },
  ])("spreads Retry-After for $name within bounds", ({ retryAfterMs, random, seconds }) => {
    const answer = composeAnswer({ ...CLEAN, undelivered: [{ ...DOWN, retryAfterMs }] }, random);
    expect(answer.retryAfterSeconds).toBe(seconds);
  });

  it("is never longer than what Prometheus logs", () => {
    const refusals = Array.from({ length: 100 }, (_, number) => ({
      ...REFUSED,
      reply: `${number} is wrong`,
    }));
    expect(composeAnswer({ ...CLEAN, refusals }, 0).body).toHaveLength(1024);
  });
});
