import { describe, expect, it } from "vitest";
import { readPlanAnswer, readPlanRequest } from "../../src/plan/api.ts";

describe("a request for a plan", () => {
  it("holds texts of files, the one before if it is not what runs", () => {
    expect(readPlanRequest('{"to":"a"}')).toEqual({ to: "a" });
    expect(readPlanRequest('{"from":"b","to":"a"}')).toEqual({ from: "b", to: "a" });
  });

  it.each([
    { name: "no JSON", body: "routes: []", fault: 'want {"to"' },
    { name: "no map", body: '["a"]', fault: 'want {"to"' },
    { name: "nothing to go to", body: '{"from":"a"}', fault: "in `to`" },
    { name: "a file that is no text", body: '{"to":{"routes":[]}}', fault: "in `to`" },
    { name: "another key", body: '{"to":"a","form":"b"}', fault: 'unknown key form; want {"to"' },
    { name: "one before that is no text", body: '{"to":"a","from":null}', fault: "in `from`" },
  ])("is told what is wrong with it: $name", ({ body, fault }) => {
    expect(readPlanRequest(body)).toContain(fault);
  });
});

describe("an answer to it", () => {
  it.each([
    { name: "no JSON", body: "<html>" },
    { name: "no status", body: '{"plan":{"routes":[]}}' },
    { name: "no plan", body: '{"status":"success"}' },
    { name: "problems that are no texts", body: '{"status":"error","problems":[1]}' },
  ])("is not one with $name", ({ body }) => {
    expect(readPlanAnswer(body)).toBeNull();
  });
});
