import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KeyFormat, KeyRule } from "../../src/hash/keyRule.ts";
import type { PlacementMethod } from "../../src/hash/placement.ts";
import { compilePlacer, type Placed } from "../../src/route/place.ts";
import type { PlacementOptions } from "../../src/route/options.ts";
import { METHODS, TASKS } from "../hash/methods.ts";
import {
  EXAMPLE_TASKS,
  exampleRoute,
  type ExampleSlot,
  type Labels,
  NO_RULES,
  type RouteChanges,
  slotsOf,
  spansOf,
  TASK_LABEL,
} from "./exampleRoute.ts";

const EMPTY_KEY = 2166136261;
const UPSTREAMS = slotsOf(...Array.from({ length: 5 }, (_, index) => `vmagent-${index}`));

function decide(labels: Labels, changes: RouteChanges): Placed {
  return compilePlacer(exampleRoute({ upstreams: UPSTREAMS, ...changes }))(spansOf(labels));
}

/** The places of a route of one period whose upstreams are all live. */
function only(...slots: readonly number[]): Placed["places"] {
  return [{ slots, upstreams: slots }];
}

interface Changes {
  readonly algorithm?: "jump" | "hashmod";
  readonly missingKey?: PlacementOptions["missingKey"];
}

function placement(key: PlacementOptions["key"], changes: Changes = {}): PlacementOptions {
  return { key, algorithm: "jump", missingKey: "one_place", replicas: 1, ...changes };
}

/** FNV-1a-32 over parts in a row, with BigInt. */
function fnv(parts: readonly Buffer[]): number {
  let hash = 2166136261n;
  for (const byte of Buffer.concat(parts)) hash = ((hash ^ BigInt(byte)) * 16777619n) % 2n ** 32n;
  return Number(hash);
}

function pairsKey(labels: Labels): number {
  const end = Buffer.from([0xff]);
  const sorted = labels
    .filter(([, value]) => value !== "")
    .map(([name, value]) => [Buffer.from(name), end, Buffer.from(value), end])
    .sort(([a = end], [b = end]) => Buffer.compare(a, b));
  return fnv(sorted.flat());
}

function flatKey(labels: Labels): number {
  const parts = labels.flatMap(([name, value]) => [Buffer.from(name), Buffer.from(value)]);
  return fnv(parts.sort((a, b) => Buffer.compare(a, b)));
}

/** Jump consistent hash of a 32-bit key, as its paper has it, with BigInt. */
function jump(key32: number, buckets: number): number {
  let key = BigInt(key32);
  let bucket = -1;
  let next = 0;
  while (next < buckets) {
    bucket = next;
    key = BigInt.asUintN(64, key * 2862933555777941757n + 1n);
    next = Math.floor((bucket + 1) * (2147483648 / (Number(key >> 33n) + 1)));
  }
  return bucket;
}

const names = fc.constantFrom("__name__", "job", "instance", "zone", "～", "😀", "le", "path");
const values = fc.oneof(fc.string({ maxLength: 8 }), fc.constantFrom("", "a", "node", "ünï"));
const labelSets = fc.uniqueArray(fc.tuple(names, values), { selector: ([name]) => name });
const everySet = { seed: 1, numRuns: 1000 };

