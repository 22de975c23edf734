import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PlacementMethod } from "../../src/hash/placement.ts";
import type { NamedSlot } from "../../src/hash/slots.ts";
import type { PlacementKey, TaskOptions } from "../../src/route/options.ts";
import {
  compareSlots,
  goesByNumber,
  movedShare,
  type RoutePlacement,
  type SlotChanges,
} from "../../src/route/renumbering.ts";

/** Slots by their names; "-b" is the tombstone of b, "c*2" is c with weight 2. */
function slots(names: string): NamedSlot[] {
  return names.split(" ").map((text) => {
    const [, removed = "", name = "", weight] = /^(-?)(\w+)(?:\*(\d+))?$/.exec(text) ?? [];
    return {
      name,
      ...(removed === "" ? {} : { removed: true }),
      ...(weight === undefined ? {} : { weight: Number(weight) }),
    };
  });
}

const NOTHING: SlotChanges = {
  added: [],
  gone: [],
  replaced: [],
  removed: [],
  restored: [],
  reweighted: [],
  renumbered: [],
  remedy: { tombstones: [], toEnd: [], order: [] },
};

interface Row {
  readonly name: string;
  readonly before: string;
  readonly now: string;
  readonly changes: Partial<SlotChanges>;
}

describe("a list of upstreams that keeps its numbers", () => {
  it.each<Row>([
    { name: "the same list", before: "a b", now: "a b", changes: {} },
    { name: "one more at the end", before: "a b", now: "a b c", changes: { added: ["c"] } },
    { name: "two less at the end", before: "a b c", now: "a", changes: { gone: ["b", "c"] } },
    { name: "a tombstone", before: "a b c", now: "a -b c", changes: { removed: ["b"] } },
    { name: "a tombstone taken back", before: "-a b", now: "a b", changes: { restored: ["a"] } },
    {
      name: "a name in the place of another",
      before: "a b c",
      now: "a x c",
      changes: { replaced: [{ slot: 1, before: "b", now: "x" }] },
    },
    { name: "another weight", before: "a b*2", now: "a*1 b*3", changes: { reweighted: ["b"] } },
    {
      name: "nothing that was there",
      before: "a b",
      now: "x",
      changes: { replaced: [{ slot: 0, before: "a", now: "x" }], gone: ["b"] },
    },
  ])("is told with what changes, and no remedy: $name", ({ before, now, changes }) => {
    expect(compareSlots(slots(before), slots(now))).toEqual({ ...NOTHING, ...changes });
  });
});

