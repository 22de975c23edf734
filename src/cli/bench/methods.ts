/** The algorithms of src/hash as `bench placement` measures them, each with the parameter that it is known by. */
import type { PlacementMethod } from "../../hash/placement.ts";
import type { NamedSlot } from "../../hash/slots.ts";

export interface MeasuredMethod {
  /** As the tables name it. */
  readonly name: string;
  readonly method: PlacementMethod;
  /** ALGORITHM and PARAMETER of native/placement.c. */
  readonly native: readonly [string, number];
}

/** Enough for 100 slots to have many each. */
const BALANCED_TASKS = 10_000;

export const METHODS: readonly MeasuredMethod[] = [
  { name: "hashmod", method: { algorithm: "hashmod" }, native: ["hashmod", 0] },
  { name: "jump", method: { algorithm: "jump" }, native: ["jump", 0] },
  {
    name: `balanced, ${BALANCED_TASKS} tasks`,
    method: { algorithm: "balanced", tasks: BALANCED_TASKS },
    native: ["balanced", BALANCED_TASKS],
  },
  { name: "rendezvous", method: { algorithm: "rendezvous" }, native: ["rendezvous", 0] },
  {
    name: "maglev, 65537 entries",
    method: { algorithm: "maglev", table: 65537 },
    native: ["maglev", 65537],
  },
  {
    name: "ring md5, 160 points",
    method: { algorithm: "ring", hash: "md5", points: 160 },
    native: ["ring_md5", 160],
  },
  {
    name: "ring fnv1a, 160 points",
    method: { algorithm: "ring", hash: "fnv1a", points: 160 },
    native: ["ring_fnv1a", 160],
  },
  {
    name: "multi_probe, 21 probes",
    method: { algorithm: "multi_probe", probes: 21 },
    native: ["multi_probe", 21],
  },
];

/** More points make a ring more even; what moves is the same. */
export const EVENER_RING: MeasuredMethod = {
  name: "ring md5, 1000 points",
  method: { algorithm: "ring", hash: "md5", points: 1000 },
  native: ["ring_md5", 1000],
};

/** Slots vmagent-0 to vmagent-{count - 1}. */
export function namedSlots(count: number): NamedSlot[] {
  return Array.from({ length: count }, (_, number) => ({ name: slotName(number) }));
}

export function slotName(number: number): string {
  return `vmagent-${number}`;
}
