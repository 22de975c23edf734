import { describe, expect, it } from "vitest";
import { toLower, toUpper } from "../../src/relabel/letterCase.ts";

describe("upper case", () => {
  it.each([
    { name: "ASCII", text: "aZ1-", upper: "AZ1-" },
    { name: "a letter with a partner", text: "é\u{1e922}", upper: "É\u{1e900}" },
    { name: "sharp s, which stays", text: "ß", upper: "ß" },
    { name: "a ligature, which stays", text: "\ufb01", upper: "\ufb01" },
    {
      name: "Greek with an iota below",
      text: "\u1f80\u1f97\u1fb3\u1fc3\u1ff3",
      upper: "\u1f88\u1f9f\u1fbc\u1fcc\u1ffc",
    },
    {
      name: "its capitals and those without, which stay",
      text: "\u1f88\u1faf\u1fb2\u1fb4",
      upper: "\u1f88\u1faf\u1fb2\u1fb4",
    },
    { name: "a title case letter", text: "\u01c5", upper: "\u01c4" },
    { name: "a dotless i", text: "\u0131", upper: "I" },
  ])("is one code point for one: $name", ({ text, upper }) => {
    expect(toUpper(text)).toBe(upper);
  });
});

describe("lower case", () => {
  it.each([
    { name: "ASCII", text: "aZ1-", lower: "az1-" },
    { name: "a sigma at the end of a word", text: "ΟΔΟΣ", lower: "οδοσ" },
    { name: "a capital I with a dot", text: "\u0130", lower: "i" },
    { name: "a kelvin sign", text: "\u212a", lower: "k" },
    { name: "a capital sharp s", text: "\u1e9e", lower: "ß" },
    { name: "beyond U+FFFF", text: "\u{10400}", lower: "\u{10428}" },
  ])("is one code point for one: $name", ({ text, lower }) => {
    expect(toLower(text)).toBe(lower);
  });
});
