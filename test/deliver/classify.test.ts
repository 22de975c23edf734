import { describe, expect, it } from "vitest";
import { classify, describeToOthers } from "../../src/deliver/classify.ts";
import type { Reply } from "../../src/deliver/classify.ts";

const NOW = Date.UTC(2026, 4, 20, 12, 0, 0);
const OPTIONS = { retryOnHttp429: true, retryOn: [] as number[], minBackoffMs: 30 };

function answered(status: number, more: Partial<Extract<Reply, { kind: "answered" }>> = {}): Reply {
  return { kind: "answered", status, text: "", retryAfter: null, location: null, ...more };
}

describe("the end of an attempt, by status", () => {
  const rows: { statuses: number[]; options?: Partial<typeof OPTIONS>; end: string; name: string }[] = [
    { name: "any 2xx", statuses: [200, 202, 204, 299], end: "delivered" },
    { name: "a redirect", statuses: [300, 301, 302, 303, 304, 307, 308], end: "retry, failure" },
    { name: "a final 4xx", statuses: [400, 401, 403, 404, 409, 413, 415, 422, 499], end: "refused" },
    { name: "408", statuses: [408], end: "retry, failure" },
    { name: "429", statuses: [429], end: "retry" },
    { name: "429, not retried", statuses: [429], options: { retryOnHttp429: false }, end: "refused" },
    { name: "a listed 4xx", statuses: [404, 409], options: { retryOn: [404, 409] }, end: "retry" },
    { name: "a 4xx beside the list", statuses: [403], options: { retryOn: [404] }, end: "refused" },
    { name: "any 5xx", statuses: [500, 501, 502, 503, 504, 599], end: "retry, failure" },
    { name: "a number that HTTP does not have", statuses: [0, 101, 199, 600, 999], end: "retry, failure" },
  ];
  it.each(rows)("is right for $name", ({ statuses, options, end }) => {
    for (const status of statuses) {
      const result = classify(answered(status), { ...OPTIONS, ...options }, NOW);
      const failure = result.kind === "retry" && result.countsAsFailure ? ", failure" : "";
      expect(`${status} ${result.kind}${failure}`).toBe(`${status} ${end}`);
    }
  });

  it("is a retry and a failure without an answer", () => {
    expect(classify({ kind: "failed", cause: "connect ECONNREFUSED\n127.0.0.1:1" }, OPTIONS, NOW)).toEqual({
      kind: "retry",
      status: null,
      cause: "connect ECONNREFUSED 127.0.0.1:1",
      countsAsFailure: true,
      retryAfterMs: null,
    });
  });
});

describe("Retry-After of an attempt", () => {
  const rows = [
    { name: "is kept within limits", value: "8", waitMs: 8_000 },
    { name: "is not longer than a minute", value: "120", waitMs: 60_000 },
    { name: "is not shorter than the least backoff", value: "0", waitMs: 30 },
    { name: "can be a date", value: "Wed, 20 May 2026 12:00:05 GMT", waitMs: 5_000 },
    { name: "says nothing when absurd", value: "99999999", waitMs: null },
    { name: "says nothing when negative", value: "-1", waitMs: null },
  ];
  it.each(rows)("$name", ({ value, waitMs }) => {
    for (const status of [429, 503, 408, 301]) {
      expect(classify(answered(status, { retryAfter: value }), OPTIONS, NOW)).toMatchObject({
        retryAfterMs: waitMs,
      });
    }
  });
});

describe("what an attempt says to a person", () => {
  it("is the upstream's text on one line, cut to 512 bytes", () => {
    const end = classify(answered(400, { text: `bad\nsample ${"x".repeat(600)}` }), OPTIONS, NOW);
    expect(end).toEqual({ kind: "refused", status: 400, reply: `bad sample ${"x".repeat(501)}` });
  });

  it("names the status with the text of a retry", () => {
    expect(classify(answered(503, { text: "queue\tfull" }), OPTIONS, NOW)).toMatchObject({
      cause: "503 (queue full)",
    });
    expect(classify(answered(503), OPTIONS, NOW)).toMatchObject({ cause: "503" });
  });

  it("names where a redirect points, without user, password and query", () => {
    const location = "https://user:pass@other:8429/api/v1/write?token=abc#x\u0007";
    expect(classify(answered(307, { location, text: "moved" }), OPTIONS, NOW)).toMatchObject({
      cause: "307 to https://other:8429/api/v1/write, which is not followed",
    });
  });
});

describe("what an attempt says to those who had nothing in it", () => {
  const rows: { name: string; reply: Reply; told: string }[] = [
    { name: "the status, not the text", reply: answered(503, { text: "customer=Jane" }), told: "503" },
    {
      name: "the status of a redirect, not where to",
      reply: answered(302, { location: "/jane" }),
      told: "302",
    },
    {
      name: "what went wrong when there was no answer",
      reply: { kind: "failed", cause: "connect ECONNREFUSED 127.0.0.1:1" },
      told: "connect ECONNREFUSED 127.0.0.1:1",
    },
  ];
  it.each(rows)("is $name", ({ reply, told }) => {
    const end = classify(reply, OPTIONS, NOW);
    if (end.kind !== "retry") throw new Error("a retry was wanted");
    expect(describeToOthers(end)).toBe(told);
  });
});
