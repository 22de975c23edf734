import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Delivery, LaneParcel } from "../../src/deliver/delivery.ts";
import { LaneQueue } from "../../src/deliver/laneQueue.ts";
import type { BatchLimits } from "../../src/deliver/laneQueue.ts";
import { makeParcel } from "./parcels.ts";

const NO_LIMITS: BatchLimits = { maxItems: Infinity, maxPlainBytes: Infinity };

function waiting(series: number, { deadline = 1_000, plainBytes = 100 } = {}): LaneParcel {
  const delivery = new Delivery(1, 0, deadline, () => undefined);
  return new LaneParcel(makeParcel(series, plainBytes), delivery, 0);
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
    expect(seriesOf(queue.takeDue(10))).toEqual([2, 3]);
    expect(batchesOf(queue)).toEqual([[1], [4], [5]]);
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
});

/** Parcels that count how often anything of them is looked at. */
class Watched {
  looks = 0;

  waiting(series: number, deadline: number): LaneParcel {
    return new Proxy(waiting(series, { deadline }), {
      get: (parcel, property) => {
        this.looks += 1;
        return Reflect.get(parcel, property, parcel) as unknown;
      },
    });
  }
}

describe("what a lane's queue costs", () => {
  const rows = [
    { name: "in the order of their deadlines", isEarly: () => false },
    { name: "with one of eight 4 ms early", isEarly: (index: number) => index % 8 === 7 },
  ];
  it.each(rows)("is in proportion to the 20,000 parcels that come due, $name", ({ isEarly }) => {
    const watched = new Watched();
    const queue = queueOf({});
    for (let index = 0; index < 20_000; index += 1) {
      queue.push(watched.waiting(1, 10_000 + index / 2 - (isEarly(index) ? 4 : 0)));
    }
    let due = 0;
    for (let now = 9_990; now <= 20_000; now += 1) due += queue.takeDue(now).length;
    expect(due).toBe(20_000);
    expect(watched.looks).toBeLessThan(100 * 20_000);
  });

  it("does not depend on how many wait behind a group that is taken apart", () => {
    const watched = new Watched();
    const queue = queueOf({});
    for (let index = 0; index < 10_000; index += 1) queue.push(watched.waiting(1, 1_000));
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
});

/** What a queue of parcels without limits holds, told slowly. */
class Model {
  waiting: { id: number; deadline: number; group: number | null }[] = [];
  #group = 0;

  takeBatch(): number[] {
    const group = this.waiting[0]?.group;
    const end = this.waiting.findIndex((each) => each.group !== group);
    return this.waiting.splice(0, end === -1 ? Infinity : end).map(({ id }) => id);
  }

  putBackAsGroup(parcels: readonly { id: number; deadline: number }[]): void {
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
    const group = this.waiting[0]?.group ?? null;
    return group !== null || this.waiting.reduce((sum, { id }) => sum + id, 0) >= 500;
  }
}

describe("a lane's queue", () => {
  it("gives what a plain list would, whatever comes and goes", () => {
    const deadline = fc.nat(20);
    const step = fc.oneof(
      fc.record({ kind: fc.constant("push" as const), deadlines: fc.array(deadline, { maxLength: 8 }) }),
      fc.record({ kind: fc.constant("putBack" as const), deadlines: fc.array(deadline, { maxLength: 8 }) }),
      fc.record({ kind: fc.constant("takeDue" as const), at: deadline }),
      fc.record({ kind: fc.constant("takeBatch" as const) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const model = new Model();
        const queue = queueOf({});
        let lastId = 0;
        const nextId = (): number => (lastId += 1);
        for (const each of steps) {
          if (each.kind === "takeBatch") {
            expect(seriesOf(queue.takeBatch())).toEqual(model.takeBatch());
          } else if (each.kind === "takeDue") {
            expect(seriesOf(queue.takeDue(each.at))).toEqual(model.takeDue(each.at));
          } else {
            const parcels = each.deadlines.map((due) => ({ id: nextId(), deadline: due }));
            const taken = parcels.map(({ id, deadline: due }) => waiting(id, { deadline: due }));
            if (each.kind === "push") {
              for (const parcel of taken) queue.push(parcel);
              model.waiting.push(...parcels.map((parcel) => ({ ...parcel, group: null })));
            } else {
              queue.putBackAsGroup(taken);
              model.putBackAsGroup(parcels);
            }
          }
          expect([queue.length, queue.first?.parcel.series]).toEqual([
            model.waiting.length,
            model.waiting[0]?.id,
          ]);
          expect(queue.nearestDeadline).toBe(model.nearestDeadline);
          expect(queue.isWorthSending).toBe(model.isWorthSending);
        }
        expect(seriesOf(queue.takeDue(Infinity))).toEqual(model.waiting.map(({ id }) => id));
        expect(queue.isWorthSending).toBe(false);
      }),
      { numRuns: 500 },
    );
  });
});
