import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PlacementError, type PlacementErrorCode } from "../../src/hash/errors.ts";
import { maglevTable } from "../../src/hash/maglev.ts";
import { buildPlacement, type PlacementMethod } from "../../src/hash/placement.ts";
import type { NamedSlot } from "../../src/hash/slots.ts";
import { hashedKeys, keysFor, METHODS } from "./methods.ts";

const slotNames = fc.uniqueArray(fc.string({ unit: "grapheme", maxLength: 12 }), {
  minLength: 1,
  maxLength: 12,
});

const named = (names: readonly string[]): NamedSlot[] => names.map((name) => ({ name }));
const numbered = (count: number, prefix = "vmagent-"): NamedSlot[] =>
  Array.from({ length: count }, (_, index) => ({ name: `${prefix}${index}` }));

/** The name of each key's slot. */
function namesOf(method: PlacementMethod, slots: readonly NamedSlot[]): (string | undefined)[] {
  const { place } = buildPlacement(method, slots);
  return keysFor(method).map((key) => slots[place(key)]?.name);
}

describe.each(METHODS)("placement by $name", ({ method }) => {
  it("gives every key one of the slots, and the same one whenever and wherever it is built", () => {
    fc.assert(
      fc.property(slotNames, (names) => {
        const here = namesOf(method, named(names));
        const there = namesOf(method, named(names));
        expect(here).toEqual(there);
        expect(here.filter((name) => name === undefined)).toEqual([]);
      }),
      { numRuns: 20 },
    );
  });

  it("gives a single slot every key", () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        const { place } = buildPlacement(method, [{ name }]);
        expect(keysFor(method).filter((key) => place(key) !== 0)).toEqual([]);
      }),
      { numRuns: 10 },
    );
  });

  it("cannot be changed after it is built", () => {
    const placement = buildPlacement(method, numbered(3));
    expect(Object.isFrozen(placement)).toBe(true);
    expect(placement).toMatchObject({ algorithm: method.algorithm, slots: 3, replicas: 1 });
  });

  it("allocates nothing in a lookup", () => {
    const placement = buildPlacement(method, [...numbered(9), { name: "gone", removed: true }], 3);
    const picked = new Int32Array(3);
    const look = (): number => {
      const before = process.memoryUsage().heapUsed;
      for (let key = 0; key < 50_000; key++) placement.placeReplicas(key % 512, picked);
      return process.memoryUsage().heapUsed - before;
    };
    look();
    // One number on the heap in each lookup would be 0.8 MB. Others in this process allocate now and then.
    const grown = Array.from({ length: 7 }, look).sort((a, b) => a - b);
    expect(grown[3]).toBeLessThan(200_000);
  });
});

describe.each(METHODS.filter(({ name }) => name !== "balanced"))("placement by $name", ({ method }) => {
  it("takes a key as a signed and as an unsigned number", () => {
    const { place } = buildPlacement(method, numbered(7));
    expect(hashedKeys(1000).filter((key) => place(key | 0) !== place(key))).toEqual([]);
  });
});

describe.each(METHODS.filter(({ name }) => name !== "hashmod" && name !== "maglev"))(
  "placement by $name, when a slot is added or taken away",
  ({ method, goesBy }) => {
    // balanced moves tasks to a new slot from the fullest: it goes by number, and at the end of the list alone.
    const position = (count: number): fc.Arbitrary<number> =>
      goesBy === "name" ? fc.nat(count - 1) : fc.constant(count - 1);
    const listAndPosition = slotNames
      .filter((names) => names.length > 1)
      .chain((names) => fc.tuple(fc.constant(names), position(names.length)));

    it("moves keys only to the added slot, and only those of the slot that was taken away", () => {
      fc.assert(
        fc.property(listAndPosition, ([names, at]) => {
          const with_ = namesOf(method, named(names));
          const without = namesOf(method, named(names.filter((_, index) => index !== at)));
          expect(with_.filter((name, index) => name !== names[at] && name !== without[index])).toEqual([]);
        }),
        { numRuns: 40 },
      );
    });

    it("moves the share of that slot", () => {
      const before = namesOf(method, numbered(9));
      const after = namesOf(method, numbered(10));
      const moved = after.filter((name, index) => name !== before[index]).length;
      // Rings are uneven with few points, one of fnv1a more than others.
      expect(moved / after.length).toBeGreaterThan(0.03);
      expect(moved / after.length).toBeLessThan(0.25);
    });
  },
);

