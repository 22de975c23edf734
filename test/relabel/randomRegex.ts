/** Random patterns in the whole syntax of RE2, most of them valid. */
import type { Random } from "../fuzz/random.ts";
import { randomCharacter } from "./randomText.ts";

/** A name may begin with a digit, and may look like another reference than it is. */
export const GROUP_NAMES = ["n", "name", "_m", "1a", "a_1", "x1"] as const;

const ESCAPES = [
  ...["\\d", "\\D", "\\s", "\\S", "\\w", "\\W"],
  ...[
    "\\pL",
    "\\PL",
    "\\pN",
    "\\p{Greek}",
    "\\P{Greek}",
    "\\p{^Lu}",
    "\\P{^Nd}",
    "\\p{Lt}",
    "\\pZ",
    "\\p{Any}",
  ],
  ...[
    "\\x41",
    "\\x{1F600}",
    "\\x{e9}",
    "\\07",
    "\\101",
    "\\t",
    "\\n",
    "\\r",
    "\\f",
    "\\v",
    "\\a",
    "\\_",
    "\\-",
  ],
] as const;
const CLASSES = [
  ...["[[:alpha:]]", "[[:^word:]]", "[^[:digit:]_]", "[[:punct:][:space:]]", "[[:upper:]-]"],
  ...["[]a]", "[^]a]", "[a\\]b]", "[a-]", "[-a]", "[^-a]", "[\\d_]", "[^\\w\\s]", "[\\pL\\PN]", "[^\\p{Lu}]"],
  ...[
    "[a-c]",
    "[^a-c]",
    "[A-z]",
    "[\\x{e0}-\\x{ff}]",
    "[^\\n]",
    "[\\n;]",
    "[k-s]",
    "[😀-🙏]",
    "[.*+?]",
    "[[:]",
  ],
] as const;
const ANCHORS = ["^", "$", "\\A", "\\z", "\\b", "\\B"] as const;
const FLAGS = ["(?i)", "(?s)", "(?-s)", "(?m)", "(?U)", "(?im-s)", "(?-i)"] as const;
const FLAGGED_GROUPS = ["(?i:", "(?-s:", "(?m:", "(?U:", "(?i-s:", "(?s-i:", "(?mU:"] as const;
const REPETITIONS = [
  ...["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}", "{0}", "{1}?"],
  ...["{,2}", "{0,}"],
] as const;
const QUOTES = ["\\Qa.b\\E", "\\Q(\\E", "\\Q[a]*\\E+", "\\Q\\E", "\\Q$1\\E"] as const;

const MAX_DEPTH = 4;

/**
 * A pattern. Half of the time it is made from the text by putting wider patterns in the place of its characters, so that it
 * is likely to match it.
 */
export function randomRegex(random: Random, text: string): string {
  const regex = anyRegex(random, text);
  // Prometheus' reader of YAML takes these for nothing even in quotes, and then puts the pattern, without anchors, in the
  // place of the default of every rule in the process.
  return regex === "~" || regex === "null" ? randomRegex(random, text) : regex;
}

function anyRegex(random: Random, text: string): string {
  const pattern = random.once(2) ? patternLike(random, text) : randomPattern(random, MAX_DEPTH);
  switch (random.below(24)) {
    case 0:
      return `${pattern})|(?:${randomPattern(random, 1)}`;
    case 1:
      return `.*|${pattern}`;
    case 2:
      return `${pattern}.*`;
    case 3:
      return `.*${pattern}.*`;
    case 4:
      return `${random.pick(FLAGS)}${pattern}`;
    default:
      return pattern;
  }
}

/** A pattern that is often not valid: one with a character too many or too few. */
export function flawedRegex(random: Random, text: string): string {
  const pattern = random.once(4) ? random.pick(FOREIGN) : randomRegex(random, text);
  const at = random.below(pattern.length + 1);
  switch (random.below(4)) {
    case 0:
      return pattern;
    case 1:
      return pattern.slice(0, at) + pattern.slice(at + 1);
    case 2:
      return pattern.slice(0, at) + random.pick(STRAY) + pattern.slice(at);
    default:
      return pattern + random.pick(STRAY);
  }
}

