import { describe, expect, it } from "vitest";
import { judge, type Soak } from "./soakVerdict.ts";

/** Readings every ten seconds of ten minutes. */
function soak(rssMiB: (minute: number) => number, changes: Partial<Soak> = {}): Soak {
  const memory = Array.from({ length: 60 }, (_, index) => {
    const minute = (index + 1) / 6;
    return { minute, rssMiB: rssMiB(minute) };
  });
  return { memory, slowestMs: 80, unaccepted: 0, lostSamples: 0, ...changes };
}

const sawtooth = (minute: number): number => 200 + 10 * (minute % 1);

describe("the verdict on a soak", () => {
  it.each([
    {
      name: "grows for two minutes and goes up and down then",
      rss: (m: number) => Math.min(m, 2) * sawtooth(m),
    },
    { name: "shrinks", rss: (m: number) => 300 - 5 * m },
  ])("passes memory that $name", ({ rss }) => {
    expect(judge(soak(rss)).map(({ passed }) => passed)).toEqual([true, true, true]);
  });

  it.each([
    { name: "goes on growing", rss: (m: number) => 200 + 4 * m },
    { name: "is far above its median once", rss: (m: number) => (m === 7 ? 260 : 200) },
  ])("fails memory that $name", ({ rss }) => {
    expect(judge(soak(rss)).map(({ passed }) => passed)).toEqual([false, true, true]);
  });

  it("fails one slow request, one that was not accepted, and lost samples", () => {
    const passed = (changes: Partial<Soak>): boolean[] =>
      judge(soak(sawtooth, changes)).map((verdict) => verdict.passed);
    expect(passed({ slowestMs: 1001 })).toEqual([true, false, true]);
    expect(passed({ unaccepted: 1 })).toEqual([true, true, false]);
    expect(passed({ lostSamples: 2000 })).toEqual([true, true, false]);
  });
});
