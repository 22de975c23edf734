import { describe, expect, it } from "vitest";
import { xxhash64 } from "../../src/hash/xxhash64.ts";

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
    expect(xxhash64(Buffer.from(text), 0n).toString(16).padStart(16, "0")).toBe(hash);
  });
});
