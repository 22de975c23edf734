/** Files of stream aggregation, given to a real vmagent: it takes what lint reads, and refuses what lint refuses. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { BAD_AGGREGATIONS, EVERY_KEY } from "../config/aggregations.ts";
import { describeWithPeers } from "../peers/peers.ts";

const run = promisify(execFile);

describeWithPeers("files of stream aggregation, given to a real vmagent", (peers) => {
  let folder = "";

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "aggregation-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  /** Only checks its files. */
  async function takes(text: string): Promise<boolean> {
    const file = join(folder, "aggregation.yml");
    await writeFile(file, text);
    const args = ["-dryRun", "-remoteWrite.url=http://127.0.0.1:1/", `-streamAggr.config=${file}`];
    return run(peers.vmagent, args).then(
      () => true,
      () => false,
    );
  }

  it("are taken with every key that lint knows", async () => {
    expect(await takes(EVERY_KEY)).toBe(true);
  });

  it.each(BAD_AGGREGATIONS)("are refused for $name", async ({ text }) => {
    expect(await takes(text)).toBe(false);
  });
});
