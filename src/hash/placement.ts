/**
 * The placement family: from a key to one of the slots of a list.
 *
 * One contract for every algorithm: a pure function of the algorithm and the list, frozen after building, no clock, no I/O,
 * no allocation in a lookup. Whatever the algorithm, a tombstone moves only the keys of its slot, and goes without a trace
 * when it is taken back.
 */
import { buildBalanced } from "./balanced.ts";
import { buildBuckets } from "./buckets.ts";
import { PlacementError } from "./errors.ts";
import { invariant } from "./invariant.ts";
import { buildMaglev } from "./maglev.ts";
import { buildMultiProbe } from "./multiProbe.ts";
import { Rendezvous } from "./rendezvous.ts";
import { buildRing, type RingHash } from "./ring.ts";
import { checkSlots, type NamedSlot, type PlaceKey } from "./slots.ts";
import { passOverTombstones } from "./tombstones.ts";

/** An algorithm by its name in the configuration, with what it has to know besides the slots. */
export type PlacementMethod =
  | { readonly algorithm: "jump" | "hashmod" | "rendezvous" }
  /** Keys are task numbers below `tasks`; null where the keys are none. */
  | { readonly algorithm: "balanced"; readonly tasks: number | null }
  /** `points` of each slot, for each unit of its weight. */
  | { readonly algorithm: "ring"; readonly hash: RingHash; readonly points: number }
  /** `table` entries, a prime. */
  | { readonly algorithm: "maglev"; readonly table: number }
  /** `probes` of each key. */
  | { readonly algorithm: "multi_probe"; readonly probes: number };

export type PlacementAlgorithm = PlacementMethod["algorithm"];

/** Algorithms that give a slot of twice the weight twice the keys; for the others a weight is an error. */
const WEIGHTED: ReadonlySet<PlacementAlgorithm> = new Set(["ring", "maglev", "rendezvous"]);

/** Picks slots for keys. */
export interface Placement {
  readonly algorithm: PlacementAlgorithm;
  /** How many slots the list has, tombstones included. */
  readonly slots: number;
  /** How many distinct slots placeReplicas picks. */
  readonly replicas: number;
  /** Gives the hash of a label set, or a task number, its slot, a live one. */
  readonly place: PlaceKey;
  /**
   * Fills picked[0] to picked[replicas - 1] with distinct live slots: first the one that `place` picks, then those with the
   * highest rendezvous scores, best first. What is stable is the set: one more tombstone replaces at most one of it, and so
   * does a slot that is added, but for hashmod and, with few keys, maglev.
   *
   * @param picked `replicas` long or longer
   */
  readonly placeReplicas: (key: number, picked: Int32Array) => void;
}

/**
 * Builds a placement over a list of slots.
 *
 * jump, hashmod and balanced go by number: slots are added at the end, and one that goes leaves a tombstone. ring, maglev,
 * rendezvous and multi_probe go by name.
 *
 * @param replicas 1 or more
 * @throws {PlacementError} where list, algorithm and replicas do not go together: see PlacementErrorCode
 */
export function buildPlacement(
  method: PlacementMethod,
  slots: readonly NamedSlot[],
  replicas = 1,
): Placement {
  invariant(Number.isInteger(replicas) && replicas >= 1, `${replicas} replicas`);
  const { algorithm } = method;
  checkSlots(slots, algorithm, WEIGHTED.has(algorithm), replicas);
  const rendezvous = new Rendezvous(slots);
  const place = passOverTombstones(pickerOf(method, slots, rendezvous), slots, rendezvous);
  const placeReplicas = (key: number, picked: Int32Array): void => {
    picked[0] = place(key);
    if (replicas > 1) rendezvous.fillNext(key, picked, replicas);
  };
  return Object.freeze({ algorithm, slots: slots.length, replicas, place, placeReplicas });
}

/** The algorithm itself, which takes a tombstone for a slot like any other. */
function pickerOf(method: PlacementMethod, slots: readonly NamedSlot[], rendezvous: Rendezvous): PlaceKey {
  switch (method.algorithm) {
    case "jump":
    case "hashmod":
      return buildBuckets(method.algorithm, slots.length);
    case "balanced":
      if (method.tasks === null) {
        throw new PlacementError(
          "PLACEMENT_NO_TASKS",
          null,
          "balanced places tasks, and their number is not known: use it with key: task, or use jump",
        );
      }
      return buildBalanced(method.tasks, slots.length);
    case "ring":
      return buildRing(slots, method.hash, method.points);
    case "maglev":
      return buildMaglev(slots, method.table);
    case "rendezvous":
      // Among the live slots at once: what a tombstone had falls to the next best, as passOverTombstones has it.
      return (key) => rendezvous.best(key);
    case "multi_probe":
      return buildMultiProbe(slots, method.probes);
  }
}
