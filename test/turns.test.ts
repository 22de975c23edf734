import { describe, expect, it } from "vitest";
import { type Steps, Turns } from "../src/turns.ts";

/** Work of so many steps, each of which says who it is and takes a millisecond of a clock that nothing else moves. */
class Works {
  nowMs = 0;
  readonly log: string[] = [];

  *of(name: string, steps: number): Steps<string> {
    for (let step = 1; step <= steps; step++) {
      this.log.push(`${name}${step}`);
      this.nowMs += 1;
      if (step < steps) yield;
    }
    return name;
  }
}

function nextRound(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe("work of one step", () => {
  it("is done before run() returns", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 10);
    const result = turns.run(works.of("a", 1));
    expect(works.log).toEqual(["a1"]);
    expect(turns.waiting).toBe(0);
    expect(await result).toBe("a");
  });

  it("rejects with what it throws, and others go on", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 10);
    const failing = (function* (): Steps<string> {
      yield;
      throw new Error("broken");
    })();
    await expect(turns.run(failing)).rejects.toThrow("broken");
    expect(await turns.run(works.of("a", 1))).toBe("a");
  });
});

describe("more work than the budget of a round", () => {
  it("lets others be served after the budget, and goes on in the next round", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 3);
    const result = turns.run(works.of("a", 7));
    expect(works.log).toEqual(["a1", "a2", "a3"]);
    expect(turns.waiting).toBe(1);
    await nextRound();
    expect(works.log).toHaveLength(6);
    await nextRound();
    expect(works.log).toHaveLength(7);
    expect(await result).toBe("a");
  });

  it("is taken in turns, so that short work is not behind all of long work", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 2);
    const long = turns.run(works.of("a", 6));
    const short = turns.run(works.of("b", 1));
    expect(works.log).toEqual(["a1", "a2"]);
    expect(await short).toBe("b");
    expect(works.log.indexOf("b1")).toBeLessThanOrEqual(3);
    expect(await long).toBe("a");
  });

  it("counts for work that comes in the same round", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 2);
    const results = ["a", "b", "c"].map((name) => turns.run(works.of(name, 1)));
    expect(works.log).toEqual(["a1", "b1"]);
    expect(await Promise.all(results)).toEqual(["a", "b", "c"]);
  });
});