describe("a route with tasks and placement by task", () => {
  it("gives the task of the label set's key, and the task alone picks the slot", () => {
    fc.assert(
      fc.property(labelSets, (labels) => {
        const task = jump(pairsKey(labels), 128);
        expect(decide(labels, {})).toEqual({
          key: pairsKey(labels),
          task,
          placementKey: task,
          places: only(jump(task, 5)),
          missingKeyLabels: false,
        });
      }),
      everySet,
    );
  });

  it("gives a series without labels the empty key and its task, 94 of 128", () => {
    expect(decide([], {})).toMatchObject({ key: EMPTY_KEY, task: 94 });
  });

  it("keys tasks by some labels when it is told so, and puts series without them into one task", () => {
    const tasks = { ...EXAMPLE_TASKS, key: { kind: "by", names: ["job", "zone"] } } as const;
    fc.assert(
      fc.property(labelSets, (labels) => {
        const taken = labels.filter(([name, value]) => ["job", "zone"].includes(name) && value !== "");
        expect(decide(labels, { tasks })).toMatchObject({
          key: pairsKey(taken),
          task: jump(pairsKey(taken), 128),
          missingKeyLabels: taken.length === 0,
        });
      }),
      everySet,
    );
  });

  it("keys tasks by all labels but some", () => {
    const tasks = { ...EXAMPLE_TASKS, key: { kind: "without", names: ["instance", "le"] } } as const;
    fc.assert(
      fc.property(labelSets, (labels) => {
        const taken = labels.filter(([name]) => !["instance", "le"].includes(name));
        expect(decide(labels, { tasks })).toMatchObject({ key: pairsKey(taken), missingKeyLabels: false });
      }),
      everySet,
    );
  });

  it("takes the remainder where the algorithm is hashmod", () => {
    const tasks = { ...EXAMPLE_TASKS, algorithm: "hashmod" } as const;
    const decision = decide([], { tasks, placement: placement({ kind: "task" }, { algorithm: "hashmod" }) });
    expect(decision).toMatchObject({ task: EMPTY_KEY % 128, places: only((EMPTY_KEY % 128) % 5) });
  });

  it("has one task when there is only one", () => {
    const tasks = { ...EXAMPLE_TASKS, count: 1 };
    expect(decide([["job", "a"]], { tasks })).toMatchObject({ task: 0, placementKey: 0, places: only(0) });
  });
});

describe("placement by labels", () => {
  it("picks the slot by the whole label set, the task apart from it", () => {
    fc.assert(
      fc.property(labelSets, (labels) => {
        const key = pairsKey(labels);
        expect(decide(labels, { placement: placement({ kind: "all" }) })).toEqual({
          key,
          task: jump(key, 128),
          placementKey: key,
          places: only(jump(key, 5)),
          missingKeyLabels: false,
        });
      }),
      everySet,
    );
  });

  it("picks the slot by all labels but some", () => {
    fc.assert(
      fc.property(labelSets, (labels) => {
        const key = pairsKey(labels.filter(([name]) => name !== "instance"));
        const rule = placement({ kind: "without", names: ["instance"] });
        expect(decide(labels, { placement: rule })).toMatchObject({
          placementKey: key,
          places: only(jump(key, 5)),
        });
      }),
      everySet,
    );
  });

  const BY_JOB = { kind: "by", names: ["job"] } as const;
  const missing = [
    { name: "no such label", labels: [["zone", "a"]] },
    {
      name: "an empty value of it",
      labels: [
        ["job", ""],
        ["zone", "b"],
      ],
    },
    { name: "no labels", labels: [] },
  ] satisfies { name: string; labels: Labels }[];

  it("picks the slot by the labels that it names", () => {
    const labels: Labels = [
      ["instance", "x"],
      ["job", "node"],
    ];
    const key = pairsKey([["job", "node"]]);
    expect(decide(labels, { placement: placement(BY_JOB) })).toMatchObject({
      key: pairsKey(labels),
      placementKey: key,
      places: only(jump(key, 5)),
      missingKeyLabels: false,
    });
  });

  it.each(missing)("sends series with $name where the empty key goes, and tells so", ({ labels }) => {
    expect(decide(labels, { placement: placement(BY_JOB) })).toMatchObject({
      placementKey: EMPTY_KEY,
      places: only(jump(EMPTY_KEY, 5)),
      missingKeyLabels: true,
    });
  });

  it.each(missing)(
    "places series with $name by their whole set with whole_set, and tells so",
    ({ labels }) => {
      const rule = placement(BY_JOB, { missingKey: "whole_set" });
      expect(decide(labels, { placement: rule })).toMatchObject({
        placementKey: pairsKey(labels),
        places: only(jump(pairsKey(labels), 5)),
        missingKeyLabels: true,
      });
    },
  );

  it("takes the remainder where the algorithm is hashmod", () => {
    const rule = placement({ kind: "all" }, { algorithm: "hashmod" });
    expect(decide([], { placement: rule }).places).toEqual(only(EMPTY_KEY % 5));
  });

  it("has neither key nor task in a route without tasks", () => {
    expect(decide([["job", "a"]], { tasks: null, placement: placement(BY_JOB) })).toEqual({
      key: null,
      task: null,
      placementKey: pairsKey([["job", "a"]]),
      places: only(jump(pairsKey([["job", "a"]]), 5)),
      missingKeyLabels: false,
    });
  });
});

