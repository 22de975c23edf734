import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Delivery } from "../../src/deliver/delivery.ts";
import type { LaneParcel } from "../../src/deliver/delivery.ts";
import { LaneQueue } from "../../src/deliver/laneQueue.ts";
import type { BatchLimits } from "../../src/deliver/line.ts";
import { collectGarbage } from "./garbage.ts";
import { makeParcel } from "./parcels.ts";

const NO_LIMITS: BatchLimits = { maxItems: Infinity, maxPlainBytes: Infinity };

interface Waiting {
  readonly deadline?: number;
  readonly plainBytes?: number;
  readonly tenant?: string | null;
  readonly startedAt?: number;
}

function waiting(series: number, settings: Waiting = {}): LaneParcel {
  const { deadline = 1_000, plainBytes = 100, tenant = null, startedAt = 0 } = settings;
  const delivery = new Delivery(1, tenant, startedAt, deadline, () => undefined);
  return { parcel: makeParcel(series, plainBytes), delivery, index: 0 };
}

/** Parcels of 1, 2, 3 ... series that came one after another. */
function inTurn(...tenants: readonly string[]): LaneParcel[] {
  return tenants.map((tenant, index) => waiting(index + 1, { tenant, startedAt: index }));
}

function queueOf(limits: Partial<BatchLimits>, ...parcels: readonly LaneParcel[]): LaneQueue {
  const queue = new LaneQueue({ ...NO_LIMITS, ...limits });
  for (const parcel of parcels) queue.push(parcel);
  return queue;
}

function queueWithGroup(...parcels: readonly LaneParcel[]): LaneQueue {
  const queue = queueOf({});
  queue.putBackAsGroup(parcels);
  return queue;
}

function seriesOf(parcels: readonly LaneParcel[]): number[] {
  return parcels.map(({ parcel }) => parcel.series);
}

/** The batches that are taken until nothing is left. */
function batchesOf(queue: LaneQueue): number[][] {
  const batches: number[][] = [];
  while (queue.length > 0) batches.push(seriesOf(queue.takeBatch()));
  return batches;
}

describe("batches taken from a lane's queue", () => {
  it("hold all there is, in order, while that fits", () => {
    expect(batchesOf(queueOf({}, waiting(1), waiting(2), waiting(3)))).toEqual([[1, 2, 3]]);
  });

  it("are closed before they would hold more items than allowed", () => {
    const parcels = [4, 3, 3, 1, 10, 9, 2].map((series) => waiting(series));
    expect(batchesOf(queueOf({ maxItems: 10 }, ...parcels))).toEqual([[4, 3, 3], [1], [10], [9], [2]]);
  });

  it("are closed before they would hold more plain bytes than allowed", () => {
    const parcels = [100, 150, 51, 300].map((plainBytes, index) => waiting(index, { plainBytes }));
    expect(batchesOf(queueOf({ maxPlainBytes: 300 }, ...parcels))).toEqual([[0, 1], [2], [3]]);
  });

  it("hold a parcel above the limits alone", () => {
    const parcels = [1, 12, 2].map((series) => waiting(series));
    expect(batchesOf(queueOf({ maxItems: 10 }, ...parcels))).toEqual([[1], [12], [2]]);
  });

  it("hold parcels of one group only, the group put back last first, and in front of those without one", () => {
    const queue = queueOf({}, waiting(4), waiting(5));
    queue.putBackAsGroup([waiting(3)]);
    queue.putBackAsGroup([waiting(1), waiting(2)]);
    expect(batchesOf(queue)).toEqual([[1, 2], [3], [4, 5]]);
  });

  it("do not mix what is left of two groups", () => {
    const queue = queueOf({}, waiting(5));
    queue.putBackAsGroup([waiting(3, { deadline: 10 }), waiting(4)]);
    queue.putBackAsGroup([waiting(1), waiting(2, { deadline: 10 })]);
    expect(seriesOf(queue.takeDue(10)).sort()).toEqual([2, 3]);
    expect(batchesOf(queue)).toEqual([[1], [4], [5]]);
  });

  it("hold all of the tenant whose parcel is the oldest, whatever came in between", () => {
    expect(batchesOf(queueOf({}, ...inTurn("a", "b", "a", "c", "b", "a")))).toEqual([[1, 3, 6], [2, 5], [4]]);
  });

  it("come to the others when a tenant has more than fits: the oldest parcel decides anew", () => {
    const queue = queueOf({ maxItems: 4 }, ...inTurn("a", "a", "b", "a", "b"));
    expect(batchesOf(queue)).toEqual([[1, 2], [3], [4], [5]]);
  });

  it("do not mix a tenant with those without one, whatever it is called", () => {
    const queue = queueOf(
      {},
      waiting(1),
      waiting(2, { tenant: "", startedAt: 1 }),
      waiting(3, { startedAt: 2 }),
    );
    expect(batchesOf(queue)).toEqual([[1, 3], [2]]);
  });

  it("hold parts of a refused batch first, and then the oldest tenant's, also if it is the same", () => {
    const queue = queueOf({}, ...inTurn("a", "b", "a", "b", "a"));
    const [one, three, five] = queue.takeBatch();
    if (one === undefined || three === undefined || five === undefined) throw new Error("three were wanted");
    queue.push(waiting(6, { tenant: "a", startedAt: 6 }));
    queue.putBackAsGroup([five]);
    queue.putBackAsGroup([one, three]);
    expect(batchesOf(queue)).toEqual([[1, 3], [5], [2, 4], [6]]);
  });
});