describe("placement by maglev, when a slot is added or taken away", () => {
  /** Entries of a table by name that changed, over those that the slot has, which must change. */
  function movedOverMinimal(slots: readonly NamedSlot[], at: number, size: number): number {
    const rest = slots.filter((_, index) => index !== at);
    const full = [...maglevTable(slots, size)].map((slot) => slots[slot]?.name);
    const without = [...maglevTable(rest, size)].map((slot) => rest[slot]?.name);
    const moved = full.filter((name, entry) => name !== without[entry]).length;
    return moved / full.filter((name) => name === slots[at]?.name).length;
  }

  it.each([
    { name: "3 → 4", slots: 4, at: 3 },
    { name: "10 → 11", slots: 11, at: 10 },
    { name: "100 → 101", slots: 101, at: 100 },
    { name: "the first of 100 goes", slots: 100, at: 0 },
    { name: "the middle one of 100 goes", slots: 100, at: 50 },
  ])("moves less than twice of what must move in the default table: $name", ({ slots, at }) => {
    expect(movedOverMinimal(numbered(slots), at, 65537)).toBeLessThan(2);
  });

  it("moves less than twice of what must move, whatever the slots' names", () => {
    fc.assert(
      fc.property(
        slotNames.filter((names) => names.length > 1),
        fc.nat(),
        (names, at) => {
          expect(movedOverMinimal(named(names), at % names.length, 5003)).toBeLessThan(2);
        },
      ),
      { numRuns: 50 },
    );
  });

  it("gives every slot of one weight as many entries, one more or less", () => {
    const counts = new Array<number>(100).fill(0);
    for (const slot of maglevTable(numbered(100), 65537)) counts[slot] = (counts[slot] ?? 0) + 1;
    expect(Math.min(...counts)).toBe(655);
    expect(Math.max(...counts)).toBe(656);
  });
});

describe("keys that are consecutive task numbers", () => {
  // Unmixed, 128 neighbours on a circle of 2^32 positions would all follow the same point.
  it.each(METHODS)("are spread over the slots by $name", ({ method }) => {
    const { place } = buildPlacement(method, numbered(4));
    const counts = [0, 0, 0, 0];
    for (let task = 0; task < 128; task++) {
      const slot = place(task);
      counts[slot] = (counts[slot] ?? 0) + 1;
    }
    expect(Math.max(...counts)).toBeLessThan(64);
    expect(Math.min(...counts)).toBeGreaterThan(8);
  });
});

describe("max/avg of 400,000 keys on 100 slots", () => {
  // Of random places for so many keys, the fullest slot has 1.04 times its share.
  const keys = hashedKeys(400_000);

  it.each<{ name: string; method: PlacementMethod; atMost: number }>([
    { name: "jump", method: { algorithm: "jump" }, atMost: 1.06 },
    { name: "maglev", method: { algorithm: "maglev", table: 65537 }, atMost: 1.06 },
    { name: "rendezvous", method: { algorithm: "rendezvous" }, atMost: 1.06 },
    {
      name: "a ring of 1000 md5 points a slot",
      method: { algorithm: "ring", hash: "md5", points: 1000 },
      atMost: 1.12,
    },
    { name: "21 probes", method: { algorithm: "multi_probe", probes: 21 }, atMost: 1.1 },
  ])("is at most $atMost by $name", ({ method, atMost }) => {
    const { place } = buildPlacement(method, numbered(100));
    const counts = new Uint32Array(100);
    for (const key of keys) {
      const slot = place(key);
      counts[slot] = (counts[slot] ?? 0) + 1;
    }
    expect(Math.max(...counts) / (keys.length / 100)).toBeLessThanOrEqual(atMost);
  });
});

describe("the replicas of twelve tasks on ten slots, one of them a tombstone", () => {
  const EXPECTED: Readonly<Record<string, string>> = {
    hashmod: "0+8 7+5 5+7 1+3 8+0 5+2 2+7 9+2 6+8 3+5 0+5 7+3",
    jump: "0+8 5+8 5+7 3+9 0+9 5+2 2+7 5+2 5+8 8+5 7+5 7+3",
    balanced: "8+3 6+5 2+5 1+3 7+0 5+2 0+2 7+2 3+8 7+5 8+5 9+3",
    "ring of md5": "6+8 1+5 5+7 7+3 9+0 7+2 2+7 3+2 5+8 0+5 1+5 8+3",
    "ring of fnv1a": "2+8 6+5 3+5 2+3 9+0 5+2 1+2 0+2 0+8 6+5 7+5 2+3",
    rendezvous: "8+3 5+8 5+7 3+9 0+9 2+8 2+7 2+6 8+6 5+8 5+9 3+0",
    maglev: "3+8 5+8 8+5 8+3 6+0 9+2 7+2 2+6 3+8 3+5 5+9 2+3",
    multi_probe: "0+8 6+5 0+5 0+3 3+0 3+2 3+2 2+6 8+6 3+5 5+9 7+3",
  };

  // Another answer would move the series of running gateways at an upgrade.
  it.each(METHODS)("stay what they were under $name", ({ name, method }) => {
    const slots = numbered(10).map((slot, index) => ({ ...slot, removed: index === 4 }));
    const { placeReplicas } = buildPlacement(method, slots, 2);
    const picked = new Int32Array(2);
    const tasks = Array.from({ length: 12 }, (_, index) => {
      placeReplicas(37 * index, picked);
      return picked.join("+");
    });
    expect(tasks.join(" ")).toBe(EXPECTED[name]);
  });
});