describe("a route with the old gateway's keys", () => {
  const vectors = (
    JSON.parse(readFileSync(new URL("../fixtures/series_key.json", import.meta.url), "utf8")) as {
      vectors: { labels: Labels; hash: number; task: Record<string, number>; mod: Record<string, number> }[];
    }
  ).vectors;

  it("gives the recorded keys and tasks, by jump and by remainder", () => {
    const flat = { keyFormat: "flat" } as const;
    const modulus = { ...flat, tasks: { ...EXAMPLE_TASKS, algorithm: "hashmod" } } as const;
    // Some of the recorded sets hold the task label, which takes no part here.
    const keyed = vectors.filter(({ labels }) => labels.every(([name]) => name !== TASK_LABEL));
    for (const { labels, hash, task, mod } of keyed) {
      expect(decide(labels, flat)).toMatchObject({ key: hash, task: task["128"] });
      expect(decide(labels, modulus)).toMatchObject({ key: hash, task: mod["128"] });
    }
    expect(keyed.length).toBeGreaterThan(50);
  });

  it("hashes the task where a list of labels names the task label", () => {
    fc.assert(
      fc.property(labelSets, (labels) => {
        const task = jump(flatKey(labels), 128);
        const hashed = flatKey([...labels.filter(([name]) => name === "job"), [TASK_LABEL, String(task)]]);
        const rule = placement({ kind: "by", names: ["job", TASK_LABEL] });
        expect(decide(labels, { keyFormat: "flat", placement: rule })).toMatchObject({
          task,
          placementKey: hashed,
          places: only(jump(hashed, 5)),
          missingKeyLabels: false,
        });
      }),
      everySet,
    );
  });
});

describe("a task label that comes from outside", () => {
  const rules: PlacementOptions["key"][] = [
    { kind: "task" },
    { kind: "all" },
    { kind: "by", names: ["job", "zone"] },
    { kind: "without", names: ["instance"] },
    { kind: "by", names: ["job", TASK_LABEL] },
  ];
  const taskKeys: KeyRule[] = [
    { kind: "all" },
    { kind: "by", names: ["job"] },
    { kind: "without", names: ["zone"] },
  ];
  const formats: KeyFormat[] = ["pairs", "flat"];
  const rows = formats.flatMap((keyFormat) =>
    rules.flatMap((key) =>
      taskKeys.flatMap((taskKey) =>
        (["one_place", "whole_set"] as const).map((missingKey) => ({
          name: [keyFormat, JSON.stringify(taskKey), JSON.stringify(key), missingKey].join(" "),
          options: {
            keyFormat,
            tasks: { ...EXAMPLE_TASKS, key: taskKey },
            placement: placement(key, { missingKey }),
          },
        })),
      ),
    ),
  );

  it.each(rows)("changes nothing: $name", ({ options }) => {
    fc.assert(
      fc.property(labelSets, fc.constantFrom("", "3", "94", "x"), fc.nat(8), (labels, value, at) => {
        const from = [...labels.slice(0, at), [TASK_LABEL, value] as const, ...labels.slice(at)];
        expect(decide(from, options)).toEqual(decide(labels, options));
      }),
      { seed: 1, numRuns: 50 },
    );
  });
});

