/** The slots that a placement picks from, as a configuration lists them, and what must be true of the list. */
import { PlacementError } from "./errors.ts";

/** One slot; its place in the list is its number. */
export interface NamedSlot {
  /** Where the slot stands in algorithms that go by names; unique in its list. */
  readonly name: string;
  /** Share of the keys, relative to the other slots'; 1 if it is left out. A finite number above 0. */
  readonly weight?: number;
  /** A tombstone: it keeps its number (and weight) and is never picked. */
  readonly removed?: boolean;
}

/** Which slot a key belongs to. @param key 32-bit integer, unsigned or signed */
export type PlaceKey = (key: number) => number;

/** What the list says, or 1. */
export function weightOf(slot: NamedSlot): number {
  return slot.weight ?? 1;
}

/**
 * Checks a list of slots, whatever the algorithm.
 *
 * @param weighted whether the algorithm has a use for weights
 * @param replicas how many distinct live slots are to be picked for a key
 * @throws {PlacementError} see PlacementErrorCode
 */
export function checkSlots(
  slots: readonly NamedSlot[],
  algorithm: string,
  weighted: boolean,
  replicas: number,
): void {
  if (slots.length === 0) {
    throw new PlacementError("PLACEMENT_NO_SLOTS", null, `${algorithm} over 0 slots: name at least one`);
  }
  checkNames(slots);
  for (const [number, slot] of slots.entries()) {
    if (slot.weight !== undefined) checkWeight(number, slot, slot.weight, algorithm, weighted);
  }
  const live = slots.filter(({ removed }) => removed !== true).length;
  if (live === 0) {
    throw new PlacementError(
      "PLACEMENT_ALL_REMOVED",
      null,
      `all ${slots.length} slots are removed: leave at least one of them live`,
    );
  }
  if (replicas > live) {
    throw new PlacementError(
      "PLACEMENT_TOO_FEW_LIVE",
      null,
      `${replicas} replicas of each key want as many live slots, and there are ${live}: add slots or lower replicas`,
    );
  }
}

function checkNames(slots: readonly NamedSlot[]): void {
  const numbers = new Map<string, number>();
  for (const [number, { name }] of slots.entries()) {
    const first = numbers.get(name);
    if (first !== undefined) {
      throw new PlacementError(
        "PLACEMENT_DUPLICATE_NAME",
        number,
        `slots ${first} and ${number} are both named "${name}": give each a name of its own`,
      );
    }
    numbers.set(name, number);
  }
}

function checkWeight(
  number: number,
  { name, removed }: NamedSlot,
  weight: number,
  algorithm: string,
  weighted: boolean,
): void {
  if (!weighted) {
    throw new PlacementError(
      "PLACEMENT_WEIGHT_UNUSED",
      number,
      `slot "${name}" has a weight, and ${algorithm} knows none: leave it out, or place by rendezvous, maglev or ring`,
    );
  }
  if (!(weight > 0 && Number.isFinite(weight))) {
    const advice =
      removed === true
        ? ", or none, since a slot with removed: true gets nothing whatever its weight"
        : "; a slot that gets nothing is written removed: true";
    throw new PlacementError(
      "PLACEMENT_WEIGHT",
      number,
      `slot "${name}" has weight ${weight}: want a number above 0${advice}`,
    );
  }
}
