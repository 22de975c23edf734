import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, describe, expect, it } from "vitest";

const MAIN = fileURLToPath(new URL("../../dist/cmd/main.js", import.meta.url));
const BODY = readFileSync(new URL("../fixtures/rw1_requests/self-small.bin", import.meta.url));

beforeAll(() => {
  if (!existsSync(MAIN)) throw new Error("dist/ is missing: npm run build");
});

describe("the sink command", () => {
  let child: ChildProcessByStdio<null, Readable, null> | undefined;
  afterEach(() => {
    child?.kill("SIGKILL");
  });

  it("says where it listens, prints what comes and ends at once when asked", async () => {
    child = spawn(process.execPath, [MAIN, "sink", "--listen", "0", "--print"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    const ended = once(child, "close");
    const listening = /^listening on (\S+) for remote write at any path\n/;
    await expect.poll(() => text, { timeout: 15_000 }).toMatch(listening);
    const url = listening.exec(text)?.[1] ?? "";
    for (let i = 0; i < 2; i++) {
      const response = await fetch(url, { method: "POST", body: BODY, headers: { "User-Agent": "test" } });
      expect(response.status).toBe(204);
    }
    const askedAt = performance.now();
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    // Its lines come every 5 s: it must not wait for the next one.
    expect(performance.now() - askedAt).toBeLessThan(3_000);
    expect(text).toContain(
      '\ngone_soon{cluster="eu-1",group="leaving",instance="127.0.0.1:18081",job="gone",replica="a",x="1"}\n  1 @ 2026-11-30T02:37:38.899Z (1796006258899 ms)\n',
    );
    const progress = text.split("\n").filter((line) => line.startsWith(`${new URL(url).host}: `));
    expect(progress).toHaveLength(2);
    expect(progress.at(-1)).toMatch(/: \+1 requests with 7 samples from test; 7 series, 0 tasks so far$/);
  });
});