describe("a placement that cannot be", () => {
  const jump: PlacementMethod = { algorithm: "jump" };
  const ring = (points: number): PlacementMethod => ({ algorithm: "ring", hash: "md5", points });
  const maglev = (table: number): PlacementMethod => ({ algorithm: "maglev", table });
  const probes = (count: number): PlacementMethod => ({ algorithm: "multi_probe", probes: count });
  const gone: NamedSlot = { name: "gone", removed: true };
  const weighing = (weight: number): NamedSlot[] => [{ name: "a" }, { name: "b", weight }];

  interface Row {
    readonly name: string;
    readonly method: PlacementMethod;
    readonly slots: readonly NamedSlot[];
    readonly replicas?: number;
    readonly code: PlacementErrorCode;
    readonly slot: number | null;
    readonly message: RegExp;
  }
  const weightless: Row[] = METHODS.filter(({ weighted }) => !weighted).map(({ name, method }) => ({
    name: `a weight under ${name}`,
    method,
    slots: weighing(1),
    code: "PLACEMENT_WEIGHT_UNUSED",
    slot: 1,
    message: /"b" has a weight, and \w+ knows none: leave it out/,
  }));
  const noWeights: Row[] = [0, -1, Number.NaN, Number.POSITIVE_INFINITY].map((weight) => ({
    name: `a weight of ${weight}`,
    method: { algorithm: "rendezvous" },
    slots: weighing(weight),
    code: "PLACEMENT_WEIGHT",
    slot: 1,
    message: /"b" has weight .*: want a number above 0; .*removed: true/,
  }));
  const empty: Row[] = METHODS.map(({ name, method }) => ({
    name: `${name} over no slots`,
    method,
    slots: [],
    code: "PLACEMENT_NO_SLOTS",
    slot: null,
    message: /over 0 slots: name at least one/,
  }));
  const tables: Row[] = [
    { table: 0, hint: /307 say/ },
    { table: 299, hint: /from 300 .* 307 say/ },
    { table: 293, hint: /307 say/ },
    { table: 65536, hint: /65537 say/ },
    { table: 307.5, hint: /311 say/ },
    { table: 5_000_021, hint: /to 5000011$/ },
  ].map(({ table, hint }) => ({
    name: `a Maglev table of ${table} for 3 slots`,
    method: maglev(table),
    slots: numbered(3),
    code: "PLACEMENT_TABLE",
    slot: null,
    message: hint,
  }));

  it.each<Row>([
    ...empty,
    ...weightless,
    ...noWeights,
    ...tables,
    {
      name: "two slots of one name",
      method: jump,
      slots: [...numbered(2), { name: "vmagent-0", removed: true }],
      code: "PLACEMENT_DUPLICATE_NAME",
      slot: 2,
      message: /slots 0 and 2 are both named "vmagent-0"/,
    },
    {
      name: "tombstones alone",
      method: jump,
      slots: [gone, { name: "gone too", removed: true }],
      code: "PLACEMENT_ALL_REMOVED",
      slot: null,
      message: /all 2 slots are removed/,
    },
    {
      name: "more replicas than live slots",
      method: jump,
      slots: [...numbered(2), gone],
      replicas: 3,
      code: "PLACEMENT_TOO_FEW_LIVE",
      slot: null,
      message: /3 replicas .* there are 2/,
    },
    ...[0, -160, 1.5].map((points): Row => ({
      name: `a ring of ${points} points`,
      method: ring(points),
      slots: numbered(3),
      code: "PLACEMENT_POINTS",
      slot: null,
      message: /points: want 1 or more/,
    })),
    {
      name: "a slot so light that it has no point",
      method: ring(160),
      slots: weighing(0.001),
      code: "PLACEMENT_POINTS",
      slot: 1,
      message: /"b" has no point on the ring/,
    },
    {
      name: "a ring of two billion points",
      method: ring(1_000_000_000),
      slots: numbered(2),
      code: "PLACEMENT_POINTS",
      slot: null,
      message: /at most 2097152/,
    },
    ...[0, -1, 2.5, 1001].map((count): Row => ({
      name: `${count} probes`,
      method: probes(count),
      slots: numbered(3),
      code: "PLACEMENT_PROBES",
      slot: null,
      message: /want 1 to 1000, 21 say/,
    })),
    {
      name: "balanced without a number of tasks",
      method: { algorithm: "balanced", tasks: null },
      slots: numbered(3),
      code: "PLACEMENT_NO_TASKS",
      slot: null,
      message: /key: task, or use jump/,
    },
    {
      name: "balanced with more tasks than a table is made for",
      method: { algorithm: "balanced", tasks: 1_000_001 },
      slots: numbered(3),
      code: "PLACEMENT_TASKS",
      slot: null,
      message: /want at most 1000000, or jump/,
    },
  ])("is refused with what to do instead: $name", ({ method, slots, replicas, code, slot, message }) => {
    let refusal: unknown;
    try {
      buildPlacement(method, slots, replicas ?? 1);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(PlacementError);
    expect(refusal).toMatchObject({ code, slot });
    expect((refusal as PlacementError).message).toMatch(message);
  });

  it("is no configuration's fault when a key of balanced is no task", () => {
    const { place } = buildPlacement({ algorithm: "balanced", tasks: 4 }, numbered(2));
    expect(() => place(4)).toThrow(/not in the table/);
  });
});
