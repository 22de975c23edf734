/**
 * Balanced placement: tasks are few and known, so a table can give every slot as many as every other.
 *
 * The table starts with one slot that has all tasks. Each further slot takes its share from the fullest ones, task by task,
 * so that from one count of slots to the next only as many tasks move as the new slot gets. A function of the two counts:
 * names do not matter, and slots come and go at the end of the list.
 */
import { PlacementError } from "./errors.ts";
import { invariant } from "./invariant.ts";
import { mix32 } from "./mix.ts";
import type { PlaceKey } from "./slots.ts";

/** So many are even under jump as well, while making their table takes about a second for 100 slots, and 12 bytes a task. */
const MAX_TASKS = 1_000_000;

/**
 * Builds the lookup. Its keys are task numbers, 0 <= task < tasks.
 *
 * @throws {PlacementError} PLACEMENT_TASKS
 */
export function buildBalanced(tasks: number, slots: number): PlaceKey {
  if (tasks > MAX_TASKS) {
    throw new PlacementError(
      "PLACEMENT_TASKS",
      null,
      `balanced keeps a table of its tasks, here ${tasks}: want at most ${MAX_TASKS}, or jump, which spreads so many evenly`,
    );
  }
  const table = balancedTable(tasks, slots);
  return (task) => {
    const slot = table[task];
    invariant(slot !== undefined, "a task that is not in the table of balanced placement");
    return slot;
  };
}

/**
 * Gives every task a slot: each slot has tasks / slots of them, rounded up or down.
 *
 * @param tasks 1 or more
 * @param slots 1 or more; those that are more than tasks get none
 * @returns slot numbers by task
 */
export function balancedTable(tasks: number, slots: number): Uint32Array {
  const holdings = allInFirst(tasks, slots);
  for (let added = 1; added < Math.min(slots, tasks); added++) takeShare(holdings, added);
  return holdings.table;
}

/** Which slot holds which tasks. A slot's tasks are a chain: the last that came is the first to go. */
interface Holdings {
  /** Slot by task. */
  readonly table: Uint32Array;
  /** Tasks that a slot holds, by slot. */
  readonly counts: Uint32Array;
  /** The task that a slot gives away first, by slot; whatever there is, where it holds none. */
  readonly first: Uint32Array;
  /** The task that its slot gives away after it, by task. */
  readonly next: Uint32Array;
}

/** Slot 0 holds all tasks, in an order that looks random and is the same everywhere, so that neighbours do not move together. */
function allInFirst(tasks: number, slots: number): Holdings {
  const order = new Uint32Array(tasks);
  for (let task = 0; task < tasks; task++) {
    // Each task changes places with one before it, or with itself.
    const other = (mix32(task) >>> 0) % (task + 1);
    order[task] = order[other] ?? 0;
    order[other] = task;
  }
  const next = new Uint32Array(tasks);
  for (let at = 1; at < tasks; at++) next[order[at - 1] ?? 0] = order[at] ?? 0;
  const counts = new Uint32Array(slots);
  counts[0] = tasks;
  const first = new Uint32Array(slots);
  first[0] = order[0] ?? 0;
  return { table: new Uint32Array(tasks), counts, first, next };
}

/** Gives the slot `added` its share, a task at a time from one of those that hold the most, from each of them in turn. */
function takeShare(holdings: Holdings, added: number): void {
  const { table, counts } = holdings;
  let missing = Math.floor(table.length / (added + 1));
  for (let most = Math.ceil(table.length / added); missing > 0; most--) {
    for (let slot = 0; slot < added && missing > 0; slot++) {
      if (counts[slot] !== most) continue;
      moveFirst(holdings, slot, added);
      missing -= 1;
    }
  }
}

function moveFirst({ table, counts, first, next }: Holdings, from: number, to: number): void {
  const task = first[from] ?? 0;
  first[from] = next[task] ?? 0;
  next[task] = first[to] ?? 0;
  first[to] = task;
  counts[from] = (counts[from] ?? 0) - 1;
  counts[to] = (counts[to] ?? 0) + 1;
  table[task] = to;
}
