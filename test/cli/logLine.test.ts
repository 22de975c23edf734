import { describe, expect, it } from "vitest";
import { logLineText } from "../../src/cli/logLine.ts";

describe("the gateway's log as start shows it", () => {
  const rows = [
    { name: "leaves out info", line: '{"level":"info","time":"t","msg":"listening"}', text: null },
    {
      name: "shows a warning with its upstream",
      line: '{"level":"warn","time":"t","upstream":"sink-0","msg":"breaker open"}',
      text: "warn: upstream sink-0: breaker open",
    },
    { name: "shows an error", line: '{"level":"error","msg":"a\\u001b[2J"}', text: "error: a\\u001b[2J" },
    { name: "shows what is no log line", line: "Error: boom", text: "Error: boom" },
  ];
  it.each(rows)("$name", ({ line, text }) => {
    expect(logLineText(line)).toBe(text);
  });
});
