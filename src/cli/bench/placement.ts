/**
 * `bench placement`: what the algorithms of src/hash take and what they do, as tables in Markdown.
 *
 * The same algorithms in C are compiled on the spot where gcc is installed, and npm packages measured where they are: both
 * are for comparison only, and it is said where they are missing.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { compileC, compilerVersion } from "./cCompiler.ts";
import { evennessTable, fewTasksTable } from "./evenness.ts";
import { lookupTable, lookupTableBesideC, packageTable } from "./lookups.ts";
import { movementTables } from "./movement.ts";

/** From src/cli/bench/ and, in the built package, from dist/src/cli/bench/. */
const C_SOURCE = fileURLToPath(new URL("native/placement.c", import.meta.url));
/** More would show nothing new of what a lookup takes. */
const MOST_KEYS_TO_LOOK_UP = 100_000;
/** So many of the keys tell as well how many move. */
const SHARE_TO_MOVE = 0.1;
/** So many keys are worth all of the time that lookups are measured for; fewer ask for a glance, and get as much less. */
const KEYS_FOR_ALL_TIME = 10_000_000;
const WARM_UP_MS = 120;
const MEASURED_MS = 250;
const ONE_TURN =
  "Each lookup is timed once (--turns 1), which says little: what else the machine did then is in the times and ratios.";

export interface PlacementBench {
  /** Keys to spread over the slots; with fewer, everything takes less time and is less exact. */
  readonly keys: number;
  /** How often each lookup is timed. */
  readonly turns: number;
}

/** @param print takes a piece of text without its last line end, as soon as it is measured */
export function benchPlacement({ keys, turns }: PlacementBench, print: (text: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "stream-metrics-route-bench-"));
  try {
    const { program, said } = compileNative(join(folder, "placement"));
    const effort = Math.min(1, keys / KEYS_FOR_ALL_TIME);
    const lookups = Math.min(keys, MOST_KEYS_TO_LOOK_UP);
    const timing = { keys: lookups, turns, warmUpMs: effort * WARM_UP_MS, measuredMs: effort * MEASURED_MS };
    print(`${machineText()}, ${said}\n`);
    if (turns === 1) print(`${ONE_TURN}\n`);
    print(program === null ? lookupTable(timing) : lookupTableBesideC(program, timing));
    print(packageTable(timing));
    print(evennessTable(keys));
    print(fewTasksTable());
    print(movementTables(Math.ceil(keys * SHARE_TO_MOVE)));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The algorithms in C, compiled, or null, and what there is to say of that. */
function compileNative(program: string): { readonly program: string | null; readonly said: string } {
  const version = compilerVersion();
  if (version === null) return { program: null, said: "not compared with C: gcc is not installed" };
  try {
    compileC(C_SOURCE, program, "-lm");
    return { program, said: `gcc ${version} -O2` };
  } catch (error) {
    return { program: null, said: `not compared with C: ${(error as Error).message}` };
  }
}

/** What the figures were taken on. */
function machineText(): string {
  const processors = cpus();
  const today = new Date().toISOString().slice(0, 10);
  return `${today}, ${processors.length} × ${processors[0]?.model ?? "?"}, Node ${process.versions.node}`;
}