/** What other engines take. */
const FOREIGN = [
  ...[
    "a(?=b)",
    "a(?!b)",
    "(?<=a)b",
    "(?<!a)b",
    "(a)\\1",
    "(?P<n>a)(?P=n)",
    "\\k<n>",
    "\\u0041",
    "\\cA",
    "\\8",
    "\\y",
  ],
  ...[
    "a++",
    "a**",
    "a{2}{3}",
    "a{1001}",
    "(a{100}){11}",
    "(?>a)",
    "(?#a)",
    "(?x)a",
    "(?P<n-a>a)",
    "(?<>a)",
    "\\Z",
    "\\C",
  ],
  ...[
    "[z-a]",
    "[[:foo:]]",
    "\\p{Foo}",
    "\\pX",
    "[a",
    "\\Qa",
    "(?P<n>a)(?P<n>b)",
    "x{2,1}",
    "*a",
    "(?i",
    "\\x{110000}",
  ],
  ...[
    "\\x{}",
    "\\xZ",
    "[\\Qa\\E]",
    "(?",
    "(?P<n",
    "\\p",
    "\\p{",
    "|*",
    "(*)",
    "^*",
    "$+",
    "\\b+",
    "(?i)*",
    "a|*",
  ],
] as const;
const STRAY = [
  "(",
  ")",
  "[",
  "]",
  "{",
  "}",
  "*",
  "+",
  "?",
  "\\",
  "|",
  "^",
  "{2}",
  "(?",
  "\\Q",
  "\\E",
  "-",
] as const;

function patternLike(random: Random, text: string): string {
  const parts: string[] = [];
  const characters = Array.from(text).slice(0, 12);
  for (const character of characters) parts.push(likeCharacter(random, character));
  if (characters.length < text.length) parts.push(".*");
  // Groups around runs of parts, from the last to the first so that the places stay.
  for (let groups = random.below(4); groups > 0; groups -= 1) {
    const from = random.below(parts.length + 1);
    const to = from + random.below(parts.length - from + 1);
    const run = parts.slice(from, to).join("");
    parts.splice(
      from,
      to - from,
      `${groupStart(random)}${run})${random.once(3) ? random.pick(REPETITIONS) : ""}`,
    );
  }
  return parts.join("");
}

function likeCharacter(random: Random, character: string): string {
  const codePoint = character.codePointAt(0) ?? 0;
  switch (random.below(12)) {
    case 0:
      return ".";
    case 1:
      return `\\x{${codePoint.toString(16)}}`;
    case 2:
      return `[${escaped(character)}x]`;
    case 3:
      return "[^q]";
    case 4:
      return `(?i:${escaped(character)})`;
    case 5:
      return `\\Q${character}\\E`;
    case 6:
      return `${escaped(character)}+?`;
    case 7:
      return random.pick(ESCAPES);
    case 8:
      return ".*?";
    default:
      return escaped(character);
  }
}

function escaped(character: string): string {
  return /[\\.+*?()|[\]{}^$-]/.test(character) ? `\\${character}` : character;
}

function groupStart(random: Random): string {
  switch (random.below(6)) {
    case 0:
      return "(?:";
    case 1:
      return `(?P<${random.pick(GROUP_NAMES)}>`;
    case 2:
      return `(?<${random.pick(GROUP_NAMES)}>`;
    case 3:
      return random.pick(FLAGGED_GROUPS);
    default:
      return "(";
  }
}

function randomPattern(random: Random, depth: number): string {
  if (depth === 0) return randomAtom(random);
  const part = (): string => randomPattern(random, depth - 1);
  switch (random.below(12)) {
    case 0:
    case 1:
    case 2:
      return part() + part();
    case 3:
    case 4:
      return `${part()}|${part()}`;
    case 5:
    case 6:
      return `${groupStart(random)}${part()})`;
    case 7:
      return `(?:${part()})${random.pick(REPETITIONS)}`;
    case 8:
      return `${groupStart(random)}${part()})${random.pick(REPETITIONS)}`;
    case 9:
      return `(|${part()})`;
    default:
      return randomAtom(random);
  }
}

function randomAtom(random: Random): string {
  switch (random.below(12)) {
    case 0:
    case 1:
      return random.pick(ESCAPES);
    case 2:
    case 3:
      return random.pick(CLASSES);
    case 4:
      return random.pick(ANCHORS);
    case 5:
      return random.once(3) ? random.pick(FLAGS) : random.pick(QUOTES);
    case 6:
      return ".";
    case 7:
      return random.pick(["", ".*", ".+", "\\w+", "[^;]*", "(.*)", "(.)", "(.+?)"]);
    case 8:
      return `${escaped(randomCharacter(random))}${random.pick(REPETITIONS)}`;
    default:
      return escaped(randomCharacter(random));
  }
}
