/**
 * Tombstones: a slot that is gone keeps its number, so that the slots behind it keep theirs, and its keys go elsewhere.
 *
 * A key that lands on a tombstone is placed by rendezvous among the live slots. So for every set of tombstones one more
 * moves only the keys of its slot, and taking it back brings back what was: nothing depends on the order of removals, which
 * nobody has to remember.
 */
import type { Rendezvous } from "./rendezvous.ts";
import type { NamedSlot, PlaceKey } from "./slots.ts";

/** `pick`, with keys that land on a tombstone placed among the live slots. */
export function passOverTombstones(
  pick: PlaceKey,
  slots: readonly NamedSlot[],
  rendezvous: Rendezvous,
): PlaceKey {
  const removed = Uint8Array.from(slots, (slot) => (slot.removed === true ? 1 : 0));
  if (!removed.includes(1)) return pick;
  return (key) => {
    const slot = pick(key);
    return removed[slot] === 1 ? rendezvous.best(key) : slot;
  };
}
