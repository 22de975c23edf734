import { beforeEach, describe, expect, it } from "vitest";
import { NO_PAUSE, Pauses } from "../../src/deliver/pauses.ts";

let now: number;
let pauses: Pauses;
beforeEach(() => {
  now = 1_000;
  pauses = new Pauses(() => now);
});

describe("pauses that an upstream asked for", () => {
  it("hold for the tenant, and for all when there is none", () => {
    const [ofA, ofAll] = [
      { until: 5_000, cause: "429" },
      { until: 3_000, cause: "503" },
    ];
    pauses.add("a", ofA);
    expect([pauses.of("a"), pauses.of("b"), pauses.of(null)]).toEqual([ofA, NO_PAUSE, NO_PAUSE]);
    pauses.add(null, ofAll);
    expect([pauses.of("a"), pauses.of("b"), pauses.of(null)]).toEqual([ofA, ofAll, ofAll]);
  });

  it("are not shortened by a later one", () => {
    for (const tenant of ["a", null]) {
      pauses.add(tenant, { until: 5_000, cause: "429" });
      pauses.add(tenant, { until: 4_000, cause: "503" });
      expect(pauses.of(tenant)).toEqual({ until: 5_000, cause: "429" });
    }
  });

  it("are forgotten once they are over, however many tenants come and go", () => {
    for (let tenant = 0; tenant < 20_000; tenant += 1) {
      pauses.add(`t${tenant}`, { until: now + 60, cause: "429" });
      now += 1;
    }
    expect(pauses.size).toBe(60);
  });

  it("are forgotten once they are over, though another tenant's is asked for again and again", () => {
    for (let tenant = 0; tenant < 1_000; tenant += 1) {
      pauses.add("bad", { until: now + 60, cause: "429" });
      pauses.add(`t${tenant}`, { until: now + 60, cause: "429" });
      now += 1;
    }
    expect(pauses.size).toBe(61);
  });

  it("are of 10,000 tenants at most: the oldest are forgotten", () => {
    for (let tenant = 0; tenant < 20_000; tenant += 1) {
      pauses.add(`t${tenant}`, { until: now + 60_000, cause: "429" });
    }
    expect(pauses.size).toBe(10_000);
    expect(pauses.of("t9999")).toEqual(NO_PAUSE);
    expect(pauses.of("t10000").until).toBe(61_000);
  });
});
