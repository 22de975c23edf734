/** Kills a process that writes to a spool, again and again, and finds out what became of what it had acknowledged. */
import { diskFiles } from "../../../src/deliver/spool/diskFiles.ts";
import { SpoolProcess } from "./childProcess.ts";
import { numberOf, readAll, SpoolRig } from "./spoolRig.ts";

export interface KillResult {
  /** How many were acknowledged. */
  readonly synced: number;
  readonly delivered: number;
  /** Acknowledged, and neither delivered nor in the spool in the end. */
  readonly lost: readonly number[];
  /** What is in the spool in the end, in its order. */
  readonly left: readonly number[];
  /** Log lines of level error of the last start. */
  readonly errors: readonly string[];
}

/**
 * @param program see buildSpoolProcess()
 * @param kills   how often; each some milliseconds after the process has acknowledged something
 */
export async function killWriters(program: string, path: string, kills: number): Promise<KillResult> {
  const synced = new Set<number>();
  const delivered = new Set<number>();
  let next = 1;
  for (let kill = 0; kill < kills; kill++) {
    const writer = new SpoolProcess(program, ["write", path, String(next)]);
    await writer.said(1 + ((kill * 37) % 60));
    await new Promise((resolve) => setTimeout(resolve, (kill * 13) % 40));
    await writer.kill();
    for (const line of writer.lines) {
      const [what, number] = line.split(" ");
      (what === "synced" ? synced : delivered).add(Number(number));
      next = Math.max(next, Number(number) + 1);
    }
    next += 1000; // beyond what was under way
  }
  const { lane, store, lines } = await SpoolRig.open(diskFiles, { path });
  const left = (await readAll(lane)).map(numberOf);
  await store.close();
  const kept = new Set([...left, ...delivered]);
  const lost = [...synced].filter((number) => !kept.has(number));
  return { synced: synced.size, delivered: delivered.size, lost, left, errors: lines.error };
}
