import fc from "fast-check";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Batch } from "../../src/deliver/batch.ts";
import type { AttemptEnd } from "../../src/deliver/classify.ts";
import { DeliveryLog } from "../../src/deliver/deliveryLog.ts";
import { Lane } from "../../src/deliver/lane.ts";
import type { LaneAttempts, LaneTools } from "../../src/deliver/lane.ts";
import { undelivered } from "../../src/deliver/outcome.ts";
import type { ParcelOutcome, Undelivered } from "../../src/deliver/outcome.ts";
import { NO_PAUSE } from "../../src/deliver/pauses.ts";
import { MemoryBudget } from "../../src/memoryBudget.ts";
import { makeParcel, makeParcels, numbersIn } from "./parcels.ts";
import { DELIVERY, Settlements } from "./senderUnderTest.ts";
import type { Parcel } from "../../src/wire/parcel.ts";

/** Attempts that end when and how the test says, on a clock that the test steps. */
class SteppedAttempts implements LaneAttempts {
  mayBegin = true;
  isBlocked = false;
  isClosing = false;
  #waiting: Pick<Lane, "takeTurn"> | null = null;
  /** What was sent, by the numbers of its parcels. */
  readonly sent: number[][] = [];
  readonly bodies: Uint8Array[] = [];
  #onEnd: ((end: AttemptEnd) => void) | null = null;

  request(asking: Pick<Lane, "takeTurn">): void {
    if (this.mayBegin) asking.takeTurn();
    else this.#waiting = asking;
  }

  /** From now on attempts may begin, the one that was asked for at once. */
  admit(): void {
    this.mayBegin = true;
    this.#waiting?.takeTurn();
  }

