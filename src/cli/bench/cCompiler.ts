/** gcc, where it is installed: for programs in C beside which we measure. */
import { spawnSync } from "node:child_process";

const COMPILER = "gcc";

/** Its version, or null where it is not installed. */
export function compilerVersion(): string | null {
  const { status, stdout } = spawnSync(COMPILER, ["-dumpfullversion"], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : null;
}

/** Whether programs can include a header by this name. */
export function hasHeader(name: string): boolean {
  return (
    spawnSync(COMPILER, ["-E", "-include", name, "-x", "c", "/dev/null"], { stdio: "ignore" }).status === 0
  );
}

/**
 * Compiles one file with -O2.
 *
 * @param source    path of the file
 * @param program   path of the executable that it becomes
 * @param libraries what it is linked with, e.g. `-lm`
 * @throws {Error} with what the compiler says
 */
export function compileC(source: string, program: string, ...libraries: readonly string[]): void {
  const { status, stderr } = spawnSync(COMPILER, ["-O2", "-o", program, source, ...libraries], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${COMPILER} cannot compile ${source}:\n${stderr}`);
}
