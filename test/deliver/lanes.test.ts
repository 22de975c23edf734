import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Batch } from "../../src/deliver/batch.ts";
import type { AttemptEnd } from "../../src/deliver/classify.ts";
import { DeliveryLog } from "../../src/deliver/deliveryLog.ts";
import type { LaneTools } from "../../src/deliver/lane.ts";
import { Lanes } from "../../src/deliver/lanes.ts";
import type { TurnAttempts } from "../../src/deliver/laneTurns.ts";
import type { DeliveryOptions } from "../../src/deliver/options.ts";
import { undelivered } from "../../src/deliver/outcome.ts";
import type { ParcelOutcome, Undelivered } from "../../src/deliver/outcome.ts";
import { MemoryBudget } from "../../src/memoryBudget.ts";
import { collectGarbage } from "./garbage.ts";
import { makeParcel, makeParcels, numbersIn } from "./parcels.ts";
import { DELIVERY, Settlements } from "./senderUnderTest.ts";
import type { Parcel } from "../../src/wire/parcel.ts";

interface Sent {
  readonly tenant: string | null;
  readonly numbers: number[];
}

interface InFlight extends Sent {
  readonly onEnd: (end: AttemptEnd) => void;
}

/** Attempts side by side that end when and how the test says. */
class SteppedAttempts implements TurnAttempts {
  mayBegin = true;
  isClosing = false;
  readonly sent: Sent[] = [];
  readonly inFlight: InFlight[] = [];
  most = 0;

  begin(batch: Batch, onEnd: (end: AttemptEnd) => void): void {
    if (!this.mayBegin) throw new Error("no attempt may begin");
    batch.attempts += 1;
    const sent = { tenant: batch.tenant, numbers: numbersIn(batch.body) };
    this.sent.push(sent);
    this.inFlight.push({ ...sent, onEnd });
    this.most = Math.max(this.most, this.inFlight.length);
  }

  obstacle(): Undelivered | null {
    return this.isClosing ? CLOSING : null;
  }

  /** Ends what is in flight, as the tenant has it; what begins meanwhile goes on. */
  endAll(endOf: (tenant: string | null) => AttemptEnd = () => DELIVERED): void {
    for (const { tenant, onEnd } of this.inFlight.splice(0)) onEnd(endOf(tenant));
  }

  /** The tenants of what was sent since the last call. */
  takeTenants(): (string | null)[] {
    return this.sent.splice(0).map(({ tenant }) => tenant);
  }
}

const CLOSING = undelivered("closing", 7);
const DELIVERED: AttemptEnd = { kind: "delivered" };
const REFUSED: AttemptEnd = { kind: "refused", status: 400, reply: "bad" };
const FAILED: AttemptEnd = {
  kind: "retry",
  status: 503,
  cause: "503 (limit of bad)",
  countsAsFailure: true,
  retryAfterMs: null,
};
const badFails = (tenant: string | null): AttemptEnd => (tenant === "bad" ? FAILED : DELIVERED);

/** How many requests of tenants are in flight at a time, with one lane. */
const AT_A_TIME = 9;

let attempts: SteppedAttempts;
let settled: Settlements;
let lanes: Lanes;
beforeEach(() => {
  vi.useFakeTimers();
  start();
});
afterEach(() => {
  lanes.stop();
  vi.useRealTimers();
});

/** With this, a wait after a failed attempt is 100 ms and doubles up to a second. */
function start(options: Partial<DeliveryOptions> = {}, isWatched = true): void {
  attempts = new SteppedAttempts();
  settled = new Settlements();
  const tools = {
    now: Date.now,
    random: () => 0.5,
    log: new DeliveryLog(pino({ level: "silent" }), "u", Date.now),
    memory: new MemoryBudget(Infinity).holder(),
    settled: (...[end, from, parcels, items]: Parameters<LaneTools["settled"]>) => {
      if (isWatched) settled.add(end, from, parcels, items);
    },
  };
  const delivery = { ...DELIVERY, minBackoffMs: 200, maxBackoffMs: 2_000, ...options };
  lanes = new Lanes({ options: delivery }, attempts, tools, null, () => undefined);
}

/** The outcomes of one call, filled when they are there. */
function deliver(
  tenant: string | null,
  parcels: readonly Parcel[],
  forMs = 10_000,
  number = 0,
): ParcelOutcome[] {
  const outcomes: ParcelOutcome[] = [];
  lanes.deliver({ number, tenant }, parcels, Date.now() + forMs, (all) => outcomes.push(...all));
  return outcomes;
}

