import fc from "fast-check";
import { RE2JS } from "re2js";
import { describe, expect, it } from "vitest";
import { MatchMemo } from "../../src/relabel/matchMemo.ts";
import { MemoBudget } from "../../src/relabel/memoBudget.ts";
import { compileWithEngine } from "../../src/relabel/pattern.ts";
import type { Groups } from "../../src/relabel/template.ts";
import { collectGarbage } from "../deliver/garbage.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

/** A memo of a function, and the texts that the function was asked. */
function memoOf<A extends boolean | Groups | null>(
  ask: (text: string) => A,
  budget?: MemoBudget,
): { readonly memo: MatchMemo<A>; readonly asked: string[] } {
  const asked: string[] = [];
  const memo = new MatchMemo((text) => {
    asked.push(text);
    return ask(text);
  }, budget);
  return { memo, asked };
}

/** As many texts as that, of which no two are the same, all as long as that. */
function textsOf(count: number, length: number, last = "x"): string[] {
  return Array.from({ length: count }, (_, number) =>
    [String(number).padEnd(length - 1, "-"), last].join(""),
  );
}

/** What is in use once the garbage is gone. */
function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

describe("a pattern that is asked for the same texts again and again", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "k", "-", "1", "é", "😀", "\n"), maxLength: 6 });

  it.each([
    { name: "one without groups", regex: "(?i)[ak]{2}.*" },
    { name: "groups that are repeated", regex: "(?:(a)|(b)|k)*-?" },
    { name: "a group that may take no part", regex: "(a{1,2})?(-)?[^a]*" },
    { name: "one that is not anchored as a whole", regex: "(a))|(?:b|(1)" },
    { name: "one that matches nothing", regex: "a[^\\x00-\\x{10FFFF}]" },
  ])("says each time what the engine says: $name", ({ regex }) => {
    const pattern = compileWithEngine(regex);
    const engine = RE2JS.compile(`^(?s:${regex})$`);
    fc.assert(
      fc.property(fc.array(text, { maxLength: 20 }), (texts) => {
        for (const subject of [...texts, ...texts.toReversed()]) {
          expect(pattern.matches(subject)).toBe(engine.test(subject));
          expect(pattern.find(subject)).toEqual(engine.re2().findSubmatch(subject));
        }
      }),
    );
  });
});

describe("a text that comes again", () => {
  it.each<{ name: string; answer: boolean | Groups | null }>([
    { name: "it matches", answer: true },
    { name: "it does not", answer: false },
    { name: "its groups", answer: ["a", null] },
    { name: "it has no groups", answer: null },
  ])("has the answer of the first time, and nobody is asked again: $name", ({ answer }) => {
    const { memo, asked } = memoOf(() => answer);
    expect([memo.answer("a"), memo.answer("a"), memo.answer("")]).toEqual([answer, answer, answer]);
    expect(asked).toEqual(["a", ""]);
  });

  it("is known up to 256 characters, and asked for each time when it is longer", () => {
    const { memo, asked } = memoOf(() => true);
    const [known, long] = ["é".repeat(256), "é".repeat(257)];
    for (const text of [known, long, known, long]) memo.answer(text);
    expect(asked).toEqual([known, long, long]);
  });
});

describe("more texts than a memo holds", () => {
  it("empty it, and it goes on with those that come", () => {
    const { memo, asked } = memoOf(() => true);
    const texts = textsOf(4_097, 20);
    for (const text of texts) for (let time = 0; time < 3; time++) memo.answer(text);
    expect(asked).toEqual(texts);
    memo.answer(texts[0] ?? "");
    expect(asked).toEqual([...texts, texts[0]]);
  });

  it("let it pause when fewer of them came again than were new", () => {
    const { memo, asked } = memoOf(() => true);
    const texts = textsOf(4_097, 20);
    for (const text of texts) memo.answer(text);
    const passed = Array.from({ length: 65_536 }, () => "a");
    for (const text of passed) expect(memo.answer(text)).toBe(true);
    expect(asked).toHaveLength(texts.length + passed.length);
    for (const text of passed) memo.answer(text);
    expect(asked).toHaveLength(texts.length + passed.length + 1);
  });
});

describe("a budget that many memos draw on", () => {
  it("empties all of them when it is spent, one that nobody asks any longer too", () => {
    const budget = new MemoBudget(64 * KIB);
    const idle = memoOf(() => true, budget);
    const busy = memoOf(() => true, budget);
    idle.memo.answer("a");
    busy.memo.answer("a");
    idle.memo.answer("a");
    expect(idle.asked).toEqual(["a"]);
    for (const text of textsOf(200, 200)) busy.memo.answer(text);
    idle.memo.answer("a");
    expect(idle.asked).toEqual(["a", "a"]);
  });

  it("is one for all memos of the process", () => {
    const [idle, busy] = [memoOf(() => true), memoOf(() => true)];
    idle.memo.answer("a");
    for (const text of textsOf((16 * MIB) / 512, 256))
      for (let time = 0; time < 2; time++) busy.memo.answer(text);
    idle.memo.answer("a");
    expect(idle.asked).toEqual(["a", "a"]);
  });

  it("leaves them what came since", () => {
    const budget = new MemoBudget(64 * KIB);
    const all = Array.from({ length: 150 }, () => memoOf(() => true, budget));
    const isKnown = ({ memo, asked }: (typeof all)[number]): boolean => {
      const before = asked.length;
      memo.answer("a");
      return asked.length === before;
    };
    expect(all.filter(isKnown)).toEqual([]);
    expect(all.slice(-20).every(isKnown)).toBe(true);
    expect(all.slice(0, 20).some(isKnown)).toBe(false);
  });

  it.each<{ name: string; patterns: number; length: number; ask: (text: string) => boolean | Groups }>([
    { name: "a thousand patterns", patterns: 1_000, length: 60, ask: () => true },
    { name: "short texts", patterns: 50, length: 8, ask: () => false },
    {
      name: "groups, which are parts of the text",
      patterns: 50,
      length: 40,
      ask: (text) => partsOf(text, 2),
    },
    { name: "one group", patterns: 50, length: 14, ask: (text) => partsOf(text, 1) },
    { name: "many groups", patterns: 20, length: 256, ask: (text) => partsOf(text, 16) },
  ])("is never exceeded by what the heap holds of them: $name", ({ patterns, length, ask }) => {
    const budget = new MemoBudget(4 * MIB);
    const memos = Array.from({ length: patterns }, () => new MatchMemo(ask, budget));
    // Of two bytes a character.
    const texts = textsOf(Math.ceil(100_000 / patterns), length, "中");
    const before = heapBytes();
    let most = 0;
    for (const [number, text] of texts.entries()) {
      for (const memo of memos) memo.answer(text);
      if (number % Math.ceil(texts.length / 12) === 0) most = Math.max(most, heapBytes() - before);
    }
    expect(most).toBeLessThan(4 * MIB);
    expect(memos).toHaveLength(patterns);
  });
});

/** The text, and parts of it. */
function partsOf(text: string, count: number): Groups {
  const length = Math.floor(text.length / count);
  return Array.from({ length: count + 1 }, (_, part) =>
    part === 0 ? text : text.slice((part - 1) * length, part * length),
  );
}

describe("a text that was cut from a long one", () => {
  it("does not keep the long one in memory", () => {
    const { memo } = memoOf((text) => [text]);
    const before = heapBytes();
    for (const text of textsOf(500, 64 * KIB)) memo.answer(text.slice(0, 100));
    expect(heapBytes() - before).toBeLessThan(4 * MIB);
    expect(memo.answer("a")).toEqual(["a"]);
  });
});
