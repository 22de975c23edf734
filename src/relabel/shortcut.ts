/**
 * Patterns that need no engine: all text, all but the empty text, literals, alternatives of literals, prefixes.
 *
 * They are what most rules say. A test holds every answer given here to the engine's.
 */
import type { Pattern } from "./pattern.ts";
import { expand, type Groups } from "./template.ts";

/** Characters that mean themselves wherever they stand. */
const LITERAL = /^[^\\.+*?()|[\]{}^$]*$/;
const ALTERNATIVES = /^[^\\.+*?()[\]{}^$]*$/;
const ANY = ".*";

/** The pattern when it is one of these, else null. */
export function shortcutOf(regex: string): Pattern | null {
  switch (regex) {
    case ANY:
      return wholeText(() => true, 0);
    case `(${ANY})`:
      return wholeText(() => true, 1);
    case ".+":
      return wholeText((text) => text !== "", 0);
    case "(.+)":
      return wholeText((text) => text !== "", 1);
  }
  if (LITERAL.test(regex)) return wholeText((text) => text === regex, 0);
  if (ALTERNATIVES.test(regex)) {
    const literals = new Set(regex.split("|"));
    return wholeText((text) => literals.has(text), 0);
  }
  const prefix = regex.slice(0, -ANY.length);
  if (regex.endsWith(ANY) && LITERAL.test(prefix)) return wholeText((text) => text.startsWith(prefix), 0);
  return null;
}

/** A pattern that matches all of a text or nothing of it, with no group or one around all. */
function wholeText(matches: (text: string) => boolean, groupCount: 0 | 1): Pattern {
  const groupsOf = (text: string): Groups => (groupCount === 0 ? [text] : [text, text]);
  return {
    groupNames: groupCount === 0 ? [""] : ["", ""],
    matches,
    find: (text) => (matches(text) ? groupsOf(text) : null),
    replaceAll: (text, template) => (matches(text) ? expand(template, groupsOf(text)) : text),
  };
}
