/** Compiles files of the engine by themselves, as the engine is compiled. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const OPTIONS = ["--runtime", "stub", "-O3", "--enable", "simd", "--enable", "bulk-memory", "--noAssert"];

/**
 * A fresh instance of a module of these files of src/engine/assembly.
 *
 * asc runs as a process of its own: its types would redeclare those of JavaScript for all tests.
 *
 * @param options further ones for asc
 * @throws {Error} with asc's complaints
 */
export function compileAssembly(files: readonly string[], options: readonly string[] = []): unknown {
  const folder = mkdtempSync(join(tmpdir(), "assembly-"));
  try {
    const output = join(folder, "module.wasm");
    const entries = files.map((file) => `src/engine/assembly/${file}`);
    const args = ["node_modules/assemblyscript/bin/asc.js", ...entries, ...OPTIONS, ...options, "-o", output];
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: "utf8" });
    if (status !== 0) throw new Error(`asc ${files.join(" ")}: ${stderr}`);
    return new WebAssembly.Instance(new WebAssembly.Module(readFileSync(output))).exports;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
