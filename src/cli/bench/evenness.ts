/** How evenly keys are spread over slots. */
import { buildPlacement, type PlacementMethod } from "../../hash/placement.ts";
import { allTasks, type KeySet, keysToSpread } from "./keys.ts";
import { markdownTable } from "./markdownTable.ts";
import { EVENER_RING, METHODS, namedSlots } from "./methods.ts";

const SLOTS = 100;
const FEW_TASKS = 128;
/** What few tasks are spread over. */
const FEW_SLOTS = [3, 5, 10, 100];

interface Evenness {
  /** Keys of the slot that has most, over what all have on average. */
  readonly maxOverAverage: number;
  readonly minOverAverage: number;
}

export function evennessOf(method: PlacementMethod, slots: number, keys: KeySet): Evenness {
  const { place } = buildPlacement(method, namedSlots(slots));
  const counts = new Uint32Array(slots);
  for (let index = 0; index < keys.count; index++) {
    const slot = place(keys.at(index));
    counts[slot] = (counts[slot] ?? 0) + 1;
  }
  const average = keys.count / slots;
  return { maxOverAverage: Math.max(...counts) / average, minOverAverage: Math.min(...counts) / average };
}

/** @param keyCount keys to spread, where they are not tasks */
export function evennessTable(keyCount: number): string {
  const rows = [...METHODS, EVENER_RING].map(({ name, method }) => {
    const keys = keysToSpread(method, keyCount);
    const { maxOverAverage, minOverAverage } = evennessOf(method, SLOTS, keys);
    return [name, String(keys.count), maxOverAverage.toFixed(3), minOverAverage.toFixed(3)];
  });
  return `### Shares of ${SLOTS} slots\n\n${markdownTable(["", "keys", "max/avg", "min/avg"], rows)}`;
}

/** The same for so few keys that chance decides: the tasks of a route, by number. */
export function fewTasksTable(): string {
  const rows = [...METHODS, EVENER_RING].map(({ name, method }) => {
    const fewer: PlacementMethod = method.algorithm === "balanced" ? { ...method, tasks: FEW_TASKS } : method;
    const cells = FEW_SLOTS.map((slots) =>
      evennessOf(fewer, slots, allTasks(FEW_TASKS)).maxOverAverage.toFixed(2),
    );
    return [method.algorithm === "balanced" ? method.algorithm : name, ...cells];
  });
  const columns = ["", ...FEW_SLOTS.map((slots) => `${slots} slots`)];
  return `### max/avg of ${FEW_TASKS} tasks\n\n${markdownTable(columns, rows)}`;
}
