import { describe, expect, it } from "vitest";
import { readExplainRequest } from "../../src/explain/request.ts";

describe("a request for an explanation", () => {
  it.each([
    {
      name: "a series as PromQL writes it",
      body: { series: 'up{job="node"}' },
      request: {
        labels: [
          ["__name__", "up"],
          ["job", "node"],
        ],
        tenant: null,
        atMs: null,
      },
    },
    {
      name: "labels, a tenant and a time",
      body: { labels: [["__name__", "up"]], tenant: "team-a", at: "1970-01-01T00:00:01Z" },
      request: { labels: [["__name__", "up"]], tenant: "team-a", atMs: 1000 },
    },
  ])("is read from $name", ({ body, request }) => {
    expect(readExplainRequest(JSON.stringify(body))).toEqual(request);
  });

  it.each([
    { name: "no JSON", body: "up", wanted: 'want {"series": "up{job' },
    { name: "a list", body: "[]", wanted: 'want {"series": "up{job' },
    { name: "both kinds of series", body: '{"series":"up","labels":[]}', wanted: 'want {"series": "up{job' },
    { name: "a label without a value", body: '{"labels":[["a"]]}', wanted: 'want {"series": "up{job' },
    { name: "a series that is none", body: '{"series":"up{"}', wanted: "series: " },
    { name: "another key", body: '{"series":"up","time":"now"}', wanted: 'unknown key time; want {"series"' },
    { name: "a tenant that is no text", body: '{"series":"up","tenant":1}', wanted: "want text as tenant" },
    { name: "no time", body: '{"series":"up","at":"noon"}', wanted: "want a time as 2026-" },
  ])("is answered with what is wanted for $name", ({ body, wanted }) => {
    const answer = readExplainRequest(body);
    expect(typeof answer === "string" && answer.startsWith(wanted), JSON.stringify(answer)).toBe(true);
  });
});
