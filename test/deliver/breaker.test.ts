import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Breaker } from "../../src/deliver/breaker.ts";
import type { BreakerState } from "../../src/deliver/breaker.ts";

type End = "good" | "failure";

/** An attempt whose end the test decides. */
interface Attempt {
  end(how: End): Promise<void>;
}

const OPTIONS = { consecutiveFailures: 3, resetAfterMs: 10_000 };
let states: BreakerState[];
let breaker: Breaker;

/** Begins an attempt; null when the breaker does not let it. */
function begin(): Attempt | null {
  let resolve: (how: End) => void = () => undefined;
  const attempt = new Promise<End>((settle) => {
    resolve = settle;
  });
  const running = breaker.begin(
    () => attempt,
    (end) => end === "failure",
  );
  if (running === null) return null;
  return {
    async end(how) {
      resolve(how);
      expect(await running).toBe(how);
    },
  };
}

function beginAdmitted(): Attempt {
  const attempt = begin();
  if (attempt === null) throw new Error(`not admitted while ${breaker.state}`);
  return attempt;
}

async function runAll(...ends: End[]): Promise<void> {
  for (const end of ends) await beginAdmitted().end(end);
}

beforeEach(() => {
  vi.useFakeTimers();
  states = [];
  breaker = new Breaker(
    OPTIONS,
    () => Date.now(),
    (state) => states.push(state),
  );
});
afterEach(() => {
  breaker.shutdown();
  vi.useRealTimers();
});

describe("breaker, closed", () => {
  it("opens at the third failure in a row", async () => {
    await runAll("failure", "failure");
    expect(breaker.state).toBe("closed");
    await runAll("failure");
    expect(breaker.state).toBe("open");
    expect(states).toEqual(["open"]);
  });

  it("begins to count anew after anything that is not a failure", async () => {
    await runAll("failure", "failure", "good", "failure", "failure", "good", "failure", "failure");
    expect(states).toEqual([]);
  });

  it("stays closed when most of the attempts of its window fail, but not in a row", async () => {
    for (let round = 0; round < 100; round += 1) await runAll("failure", "failure", "good");
    expect(states).toEqual([]);
  });

  it("stays closed when failures arrive long after their attempts began", async () => {
    const attempts = [beginAdmitted(), beginAdmitted()];
    await vi.advanceTimersByTimeAsync(30_000);
    for (const attempt of attempts) await attempt.end("failure");
    expect(states).toEqual([]);
  });

  it("counts attempts side by side in the order of their ends", async () => {
    const [first, second, third, fourth] = [begin(), begin(), begin(), begin()];
    await first?.end("failure");
    await third?.end("failure");
    await second?.end("good");
    await fourth?.end("failure");
    expect(states).toEqual([]);
  });

  it("counts an attempt that breaks as a failure", async () => {
    for (let round = 0; round < 3; round += 1) {
      const running = breaker.begin(
        () => Promise.reject(new Error("broken")),
        () => false,
      );
      await expect(running).rejects.toThrow("broken");
    }
    expect(breaker.state).toBe("open");
  });
});

describe("breaker, open", () => {
  beforeEach(() => runAll("failure", "failure", "failure"));

  it("lets nothing through and tells for how long", async () => {
    expect(begin()).toBeNull();
    expect(breaker.untilHalfOpenMs).toBe(10_000);
    await vi.advanceTimersByTimeAsync(9_999);
    expect(begin()).toBeNull();
    expect(breaker.untilHalfOpenMs).toBe(1);
  });

  it("is half-open when its time is over", async () => {
    await vi.advanceTimersByTimeAsync(10_000);
    expect(states).toEqual(["open", "half_open"]);
    expect(breaker.untilHalfOpenMs).toBe(0);
  });
});

describe("breaker, half-open", () => {
  beforeEach(async () => {
    await runAll("failure", "failure", "failure");
    await vi.advanceTimersByTimeAsync(10_000);
  });

  it("lets exactly one attempt through, and closes when that is good", async () => {
    const trial = beginAdmitted();
    expect(begin()).toBeNull();
    expect(begin()).toBeNull();
    await trial.end("good");
    expect(states).toEqual(["open", "half_open", "closed"]);
    await Promise.all([beginAdmitted().end("good"), beginAdmitted().end("good")]);
  });

  it("opens again when the one attempt fails, for the whole time", async () => {
    await runAll("failure");
    expect(states).toEqual(["open", "half_open", "open"]);
    expect(breaker.untilHalfOpenMs).toBe(10_000);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(breaker.state).toBe("half_open");
  });

  it("counts from nothing once it has closed", async () => {
    await runAll("good", "failure", "failure");
    expect(breaker.state).toBe("closed");
    await runAll("failure");
    expect(breaker.state).toBe("open");
  });

  it("waits for its one attempt as long as that takes", async () => {
    const trial = beginAdmitted();
    await vi.advanceTimersByTimeAsync(30_000);
    expect(begin()).toBeNull();
    await trial.end("failure");
    await vi.advanceTimersByTimeAsync(10_000);
    await runAll("good");
    expect(states).toEqual(["open", "half_open", "open", "half_open", "closed"]);
  });
});

describe("breaker, attempts that began before it opened and end later", () => {
  let late: Attempt[];
  beforeEach(async () => {
    late = [beginAdmitted(), beginAdmitted(), beginAdmitted(), beginAdmitted()];
    await runAll("failure", "failure", "failure");
  });

  it("change nothing while it is open", async () => {
    await late[0]?.end("failure");
    await late[1]?.end("good");
    await vi.advanceTimersByTimeAsync(10_000);
    expect(states).toEqual(["open", "half_open"]);
  });

  it("neither close nor open it while its one attempt is under way", async () => {
    await vi.advanceTimersByTimeAsync(10_000);
    const trial = beginAdmitted();
    await late[0]?.end("failure");
    await late[1]?.end("good");
    expect(breaker.state).toBe("half_open");
    expect(begin()).toBeNull();
    await trial.end("good");
    expect(states).toEqual(["open", "half_open", "closed"]);
  });

  it("do not count once it is closed again", async () => {
    await vi.advanceTimersByTimeAsync(10_000);
    await runAll("good");
    for (const attempt of late) await attempt.end("failure");
    expect(breaker.state).toBe("closed");
    await runAll("failure", "failure");
    expect(breaker.state).toBe("closed");
  });

  it("do not count when they fail together with the one that opened it", async () => {
    await vi.advanceTimersByTimeAsync(10_000);
    await runAll("good");
    const attempts = [1, 2, 3, 4].map(() => beginAdmitted());
    await Promise.all(attempts.map((attempt) => attempt.end("failure")));
    await vi.advanceTimersByTimeAsync(10_000);
    await runAll("good", "failure", "failure");
    expect(breaker.state).toBe("closed");
  });
});

describe("breaker, shut down", () => {
  it("leaves no timer, in any state, and lets nothing through", async () => {
    await runAll("failure", "failure", "failure");
    breaker.shutdown();
    expect(vi.getTimerCount()).toBe(0);
    expect(begin()).toBeNull();
  });

  it("lets nothing through when it was half-open", async () => {
    await runAll("failure", "failure", "failure");
    await vi.advanceTimersByTimeAsync(10_000);
    breaker.shutdown();
    expect(begin()).toBeNull();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("still hands over what attempts under way come to", async () => {
    const attempt = beginAdmitted();
    breaker.shutdown();
    await attempt.end("failure");
    expect(states).toEqual([]);
  });
});
