/** The rest of the machine: measurements want it quiet, and say how quiet it was. */
import { setTimeout as pause } from "node:timers/promises";
import { machineCpuSeconds } from "./procfs.ts";

/** Processors that others may use while we measure. */
export const QUIET_CORES = 0.15;
const LOOK_MS = 2_000;
const PAUSE_MS = 2_000;

/** Waits until others use few processors, at most `seconds`. */
export async function waitForQuiet(seconds: number): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  while (performance.now() < deadline) {
    const before = machineCpuSeconds();
    await pause(LOOK_MS);
    if ((machineCpuSeconds() - before) / (LOOK_MS / 1000) < QUIET_CORES) return;
    await pause(PAUSE_MS);
  }
}
