import { describe, expect, it } from "vitest";
import { cleanText, formatMs } from "../../src/deliver/cleanText.ts";

describe("text from elsewhere", () => {
  const rows = [
    { name: "keeps plain text", text: "out of order sample", maxBytes: 512, clean: "out of order sample" },
    { name: "joins lines", text: "one\r\n\r\n two\u2028three\n", maxBytes: 512, clean: "one two three" },
    { name: "drops terminal escapes", text: "\u001b[31mred\u0007\u0000", maxBytes: 512, clean: "[31mred" },
    { name: "drops what turns a line around", text: "a\u202eb", maxBytes: 512, clean: "a b" },
    { name: "cuts at the limit", text: "x".repeat(600), maxBytes: 512, clean: "x".repeat(512) },
    { name: "cuts no character in half", text: "aé漢", maxBytes: 5, clean: "aé" },
    { name: "keeps a character that just fits", text: "aé漢", maxBytes: 6, clean: "aé漢" },
    { name: "has nothing to say about nothing", text: " \n ", maxBytes: 512, clean: "" },
  ];
  it.each(rows)("$name", ({ text, maxBytes, clean }) => {
    expect(cleanText(text, maxBytes)).toBe(clean);
  });

  it("tells lengths of time in milliseconds or seconds", () => {
    expect([formatMs(0), formatMs(30.4), formatMs(8_000), formatMs(59_960)]).toEqual([
      "0 ms",
      "30 ms",
      "8.0 s",
      "60.0 s",
    ]);
  });
});
