import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lockFolder } from "../../../src/deliver/spool/folderLock.ts";

const TIMES = { touchMs: 20, watchMs: 300 };

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lock-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

describe("folder lock", () => {
  it("is given to one of many who want it at the same time", async () => {
    const locks = await Promise.allSettled(Array.from({ length: 10 }, () => lockFolder(folder, TIMES)));
    const taken = locks.filter(({ status }) => status === "fulfilled");
    expect(taken).toHaveLength(1);
    for (const lock of locks) if (lock.status === "fulfilled") await lock.value.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("can be taken again when it was given back", async () => {
    await (await lockFolder(folder, TIMES)).release();
    await (await lockFolder(folder, TIMES)).release();
  });

  it.each([
    { name: "a process with the same number, which started at another time", change: /\n\d+\n/, to: "\n1\n" },
    { name: "a process with a number that no process has", change: /^\d+/, to: "99999999" },
  ])("takes over at once the file of $name", async ({ change, to }) => {
    const path = join(folder, "lock.1");
    const first = await lockFolder(folder, TIMES);
    const content = readFileSync(path, "utf8");
    await first.release();
    writeFileSync(path, content.replace(change, to));
    const lock = await lockFolder(folder, { ...TIMES, watchMs: 3_600_000 });
    expect(readdirSync(folder)).toEqual(["lock.2"]);
    await lock.release();
  });

  it("takes over a file that was never finished", async () => {
    writeFileSync(join(folder, "lock.7"), "");
    const lock = await lockFolder(folder, TIMES);
    expect(readdirSync(folder)).toEqual(["lock.8"]);
    await lock.release();
  });

  it("leaves a file of another machine alone as long as it is touched", async () => {
    const path = join(folder, "lock.1");
    writeFileSync(path, "1\n100\nanother kernel\n");
    const touching = setInterval(() => {
      utimesSync(path, new Date(), new Date());
    }, TIMES.touchMs);
    await expect(lockFolder(folder, TIMES)).rejects.toMatchObject({
      code: "SPOOL_IN_USE",
      message: expect.stringContaining("process 1 of another machine or container") as string,
    });
    clearInterval(touching);
    const lock = await lockFolder(folder, TIMES);
    await lock.release();
  });

  it("touches its own file, so that others see that it is alive", async () => {
    const lock = await lockFolder(folder, TIMES);
    const path = join(folder, "lock.1");
    utimesSync(path, 0, 0);
    await expect.poll(() => statSync(path).mtimeMs).toBeGreaterThan(0);
    await lock.release();
  });
});
