import { describe, expect, it } from "vitest";
import { xxhashHashmod } from "../../src/relabel/hashmod.ts";
import { xxhash64 } from "../../src/relabel/xxhash64.ts";

describe("xxHash64 with the seed 0", () => {
  it.each([
    { name: "nothing", text: "", hash: "ef46db3751d8e999" },
    { name: "one byte", text: "a", hash: "d24ec4f1a98c6e5b" },
    { name: "two bytes", text: "as", hash: "1c330fb2d66be179" },
    { name: "three bytes", text: "asd", hash: "631c37ce72a97393" },
    { name: "four bytes", text: "asdf", hash: "415872f599cea71e" },
    {
      name: "a stripe and every kind of rest",
      text: "Call me Ishmael. Some years ago--never mind how long precisely-",
      hash: "02a2e85470d6fd96",
    },
  ])("is the published value: $name", ({ text, hash }) => {
    expect(xxhash64(Buffer.from(text)).toString(16).padStart(16, "0")).toBe(hash);
  });
});

describe("hashmod of vmagent", () => {
  it("prints what is above 2^63 as Go prints a signed number", () => {
    expect(xxhashHashmod("", 2n ** 64n - 1n)).toBe("-1205034819632174695");
    expect(xxhashHashmod("x", 2n ** 64n - 1n)).toBe("6665539201184043299");
    expect(xxhashHashmod("x", 1_000n)).toBe("299");
  });
});