function tenants(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `t${index}`);
}

describe("a tenant whose batch fails", () => {
  it("backs off alone: all others are sent and delivered meanwhile", () => {
    const bad = deliver("bad", [makeParcel(1)]);
    for (let round = 0; round < 50; round += 1) {
      const others = ["good", null, `new ${round}`].map((tenant) => deliver(tenant, [makeParcel(2)]));
      attempts.endAll(badFails);
      expect(others.flat()).toEqual(Array(3).fill(DELIVERED));
      vi.advanceTimersByTime(100);
    }
    expect(bad).toEqual([]);
    const failures = attempts.takeTenants().filter((tenant) => tenant === "bad");
    expect(failures.length).toBeGreaterThan(4);
    expect(failures.length).toBeLessThan(12);
  });

  it("has its batch at the head of its own lane until it is delivered", () => {
    deliver("bad", [makeParcel(1)]);
    deliver("bad", [makeParcel(2)]);
    attempts.endAll(badFails);
    deliver("bad", [makeParcel(3)]);
    vi.advanceTimersByTime(100);
    attempts.endAll();
    attempts.endAll();
    expect(attempts.sent.map(({ numbers }) => numbers)).toEqual([[1], [1], [2, 3]]);
  });
});

describe("a pause that the upstream asked for", () => {
  const PAUSE_MS = 5_000;

  function pause(tenant: string | null): void {
    lanes.pause(tenant, { until: Date.now() + PAUSE_MS, cause: "429" });
  }

  it("by a tenant holds this tenant's lanes only, those that come later too", () => {
    start({ lanes: 3 });
    deliver("bad", [makeParcel(1)], 10_000, 0);
    pause("bad");
    attempts.endAll();
    for (const number of [0, 1, 2]) {
      deliver("bad", [makeParcel(2)], 10_000, number);
      deliver("good", [makeParcel(3)], 10_000, number);
      deliver(null, [makeParcel(4)], 10_000, number);
    }
    expect(attempts.takeTenants()).toEqual(["bad", "good", null, "good", null, "good", null]);
    vi.advanceTimersByTime(PAUSE_MS + 99);
    expect(attempts.sent).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(attempts.takeTenants()).toEqual(["bad", "bad", "bad"]);
  });

  it("by a tenant is kept when the tenant has nothing left", async () => {
    deliver("bad", [makeParcel(1)], 1_000);
    pause("bad");
    attempts.endAll(badFails);
    vi.advanceTimersByTime(1_000);
    expect(lanes.size).toBe(1);
    const again = deliver("bad", [makeParcel(1)], 1_000);
    await Promise.resolve();
    expect(again).toEqual([undelivered("429", PAUSE_MS - 1_000 + 100)]);
    expect(attempts.sent).toHaveLength(1);
    expect(lanes.size).toBe(1);
  });

  it("by all holds all, tenants that come later too", () => {
    deliver("a", [makeParcel(1)]);
    pause(null);
    attempts.endAll();
    for (const tenant of ["a", "b", null]) deliver(tenant, [makeParcel(2)]);
    vi.advanceTimersByTime(PAUSE_MS + 99);
    expect(attempts.takeTenants()).toEqual(["a"]);
    vi.advanceTimersByTime(1);
    expect(attempts.takeTenants().sort()).toEqual(["a", "b", null]);
  });
});

