/** The keys that placements are measured with, the same in every run and in native/placement.c. */
import type { PlacementMethod } from "../../hash/placement.ts";

/** So many keys, by their index. */
export interface KeySet {
  readonly count: number;
  /** @param index 0 <= index < count @returns unsigned 32-bit integer */
  readonly at: (index: number) => number;
}

/** A key that looks like the hash of a label set; no two indexes give the same (the finaliser of MurmurHash3 over a counter). */
export function hashedKey(index: number): number {
  let key = index + 1;
  key = Math.imul(key ^ (key >>> 16), 0x85ebca6b);
  key = Math.imul(key ^ (key >>> 13), 0xc2b2ae35);
  return (key ^ (key >>> 16)) >>> 0;
}

/** Keys to spread by a method: `count` hashes, or, where its keys are task numbers, every task once. */
export function keysToSpread(method: PlacementMethod, count: number): KeySet {
  const tasks = tasksOf(method);
  return tasks === null ? { count, at: hashedKey } : allTasks(tasks);
}

export function allTasks(tasks: number): KeySet {
  return { count: tasks, at: (index) => index };
}

/** Keys to look up: `count` hashes, or, where a method's keys are task numbers, as many of those in random order. */
export function keysToLookUp(method: PlacementMethod, count: number): Uint32Array {
  const tasks = tasksOf(method);
  return Uint32Array.from({ length: count }, (_, index) =>
    tasks === null ? hashedKey(index) : hashedKey(index) % tasks,
  );
}

function tasksOf(method: PlacementMethod): number | null {
  return method.algorithm === "balanced" ? method.tasks : null;
}
