/** The programs in C beside which, and with which, we measure: compiled on the spot. */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { compileC, compilerVersion, hasHeader } from "../../src/cli/bench/cCompiler.ts";

/** The repository: this code runs as dist/test/bench/tools.js. */
export const REPOSITORY = resolve(import.meta.dirname, "../../..");
/** What is made here, and may be deleted at any time. */
export const BENCH_FOLDER = join(REPOSITORY, ".bench");

const SOURCES = join(REPOSITORY, "test/bench/native");

/** Paths of the executables. */
export interface Tools {
  readonly loadgen: string;
  readonly sink: string;
  readonly calib: string;
  readonly hashes: string;
}

/** The machine lacks something that has to be installed first. */
export class MissingTools extends Error {
  override readonly name = "MissingTools";
}

/** @throws {MissingTools} saying what is missing and how to get it */
export function buildTools(): Tools {
  const missing = missingPackages();
  if (missing.length > 0) {
    const packages = missing.join(" ");
    throw new MissingTools(
      `missing on this machine: ${packages}\ninstall with: apt-get install -y ${packages}`,
    );
  }
  mkdirSync(BENCH_FOLDER, { recursive: true });
  return {
    loadgen: compile("loadgen"),
    sink: compile("sink", "-lsnappy"),
    calib: compile("calib", "-lsnappy"),
    hashes: compile("hashes"),
  };
}

function missingPackages(): string[] {
  if (compilerVersion() === null) return ["gcc", "libc6-dev", "libsnappy-dev"];
  const missing: string[] = [];
  if (!hasHeader("stdio.h")) missing.push("libc6-dev");
  if (!hasHeader("snappy-c.h")) missing.push("libsnappy-dev");
  return missing;
}

function compile(name: string, ...libraries: string[]): string {
  const program = join(BENCH_FOLDER, name);
  compileC(join(SOURCES, `${name}.c`), program, ...libraries);
  return program;
}
