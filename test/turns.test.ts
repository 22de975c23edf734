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
    const result = turns.run(() => works.of("a", 1));
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
    await expect(turns.run(() => failing)).rejects.toThrow("broken");
    expect(await turns.run(() => works.of("a", 1))).toBe("a");
  });
});

describe("work that gives way", () => {
  it("is done in rounds of a millisecond for as long, and then goes on as before", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 3);
    const result = turns.run(() => works.of("a", 11));
    expect(works.log).toHaveLength(3);
    for (const done of [4, 5]) {
      turns.giveWay();
      await nextRound();
      expect(works.log).toHaveLength(done);
    }
    await nextRound();
    expect(works.log).toHaveLength(8);
    expect(await result).toBe("a");
  });

  it("is due after a millisecond, also in its step", () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 3);
    const seen: boolean[] = [];
    void turns.run(() =>
      (function* (): Steps<string> {
        seen.push(turns.isDue);
        works.nowMs += 1;
        seen.push(turns.isDue);
        turns.giveWay();
        seen.push(turns.isDue);
        yield;
        return "a";
      })(),
    );
    expect(seen).toEqual([false, false, true]);
  });
});

describe("more work than the budget of a round", () => {
  it("lets others be served after the budget, and goes on in the next round", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 3);
    const result = turns.run(() => works.of("a", 7));
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
    const long = turns.run(() => works.of("a", 6));
    const short = turns.run(() => works.of("b", 1));
    expect(works.log).toEqual(["a1", "a2"]);
    expect(await short).toBe("b");
    expect(works.log.indexOf("b1")).toBeLessThanOrEqual(3);
    expect(await long).toBe("a");
  });

  it("counts for work that comes in the same round", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 2);
    const results = ["a", "b", "c"].map((name) => turns.run(() => works.of(name, 1)));
    expect(works.log).toEqual(["a1", "b1"]);
    expect(await Promise.all(results)).toEqual(["a", "b", "c"]);
  });
});

describe("a step that asks whether it is due to end", () => {
  /** Work of one step that asks so many times, a millisecond apart. */
  function* asking(works: Works, turns: Turns, times: number): Steps<boolean[]> {
    const answers: boolean[] = [];
    for (let time = 0; time < times; time++) {
      answers.push(turns.isDue);
      works.nowMs += 1;
    }
    // Never taken: a step need not end when it is due.
    if (times < 0) yield;
    return answers;
  }

  it("is due once it has used up the budget by itself", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 3);
    expect(await turns.run(() => asking(works, turns, 5))).toEqual([false, false, false, true, true]);
  });

  it("is due the sooner the more was spent before it in the round", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 3);
    const [, answers] = await Promise.all([
      turns.run(() => works.of("a", 2)),
      turns.run(() => asking(works, turns, 3)),
    ]);
    expect(answers).toEqual([false, true, true]);
  });

  it("has the whole budget again in the next round, however long ago the last one was", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 3);
    await turns.run(() => asking(works, turns, 9));
    works.nowMs += 1000;
    await nextRound();
    expect(await turns.run(() => asking(works, turns, 4))).toEqual([false, false, false, true]);
  });

  it("is not due for what happened between two pieces of work of the same round", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 3);
    const first = turns.run(() => asking(works, turns, 1));
    works.nowMs += 1000;
    const second = turns.run(() => asking(works, turns, 3));
    expect(await Promise.all([first, second])).toEqual([[false], [false, false, true]]);
  });

  it("lets work end its steps early, which then takes more of them, each in its turn", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 3);
    const log: string[] = [];
    function* untilDue(name: string, pieces: number): Steps<string> {
      for (let piece = 1; piece <= pieces; piece++) {
        works.nowMs += 1;
        log.push(`${name}${piece}`);
        if (turns.isDue && piece < pieces) yield;
      }
      return name;
    }
    const results = [turns.run(() => untilDue("a", 9)), turns.run(() => untilDue("b", 2))];
    expect(log).toEqual(["a1", "a2", "a3"]);
    expect(await Promise.all(results)).toEqual(["a", "b"]);
    // Nothing is taken twice, and the long work waits for the short one.
    expect(log).toHaveLength(11);
    expect(log.indexOf("b2")).toBeLessThan(log.indexOf("a9"));
  });
});

describe("what happens between two works", () => {
  it("happens when there is none, and work that comes before waits for it", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 3);
    const between = turns.between(() => {
      works.log.push("between");
    });
    const work = turns.run(() => works.of("a", 1));
    expect(turns.waiting).toBe(1);
    await Promise.all([between, work]);
    expect(works.log).toEqual(["between", "a1"]);
  });

  it.each([
    { name: "one step", steps: 1 },
    { name: "several steps", steps: 3 },
  ])("happens when who waited for a work of $name has gone on with its result", async ({ steps }) => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 2);
    void turns.run(() => works.of("a", steps)).then((name) => works.log.push(`${name} is used`));
    await turns.between(() => {
      works.log.push("between");
    });
    expect(works.log.slice(-2)).toEqual(["a is used", "between"]);
  });

  it("waits for works that have begun, and works that come then wait for it", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 2);
    const first = turns.run(() => works.of("a", 4));
    const between = turns.between(() => {
      works.log.push("between");
    });
    const second = turns.run(() => works.of("b", 2));
    expect(works.log).toEqual(["a1", "a2"]);
    expect(turns.waiting).toBe(2);
    expect(await Promise.all([first, second])).toEqual(["a", "b"]);
    await between;
    expect(works.log).toEqual(["a1", "a2", "a3", "a4", "between", "b1", "b2"]);
  });

  it("happens in the order in which it was asked for, and what throws stops nothing else", async () => {
    const works = new Works();
    const turns = new Turns(() => works.nowMs, 1);
    const work = turns.run(() => works.of("a", 2));
    const failing = turns.between(() => {
      throw new Error("broken");
    });
    const next = turns.between(() => {
      works.log.push("next");
    });
    await expect(failing).rejects.toThrow("broken");
    await Promise.all([work, next]);
    expect(works.log).toEqual(["a1", "a2", "next"]);
  });
});
