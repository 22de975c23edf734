import { describe, expect, it } from "vitest";
import { Delivery } from "../../src/deliver/delivery.ts";
import type { LaneParcel } from "../../src/deliver/delivery.ts";
import { LaneQueue } from "../../src/deliver/laneQueue.ts";
import type { BatchLimits } from "../../src/deliver/laneQueue.ts";
import { makeParcel } from "./parcels.ts";

const NO_LIMITS: BatchLimits = { maxItems: Infinity, maxPlainBytes: Infinity };

function waiting(series: number, { deadline = 1_000, plainBytes = 100, alone = false } = {}): LaneParcel {
  const delivery = new Delivery(1, 0, deadline, () => undefined);
  return { parcel: makeParcel(series, plainBytes), delivery, index: 0, alone };
}

function queueOf(limits: Partial<BatchLimits>, ...parcels: readonly LaneParcel[]): LaneQueue {
  const queue = new LaneQueue({ ...NO_LIMITS, ...limits });
  for (const parcel of parcels) queue.push(parcel);
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

  it("hold parcels that are to go alone one by one, in front of the others", () => {
    const queue = queueOf({}, waiting(3), waiting(4));
    queue.putBack([waiting(1, { alone: true }), waiting(2, { alone: true })]);
    expect(batchesOf(queue)).toEqual([[1], [2], [3, 4]]);
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
    { name: "one that goes alone", queue: queueOf({}, waiting(1, { alone: true })), expected: true },
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
