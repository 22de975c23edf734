import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RE2JS } from "re2js";
import { RelabelError } from "../../src/relabel/errors.ts";
import { toEngineSyntax } from "../../src/relabel/goSyntax.ts";
import { compilePattern, compileWithEngine } from "../../src/relabel/pattern.ts";
import { plainRegex } from "../../src/relabel/plainRegex.ts";
import { shortcutOf } from "../../src/relabel/shortcut.ts";
import { parseTemplate } from "../../src/relabel/template.ts";

describe("a pattern that Go reads and engines of other origin do not", () => {
  it.each<{ name: string; regex: string; yes: string[]; no: string[] }>([
    { name: "a bracket and a colon in a class", regex: "[[:]", yes: ["[", ":"], no: ["\\", "[:"] },
    { name: "the same behind others", regex: "[^a[:]", yes: ["b", "\\"], no: ["[", ":", "a"] },
    { name: "a named class beside others", regex: "[[:digit:]_]+", yes: ["1_"], no: [":", "["] },
    { name: "a closing bracket first in a class", regex: "[](]x", yes: ["]x", "(x"], no: ["x"] },
    { name: "and behind a negation", regex: "[^](]", yes: ["a"], no: ["]", "("] },
    { name: "an escaped bracket in a class", regex: "[\\](]", yes: ["]", "("], no: ["\\"] },
    { name: "quoted brackets", regex: "\\Q[(?P<n>\\E.", yes: ["[(?P<n>x"], no: ["[(x"] },
    { name: "a repeated last quoted character", regex: "\\Qab\\E+", yes: ["abb"], no: ["abab"] },
    { name: "an escaped backslash before a Q", regex: "\\\\Q(.)", yes: ["\\Qx"], no: ["(.)"] },
    { name: "a dot, which is one character", regex: "..", yes: ["😀\n"], no: ["😀"] },
    { name: "folding to characters beyond ASCII", regex: "(?i)ks", yes: ["\u212a\u017f"], no: ["kß"] },
    { name: "a negated class and folding", regex: "(?i)[^k]", yes: ["s"], no: ["K", "\u212a"] },
    { name: "negated twice", regex: "\\P{^Greek}", yes: ["γ"], no: ["g"] },
    { name: "an empty alternative, repeated", regex: "(|a)*", yes: ["", "aa"], no: ["b"] },
    { name: "a class that is empty", regex: "a|[^\\x00-\\x{10FFFF}]", yes: ["a"], no: [""] },
    {
      name: "a code point in hex beside a surrogate",
      regex: "[\\x{D7FF}\\x{E000}]",
      yes: ["\ud7ff"],
      no: ["😀"],
    },
    { name: "another anchor than its own", regex: "a)|(?:b", yes: ["ax", "xb"], no: ["xa", "bx"] },
    { name: "line anchors left on at its end", regex: "a)(?m)(b", yes: ["ab\nc"], no: ["abc"] },
  ])("matches as it does in Go: $name", ({ regex, yes, no }) => {
    const pattern = compilePattern(regex);
    expect(yes.filter((text) => !pattern.matches(text))).toEqual([]);
    expect(no.filter((text) => pattern.matches(text))).toEqual([]);
  });
});

describe("groups of a pattern", () => {
  it.each<{ name: string; regex: string; names: string[]; text: string; groups: (string | null)[] }>([
    {
      name: "names that repeat, in both spellings",
      regex: "(?P<n>a)|(?<n>b)|(c)",
      names: ["", "n", "n", ""],
      text: "b",
      groups: ["b", null, "b", null],
    },
    {
      name: "no groups: flags, quoted and escaped parentheses, classes",
      regex: "(?i)(?:a)\\(\\Q(\\E[(]",
      names: [""],
      text: "A(((",
      groups: ["A((("],
    },
    {
      name: "the last round of a repetition",
      regex: "(?:(a)|(b))*",
      names: ["", "", ""],
      text: "aab",
      groups: ["aab", "a", "b"],
    },
    {
      name: "a group named like a property of objects",
      regex: "(?P<__proto__>a)",
      names: ["", "__proto__"],
      text: "a",
      groups: ["a", "a"],
    },
    {
      name: "the whole match where the pattern is not anchored as a whole",
      regex: "(a))|(?:b|(c)",
      names: ["", "", ""],
      text: "xc",
      groups: ["c", null, "c"],
    },
  ])("are those of Go: $name", ({ regex, names, text, groups }) => {
    const pattern = compilePattern(regex);
    expect(pattern.groupNames).toEqual(names);
    expect(pattern.find(text)).toEqual(groups);
  });
});

