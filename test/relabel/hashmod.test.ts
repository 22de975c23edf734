import { describe, expect, it } from "vitest";
import { xxhashHashmod } from "../../src/relabel/hashmod.ts";

describe("hashmod of vmagent", () => {
  it("prints what is above 2^63 as Go prints a signed number", () => {
    expect(xxhashHashmod("", 2n ** 64n - 1n)).toBe("-1205034819632174695");
    expect(xxhashHashmod("x", 2n ** 64n - 1n)).toBe("6665539201184043299");
    expect(xxhashHashmod("x", 1_000n)).toBe("299");
  });
});
