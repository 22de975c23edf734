import { describe, expect, it } from "vitest";
import { expand, parseTemplate } from "../../src/relabel/template.ts";

const NAMES = ["", "", "n", "n", "01", "1234567890", "é"];
const GROUPS = ["whole", "one", null, "second n", "zero one", "big", "accent"];

describe("a template of a replacement", () => {
  it.each([
    { name: "plain text", text: "abc", expanded: "abc" },
    { name: "nothing", text: "", expanded: "" },
    { name: "a number", text: "<$1>", expanded: "<one>" },
    { name: "the whole match", text: "$0", expanded: "whole" },
    { name: "a number in braces before a letter", text: "${1}x", expanded: "onex" },
    { name: "a number before a letter, which is another name", text: "<$1x>", expanded: "<>" },
    { name: "a group that took no part", text: "<$2>", expanded: "<>" },
    { name: "a group that is not there", text: "<$9$none>", expanded: "<>" },
    { name: "a name that two groups have, of which one took part", text: "$n", expanded: "second n" },
    { name: "a leading zero, which makes a name", text: "$01", expanded: "zero one" },
    { name: "more digits than a number has, which make a name", text: "$1234567890", expanded: "big" },
    { name: "a name with letters beyond ASCII", text: "$é-", expanded: "accent-" },
    { name: "two dollars", text: "$$1", expanded: "$1" },
    { name: "three dollars", text: "$$$1", expanded: "$one" },
    { name: "a dollar at the end", text: "a$", expanded: "a$" },
    { name: "a dollar before no name", text: "$-$ ", expanded: "$-$ " },
    { name: "empty braces", text: "${}", expanded: "${}" },
    { name: "open braces", text: "${1", expanded: "${1" },
    { name: "braces around no name", text: "${1-}$1", expanded: "${1-}one" },
  ])("expands as Go does: $name", ({ text, expanded }) => {
    expect(expand(parseTemplate(text, NAMES), GROUPS)).toBe(expanded);
  });
});