describe("a lane's queue is worth sending", () => {
  const rows = [
    { name: "nothing", queue: queueOf({}), expected: false },
    { name: "499 series", queue: queueOf({}, waiting(200), waiting(299)), expected: false },
    { name: "500 series", queue: queueOf({}, waiting(200), waiting(300)), expected: true },
    {
      name: "all items of a request",
      queue: queueOf({ maxItems: 3 }, waiting(1), waiting(2)),
      expected: true,
    },
    {
      name: "all bytes of a request",
      queue: queueOf({ maxPlainBytes: 100 }, waiting(1, { plainBytes: 100 })),
      expected: true,
    },
    { name: "a group", queue: queueWithGroup(waiting(1)), expected: true },
  ];
  it.each(rows)("or not, with $name", ({ queue, expected }) => {
    expect(queue.isWorthSending).toBe(expected);
  });

  it("no more once a batch is taken", () => {
    const queue = queueOf({ maxItems: 500 }, waiting(500), waiting(20));
    queue.takeBatch();
    expect(queue.isWorthSending).toBe(false);
  });

  it("by what the next batch would hold, not by what other tenants have", () => {
    const queue = queueOf({}, waiting(1, { tenant: "a" }), waiting(600, { tenant: "b", startedAt: 1 }));
    expect(queue.isWorthSending).toBe(false);
    queue.push(waiting(499, { tenant: "a", startedAt: 2 }));
    expect(queue.isWorthSending).toBe(true);
  });
});

describe("deadlines in a lane's queue", () => {
  const parcels = [30, 10, 20, 10].map((deadline, index) => waiting(index, { deadline }));

  it("take out what is due, and leave the others in order", () => {
    const queue = queueOf({}, ...parcels);
    expect(seriesOf(queue.takeDue(9))).toEqual([]);
    expect(seriesOf(queue.takeDue(10))).toEqual([1, 3]);
    expect(batchesOf(queue)).toEqual([[0, 2]]);
  });

  it("are known by the nearest, whatever is taken", () => {
    const queue = queueOf({ maxItems: 2 }, ...parcels);
    expect(queue.nearestDeadline).toBe(10);
    expect(seriesOf(queue.takeBatch())).toEqual([0, 1]);
    expect(queue.nearestDeadline).toBe(10);
    queue.takeDue(10);
    expect(queue.nearestDeadline).toBe(20);
    queue.takeDue(Infinity);
    expect(queue.nearestDeadline).toBe(Infinity);
  });

  it("are found with every tenant, and right when one with a later parcel goes first", () => {
    const queue = queueOf(
      {},
      waiting(1, { tenant: "a", startedAt: 1, deadline: 40 }),
      waiting(2, { tenant: "b", startedAt: 2, deadline: 30 }),
      waiting(3, { tenant: "a", startedAt: 3, deadline: 10 }),
      waiting(4, { tenant: "b", startedAt: 4, deadline: 20 }),
    );
    expect(queue.nearestDeadline).toBe(10);
    expect(seriesOf(queue.takeBatch())).toEqual([1, 3]);
    expect(queue.nearestDeadline).toBe(20);
    expect(seriesOf(queue.takeDue(20))).toEqual([4]);
    expect(queue.nearestDeadline).toBe(30);
  });
});