describe("many tenants with a parcel each", () => {
  it("are all delivered in time by an upstream that takes 20 ms for a request", () => {
    const calls = tenants(400).map((tenant) => deliver(tenant, [makeParcel(1)]));
    const startedAt = Date.now();
    while (attempts.inFlight.length > 0) {
      vi.advanceTimersByTime(20);
      attempts.endAll();
    }
    expect(calls.flat()).toEqual(Array(400).fill(DELIVERED));
    expect(Date.now() - startedAt).toBe(20 * Math.ceil(400 / AT_A_TIME));
    expect(attempts.most).toBe(AT_A_TIME);
  });

  it("are sent in the order in which they came, and one that sends much goes round with them", () => {
    start({ maxSamplesPerSend: 10 });
    for (let parcel = 0; parcel < 20; parcel += 1) deliver("much", [makeParcel(10)]);
    for (const tenant of tenants(20)) deliver(tenant, [makeParcel(1)]);
    const order: (string | null)[] = attempts.takeTenants();
    while (attempts.inFlight.length > 0) {
      attempts.inFlight.shift()?.onEnd(DELIVERED);
      order.push(...attempts.takeTenants());
    }
    const [first, later] = [order.slice(0, 22), order.slice(22)];
    expect(first).toEqual(["much", ...tenants(20), "much"]);
    expect(later).toEqual(Array(18).fill("much"));
  });

  it("do not hold up what has no tenant, nor the other way round", () => {
    start({ lanes: 2 });
    for (const tenant of tenants(20)) deliver(tenant, [makeParcel(1)]);
    attempts.takeTenants();
    for (const number of [0, 1]) deliver(null, [makeParcel(2)], 10_000, number);
    expect(attempts.takeTenants()).toEqual([null, null]);
    attempts.inFlight.find(({ tenant }) => tenant === "t3")?.onEnd(DELIVERED);
    expect(attempts.takeTenants()).toEqual(["t10"]);
  });

  it("have eight attempts at a time when another is not answered in any of its many lanes", () => {
    start({ lanes: 12 });
    for (let number = 0; number < 12; number += 1) deliver("slow", [makeParcel(1)], 10_000, number);
    expect(attempts.takeTenants()).toEqual(Array(12).fill("slow"));
    for (const tenant of tenants(20)) deliver(tenant, [makeParcel(1)]);
    expect(attempts.takeTenants()).toEqual(tenants(8));
  });

  it("are given back at their deadlines when their turns do not come, and no turn is lost by it", () => {
    const parcels = makeParcels(30);
    const calls = parcels.map((parcel, index) => deliver(`t${index}`, [parcel], index < 20 ? 1_000 : 2_000));
    vi.advanceTimersByTime(1_000);
    attempts.takeTenants();
    expect(calls.slice(AT_A_TIME, 20).flat()).toHaveLength(20 - AT_A_TIME);
    attempts.endAll();
    expect(attempts.takeTenants()).toEqual(tenants(20 + AT_A_TIME).slice(20));
    attempts.endAll();
    attempts.endAll();
    expect(calls.flat().map(({ kind }) => kind)).toEqual(
      parcels.map((_, index) => (index < 20 ? "undelivered" : "delivered")),
    );
    expect(settled.of(parcels)).toEqual(
      parcels.map((_, index) => (index >= AT_A_TIME && index < 20 ? "refused" : "delivered")),
    );
    expect(lanes.size).toBe(1);
  });
});

describe("a tenant's parcels", () => {
  it("keep their order in a lane, with one request in flight, and do not wait for another lane's", () => {
    start({ lanes: 2 });
    for (const number of [1, 2, 3]) deliver("a", [makeParcel(number)], 10_000, 0);
    deliver("a", [makeParcel(4)], 10_000, 1);
    expect(attempts.sent.map(({ numbers }) => numbers)).toEqual([[1], [4]]);
    attempts.endAll();
    expect(attempts.sent.map(({ numbers }) => numbers)).toEqual([[1], [4], [2, 3]]);
  });

  it("halve when they are refused within their lane, and delay no other tenant", () => {
    deliver("bad", [makeParcel(1)]);
    const refused = deliver("bad", [makeParcel(2), makeParcel(3)]);
    const last = deliver("bad", [makeParcel(4)]);
    attempts.endAll();
    const good = deliver("good", [makeParcel(9)]);
    attempts.endAll((tenant) => (tenant === "bad" ? REFUSED : DELIVERED));
    expect(good).toEqual([DELIVERED]);
    while (attempts.inFlight.length > 0) {
      const isRefused = attempts.inFlight[0]?.numbers.includes(3) === true;
      attempts.endAll(() => (isRefused ? REFUSED : DELIVERED));
    }
    expect(refused).toEqual([DELIVERED, REFUSED]);
    expect(last).toEqual([DELIVERED]);
  });

  it("are sent when all is flushed, whatever their tenant", () => {
    start({ batchSendDeadlineMs: 60_000 });
    for (const tenant of ["a", "b", null]) deliver(tenant, [makeParcel(1)]);
    expect(attempts.sent).toEqual([]);
    lanes.flush();
    expect(attempts.takeTenants()).toEqual(["a", "b", null]);
    attempts.endAll();
    deliver("a", [makeParcel(2)]);
    expect(attempts.sent).toEqual([]);
  });

  it("may be for a lane that is not in use any more, which is there until it is empty", () => {
    start({ lanes: 2 });
    for (const tenant of ["a", null]) {
      deliver(tenant, [makeParcel(1)], 1_000, 2);
      deliver(tenant, [makeParcel(2)], 1_000, 2);
      expect(lanes.size).toBe(3);
      expect(attempts.most).toBe(1);
      attempts.endAll();
      attempts.endAll();
      expect(attempts.sent.splice(0).map(({ numbers }) => numbers)).toEqual([[1], [2]]);
      expect(lanes.size).toBe(2);
    }
  });
});

