import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Breaker } from "../../src/deliver/breaker.ts";
import type { BreakerState } from "../../src/deliver/breaker.ts";

type End = "good" | "failure";

/** An attempt whose end the test decides. */
interface Attempt {
  end(how: End): void;
}

const OPTIONS = { consecutiveFailures: 3, resetAfterMs: 10_000 };
let states: BreakerState[];
let breaker: Breaker;

function begin(): Attempt {
  if (!breaker.admits) throw new Error(`not admitted while ${breaker.state}`);
  const period = breaker.begin();
  return {
    end(how) {
      breaker.end(period, how === "failure");
    },
  };
}

function runAll(...ends: End[]): void {
  for (const end of ends) begin().end(end);
}

beforeEach(() => {
  vi.useFakeTimers();
  states = [];
  breaker = new Breaker(
    () => OPTIONS,
    () => Date.now(),
    (state) => states.push(state),
  );
});
afterEach(() => {
  breaker.shutdown();
  vi.useRealTimers();
});

describe("breaker, closed", () => {
  it("opens at the third failure in a row", () => {
    runAll("failure", "failure");
    expect(breaker.state).toBe("closed");
    runAll("failure");
    expect(breaker.state).toBe("open");
    expect(states).toEqual(["open"]);
  });

  it("begins to count anew after anything that is not a failure", () => {
    runAll("failure", "failure", "good", "failure", "failure", "good", "failure", "failure");
    expect(states).toEqual([]);
  });

  it("stays closed when most of the attempts fail, but not in a row", () => {
    for (let round = 0; round < 100; round += 1) runAll("failure", "failure", "good");
    expect(states).toEqual([]);
  });

  it("stays closed when failures arrive long after their attempts began", () => {
    const attempts = [begin(), begin()];
    vi.advanceTimersByTime(30_000);
    for (const attempt of attempts) attempt.end("failure");
    expect(states).toEqual([]);
  });

  it("counts attempts side by side in the order of their ends", () => {
    const [first, second, third, fourth] = [begin(), begin(), begin(), begin()];
    first.end("failure");
    third.end("failure");
    second.end("good");
    fourth.end("failure");
    expect(states).toEqual([]);
  });

  it("has no timer", () => {
    runAll("failure", "good");
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("breaker, open", () => {
  beforeEach(() => {
    runAll("failure", "failure", "failure");
  });

  it("lets nothing through and tells for how long", () => {
    expect(breaker.admits).toBe(false);
    expect(breaker.untilHalfOpenMs).toBe(10_000);
    vi.advanceTimersByTime(9_999);
    expect(breaker.admits).toBe(false);
    expect(breaker.untilHalfOpenMs).toBe(1);
  });

  it("is half-open when its time is over", () => {
    vi.advanceTimersByTime(10_000);
    expect(states).toEqual(["open", "half_open"]);
    expect(breaker.untilHalfOpenMs).toBe(0);
  });
});

describe("breaker, half-open", () => {
  beforeEach(() => {
    runAll("failure", "failure", "failure");
    vi.advanceTimersByTime(10_000);
  });

  it("lets exactly one attempt through, and closes when that is good", () => {
    const trial = begin();
    expect(breaker.admits).toBe(false);
    trial.end("good");
    expect(states).toEqual(["open", "half_open", "closed"]);
    for (const attempt of [begin(), begin()]) attempt.end("good");
  });

  it("opens again when the one attempt fails, for the whole time", () => {
    runAll("failure");
    expect(states).toEqual(["open", "half_open", "open"]);
    expect(breaker.untilHalfOpenMs).toBe(10_000);
    vi.advanceTimersByTime(10_000);
    expect(breaker.state).toBe("half_open");
    expect(breaker.admits).toBe(true);
  });

  it("counts from nothing once it has closed", () => {
    runAll("good", "failure", "failure");
    expect(breaker.state).toBe("closed");
    runAll("failure");
    expect(breaker.state).toBe("open");
  });

  it("waits for its one attempt as long as that takes", () => {
    const trial = begin();
    vi.advanceTimersByTime(30_000);
    expect(breaker.admits).toBe(false);
    trial.end("failure");
    vi.advanceTimersByTime(10_000);
    runAll("good");
    expect(states).toEqual(["open", "half_open", "open", "half_open", "closed"]);
  });
});

describe("breaker, attempts that began before it opened and end later", () => {
  let late: Attempt[];
  beforeEach(() => {
    late = [begin(), begin(), begin(), begin()];
    runAll("failure", "failure", "failure");
  });

  it("change nothing while it is open", () => {
    late[0]?.end("failure");
    late[1]?.end("good");
    expect(breaker.state).toBe("open");
    vi.advanceTimersByTime(10_000);
    expect(states).toEqual(["open", "half_open"]);
  });

  it("neither close nor open it while its one attempt is under way", () => {
    vi.advanceTimersByTime(10_000);
    const trial = begin();
    late[0]?.end("failure");
    late[1]?.end("good");
    expect(breaker.state).toBe("half_open");
    expect(breaker.admits).toBe(false);
    trial.end("good");
    expect(states).toEqual(["open", "half_open", "closed"]);
  });

  it("do not count once it is closed again", () => {
    vi.advanceTimersByTime(10_000);
    runAll("good");
    for (const attempt of late) attempt.end("failure");
    expect(breaker.state).toBe("closed");
    runAll("failure", "failure");
    expect(breaker.state).toBe("closed");
  });

  it("do not count when they fail together with the one that opened it", () => {
    vi.advanceTimersByTime(10_000);
    runAll("good");
    for (const attempt of [1, 2, 3, 4].map(begin)) attempt.end("failure");
    vi.advanceTimersByTime(10_000);
    runAll("good", "failure", "failure");
    expect(breaker.state).toBe("closed");
  });
});

describe("breaker, shut down", () => {
  it("leaves no timer, in any state, and lets nothing through", () => {
    runAll("failure", "failure", "failure");
    breaker.shutdown();
    expect(vi.getTimerCount()).toBe(0);
    expect(breaker.admits).toBe(false);
  });

  it("lets nothing through when it was half-open", () => {
    runAll("failure", "failure", "failure");
    vi.advanceTimersByTime(10_000);
    breaker.shutdown();
    expect(breaker.admits).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("takes no notice of how attempts under way end", () => {
    const attempts = [begin(), begin(), begin()];
    breaker.shutdown();
    for (const attempt of attempts) attempt.end("failure");
    attempts[0]?.end("good");
    expect(states).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