  begin(batch: Batch, onEnd: (end: AttemptEnd) => void): void {
    if (this.#onEnd !== null) throw new Error("a second request is in flight");
    batch.attempts += 1;
    this.bodies.push(batch.body);
    this.sent.push(numbersIn(batch.body));
    this.#onEnd = onEnd;
  }

  obstacle(lastFailure = "of others"): Undelivered | null {
    return this.isBlocked ? undelivered(`blocked, ${lastFailure}`, 7) : null;
  }

  get isInFlight(): boolean {
    return this.#onEnd !== null;
  }

  end(end: AttemptEnd): void {
    const onEnd = this.#onEnd;
    this.#onEnd = null;
    onEnd?.(end);
  }
}

const DELIVERED: AttemptEnd = { kind: "delivered" };
const REFUSED: AttemptEnd = { kind: "refused", status: 400, reply: "bad" };
const FAILED: AttemptEnd = {
  kind: "retry",
  status: 500,
  cause: "500 (of mine)",
  countsAsFailure: true,
  retryAfterMs: null,
};
/** With this, the wait after a first attempt is 100 ms and doubles up to a second. */
const OPTIONS = { ...DELIVERY, batchSendDeadlineMs: 20, minBackoffMs: 200, maxBackoffMs: 2_000 };
const HALF = (): number => 0.5;

let attempts: SteppedAttempts;
let settled: Settlements;
let lane: Lane;
let emptied: number;
beforeEach(() => {
  vi.useFakeTimers();
  start();
});
afterEach(() => {
  lane.stop();
  vi.useRealTimers();
});

function start(options: Partial<typeof OPTIONS> = {}, pause = NO_PAUSE): void {
  attempts = new SteppedAttempts();
  settled = new Settlements();
  emptied = 0;
  const tools: LaneTools = {
    now: Date.now,
    random: HALF,
    log: new DeliveryLog(pino({ level: "silent" }), "u", Date.now),
    memory: new MemoryBudget(Infinity).holder(),
    settled: (end, from, parcels, items) => {
      settled.add(end, from, parcels, items);
    },
    emptied: (told) => {
      if (told === lane) emptied += 1;
    },
  };
  const delivery = { options: { ...OPTIONS, ...options } };
  lane = new Lane({ number: 0, tenant: "a" }, delivery, attempts, tools, pause, null);
}

/** The outcomes of one call, filled when they are there. */
function deliver(parcels: readonly Parcel[], forMs = 10_000): ParcelOutcome[] {
  const outcomes: ParcelOutcome[] = [];
  lane.deliver(parcels, Date.now() + forMs, (all) => outcomes.push(...all));
  return outcomes;
}

function kindsOf(...calls: readonly ParcelOutcome[][]): string[] {
  return calls.flat().map(({ kind }) => kind);
}

describe("an idle lane", () => {
  it("sends 500 series at once", () => {
    deliver([makeParcel(499)]);
    expect(attempts.sent).toEqual([]);
    deliver([makeParcel(1)]);
    expect(attempts.sent).toEqual([[499, 1]]);
  });

  it("sends a full request at once, however few series that is", () => {
    start({ maxSamplesPerSend: 10 });
    deliver([makeParcel(4), makeParcel(6)]);
    expect(attempts.sent).toEqual([[4, 6]]);
  });

  it("sends less when its oldest parcel has waited for batch_send_deadline", () => {
    deliver([makeParcel(1)]);
    vi.advanceTimersByTime(15);
    deliver([makeParcel(2)]);
    vi.advanceTimersByTime(4);
    expect(attempts.sent).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(attempts.sent).toEqual([[1, 2]]);
  });

  it("waits as long again for the next parcels, whatever it waited for before", () => {
    deliver([makeParcel(1)]);
    vi.advanceTimersByTime(20);
    attempts.end(DELIVERED);
    vi.advanceTimersByTime(7);
    deliver([makeParcel(2)]);
    vi.advanceTimersByTime(19);
    expect(attempts.sent).toEqual([[1]]);
    vi.advanceTimersByTime(1);
    expect(attempts.sent).toEqual([[1], [2]]);
  });

  it("sends what it has when it is flushed, and waits again afterwards", () => {
    deliver([makeParcel(1)]);
    lane.flush();
    expect(attempts.sent).toEqual([[1]]);
    attempts.end(DELIVERED);
    deliver([makeParcel(2)]);
    expect(attempts.sent).toEqual([[1]]);
  });

  it("does nothing when it is flushed with nothing waiting", () => {
    lane.flush();
    deliver([makeParcel(1)]);
    expect(attempts.sent).toEqual([]);
  });

  it("sends at once with a batch_send_deadline of nothing", () => {
    start({ batchSendDeadlineMs: 0 });
    deliver([makeParcel(1)]);
    expect(attempts.sent).toEqual([[1]]);
  });
});

describe("while a request is in flight", () => {
  it("parcels of all calls gather, and go together in their order", () => {
    const first = deliver([makeParcel(500)]);
    const calls = [
      deliver([makeParcel(1), makeParcel(2)]),
      deliver([makeParcel(500)]),
      deliver([makeParcel(3)]),
    ];
    vi.advanceTimersByTime(1_000);
    expect(attempts.sent).toEqual([[500]]);

    attempts.end(DELIVERED);
    expect(first).toEqual([{ kind: "delivered" }]);
    expect(attempts.sent).toEqual([[500], [1, 2, 500, 3]]);
    expect(calls.flat()).toEqual([]);

    attempts.end(DELIVERED);
    expect(kindsOf(...calls)).toEqual(Array<string>(4).fill("delivered"));
  });

  it("few series go right after it once they have waited long enough, and wait for the rest of that if not", () => {
    deliver([makeParcel(500)]);
    deliver([makeParcel(1)]);
    vi.advanceTimersByTime(20);
    attempts.end(DELIVERED);
    expect(attempts.sent).toEqual([[500], [1]]);

    deliver([makeParcel(2)]);
    vi.advanceTimersByTime(5);
    attempts.end(DELIVERED);
    expect(attempts.sent).toHaveLength(2);
    vi.advanceTimersByTime(15);
    expect(attempts.sent).toEqual([[500], [1], [2]]);
  });

  it("a flush holds for when it has ended, and for what has come until then", () => {
    deliver([makeParcel(500)]);
    deliver([makeParcel(1)]);
    lane.flush();
    expect(attempts.sent).toEqual([[500]]);
    deliver([makeParcel(2)]);
    attempts.end(DELIVERED);
    expect(attempts.sent).toEqual([[500], [1, 2]]);
  });

  it("a flush holds for all that waits, though it takes several requests", () => {
    start({ maxSamplesPerSend: 10 });
    deliver([makeParcel(10)]);
    deliver([makeParcel(9), makeParcel(8), makeParcel(7)]);
    lane.flush();
    for (let request = 0; request < 3; request += 1) attempts.end(DELIVERED);
    expect(attempts.sent).toEqual([[10], [9], [8], [7]]);
  });

  it("more than fits into one request goes in several, a parcel above the limit alone", () => {
    start({ maxSamplesPerSend: 1_000 });
    deliver([makeParcel(500)]);
    deliver([600, 400, 1, 1_500, 2].map((series) => makeParcel(series)));
    for (let request = 0; request < 3; request += 1) attempts.end(DELIVERED);
    vi.advanceTimersByTime(20);
    attempts.end(DELIVERED);
    vi.advanceTimersByTime(20);
    expect(attempts.sent).toEqual([[500], [600, 400], [1], [1_500], [2]]);
  });
});

describe("a batch that fails", () => {
  it("is sent again, the same bytes, before all that came meanwhile", () => {
    const call = deliver([makeParcel(501), makeParcel(1)]);
    attempts.end(FAILED);
    const later = deliver([makeParcel(500)]);
    lane.flush();
    vi.advanceTimersByTime(99);
    expect(attempts.sent).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(attempts.sent).toEqual([
      [501, 1],
      [501, 1],
    ]);
    expect(attempts.bodies[1]).toBe(attempts.bodies[0]);
    expect(call).toEqual([]);

    attempts.end(DELIVERED);
    expect(kindsOf(call)).toEqual(["delivered", "delivered"]);
    attempts.end(DELIVERED);
    expect(kindsOf(later)).toEqual(["delivered"]);
    expect(attempts.sent.at(-1)).toEqual([500]);
  });

  it("waits twice as long after each attempt, up to max_backoff", () => {
    deliver([makeParcel(500)], 60_000);
    const startedAt = Date.now();
    const sentAt: number[] = [];
    for (let attempt = 0; attempt < 7; attempt += 1) {
      attempts.end(FAILED);
      vi.advanceTimersToNextTimer();
      sentAt.push(Date.now() - startedAt);
    }
    expect(sentAt).toEqual([100, 300, 700, 1_500, 2_500, 3_500, 4_500]);
  });

  it("loses the parcels that cannot be tried again in time, which are given back at once", () => {
    const parcels = makeParcels(3);
    const [one, two, three] = [
      deliver(parcels.slice(0, 1), 100),
      deliver(parcels.slice(1, 2), 101),
      deliver(parcels.slice(2), 99),
    ];
    lane.flush();
    attempts.end(FAILED);
    expect([one, three].flat()).toEqual(Array(2).fill(undelivered("500 (of mine)", 100)));
    expect(settled.of(parcels)).toEqual(["refused", "not", "refused"]);

    vi.advanceTimersByTime(100);
    expect(attempts.sent).toEqual([[1, 2, 3], [2]]);
    attempts.end(DELIVERED);
    expect(kindsOf(two)).toEqual(["delivered"]);
    expect(settled.of(parcels)).toEqual(["refused", "delivered", "refused"]);
  });

  it("goes on waiting longer for what is left of it", () => {
    deliver([makeParcel(499)], 100);
    deliver([makeParcel(1)]);
    attempts.end(FAILED);
    vi.advanceTimersByTime(100);
    attempts.end(FAILED);
    vi.advanceTimersByTime(199);
    expect(attempts.sent).toEqual([[499, 1], [1]]);
    vi.advanceTimersByTime(1);
    expect(attempts.sent).toEqual([[499, 1], [1], [1]]);
  });

  it("is spoken of in the upstream's words to its own senders only", async () => {
    const own = deliver([makeParcel(499)], 100);
    const ownLater = deliver([makeParcel(1)], 500);
    const waiting = deliver([makeParcel(2)], 100);
    attempts.end(FAILED);
    expect(own).toEqual([undelivered("500 (of mine)", 100)]);
    expect(waiting).toEqual([undelivered("500", 100)]);

    const coming = deliver([makeParcel(3)], 100);
    await Promise.resolve();
    expect(coming).toEqual([undelivered("500", 100)]);

    attempts.mayBegin = false;
    const waitingLater = deliver([makeParcel(4)], 500);
    vi.advanceTimersByTime(500);
    const notTried = "no attempt could start before the deadline; the last one:";
    expect(ownLater).toEqual([undelivered(`${notTried} 500 (of mine)`, 100)]);
    expect(waitingLater).toEqual([undelivered(`${notTried} 500`, 100)]);
  });

  it("is spoken of to what is in flight at its deadline after it, in the upstream's words if it is the same", () => {
    const own = deliver([makeParcel(500)], 120);
    attempts.end(FAILED);
    vi.advanceTimersByTime(120);
    expect(own).toEqual([
      undelivered("no answer to attempt 2 by the deadline; the last one: 500 (of mine)", 200),
    ]);
    const next = deliver([makeParcel(500)], 250);
    attempts.end(FAILED);
    expect(attempts.sent).toHaveLength(3);
    vi.advanceTimersByTime(250);
    expect(next).toEqual([undelivered("no answer to attempt 1 by the deadline; the last one: 500", 100)]);
  });

  it("is given up when none of its parcels is left, and the next go without a wait", () => {
    const parcels = makeParcels(2);
    deliver(parcels.slice(0, 1), 50);
    lane.flush();
    deliver(parcels.slice(1));
    lane.flush();
    attempts.end(FAILED);
    expect(attempts.sent).toEqual([[1], [2]]);
    expect(settled.of(parcels)).toEqual(["refused", "not"]);
  });

  it("tells new parcels at once that would have to wait for it until their deadline", async () => {
    deliver([makeParcel(500)]);
    attempts.end(FAILED);
    const call = deliver([makeParcel(1)], 100);
    expect(call).toEqual([]);
    await Promise.resolve();
    expect(call).toEqual([undelivered("500", 100)]);
  });
});

describe("a refused batch", () => {
  it("of one parcel is refused", () => {
    const parcels = makeParcels(1);
    const call = deliver(parcels);
    lane.flush();
    attempts.end(REFUSED);
    expect(call).toEqual([REFUSED]);
    expect(settled.of(parcels)).toEqual(["refused"]);
  });

  it("of several is sent again in halves, in order and without a wait, before what came meanwhile", () => {
    const parcels = makeParcels(4);
    const [first, second] = [deliver(parcels.slice(0, 2)), deliver(parcels.slice(2, 3))];
    lane.flush();
    const later = deliver(parcels.slice(3));
    attempts.end(REFUSED);
    for (const end of [REFUSED, DELIVERED, REFUSED, DELIVERED]) attempts.end(end);
    expect(attempts.sent.slice(0, 5)).toEqual([[1, 2, 3], [1, 2], [1], [2], [3]]);
    expect(first).toEqual([DELIVERED, REFUSED]);
    expect(second).toEqual([DELIVERED]);

    lane.flush();
    attempts.end(DELIVERED);
    expect(later).toEqual([DELIVERED]);
    expect(settled.of(parcels)).toEqual(["delivered", "refused", "delivered", "delivered"]);
  });

  it("keeps its order when one of its halves fails meanwhile", () => {
    deliver(makeParcels(4));
    lane.flush();
    for (const end of [REFUSED, FAILED]) attempts.end(end);
    vi.advanceTimersByTime(100);
    for (const end of [DELIVERED, DELIVERED]) attempts.end(end);
    expect(attempts.sent).toEqual([
      [1, 2, 3, 4],
      [1, 2],
      [1, 2],
      [3, 4],
    ]);
  });

  it("is left by what comes to its deadline meanwhile, and nothing joins what is left", () => {
    const parcels = makeParcels(5);
    deliver(parcels.slice(0, 2));
    const late = deliver(parcels.slice(2, 3), 50);
    deliver(parcels.slice(3, 4));
    lane.flush();
    attempts.end(REFUSED);
    deliver(parcels.slice(4));
    lane.flush();
    vi.advanceTimersByTime(50);
    expect(kindsOf(late)).toEqual(["undelivered"]);
    for (let request = 0; request < 3; request += 1) attempts.end(DELIVERED);
    expect(attempts.sent).toEqual([[1, 2, 3, 4], [1, 2], [4], [5]]);
    expect(settled.of(parcels)).toEqual(["delivered", "delivered", "refused", "delivered", "delivered"]);
  });

  it("does not send again what was answered at its deadline meanwhile", () => {
    const parcels = makeParcels(2);
    const [late, inTime] = [deliver(parcels.slice(0, 1), 50), deliver(parcels.slice(1))];
    lane.flush();
    vi.advanceTimersByTime(50);
    expect(kindsOf(late)).toEqual(["undelivered"]);
    attempts.end(REFUSED);
    attempts.end(DELIVERED);
    expect(attempts.sent).toEqual([[1, 2], [2]]);
    expect(kindsOf(inTime)).toEqual(["delivered"]);
    expect(settled.of(parcels)).toEqual(["refused", "delivered"]);
  });
});

describe("a refused batch of many senders' parcels", () => {
  const all = Array.from({ length: 64 }, (_, index) => index + 1);
  const rows = [
    { name: "one of 2", count: 2, bad: [2] },
    { name: "one of 3", count: 3, bad: [1] },
    { name: "one of 10", count: 10, bad: [7] },
    { name: "one of 64", count: 64, bad: [38] },
    { name: "the first of 64", count: 64, bad: [1] },
    { name: "the last of 64", count: 64, bad: [64] },
    { name: "two of 64 side by side", count: 64, bad: [32, 33] },
    { name: "two of 64 far apart", count: 64, bad: [3, 60] },
    { name: "all of 10", count: 10, bad: all.slice(0, 10) },
    { name: "all of 64", count: 64, bad: all },
  ];
  function expectIsolated(count: number, bad: readonly number[]): void {
    deliver([makeParcel(500)]);
    const numbers = all.slice(0, count);
    const calls = numbers.map((number) => deliver([makeParcel(number)]));
    lane.flush();
    attempts.end(DELIVERED);
    const delivered: number[] = [];
    while (attempts.isInFlight) {
      const sent = attempts.sent.at(-1) ?? [];
      const isRefused = sent.some((number) => bad.includes(number));
      if (!isRefused) delivered.push(...sent);
      attempts.end(isRefused ? REFUSED : DELIVERED);
    }
    // Whose parcel it was is told so, in the upstream's words.
    expect(calls).toEqual(numbers.map((number) => [bad.includes(number) ? REFUSED : DELIVERED]));
    expect(delivered).toEqual(numbers.filter((number) => !bad.includes(number)));
    const requests = attempts.sent.length - 1;
    expect(requests).toBeLessThanOrEqual(1 + bad.length * 2 * Math.ceil(Math.log2(count)));
    expect(requests).toBeLessThan(2 * count);
    expect(settled.total("refused").parcels).toBe(bad.length);
    expect(settled.total("delivered").parcels).toBe(1 + count - bad.length);
  }

  it.each(rows)("finds $name in few requests, and delivers the others in order", ({ count, bad }) => {
    expectIsolated(count, bad);
  });

  it("finds whichever of them are bad, and delivers the others in order", () => {
    const someOfMany = fc
      .integer({ min: 2, max: 64 })
      .chain((count) => fc.tuple(fc.constant(count), fc.subarray(all.slice(0, count), { minLength: 1 })));
    fc.assert(
      fc.property(someOfMany, ([count, bad]) => {
        lane.stop();
        start();
        expectIsolated(count, bad);
      }),
    );
  });
});

describe("the deadline of a parcel", () => {
  it("that waits: it leaves, is answered and settled, and is not sent later", () => {
    const parcels = makeParcels(3);
    deliver(parcels.slice(0, 1));
    lane.flush();
    const [late, inTime] = [deliver(parcels.slice(1, 2), 50), deliver(parcels.slice(2))];
    lane.flush();
    vi.advanceTimersByTime(49);
    expect(late).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(late).toEqual([undelivered("no attempt could start before the deadline", 100)]);
    expect(settled.of(parcels)).toEqual(["not", "refused", "not"]);

    attempts.end(DELIVERED);
    attempts.end(DELIVERED);
    expect(attempts.sent).toEqual([[1], [3]]);
    expect(kindsOf(inTime)).toEqual(["delivered"]);
    expect(settled.of(parcels)).toEqual(["delivered", "refused", "delivered"]);
  });

  it.each([
    { name: "accepted", end: DELIVERED, as: "delivered" },
    { name: "refused", end: REFUSED, as: "refused" },
    { name: "failed", end: FAILED, as: "refused" },
  ])("in flight: it is answered then, and settled when the attempt is $name", ({ end, as }) => {
    const parcels = makeParcels(1);
    const call = deliver(parcels, 50);
    lane.flush();
    vi.advanceTimersByTime(50);
    expect(call).toEqual([undelivered("no answer to attempt 1 by the deadline", 100)]);
    expect(settled.of(parcels)).toEqual(["not"]);

    attempts.end(end);
    vi.advanceTimersByTime(10_000);
    expect(settled.of(parcels)).toEqual([as]);
    expect(attempts.sent).toHaveLength(1);
    expect(call).toHaveLength(1);
  });

  it("in flight: what was answered then does not change when the attempt ends", () => {
    let outcomes: readonly ParcelOutcome[] = [];
    lane.deliver([makeParcel(500)], Date.now() + 50, (all) => {
      outcomes = all;
    });
    vi.advanceTimersByTime(50);
    attempts.end(DELIVERED);
    expect(outcomes).toMatchObject([{ kind: "undelivered" }]);
  });

  it("can come in any order, in flight and waiting", () => {
    const deadlines = [300, 100, 200];
    const calls = deadlines.map((forMs) => deliver([makeParcel(1)], forMs));
    lane.flush();
    const waiting = deadlines.map((forMs) => deliver([makeParcel(1)], forMs + 50));
    const answered = [...calls, ...waiting].map(() => 0);
    for (let ms = 10; ms <= 400; ms += 10) {
      vi.advanceTimersByTime(10);
      [...calls, ...waiting].forEach((call, index) => {
        if (call.length > 0) answered[index] ||= ms;
      });
    }
    expect(answered).toEqual([300, 100, 200, 350, 150, 250]);
  });

  it("of one does not answer for another of its call's lane mates", () => {
    const [soon, late] = [deliver([makeParcel(1)], 50), deliver([makeParcel(2)], 80)];
    lane.flush();
    vi.advanceTimersByTime(50);
    expect([soon.length, late.length]).toEqual([1, 0]);
    vi.advanceTimersByTime(30);
    expect(late).toHaveLength(1);
  });

  it("comes in a wait for the next attempt that grew longer", () => {
    const parcels = makeParcels(1);
    const call = deliver(parcels, 500);
    lane.flush();
    attempts.end(FAILED);
    attempts.mayBegin = false;
    vi.advanceTimersByTime(499);
    expect(call).toEqual([]);
    vi.advanceTimersByTime(1);
    const lastOne = "the last one: 500 (of mine)";
    expect(call).toEqual([undelivered(`no attempt could start before the deadline; ${lastOne}`, 100)]);
    expect(settled.of(parcels)).toEqual(["refused"]);
    expect(attempts.sent).toHaveLength(1);
  });

  it("that is over lets no attempt begin", async () => {
    const parcels = makeParcels(2);
    const call = deliver(parcels, 0);
    await Promise.resolve();
    expect(kindsOf(call)).toEqual(["undelivered", "undelivered"]);
    expect(settled.of(parcels)).toEqual(["refused", "refused"]);
    vi.advanceTimersByTime(1_000);
    expect(attempts.sent).toEqual([]);
  });
});

describe("a Retry-After", () => {
  it("holds back what waits and what comes, with a little chance, and gives back at once what cannot wait", () => {
    const parcels = makeParcels(3);
    const calls = [deliver(parcels.slice(0, 1), 1_000), deliver(parcels.slice(1, 2), 5_000)];
    lane.pause({ until: Date.now() + 1_000, cause: "429" });
    expect(calls[0]).toEqual([undelivered("429", 1_000)]);
    lane.flush();
    deliver(parcels.slice(2), 5_000);
    vi.advanceTimersByTime(1_099);
    expect(attempts.sent).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(attempts.sent).toEqual([[2, 3]]);
    expect(settled.of(parcels)).toEqual(["refused", "not", "not"]);
  });

  it("that another lane met holds back a batch that waits for its next attempt", () => {
    const call = deliver([makeParcel(500)], 5_000);
    const early = deliver([makeParcel(1)], 800);
    lane.flush();
    attempts.end(FAILED);
    lane.pause({ until: Date.now() + 1_000, cause: "429" });
    expect(early).toEqual([undelivered("429", 1_000)]);
    vi.advanceTimersByTime(1_099);
    expect(attempts.sent).toEqual([[500]]);
    vi.advanceTimersByTime(1);
    expect(attempts.sent).toEqual([[500], [500]]);
    attempts.end(DELIVERED);
    expect(call).toEqual([DELIVERED]);
  });

  it("that was met before there was the lane holds back what comes", async () => {
    start({}, { until: Date.now() + 1_000, cause: "429" });
    const early = deliver([makeParcel(500)], 1_000);
    await Promise.resolve();
    expect(early).toEqual([undelivered("429", 1_100)]);
    deliver([makeParcel(500)]);
    vi.advanceTimersByTime(1_099);
    expect(attempts.sent).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(attempts.sent).toEqual([[500]]);
  });

  it("sets the wait of the batch that met it", () => {
    deliver([makeParcel(500)]);
    attempts.end({ ...FAILED, retryAfterMs: 3_000 });
    vi.advanceTimersByTime(2_999);
    expect(attempts.sent).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(attempts.sent).toHaveLength(2);
  });
});

describe("an upstream that nothing can be sent to", () => {
  const OPEN = undelivered("blocked, of others", 7);

  it("has all that waits given back, and what was in flight when its attempt fails", () => {
    const parcels = makeParcels(3);
    const inFlight = deliver(parcels.slice(0, 1));
    lane.flush();
    const waiting = deliver(parcels.slice(1));
    attempts.isBlocked = true;
    lane.giveUpWaiting(OPEN);
    expect(waiting).toEqual([OPEN, OPEN]);
    expect(settled.of(parcels)).toEqual(["not", "refused", "refused"]);
    attempts.end(FAILED);
    expect(inFlight).toEqual([undelivered("blocked, 500 (of mine)", 7)]);
    expect(settled.of(parcels)).toEqual(["refused", "refused", "refused"]);
    expect(attempts.sent).toHaveLength(1);
  });

  it("has a batch given back that waits for its next attempt", () => {
    const call = deliver(makeParcels(2));
    lane.flush();
    attempts.end(FAILED);
    lane.giveUpWaiting(OPEN);
    expect(call).toEqual([OPEN, OPEN]);
    vi.advanceTimersByTime(1_000);
    expect(attempts.sent).toHaveLength(1);
  });

  it("has the parcels of a refused batch given back, not sent again", () => {
    const parcels = makeParcels(2);
    const call = deliver(parcels);
    lane.flush();
    attempts.isBlocked = true;
    attempts.end(REFUSED);
    expect(call).toEqual([OPEN, OPEN]);
    expect(settled.of(parcels)).toEqual(["refused", "refused"]);
    expect(attempts.sent).toHaveLength(1);
  });

  it("has new parcels given back at once, but not before the call is over", async () => {
    attempts.isBlocked = true;
    const parcels = makeParcels(2);
    const call = deliver(parcels);
    expect(call).toEqual([]);
    expect(settled.of(parcels)).toEqual(["refused", "refused"]);
    await Promise.resolve();
    expect(call).toEqual([OPEN, OPEN]);
  });

  it("keeps what waits while it may get a chance, and sends it when it is the lane's turn", () => {
    attempts.mayBegin = false;
    deliver([makeParcel(500)]);
    vi.advanceTimersByTime(5_000);
    expect(attempts.sent).toEqual([]);
    attempts.admit();
    expect(attempts.sent).toEqual([[500]]);
  });
});

describe("a caller who delivers again from within an answer", () => {
  it("is served in order, with one request in flight", () => {
    const sent = makeParcels(3).map((parcel) => ({ ...parcel, series: 500 }));
    let round = 0;
    const next = (): void => {
      const parcel = sent[round];
      round += 1;
      if (parcel !== undefined) lane.deliver([parcel], Date.now() + 1_000, next);
    };
    next();
    for (let request = 0; request < 3; request += 1) attempts.end(DELIVERED);
    expect(attempts.sent).toEqual([[1], [2], [3]]);
    expect(settled.of(sent)).toEqual(["delivered", "delivered", "delivered"]);
  });
});

describe("a turn that comes late", () => {
  beforeEach(() => {
    attempts.mayBegin = false;
  });

  it("sends what has gathered until then, and not what has come to its deadline", () => {
    deliver([makeParcel(500)], 300);
    deliver([makeParcel(1)]);
    vi.advanceTimersByTime(300);
    deliver([makeParcel(499)]);
    attempts.admit();
    expect(attempts.sent).toEqual([[1, 499]]);
  });

  it("is not taken when there is nothing to send any more, or not yet", () => {
    deliver([makeParcel(500)], 300);
    vi.advanceTimersByTime(300);
    attempts.admit();
    expect(attempts.sent).toEqual([]);

    attempts.mayBegin = false;
    deliver([makeParcel(500)]);
    lane.pause({ until: Date.now() + 1_000, cause: "429" });
    attempts.admit();
    expect(attempts.sent).toEqual([]);
    vi.advanceTimersByTime(1_100);
    expect(attempts.sent).toEqual([[500]]);
  });
});

describe("a lane tells that it is empty", () => {
  const rows = [
    {
      name: "when its last parcel is delivered",
      leave: () => {
        attempts.end(DELIVERED);
      },
    },
    {
      name: "when its last parcel is refused",
      leave: () => {
        attempts.end(REFUSED);
      },
    },
    {
      name: "when its last parcel is given back",
      leave: () => {
        attempts.end(FAILED);
        lane.giveUpWaiting(undelivered("closing", 7));
      },
    },
    {
      name: "when its last parcel cannot wait for a pause",
      leave: () => {
        attempts.end(FAILED);
        lane.pause({ until: Date.now() + 20_000, cause: "429" });
      },
    },
    {
      name: "at the deadline of its last parcel",
      leave: () => {
        attempts.end(FAILED);
        attempts.mayBegin = false;
        vi.advanceTimersByTime(10_000);
      },
    },
    {
      name: "after the deadline of its last parcel in flight, when the attempt ends",
      leave: () => {
        vi.advanceTimersByTime(10_000);
        if (emptied > 0) throw new Error("it is in flight");
        attempts.end(FAILED);
      },
    },
  ];
  it.each(rows)("$name, and not before", ({ leave }) => {
    deliver([makeParcel(500)]);
    expect(emptied).toBe(0);
    leave();
    expect(emptied).toBeGreaterThan(0);
  });

  it("when it takes nothing", () => {
    attempts.isBlocked = true;
    deliver([makeParcel(500)]);
    expect(emptied).toBe(1);
  });

  it("not while halves of a refused batch wait, nor while anything comes from within an answer", () => {
    lane.deliver([makeParcel(1), makeParcel(2)], Date.now() + 1_000, () => {
      deliver([makeParcel(3)]);
    });
    lane.flush();
    for (const end of [REFUSED, DELIVERED, REFUSED]) {
      attempts.end(end);
      expect(emptied).toBe(0);
    }
    vi.advanceTimersByTime(20);
    expect(attempts.sent).toEqual([[1, 2], [1], [2], [3]]);
    attempts.end(DELIVERED);
    expect(emptied).toBe(1);
  });
});

describe("timers of a lane", () => {
  it("are one at most, whatever it waits for, and none once it is stopped", () => {
    for (let call = 0; call < 10; call += 1) deliver([makeParcel(1)], 1_000 - call * 50);
    expect(vi.getTimerCount()).toBe(1);
    lane.flush();
    attempts.end(FAILED);
    expect(vi.getTimerCount()).toBe(1);
    lane.stop();
    expect(vi.getTimerCount()).toBe(0);
  });
});
