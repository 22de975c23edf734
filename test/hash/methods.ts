/** The algorithms of the placement family as the tests try them, small enough to be built many times. */
import type { PlacementMethod } from "../../src/hash/placement.ts";

export const TASKS = 512;

export interface TriedMethod {
  readonly name: string;
  readonly method: PlacementMethod;
  /** What its slots go by: their place in the list, or their names. */
  readonly goesBy: "number" | "name";
  readonly weighted: boolean;
}

export const METHODS: readonly TriedMethod[] = [
  { name: "hashmod", method: { algorithm: "hashmod" }, goesBy: "number", weighted: false },
  { name: "jump", method: { algorithm: "jump" }, goesBy: "number", weighted: false },
  { name: "balanced", method: { algorithm: "balanced", tasks: TASKS }, goesBy: "number", weighted: false },
  {
    name: "ring of md5",
    method: { algorithm: "ring", hash: "md5", points: 40 },
    goesBy: "name",
    weighted: true,
  },
  {
    name: "ring of fnv1a",
    method: { algorithm: "ring", hash: "fnv1a", points: 40 },
    goesBy: "name",
    weighted: true,
  },
  { name: "rendezvous", method: { algorithm: "rendezvous" }, goesBy: "name", weighted: true },
  { name: "maglev", method: { algorithm: "maglev", table: 5003 }, goesBy: "name", weighted: true },
  { name: "multi_probe", method: { algorithm: "multi_probe", probes: 21 }, goesBy: "name", weighted: false },
];

/** Keys that a method can place: hashes of label sets and task numbers; for balanced, task numbers alone. */
export function keysFor(method: PlacementMethod): readonly number[] {
  return method.algorithm === "balanced" ? TASK_NUMBERS : [...TASK_NUMBERS, ...hashedKeys(512)];
}

/** Unsigned keys that look like hashes, the same in every run (the finaliser of MurmurHash3 over a counter). */
export function hashedKeys(count: number): number[] {
  return Array.from({ length: count }, (_, index) => {
    let key = Math.imul((index + 1) ^ ((index + 1) >>> 16), 0x85ebca6b);
    key = Math.imul(key ^ (key >>> 13), 0xc2b2ae35);
    return (key ^ (key >>> 16)) >>> 0;
  });
}

const TASK_NUMBERS: readonly number[] = Array.from({ length: TASKS }, (_, task) => task);