/** Parcels that count how often anything of them is looked at. */
class Watched {
  looks = 0;

  waiting(series: number, { deadline = 1_000, tenant = null, startedAt = 0 }: Waiting): LaneParcel {
    const { parcel, delivery, index } = waiting(series, { deadline, tenant, startedAt });
    const look = <Value>(value: Value): Value => {
      this.looks += 1;
      return value;
    };
    return {
      get parcel() {
        return look(parcel);
      },
      get delivery() {
        return look(delivery);
      },
      index,
    };
  }
}

describe("what a lane's queue costs", () => {
  const rows = [
    { name: "in the order of their deadlines", isEarly: () => false, tenants: 1 },
    { name: "with one of eight 4 ms early", isEarly: (index: number) => index % 8 === 7, tenants: 1 },
    { name: "of 5,000 tenants", isEarly: () => false, tenants: 5_000 },
    {
      name: "of 5,000 tenants, with one of eight 4 ms early",
      isEarly: (index: number) => index % 8 === 7,
      tenants: 5_000,
    },
  ];
  it.each(rows)("is in proportion to the 20,000 parcels that come due, $name", ({ isEarly, tenants }) => {
    const watched = new Watched();
    const queue = queueOf({});
    for (let index = 0; index < 20_000; index += 1) {
      const deadline = 10_000 + index / 2 - (isEarly(index) ? 4 : 0);
      queue.push(watched.waiting(1, { deadline, tenant: `t${index % tenants}`, startedAt: index }));
    }
    let due = 0;
    for (let now = 9_990; now <= 20_000; now += 1) due += queue.takeDue(now).length;
    expect(due).toBe(20_000);
    expect(watched.looks).toBeLessThan(100 * 20_000);
  });

  it("does not depend on how many wait behind a group that is taken apart", () => {
    const watched = new Watched();
    const queue = queueOf({});
    for (let index = 0; index < 10_000; index += 1) queue.push(watched.waiting(1, {}));
    queue.putBackAsGroup(Array.from({ length: 512 }, () => waiting(1)));
    watched.looks = 0;
    while (queue.length > 10_000) {
      const taken = queue.takeBatch();
      if (taken.length === 1) continue;
      queue.putBackAsGroup(taken.slice(taken.length / 2));
      queue.putBackAsGroup(taken.slice(0, taken.length / 2));
    }
    expect(watched.looks).toBeLessThan(4 * 1_023);
  });

  it("is in proportion to the 20,000 parcels that are sent, of 5,000 tenants in turn", () => {
    const watched = new Watched();
    const queue = queueOf({});
    for (let index = 0; index < 20_000; index += 1) {
      queue.push(watched.waiting(1, { tenant: `t${index % 5_000}`, startedAt: index }));
    }
    const batches = batchesOf(queue);
    expect(batches).toEqual(Array(5_000).fill([1, 1, 1, 1]));
    expect(watched.looks).toBeLessThan(30 * 20_000);
  });
});

describe("tenants that send no more", () => {
  const rows = [
    { name: "have been sent", leave: (queue: LaneQueue) => queue.takeBatch() },
    { name: "were given back", leave: (queue: LaneQueue) => queue.takeDue(1_000) },
    {
      name: "were refused in parts",
      leave: (queue: LaneQueue) => {
        queue.putBackAsGroup(queue.takeBatch());
        return queue.takeBatch();
      },
    },
  ];
  it.each(rows)("leave nothing behind once their parcels $name", ({ leave }) => {
    const queue = queueOf(
      {},
      waiting(1, { tenant: "one that waits on", startedAt: Infinity, deadline: 1e9 }),
    );
    const parcel = makeParcel(1);
    let tenants = 0;
    const comeAndGo = (): void => {
      for (let count = 0; count < 20_000; count += 1) {
        tenants += 1;
        const delivery = new Delivery(1, `tenant-${tenants}`, tenants, 1_000, () => undefined);
        queue.push({ parcel, delivery, index: 0 });
        if (leave(queue).length !== 1) throw new Error("one was wanted");
      }
      collectGarbage();
    };
    comeAndGo();
    const before = process.memoryUsage().heapUsed;
    comeAndGo();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(1024 * 1024);
  });
});