describe("a breaker that admits nothing for a while", () => {
  it("has all wait, and lets them begin in their order when it has changed", () => {
    attempts.mayBegin = false;
    for (const tenant of ["a", null, "b", "c"]) deliver(tenant, [makeParcel(1)]);
    vi.advanceTimersByTime(1_000);
    expect(attempts.sent).toEqual([]);
    attempts.mayBegin = true;
    lanes.handOnTurns();
    expect(attempts.takeTenants()).toEqual([null, "a", "b", "c"]);
  });

  it("lets only so many begin as it admits; the others when that has ended", () => {
    attempts.mayBegin = false;
    for (const tenant of tenants(3)) deliver(tenant, [makeParcel(1)]);
    let admitted = 1;
    vi.spyOn(attempts, "mayBegin", "get").mockImplementation(() => admitted > attempts.inFlight.length);
    lanes.handOnTurns();
    expect(attempts.takeTenants()).toEqual(["t0"]);
    admitted = 10;
    attempts.endAll();
    expect(attempts.takeTenants()).toEqual(["t1", "t2"]);
  });
});

describe("closing while tenants wait", () => {
  it("gives back all that waits; what is in flight is settled when it ends, and nothing is left", () => {
    const parcels = makeParcels(40);
    const calls = parcels.map((parcel, index) => deliver(`t${index}`, [parcel]));
    deliver("bad", [makeParcel(1)]);
    attempts.mayBegin = false;
    attempts.isClosing = true;
    lanes.giveUpWaiting(CLOSING);
    expect(calls.slice(AT_A_TIME).flat()).toEqual(Array(40 - AT_A_TIME).fill(CLOSING));
    expect(lanes.size).toBe(1 + AT_A_TIME);
    attempts.endAll();
    expect(calls.slice(0, AT_A_TIME).flat()).toEqual(Array(AT_A_TIME).fill(DELIVERED));
    expect(settled.of(parcels)).toEqual(
      parcels.map((_, index) => (index < AT_A_TIME ? "delivered" : "refused")),
    );
    expect(lanes.size).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("tenants that come and go", () => {
  const rows = [
    {
      name: "are delivered",
      leave: () => {
        attempts.endAll();
      },
    },
    {
      name: "are given back at their deadlines, in flight and waiting",
      leave: () => {
        vi.advanceTimersByTime(10_000);
        while (attempts.inFlight.length > 0) attempts.endAll(() => FAILED);
      },
    },
    {
      name: "fail and are given back",
      leave: () => {
        attempts.endAll(() => FAILED);
        lanes.giveUpWaiting(CLOSING);
      },
    },
    {
      name: "are throttled",
      leave: (come: readonly string[]) => {
        for (const tenant of come) lanes.pause(tenant, { until: Date.now() + 60_000, cause: "429" });
        attempts.endAll(() => FAILED);
        vi.advanceTimersByTime(60_000);
      },
    },
    {
      name: "are refused in parts",
      leave: () => {
        while (attempts.inFlight.length > 0) attempts.endAll(() => REFUSED);
      },
    },
  ];
  it.each(rows)("leave nothing behind once they $name", ({ leave }) => {
    start({}, false);
    const growth = growthOf((come) => {
      leave(come);
      while (attempts.inFlight.length > 0) attempts.endAll();
      attempts.sent.length = 0;
    });
    expect(growth).toBeLessThan(1024 * 1024);
    expect(lanes.size).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("leave nothing behind once they are given back while all requests in flight are not answered", () => {
    start({}, false);
    for (const tenant of tenants(AT_A_TIME)) deliver(tenant, [makeParcel(1)]);
    const growth = growthOf(() => {
      vi.advanceTimersByTime(10_000);
    });
    expect(growth).toBeLessThan(1024 * 1024);
    expect(lanes.size).toBe(1 + AT_A_TIME);
  });

  /** How much more memory is in use after the second of two times that thousands of tenants came, twenty at a time. */
  function growthOf(leave: (come: readonly string[]) => void): number {
    const parcel = makeParcel(1);
    let number = 0;
    const comeAndGo = (): number => {
      for (let round = 0; round < 250; round += 1) {
        const come = Array.from({ length: 20 }, () => `tenant ${(number += 1)}`);
        for (const tenant of come) deliver(tenant, [parcel, parcel]);
        leave(come);
      }
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    const before = comeAndGo();
    return comeAndGo() - before;
  }
});
