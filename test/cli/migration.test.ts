import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { run } from "../../src/cli/program.ts";

const PAGE = readFileSync(new URL("../../docs/migration.md", import.meta.url), "utf8");

/** The commands of the page, and what it shows them to print. */
const examples = [...PAGE.matchAll(/^```console\n\$ stream-metrics-route (.+)\n([^]*?)^```$/gm)].map(
  ([, line = "", output = ""]) => ({ line, output }),
);

describe("docs/migration.md", () => {
  it("has its examples", () => {
    expect(examples).toHaveLength(4);
  });

  it.each(examples)("shows what is printed by $line", async ({ line, output }) => {
    const written: string[] = [];
    const streams = [process.stdout, process.stderr].map((stream) =>
      vi.spyOn(stream, "write").mockImplementation((text) => written.push(String(text)) > 0),
    );
    try {
      expect(await run(line.split(" "))).toBe(0);
    } finally {
      for (const stream of streams) stream.mockRestore();
    }
    expect(written.join("")).toBe(output);
  });
});