describe("a list of upstreams in which numbers change", () => {
  it.each<Row>([
    {
      name: "the first is taken out",
      before: "a b c",
      now: "b c",
      changes: {
        gone: ["a"],
        renumbered: [
          { name: "b", before: 1, now: 0 },
          { name: "c", before: 2, now: 1 },
        ],
        remedy: { tombstones: [{ slot: 0, name: "a" }], toEnd: [], order: [] },
      },
    },
    {
      name: "a tombstone and the last are taken out",
      before: "a -b c d",
      now: "a c",
      changes: {
        gone: ["b", "d"],
        renumbered: [{ name: "c", before: 2, now: 1 }],
        remedy: { tombstones: [{ slot: 1, name: "b" }], toEnd: [], order: [] },
      },
    },
    {
      name: "one is put in the middle",
      before: "a b",
      now: "a x b y",
      changes: {
        added: ["x", "y"],
        renumbered: [{ name: "b", before: 1, now: 2 }],
        remedy: { tombstones: [], toEnd: ["x"], order: [] },
      },
    },
    {
      name: "two change places",
      before: "a b c",
      now: "c b a",
      changes: {
        renumbered: [
          { name: "a", before: 0, now: 2 },
          { name: "c", before: 2, now: 0 },
        ],
        remedy: { tombstones: [], toEnd: [], order: ["a", "b", "c"] },
      },
    },
    {
      name: "three are taken out, and another comes behind all, under the number of one of these",
      before: "a b c d e f",
      now: "a e f x",
      changes: {
        gone: ["b", "c", "d"],
        added: ["x"],
        renumbered: [
          { name: "e", before: 4, now: 1 },
          { name: "f", before: 5, now: 2 },
        ],
        remedy: {
          tombstones: [
            { slot: 1, name: "b" },
            { slot: 2, name: "c" },
            { slot: 3, name: "d" },
          ],
          toEnd: [],
          order: [],
        },
      },
    },
    {
      name: "of two one is taken out and one replaced",
      before: "a b c d",
      now: "a x d",
      changes: {
        gone: ["c"],
        replaced: [{ slot: 1, before: "b", now: "x" }],
        renumbered: [{ name: "d", before: 3, now: 2 }],
        remedy: { tombstones: [{ slot: 2, name: "c" }], toEnd: [], order: [] },
      },
    },
    {
      name: "the first is taken out and another comes behind all",
      before: "a b c",
      now: "b c x",
      changes: {
        gone: ["a"],
        added: ["x"],
        renumbered: [
          { name: "b", before: 1, now: 0 },
          { name: "c", before: 2, now: 1 },
        ],
        remedy: { tombstones: [{ slot: 0, name: "a" }], toEnd: [], order: [] },
      },
    },
  ])("is told with what changes, and how to write it: $name", ({ before, now, changes }) => {
    expect(compareSlots(slots(before), slots(now))).toEqual({ ...NOTHING, ...changes });
  });

  it("keeps all numbers when it is written as the remedy says", () => {
    const lists = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h"), { minLength: 1 });
    fc.assert(
      fc.property(lists, lists, (before, now) => {
        const old = before.map((name) => ({ name }));
        const changes = compareSlots(
          old,
          now.map((name) => ({ name })),
        );
        fc.pre(changes.renumbered.length > 0);
        const remedied = followed(now, changes.remedy);
        expect(compareSlots(old, remedied).renumbered).toEqual([]);
        // And it has every upstream that was to be there.
        const live = remedied.filter((slot) => slot.removed !== true);
        expect(live.map(({ name }) => name).sort()).toEqual([...now].sort());
      }),
      { numRuns: 5_000, seed: 5 },
    );
  });
});

/** The list that somebody writes who does what the remedy says, and nothing else. */
function followed(now: readonly string[], { order, toEnd, tombstones }: SlotChanges["remedy"]): NamedSlot[] {
  const inOrder = order.values();
  const ordered = now.map((name) => (order.includes(name) ? (inOrder.next().value ?? "") : name));
  const list = [...ordered.filter((name) => !toEnd.includes(name)), ...toEnd];
  const slots: NamedSlot[] = list.map((name) => ({ name }));
  for (const { slot, name } of tombstones) slots.splice(slot, 0, { name, removed: true });
  return slots;
}

function route(
  names: string,
  method: PlacementMethod,
  key: PlacementKey = { kind: "all" },
  tasks: TaskOptions | null = null,
): RoutePlacement {
  return {
    name: "r",
    keyFormat: "pairs",
    tasks,
    placement: { ...method, key, missingKey: "one_place", replicas: 1 },
    upstreams: slots(names),
  };
}

const JUMP: PlacementMethod = { algorithm: "jump" };
const TASK: PlacementKey = { kind: "task" };
const TEN = "a b c d e f g h i j";

function tasks(count: number): TaskOptions {
  return { count, label: "stream_task_id", algorithm: "jump", key: { kind: "all" } };
}

