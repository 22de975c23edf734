import { mkdtempSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FileWatch } from "../../src/reload/fileWatch.ts";

const LOOK_EVERY_MS = 10;

describe("a watched file", () => {
  let folder = "";
  let file = "";
  let watch: FileWatch | null = null;
  let changes = 0;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "file-watch-"));
    file = join(folder, "config.yaml");
    changes = 0;
    writeFileSync(file, "a");
  });

  afterEach(() => {
    watch?.stop();
    rmSync(folder, { recursive: true });
  });

  function start(...paths: readonly string[]): FileWatch {
    watch = new FileWatch(paths, () => (changes += 1), LOOK_EVERY_MS);
    return watch;
  }

  const told = (times: number): Promise<void> => expect.poll(() => changes, { interval: 2 }).toBe(times);

  it("is told once at the start, since it may have changed since it was read", async () => {
    start(file);
    await told(1);
  });

  it.each([
    {
      name: "is written in place",
      change: () => {
        writeFileSync(file, "b");
      },
    },
    {
      name: "is replaced by another of the same length",
      change: () => {
        writeFileSync(`${file}.new`, "b");
        renameSync(`${file}.new`, file);
      },
    },
    {
      name: "is gone",
      change: () => {
        rmSync(file);
      },
    },
  ])("is told when it $name", async ({ change }) => {
    start(file);
    await told(1);
    change();
    await told(2);
  });

  it("is told when the link under it is swapped, as Kubernetes does with a ConfigMap", async () => {
    for (const version of ["..v1", "..v2"]) {
      mkdirSync(join(folder, version));
      writeFileSync(join(folder, version, "mounted.yaml"), version);
    }
    symlinkSync("..v1", join(folder, "..data"));
    const mounted = join(folder, "mounted.yaml");
    symlinkSync("..data/mounted.yaml", mounted);
    start(mounted);
    await told(1);
    symlinkSync("..v2", join(folder, "..data_tmp"));
    renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
    await told(2);
  });

  it("is not told while it is being written, and once when that has come to an end", async () => {
    start(file);
    await told(1);
    let length = 1;
    // Faster than it is looked at.
    await new Promise<void>((resolve) => {
      const writing = setInterval(() => {
        writeFileSync(file, "x".repeat((length += 1)));
        if (length < 60) return;
        clearInterval(writing);
        resolve();
      }, LOOK_EVERY_MS / 4);
    });
    await told(2);
  });

  it("is not watched any longer when others are, and nothing is once the watch has stopped", async () => {
    const other = join(folder, "password");
    const watching = start(file);
    await told(1);
    watching.watch([other]);
    await told(2);
    writeFileSync(other, "secret");
    await told(3);
    watching.stop();
    writeFileSync(other, "another");
    const control = new FileWatch([other], () => (changes += 10), LOOK_EVERY_MS);
    await told(13);
    control.stop();
  });
});