describe("replicas, with upstreams that are tombstones", () => {
  const lists = fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }).filter((live) => live.includes(true));
  const cases = lists.chain((live) =>
    fc.tuple(
      fc.constant(
        live.map((isLive, index): ExampleSlot => {
          return { name: `up-${index}`, writeRelabel: NO_RULES, ...(isLive ? {} : { removed: true }) };
        }),
      ),
      fc.integer({ min: 1, max: live.filter(Boolean).length }),
    ),
  );

  /** Where the copies go, by name. */
  function namesOf(
    labels: Labels,
    method: PlacementMethod,
    upstreams: readonly ExampleSlot[],
    replicas: number,
  ): string[] {
    const key = { kind: method.algorithm === "balanced" ? "task" : "all" } as const;
    const rule: PlacementOptions = { ...method, key, missingKey: "one_place", replicas };
    const tasks = { ...EXAMPLE_TASKS, count: TASKS };
    const [place] = decide(labels, { tasks, placement: rule, upstreams }).places;
    return (place?.slots ?? []).map((slot) => {
      const upstream = upstreams[slot];
      if (upstream === undefined || upstream.removed === true) throw new Error(`slot ${slot} is not live`);
      return upstream.name;
    });
  }

  it.each(METHODS)("are so many distinct live ones, first that of a single replica: $name", ({ method }) => {
    fc.assert(
      fc.property(labelSets, cases, (labels, [upstreams, replicas]) => {
        const names = namesOf(labels, method, upstreams, replicas);
        expect(new Set(names).size).toBe(replicas);
        expect(names.slice(0, 1)).toEqual(namesOf(labels, method, upstreams, 1));
      }),
      { seed: 1, numRuns: 200 },
    );
  });

  it.each(METHODS)("are the same but for the one that is taken away: $name", ({ method }) => {
    fc.assert(
      fc.property(labelSets, cases, fc.nat(7), (labels, [upstreams, replicas], gone) => {
        const left = upstreams.map((each, slot) => (slot === gone ? { ...each, removed: true } : each));
        fc.pre(left.filter(({ removed }) => removed !== true).length >= replicas);
        const before = namesOf(labels, method, upstreams, replicas);
        const stay = before.filter((name) => name !== upstreams[gone]?.name);
        expect(namesOf(labels, method, left, replicas)).toEqual(expect.arrayContaining(stay));
      }),
      { seed: 1, numRuns: 200 },
    );
  });
});

describe("a route of several periods", () => {
  it("has a place in each of them: that of a route which always had its slots", () => {
    const before = slotsOf("a", "b", "c");
    const behind = slotsOf("d", "a", "b", "c").map((slot) =>
      slot.name === "b" ? { ...slot, removed: true } : slot,
    );
    const rule = { placement: { ...placement({ kind: "all" }), replicas: 2 } };
    const periods = [before, behind].map((slots, index) => ({ fromMs: index === 0 ? null : 1000, slots }));
    const names = (upstreams: readonly ExampleSlot[], places: Placed["places"], period: number): unknown =>
      places[period]?.slots.map((slot) => upstreams[slot]?.name);
    // As the route lists them: b is live in one of the periods.
    const listed = ["a", "b", "c", "d"];
    fc.assert(
      fc.property(labelSets, (labels) => {
        const { places, ...rest } = decide(labels, { ...rule, periods });
        const alone = [before, behind].map((upstreams) => decide(labels, { ...rule, upstreams }));
        expect(places).toHaveLength(2);
        for (const [period, slots] of [before, behind].entries()) {
          const { places: only = [], ...restAlone } = alone[period] ?? {};
          expect(rest).toEqual(restAlone);
          expect(places[period]?.slots).toEqual(only[0]?.slots);
          expect(places[period]?.upstreams.map((upstream) => listed[upstream])).toEqual(
            names(slots, places, period),
          );
        }
      }),
      { seed: 1, numRuns: 200 },
    );
  });
});

describe("the order of labels", () => {
  it("changes no decision", () => {
    fc.assert(
      fc.property(labelSets, (labels) => {
        expect(decide(labels.toReversed(), {})).toEqual(decide(labels, {}));
      }),
      everySet,
    );
  });
});
