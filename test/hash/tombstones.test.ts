import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildPlacement, type Placement, type PlacementMethod } from "../../src/hash/placement.ts";
import type { NamedSlot } from "../../src/hash/slots.ts";
import { keysFor, METHODS } from "./methods.ts";

const SLOTS = 10;

/** Which slots are live, at least `least` of them; and one of the live ones, or of all. */
const someRemoved = (least: number): fc.Arbitrary<ReadonlySet<number>> =>
  fc
    .subarray(
      Array.from({ length: SLOTS }, (_, slot) => slot),
      { maxLength: SLOTS - least },
    )
    .map((removed) => new Set(removed));

const removedAndOneMore = (least: number): fc.Arbitrary<[ReadonlySet<number>, number]> =>
  someRemoved(least + 1).chain((removed) => {
    const live = Array.from({ length: SLOTS }, (_, slot) => slot).filter((slot) => !removed.has(slot));
    return fc.tuple(fc.constant(removed), fc.constantFrom(...live));
  });

function slotsWithout(removed: ReadonlySet<number>, weighted: boolean): NamedSlot[] {
  return Array.from({ length: SLOTS }, (_, slot) => ({
    name: `upstream ${slot}`,
    removed: removed.has(slot),
    ...(weighted ? { weight: 1 + (slot % 3) } : {}),
  }));
}

function placed(method: PlacementMethod, slots: readonly NamedSlot[]): number[] {
  const { place } = buildPlacement(method, slots);
  return keysFor(method).map(place);
}

describe.each(METHODS)("tombstones under $name", ({ method, weighted }) => {
  it.each(weighted ? [false, true] : [false])("never hold a key (weights: %s)", (weights) => {
    fc.assert(
      fc.property(someRemoved(1), (removed) => {
        const slots = placed(method, slotsWithout(removed, weights));
        expect(slots.filter((slot) => removed.has(slot))).toEqual([]);
      }),
      { numRuns: 20 },
    );
  });

  it.each(weighted ? [false, true] : [false])(
    "move only the keys of the slot that goes, whatever went before (weights: %s)",
    (weights) => {
      fc.assert(
        fc.property(removedAndOneMore(1), ([removed, gone]) => {
          const before = placed(method, slotsWithout(removed, weights));
          const after = placed(method, slotsWithout(new Set([...removed, gone]), weights));
          expect(after).not.toContain(gone);
          expect(before.filter((slot, index) => slot !== gone && slot !== after[index])).toEqual([]);
        }),
        { numRuns: 30 },
      );
    },
  );

  it("spread what the slot held over all live slots", () => {
    const before = placed(method, slotsWithout(new Set(), false));
    const after = placed(method, slotsWithout(new Set([4]), false));
    const heirs = new Set(after.filter((_, index) => before[index] === 4));
    expect(heirs.size).toBeGreaterThanOrEqual(SLOTS - 3);
  });
});

describe("a tombstone under rendezvous", () => {
  it("is as if the slot had never been", () => {
    const slots = slotsWithout(new Set([3]), true);
    const rest = slots.filter(({ removed }) => removed !== true);
    const method: PlacementMethod = { algorithm: "rendezvous" };
    expect(placed(method, slots).map((slot) => slots[slot]?.name)).toEqual(
      placed(method, rest).map((slot) => rest[slot]?.name),
    );
  });
});

/** Replicas of every key, each as a list. */
function replicasOf(method: PlacementMethod, slots: readonly NamedSlot[], replicas: number): number[][] {
  const placement: Placement = buildPlacement(method, slots, replicas);
  const picked = new Int32Array(replicas);
  return keysFor(method).map((key) => {
    placement.placeReplicas(key, picked);
    return [...picked];
  });
}

describe.each(METHODS)("replicas under $name", ({ method, weighted }) => {
  it("are distinct live slots, the first the one that a single replica has", () => {
    fc.assert(
      fc.property(
        someRemoved(1).chain((removed) =>
          fc.tuple(fc.constant(removed), fc.integer({ min: 1, max: SLOTS - removed.size })),
        ),
        ([removed, replicas]) => {
          const slots = slotsWithout(removed, weighted);
          const single = placed(method, slots);
          const wrong = replicasOf(method, slots, replicas).filter(
            (picked, index) =>
              new Set(picked).size !== replicas ||
              picked.some((slot) => removed.has(slot)) ||
              picked[0] !== single[index],
          );
          expect(wrong).toEqual([]);
        },
      ),
      { numRuns: 20 },
    );
  });

  it("are the first of what more replicas would be", () => {
    const slots = slotsWithout(new Set([2, 7]), weighted);
    const three = replicasOf(method, slots, 3);
    const all = replicasOf(method, slots, SLOTS - 2);
    expect(all.map((picked) => picked.slice(0, 3))).toEqual(three);
  });

  it("keep their set but for one when a slot goes, and all of it when the slot was not in it", () => {
    fc.assert(
      fc.property(removedAndOneMore(3), ([removed, gone]) => {
        const before = replicasOf(method, slotsWithout(removed, weighted), 3);
        const after = replicasOf(method, slotsWithout(new Set([...removed, gone]), weighted), 3);
        const wrong = before.filter((picked, index) => {
          const now = after[index] ?? [];
          if (picked.includes(gone)) return picked.some((slot) => slot !== gone && !now.includes(slot));
          return picked.join() !== now.join();
        });
        expect(wrong).toEqual([]);
      }),
      { numRuns: 20 },
    );
  });
});

describe.each(METHODS.filter(({ name }) => name !== "hashmod" && name !== "maglev"))(
  "replicas under $name",
  ({ method, weighted }) => {
    it("change by one at most when a slot is added at the end", () => {
      const slots = slotsWithout(new Set([1]), weighted);
      const before = replicasOf(method, slots.slice(0, -1), 3);
      const after = replicasOf(method, slots, 3);
      const wrong = before.filter((picked, index) => {
        const now = after[index] ?? [];
        const kept = picked.filter((slot) => now.includes(slot)).length;
        return kept < 2 || (kept === 2 && !now.includes(SLOTS - 1));
      });
      expect(wrong).toEqual([]);
    });
  },
);
