/**
 * Patterns that need no engine: literals with any text between them, alternatives of such, and one group around all or
 * around the one stretch of any text.
 *
 * They are what most rules say. A test holds every answer given here to the engine's.
 */
import type { Pattern } from "./pattern.ts";
import { expand, type Groups } from "./template.ts";

/** A character that means itself wherever it stands, as a regular expression. */
export const LITERAL_TEXT = String.raw`[^\\.+*?()|[\]{}^$]`;

const ALTERNATIVE = new RegExp(`^${LITERAL_TEXT}*(?:\\.[*+]${LITERAL_TEXT}+)*(?:\\.[*+])?$`);
const GROUP_AROUND_ALL = /^\((?!\?)([^]*)\)$/;
const GROUP_WITHIN = new RegExp(`^(${LITERAL_TEXT}*)\\(\\.([*+])\\)(${LITERAL_TEXT}*)$`);

type Matches = (text: string) => boolean;

/** The pattern when it is one of these, else null. */
export function shortcutOf(regex: string): Pattern | null {
  const matches = alternatives(regex);
  if (matches !== null) return wholeText([""], matches, (text) => [text]);
  const [, inner] = GROUP_AROUND_ALL.exec(regex) ?? [];
  const grouped = inner === undefined ? null : alternatives(inner);
  if (grouped !== null) return wholeText(["", ""], grouped, (text) => [text, text]);
  const [, before, gap, after] = GROUP_WITHIN.exec(regex) ?? [];
  if (before === undefined || gap === undefined || after === undefined) return null;
  const end = (text: string): number => text.length - after.length;
  return wholeText(["", ""], textBetween(before, gap, after), (text) => [
    text,
    text.slice(before.length, end(text)),
  ]);
}

function alternatives(regex: string): Matches | null {
  const all = regex.split("|");
  if (!all.every((alternative) => ALTERNATIVE.test(alternative))) return null;
  const literals = new Set(all.filter((alternative) => !alternative.includes(".")));
  const others = all.filter((alternative) => alternative.includes(".")).map(withGaps);
  const [other] = others;
  if (other === undefined) return all.length === 1 ? (text) => text === regex : (text) => literals.has(text);
  if (all.length === 1) return other;
  return (text) => literals.has(text) || others.some((matches) => matches(text));
}

/** Literals with `.*` or `.+` between them, and maybe at the ends. */
function withGaps(alternative: string): Matches {
  const [first = "", ...rest] = alternative.split(/\.([*+])/);
  const last = rest.pop() ?? "";
  if (rest.length === 1) return textBetween(first, rest[0] ?? "", last);
  const lastGap = shortestGap(rest.pop() ?? "");
  return (text) => {
    if (!text.startsWith(first)) return false;
    let at = first.length;
    // The first place that a literal can have leaves most room for those behind it.
    for (let i = 0; i < rest.length; i += 2) {
      const literal = rest[i + 1] ?? "";
      const found = text.indexOf(literal, at + shortestGap(rest[i] ?? ""));
      if (found === -1) return false;
      at = found + literal.length;
    }
    return text.length - last.length >= at + lastGap && text.endsWith(last);
  };
}

function textBetween(first: string, gap: string, last: string): Matches {
  const shortest = first.length + shortestGap(gap) + last.length;
  return (text) => text.length >= shortest && text.startsWith(first) && text.endsWith(last);
}

function shortestGap(gap: string): number {
  return gap === "+" ? 1 : 0;
}

/** A pattern that matches all of a text or nothing of it. */
function wholeText(
  groupNames: readonly string[],
  matches: Matches,
  groupsOf: (text: string) => Groups,
): Pattern {
  return {
    groupNames,
    matches,
    find: (text) => (matches(text) ? groupsOf(text) : null),
    replaceAll: (text, template) => (matches(text) ? expand(template, groupsOf(text)) : text),
  };
}
