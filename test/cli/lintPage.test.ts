import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { run } from "../../src/cli/program.ts";

const PAGE = readFileSync(new URL("../../docs/lint.md", import.meta.url), "utf8");

/** The files of the page, which their first lines name, and its commands with what it shows them to print. */
const files = [...PAGE.matchAll(/^```yaml\n(# (\S+)\n[^]*?)^```$/gm)].map(([, text = "", name = ""]) => ({
  name,
  text,
}));
const examples = [
  ...PAGE.matchAll(/^```console\n\$ stream-metrics-route (.+)\n((?:(?!```).*\n)+)```$/gm),
].map(([, line = "", output = ""]) => ({ line, output }));

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lint-page-"));
  for (const { name, text } of files) writeFileSync(join(folder, name), text);
});

afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

describe("docs/lint.md", () => {
  it("has its example", () => {
    expect(files.map(({ name }) => name)).toEqual(["gateway.yaml", "aggr.yaml"]);
    expect(examples).toHaveLength(1);
  });

  it.each(examples)("shows what is printed by $line", async ({ line, output }) => {
    const written: string[] = [];
    vi.spyOn(process.stdout, "write").mockImplementation((text) => written.push(String(text)) > 0);
    const args = line
      .split(" ")
      .map((arg) => (files.some(({ name }) => name === arg) ? join(folder, arg) : arg));
    expect(await run(args)).toBe(1);
    expect(written.join("").replaceAll(`${folder}/`, "")).toBe(output);
  });
});