describe("a pattern that is refused", () => {
  it.each([
    { name: "a lookahead", regex: "a(?=b)", reason: 'invalid or unsupported Perl syntax: "(?="' },
    { name: "a lookbehind", regex: "(?<=a)b", reason: "invalid named capture" },
    { name: "a back reference", regex: "(a)\\1", reason: 'invalid escape sequence: "\\\\1"' },
    {
      name: "a named back reference",
      regex: "(?P<n>a)(?P=n)",
      reason: 'invalid or unsupported Perl syntax: "(?P"',
    },
    { name: "a JavaScript escape", regex: "\\u0041", reason: 'invalid escape sequence: "\\\\u"' },
    { name: "single bytes", regex: "a\\C", reason: 'invalid escape sequence: "\\\\C"' },
    { name: "the end before a line feed", regex: "a\\Z", reason: 'invalid escape sequence: "\\\\Z"' },
    { name: "a quote without an end", regex: "\\Qa", reason: "missing closing )" },
    { name: "a parenthesis too many", regex: "a)", reason: "unexpected )" },
    { name: "a count above 1000", regex: "a{1001}", reason: 'invalid repeat count: "{1001}"' },
    { name: "counts that multiply to more", regex: "(a{100}){11}", reason: 'invalid repeat count: "{11}"' },
    { name: "two repetitions", regex: "a**", reason: 'invalid nested repetition operator: "**"' },
    {
      name: "deep nesting",
      regex: `${"(".repeat(2000)}${")".repeat(2000)}`,
      reason: "expression nests too deeply",
    },
    {
      name: "an unknown named class",
      regex: "[[:foo:]]",
      reason: 'invalid character class range: "[:foo:]"',
    },
    { name: "a quote in a class", regex: "[\\Q]\\E]", reason: 'invalid escape sequence: "\\\\Q"' },
    // What the engine would take.
    {
      name: "a property of characters",
      regex: "\\P{^Emoji}",
      reason: 'invalid character class range: "\\\\P{^Emoji}"',
    },
    {
      name: "one in a class",
      regex: "[a\\p{Alphabetic}]",
      reason: 'invalid character class range: "\\\\p{Alphabetic}"',
    },
    {
      name: "half of a surrogate pair",
      regex: "\\x{d83d}.*",
      reason: "\\x{d83d} is half of a surrogate pair and no character",
    },
    {
      name: "one in a class of two",
      regex: "[a-\\x{0DFFF}]",
      reason: "\\x{0DFFF} is half of a surrogate pair and no character",
    },
  ])("says why: $name", ({ regex, reason }) => {
    let error: unknown;
    try {
      compilePattern(regex);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(RelabelError);
    expect(error).toMatchObject({
      code: "RELABEL_REGEX",
      field: "regex",
      message: `want a regular expression of RE2; ${reason}`,
    });
  });
});

describe("a pattern of any characters", () => {
  const pieces = fc.constantFrom(
    ...[
      "a",
      "(",
      ")",
      "(?",
      "(?P<n>",
      "[",
      "]",
      "[:",
      ":]",
      "[^",
      "-",
      "\\",
      "\\Q",
      "\\E",
      "\\p{",
      "\\x{",
      "}",
    ],
    ...["|", "*", "{2", ",", "$", "\u{1f600}"],
  );

  it("is compiled or refused with a reason, and its groups are counted as the engine counts them", () => {
    fc.assert(
      fc.property(fc.string({ unit: pieces, maxLength: 8 }), (regex) => {
        try {
          const pattern = compileWithEngine(regex);
          const groups = pattern.find("a");
          expect(groups?.length ?? pattern.groupNames.length).toBe(pattern.groupNames.length);
        } catch (error) {
          expect(error).toBeInstanceOf(RelabelError);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("a pattern that needs no engine", () => {
  const literal = fc.string({
    unit: fc.constantFrom("a", "b", "é", "😀", "\n", "-", ":", "/"),
    maxLength: 3,
  });
  const gap = fc.constantFrom(".*", ".+");
  const withGaps = fc
    .tuple(literal, fc.array(fc.tuple(gap, literal), { maxLength: 3 }))
    .map(([first, rest]) => first + rest.flat().join(""));
  const alternatives = fc.array(withGaps, { minLength: 1, maxLength: 3 }).map((all) => all.join("|"));
  const regex = fc.oneof(
    fc.constantFrom(".*", "(.*)", ".+", "(.+)", "", "|", "a|", "|a", "()"),
    alternatives,
    alternatives.map((inner) => `(${inner})`),
    fc.tuple(literal, gap, literal).map(([before, any, after]) => `${before}(${any})${after}`),
  );
  const text = fc.array(literal, { maxLength: 4 }).map((parts) => parts.join(""));

  it("gives the engine's answers", () => {
    fc.assert(
      fc.property(regex, text, (source, subject) => {
        const shortcut = shortcutOf(source);
        // Two gaps side by side are left to the engine.
        if (shortcut === null) return /\.[*+]\.[*+]/.test(source);
        const engine = compileWithEngine(source);
        const template = parseTemplate("<$1$0>", engine.groupNames);
        expect(shortcut.groupNames).toEqual(engine.groupNames);
        expect(shortcut.matches(subject)).toBe(engine.matches(subject));
        expect(shortcut.find(subject)).toEqual(engineFind(source, subject));
        expect(shortcut.replaceAll(subject, template)).toBe(engine.replaceAll(subject, template));
        return true;
      }),
      { numRuns: 2_000 },
    );
  });

  it("has no sign with a meaning, whatever the sign", () => {
    for (const sign of "\\.+*?()[]{}^$") expect(shortcutOf(`a${sign}b`)).toBeNull();
    for (const regex of ["a.*.*", "a.*?", "(?i)a", "(a)(b)", "(a", "a)", "(.*)|(b)", "(a.*)b"]) {
      expect(shortcutOf(regex)).toBeNull();
    }
  });
});

/** The groups as the RE2 engine finds them, which is asked for those of long texts only otherwise. */
function engineFind(regex: string, text: string): (string | null)[] | null {
  const { pattern } = toEngineSyntax(regex);
  return RE2JS.compile(`^(?s:${pattern})$`).re2().findSubmatch(text) as (string | null)[] | null;
}

describe("a pattern that is plain enough for JavaScript's engine", () => {
  const atom = fc.constantFrom(
    ...["a", "b", "é", "😀", "-", ".", "\\d", "\\w", "\\W", "\\.", "\\\\"],
    ...["[ab]", "[^:]", "[a-z0-9_]", "[^\\d]", "[\\w.]"],
  );
  const repeated = fc
    .tuple(atom, fc.constantFrom("", "", "", "*", "+", "?", "*?", "+?", "??"))
    .map((parts) => parts.join(""));
  const sequence = fc.array(repeated, { maxLength: 3 }).map((parts) => parts.join(""));
  const group = fc
    .tuple(fc.constantFrom("(", "(?:", "(?P<n>", "(?<n>"), sequence, fc.constantFrom("", "|", "|a", "|(b)"))
    .map(([open, inner, choice]) => `${open}${inner}${choice})`);
  const regex = fc.array(fc.oneof(repeated, group), { maxLength: 4 }).map((parts) => parts.join(""));
  const text = fc.string({
    unit: fc.constantFrom("a", "b", "é", "😀", "\n", "\u2028", "-", ":", "1", "_", ".", "\\"),
    maxLength: 8,
  });

  it.each([
    { name: "where a dot is any character", dot: "[^]", flags: "s" },
    { name: "where a dot is no line feed", dot: "[^\\n]", flags: "-s" },
  ])("gives the groups that the engine gives, $name", ({ dot, flags }) => {
    let plain = 0;
    fc.assert(
      fc.property(regex, text, (source, subject) => {
        const found = plainRegex(source, dot);
        if (found === null) return;
        plain += 1;
        const groups = found.exec(subject);
        const expected = engineFind(`(?${flags}:${source})`, subject);
        expect(
          groups === null ? null : Array.from(groups, (part: string | undefined) => part ?? null),
        ).toEqual(expected);
      }),
      { numRuns: 3_000 },
    );
    expect(plain).toBeGreaterThan(1_000);
  });

  it.each([
    ...["(a)*", "(a|b)+", "(a+)+", "a{2}", "a{2,}b", "(?i)a", "^a", "a$", "\\s", "\\b", "[[:alpha:]]"],
    ...["a)|(b", "a*b*c*", "a?b?c?", "a|b|c|d", "\\pL", "\\x41", "[a", "(?=a)", "a**", "\\Qa\\E"],
  ])("is not: %s", (source) => {
    expect(plainRegex(source, "[^]")).toBeNull();
  });

  it("is a short one, since JavaScript refuses some long ones when they are asked", () => {
    const long = `(?:${"[a]".repeat(100_000)}+)`;
    expect(plainRegex(long, "[^]")).toBeNull();
    expect(compileWithEngine(long).find("a")).toBeNull();
  });

  it("is asked for short texts only, where backtracking has no time to get long", () => {
    const pattern = compileWithEngine("(.*)a(.*)b");
    expect(plainRegex("(.*)a(.*)b", "[^]")).not.toBeNull();
    const text = "a".repeat(65_536);
    const started = performance.now();
    expect(pattern.find(`${text}c`)).toBeNull();
    expect(pattern.find(`${text}b`)).toEqual([`${text}b`, text.slice(1), ""]);
    // Squared, the length of the text is minutes.
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});