describe("the share of keys that move", () => {
  it.each([
    { name: "the first of ten taken out", now: "b c d e f g h i j", share: 0.99 },
    { name: "the fifth of ten taken out", now: "a b c d f g h i j", share: 0.59 },
    { name: "the fifth of ten as a tombstone", now: "a b c d -e f g h i j", share: 0.1 },
    { name: "the last of ten taken out", now: "a b c d e f g h i", share: 0.1 },
    { name: "an eleventh", now: `${TEN} k`, share: 1 / 11 },
    { name: "the same ten", now: TEN, share: 0 },
  ])("is that of jump: $name", ({ now, share }) => {
    const moved = movedShare(route(TEN, JUMP), route(now, JUMP)) ?? -1;
    expect(Math.abs(moved - share)).toBeLessThan(0.01);
  });

  it("counts tasks where they are the keys", () => {
    const before = route("a b", { algorithm: "hashmod" }, TASK, tasks(6));
    // 0 to 5 are a b a b a b, then a b c a b c.
    expect(movedShare(before, route("a b c", { algorithm: "hashmod" }, TASK, tasks(6)))).toBe(4 / 6);
  });

  it("goes by names, whatever the algorithms", () => {
    const rendezvous: PlacementMethod = { algorithm: "rendezvous" };
    expect(movedShare(route("a b c", rendezvous), route("c a b", rendezvous))).toBe(0);
    expect(movedShare(route("a b", JUMP), route("a b", rendezvous))).toBeCloseTo(0.5, 1);
  });

  it("is not known where keys are others", () => {
    const before = route("a b", JUMP, TASK, tasks(128));
    expect(movedShare(before, route("a b", JUMP, TASK, tasks(64)))).toBeNull();
    expect(movedShare(before, route("a b", JUMP, { kind: "all" }, tasks(128)))).toBeNull();
    expect(movedShare(before, { ...before, keyFormat: "flat" })).toBeNull();
  });

  it("does not depend on tasks that are no keys", () => {
    const byJob: PlacementKey = { kind: "by", names: ["job"] };
    expect(movedShare(route("a b", JUMP, byJob, tasks(128)), route("a b", JUMP, byJob))).toBe(0);
  });
});

describe("the share of copies that move, with replicas", () => {
  const replicated = (names: string, replicas: number, method = JUMP): RoutePlacement => {
    const single = route(names, method);
    return { ...single, placement: { ...single.placement, replicas } };
  };

  it("is nothing where a key has the same upstreams in another order", () => {
    const rendezvous: PlacementMethod = { algorithm: "rendezvous" };
    expect(movedShare(replicated("a b c", 2, rendezvous), replicated("c a b", 2, rendezvous))).toBe(0);
    expect(movedShare(replicated("a b", 2), replicated("b a", 2))).toBe(0);
  });

  it("is half where one of two copies moves", () => {
    expect(movedShare(replicated("a b", 2), replicated("a c", 2))).toBe(0.5);
  });

  it("is that of the upstream which is taken away", () => {
    const moved = movedShare(replicated(TEN, 2), replicated(TEN.replace("e", "-e"), 2)) ?? -1;
    expect(Math.abs(moved - 0.1)).toBeLessThan(0.01);
  });

  it("is what is new of more replicas, and nothing of fewer", () => {
    expect(movedShare(replicated("a b c", 1), replicated("a b c", 2))).toBe(0.5);
    expect(movedShare(replicated("a b c", 2), replicated("a b c", 1))).toBe(0);
  });
});

describe("algorithms that go by number", () => {
  it.each<{ algorithm: PlacementMethod["algorithm"]; byNumber: boolean }>([
    { algorithm: "jump", byNumber: true },
    { algorithm: "hashmod", byNumber: true },
    { algorithm: "balanced", byNumber: true },
    { algorithm: "ring", byNumber: false },
    { algorithm: "maglev", byNumber: false },
    { algorithm: "rendezvous", byNumber: false },
    { algorithm: "multi_probe", byNumber: false },
  ])("are told from those that go by name: $algorithm", ({ algorithm, byNumber }) => {
    expect(goesByNumber(algorithm)).toBe(byNumber);
  });
});