interface ModelParcel {
  readonly id: number;
  readonly deadline: number;
  readonly tenant: string | null;
  readonly group: number | null;
}

/** What a queue of parcels without limits holds, told slowly. */
class Model {
  waiting: ModelParcel[] = [];
  #group = 0;

  takeBatch(): number[] {
    const taken = this.#nextBatch();
    this.waiting = this.waiting.filter((each) => !taken.includes(each));
    return taken.map(({ id }) => id);
  }

  push(parcels: readonly Omit<ModelParcel, "group">[]): void {
    this.waiting.push(...parcels.map((each) => ({ ...each, group: null })));
  }

  putBackAsGroup(parcels: readonly Omit<ModelParcel, "group">[]): void {
    this.#group += 1;
    this.waiting.unshift(...parcels.map((each) => ({ ...each, group: this.#group })));
  }

  takeDue(at: number): number[] {
    const due = this.waiting.filter(({ deadline }) => deadline <= at);
    this.waiting = this.waiting.filter(({ deadline }) => deadline > at);
    return due.map(({ id }) => id);
  }

  get nearestDeadline(): number {
    return Math.min(Infinity, ...this.waiting.map(({ deadline }) => deadline));
  }

  get isWorthSending(): boolean {
    const [first] = this.waiting;
    if (first === undefined) return false;
    return first.group !== null || this.#nextBatch().reduce((sum, { id }) => sum + id, 0) >= 500;
  }

  #nextBatch(): readonly ModelParcel[] {
    const [first] = this.waiting;
    return this.waiting.filter(({ group, tenant }) => group === first?.group && tenant === first.tenant);
  }
}

describe("a lane's queue", () => {
  it("gives what a plain list would, whatever comes and goes", () => {
    const deadline = fc.nat(20);
    const parcels = {
      tenant: fc.constantFrom(null, "", "a", "b"),
      deadlines: fc.array(deadline, { maxLength: 8 }),
    };
    const step = fc.oneof(
      fc.record({ kind: fc.constant("push" as const), ...parcels }),
      fc.record({ kind: fc.constant("putBack" as const), ...parcels }),
      fc.record({ kind: fc.constant("takeDue" as const), at: deadline }),
      fc.record({ kind: fc.constant("takeBatch" as const) }),
    );
    const numbersOf = (taken: readonly LaneParcel[]): number[] => seriesOf(taken).sort((a, b) => a - b);
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const model = new Model();
        const queue = queueOf({});
        let lastId = 0;
        for (const each of steps) {
          if (each.kind === "takeBatch") {
            expect(seriesOf(queue.takeBatch())).toEqual(model.takeBatch());
          } else if (each.kind === "takeDue") {
            expect(numbersOf(queue.takeDue(each.at))).toEqual(model.takeDue(each.at).sort((a, b) => a - b));
          } else {
            const { tenant } = each;
            const come = each.deadlines.map((due) => ({ id: (lastId += 1), deadline: due, tenant }));
            const taken = come.map(({ id, deadline: due }) =>
              waiting(id, { deadline: due, tenant, startedAt: id }),
            );
            if (each.kind === "push") {
              for (const parcel of taken) queue.push(parcel);
              model.push(come);
            } else {
              queue.putBackAsGroup(taken);
              model.putBackAsGroup(come);
            }
          }
          expect([queue.length, queue.first?.parcel.series]).toEqual([
            model.waiting.length,
            model.waiting[0]?.id,
          ]);
          expect(queue.nearestDeadline).toBe(model.nearestDeadline);
          expect(queue.isWorthSending).toBe(model.isWorthSending);
        }
        expect(numbersOf(queue.takeDue(Infinity))).toHaveLength(model.waiting.length);
        expect(queue.first).toBe(undefined);
        expect(queue.isWorthSending).toBe(false);
      }),
      { numRuns: 500 },
    );
  });
});
