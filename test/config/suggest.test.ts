import { describe, expect, it } from "vitest";
import { nearest } from "../../src/config/suggest.ts";

const KNOWN = ["count", "label", "algorithm", "by", "without", "max_body_bytes", "max_decoded_bytes"];

describe("an unknown word", () => {
  it.each([
    { name: "a swap", word: "cuont", meant: "count" },
    { name: "a letter too few", word: "lable", meant: "label" },
    { name: "a letter too many", word: "withoutt", meant: "without" },
    { name: "another spelling", word: "max-body-bytes", meant: "max_body_bytes" },
    { name: "another word", word: "replicas", meant: null },
    { name: "a short other word", word: "if", meant: null },
    { name: "nothing", word: "", meant: null },
    { name: "a very long word", word: "x".repeat(1000), meant: null },
  ])("of $name has the nearest known one", ({ word, meant }) => {
    expect(nearest(word, KNOWN)).toBe(meant);
  });
});
