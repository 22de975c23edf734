/**
 * A process with a spool, to be killed: `hold <path>` has the folder until it ends; `write <path> <number>` appends parcels with
 * numbers from that one on, says `synced <number>` for each that may not be lost, and delivers the oldest ones meanwhile, of
 * which it says `delivered <number>`; `read <path>` reads all there is and tells what that took.
 */
import { writeSync } from "node:fs";
import { diskFiles } from "../../../src/deliver/spool/diskFiles.ts";
import { ALL, append, foundBy, numbered, numberOf, SpoolRig } from "./spoolRig.ts";

const APPENDS_AT_A_TIME = 8;
const BATCH = { maxItems: Infinity, maxPlainBytes: 1024 * 1024 };

const [, , task = "", path = "", first = "1"] = process.argv;

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

async function hold(): Promise<void> {
  await SpoolRig.open(diskFiles, { path });
  say("open");
  setInterval(() => undefined, 1000);
}

async function write(): Promise<void> {
  const { lane } = await SpoolRig.open(diskFiles, { path }, Date.now);
  let number = Number(first);
  const writer = async (): Promise<void> => {
    for (;;) {
      const numbers = [number, number + 1];
      number += 2;
      const end = await append(
        lane,
        numbers.map((each) => numbered(each, 200 + ((each * 7919) % 20_000))),
      );
      if (end.kind !== "synced") throw new Error(end.cause);
      for (const each of numbers) say(`synced ${each}`);
      if (number % 11 === 0) await deliver();
    }
  };
  let isDelivering = false;
  const deliver = async (): Promise<void> => {
    if (isDelivering) return;
    isDelivering = true;
    const parcels = await lane.next({ ...ALL, maxPlainBytes: 100_000 });
    for (const parcel of parcels) say(`delivered ${numberOf(parcel)}`);
    lane.release(parcels.map(({ ticket }) => ticket));
    isDelivering = false;
  };
  await Promise.all(Array.from({ length: APPENDS_AT_A_TIME }, writer));
}

async function read(): Promise<void> {
  const before = performance.now();
  const { lane, spool, store } = await SpoolRig.open(diskFiles, { path });
  const openMs = performance.now() - before;
  const { records } = foundBy(spool);
  let read = 0;
  while (lane.hasUnread) {
    const parcels = await lane.next(BATCH);
    read += parcels.length;
    lane.release(parcels.map(({ ticket }) => ticket));
  }
  await store.close();
  const maxRssBytes = process.resourceUsage().maxRSS * 1024;
  say(JSON.stringify({ openMs, readMs: performance.now() - before - openMs, records, read, maxRssBytes }));
}

const tasks: Record<string, () => Promise<void>> = { hold, write, read };
await tasks[task]?.();
