/** How many keys move when a slot comes or goes. */
import { buildPlacement, type PlacementMethod } from "../../hash/placement.ts";
import { type KeySet, keysToSpread } from "./keys.ts";
import { markdownTable } from "./markdownTable.ts";
import { METHODS, slotName } from "./methods.ts";

const GROWING = [3, 10, 100];
const SHRINKING = [10, 100];
const POSITIONS = ["first", "middle", "last"] as const;

/** Upstreams by number, in the order of a list, and which of them is a tombstone. */
interface Upstreams {
  readonly numbers: readonly number[];
  readonly tombstone: number | null;
}

/** @param keyCount keys to place, where they are not tasks */
export function movementTables(keyCount: number): string {
  const tables = [additionTable(keyCount), ...SHRINKING.map((count) => removalTable(count, keyCount))];
  return tables.join("\n");
}

function additionTable(keyCount: number): string {
  const rows = METHODS.map(({ name, method }) => {
    const keys = keysToSpread(method, keyCount);
    const cells = GROWING.map((count) =>
      moved(homesOf(method, listOf(count), keys), homesOf(method, listOf(count + 1), keys), count),
    );
    return [name, ...cells];
  });
  const columns = ["", ...GROWING.map((count) => `${count} → ${count + 1}`)];
  return `### A slot is added at the end: keys that move / that must, %\n\n${markdownTable(columns, rows)}`;
}

function removalTable(count: number, keyCount: number): string {
  const whole = listOf(count);
  const leavers = POSITIONS.map((position) => numberAt(position, count));
  const rests = [
    ...leavers.map((gone) => ({
      numbers: whole.numbers.filter((number) => number !== gone),
      tombstone: null,
    })),
    ...leavers.map((gone) => ({ ...whole, tombstone: gone })),
  ];
  const rows = METHODS.map(({ name, method }) => {
    const keys = keysToSpread(method, keyCount);
    const before = homesOf(method, whole, keys);
    const cells = rests.map((rest, index) =>
      moved(before, homesOf(method, rest, keys), leavers[index % leavers.length] ?? 0),
    );
    return [name, ...cells];
  });
  const columns = [
    "",
    ...POSITIONS.map((position, index) => `${position} (${slotName(leavers[index] ?? 0)})`),
    ...POSITIONS.map((position) => `${position}, tombstone`),
  ];
  return `### One of ${count} slots goes: keys that move / that must, %\n\n${markdownTable(columns, rows)}`;
}

function numberAt(position: (typeof POSITIONS)[number], count: number): number {
  switch (position) {
    case "first":
      return 0;
    case "middle":
      return count / 2;
    case "last":
      return count - 1;
  }
}

function listOf(count: number): Upstreams {
  return { numbers: Array.from({ length: count }, (_, number) => number), tombstone: null };
}

/** The number of each key's upstream. */
function homesOf(method: PlacementMethod, { numbers, tombstone }: Upstreams, keys: KeySet): Uint16Array {
  const slots = numbers.map((number) => ({ name: slotName(number), removed: number === tombstone }));
  const { place } = buildPlacement(method, slots);
  const homes = new Uint16Array(keys.count);
  for (let index = 0; index < keys.count; index++) homes[index] = numbers[place(keys.at(index))] ?? 0;
  return homes;
}

/**
 * The share of keys that are elsewhere than before, and of those that had to move.
 *
 * @param changed the upstream that goes, whose keys must leave it, or that comes, whose keys must come to it
 */
function moved(before: Uint16Array, after: Uint16Array, changed: number): string {
  let elsewhere = 0;
  let must = 0;
  before.forEach((home, index) => {
    const now = after[index] ?? 0;
    if (now !== home) elsewhere += 1;
    if (home === changed || now === changed) must += 1;
  });
  const percent = (count: number): string => ((count / before.length) * 100).toFixed(2);
  return `${percent(elsewhere)} / ${percent(must)}`;
}
