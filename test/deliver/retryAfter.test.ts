import { describe, expect, it } from "vitest";
import { parseRetryAfter } from "../../src/deliver/retryAfter.ts";

const NOW = Date.UTC(2026, 4, 20, 12, 0, 0);

describe("Retry-After", () => {
  const rows: { name: string; value: string | null; waitMs: number | null }[] = [
    { name: "no header", value: null, waitMs: null },
    { name: "seconds", value: "8", waitMs: 8_000 },
    { name: "seconds with blanks around", value: " 8 ", waitMs: 8_000 },
    { name: "no time at all", value: "0", waitMs: 0 },
    { name: "a date to come", value: "Wed, 20 May 2026 12:00:30 GMT", waitMs: 30_000 },
    { name: "a date gone by", value: "Wed, 20 May 2026 11:59:59 GMT", waitMs: null },
    { name: "this very second", value: "Wed, 20 May 2026 12:00:00 GMT", waitMs: null },
    { name: "a date of next year", value: "Thu, 20 May 2027 12:00:00 GMT", waitMs: null },
    { name: "a date with a zone of its own", value: "Wed, 20 May 2026 12:00:30 +0200", waitMs: null },
    { name: "a day that no month has", value: "Wed, 99 May 2026 12:00:30 GMT", waitMs: null },
    { name: "negative", value: "-1", waitMs: null },
    { name: "absurdly long", value: "99999999", waitMs: null },
    { name: "more digits than a number has", value: "9".repeat(400), waitMs: null },
    { name: "a fraction", value: "1.5", waitMs: null },
    { name: "a word", value: "soon", waitMs: null },
    { name: "empty", value: "", waitMs: null },
  ];
  it.each(rows)("reads $name", ({ value, waitMs }) => {
    expect(parseRetryAfter(value, NOW)).toBe(waitMs);
  });
});
