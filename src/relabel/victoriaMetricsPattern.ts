/**
 * The regular expression of a rule as vmagent reads it.
 *
 * It is compiled twice there: for the question whether a text matches, in which a dot matches line feeds, and for its groups,
 * in which none does. So a text may match and have no groups.
 */
import { ANYWHERE, compileWithEngine, type Pattern, WHOLE_LINE, WHOLE_TEXT } from "./pattern.ts";
import { LITERAL_TEXT, shortcutOf } from "./shortcut.ts";
import type { Groups, Template } from "./template.ts";

export type Matcher = (text: string) => boolean;

export interface VictoriaMetricsPattern {
  /** Whether it is `(.*)`, in one of the notations that vmagent takes for the same. */
  readonly isDefault: boolean;
  readonly groupNames: readonly string[];
  readonly matches: Matcher;
  /** The groups of a text that matches; null for some with line feeds. */
  find(text: string): Groups | null;
}

/** Replaces every match in a text. */
export interface Substitution {
  readonly groupNames: readonly string[];
  replaceAll(text: string, template: Template): string;
}

/** What matches nothing but the empty text: groups of nothing, how often they may be repeated, and an empty quote. */
const NOTHING =
  /\((?:\?(?:[imsU]*(?:-[imsU]+)?:|P?<\w+>))?(?:\||\(\?[imsU-]+\))*\)(?:[*+?]\??|\{\d+(?:,\d*)?\}\??)?|\\Q\\E/g;
/** The beginning of a group, or flags, that leave a dot what it is. */
const OPENING = String.raw`\((?:\?(?:[ims]*(?:-[imU]+)?[:)]|P?<\w+>))?`;
/** `.*`, with or without groups and anchors around it. */
const DEFAULT = new RegExp(
  String.raw`^(?:\^|\\A|${OPENING})*\.(?:\*|\{0,\})(?:\)(?:\{1(?:,1)?\})?|\$|\\z|\(\?[imsU-]+\))*$`,
);

/** In characters. Longer notations of the default are not looked for: that takes a pass for each level of groups. */
const LONGEST_DEFAULT = 200;

/** @param regex null for the default; @throws {RelabelError} RELABEL_REGEX */
export function compileVictoriaMetricsPattern(regex: string | null): VictoriaMetricsPattern {
  if (regex === null || isDefaultRegex(regex)) return DEFAULT_PATTERN;
  const groups = compileWithEngine(regex, WHOLE_LINE);
  const shortcut = shortcutOf(regex);
  return {
    isDefault: false,
    groupNames: groups.groupNames,
    matches: compileMatcher(regex),
    find: (text) => (shortcut === null || text.includes("\n") ? groups : shortcut).find(text),
  };
}

function isDefaultRegex(regex: string): boolean {
  if (regex.length > LONGEST_DEFAULT) return false;
  let bare = regex;
  for (let before = ""; bare !== before;) {
    before = bare;
    bare = before.replaceAll(NOTHING, "");
  }
  if (!DEFAULT.test(bare)) return false;
  compileWithEngine(regex, ANYWHERE);
  return true;
}

const DEFAULT_PATTERN: VictoriaMetricsPattern = {
  isDefault: true,
  groupNames: ["", ""],
  matches: () => true,
  find: (text) => (text.includes("\n") ? null : [text, text]),
};

/** @param regex null for the default, which has no groups here; @throws {RelabelError} RELABEL_REGEX */
export function compileSubstitution(regex: string | null): Substitution {
  return compileWithEngine(regex === null || isDefaultRegex(regex) ? ".*" : regex, ANYWHERE);
}

/**
 * Whether a whole text matches.
 *
 * vmagent compares the plain text that a regex begins with on its own. The rest does not see it then: behind it `\b` and `^`
 * hold at the beginning of the rest, and a dot that is all of the rest matches no line feed.
 *
 * @throws {RelabelError} RELABEL_REGEX
 */
export function compileMatcher(regex: string): Matcher {
  // Refuses what is valid only between the parentheses.
  compileWithEngine(regex, ANYWHERE);
  const written = LITERAL_START.exec(regex)?.[0] ?? "";
  const rest = regex.slice(written.length);
  const literal = unescaped(written);
  const [, gap, middle] = AROUND_LITERAL.exec(rest) ?? [];
  if (gap !== undefined && middle !== undefined) return behind(literal, around(gap, unescaped(middle)));
  const shortcut = shortcutOf(regex);
  if (shortcut !== null) return (text) => shortcut.matches(text);
  const isLoneDot = LONE_DOT.test(rest);
  if (!isLoneDot && !looksBehind(rest)) return matcherOf(compileWithEngine(regex));
  return behind(literal, matcherOf(compileWithEngine(rest, isLoneDot ? WHOLE_LINE : WHOLE_TEXT)));
}

const LITERAL = String.raw`(?:${LITERAL_TEXT}|\\[^A-Za-z0-9])`;
const LITERAL_START = new RegExp(`^${LITERAL}*(?![*+?{])`);
const LONE_DOT = /^\(?\.\)?$/;
/** What has few enough meanings that vmagent lists them: small classes, groups of literals, and literals behind such. */
const LISTED = String.raw`(?:${LITERAL}|\\[dw]|\[(?!\^)(?:[^\]\\[]|\\[dw])+\]|\((?:\?:)?${LITERAL}*(?:\|${LITERAL}*)*\))`;
const AROUND_LITERAL = new RegExp(String.raw`^${LISTED}*\(?(\.[*+])\)?\(?(${LITERAL}+)\)?\(?\1\)?$`);

/**
 * A literal with any text around it, as vmagent finds it: it looks at the first place of the literal only, and has forgotten
 * what was listed before. So `(a|b).*c.*` matches whatever has a c.
 */
function around(gap: string, literal: string): Matcher {
  const shortest = gap === ".+" ? 1 : 0;
  return (text) => {
    const at = text.indexOf(literal);
    return at >= shortest && text.length - literal.length - at >= shortest;
  };
}

/** Whether there is an assertion that looks back, and no alternative to all: in `a\b|c` nothing stands before all. */
function looksBehind(rest: string): boolean {
  const outside = rest.replaceAll(/\([^()]*\)/g, "");
  return /\\[bBA]|\^/.test(rest) && !outside.includes("|");
}

function behind(literal: string, matches: Matcher): Matcher {
  return (text) => text.startsWith(literal) && matches(text.slice(literal.length));
}

function matcherOf(pattern: Pattern): Matcher {
  return (text) => pattern.matches(text);
}

function unescaped(literal: string): string {
  return literal.replaceAll(/\\([^])/g, "$1");
}

/** A regex as it is written, with the end of a quote that has none: then the pattern may be put between others. */
export function withQuoteEnded(regex: string | null): string | null {
  const last = regex?.match(/\\Q[^]*?(?:\\E|$)|\\[^]|[^]/g)?.at(-1) ?? "";
  return regex !== null && last.startsWith("\\Q") && !last.endsWith("\\E") ? `${regex}\\E` : regex;
}

/** A regex without anchors at its ends, which vmagent takes off before it puts its own. */
export function withoutAnchors(regex: string | null): string | null {
  if (regex === null) return null;
  let bare = regex.replace(/^\^+/, "");
  while (bare.endsWith("$") && !bare.endsWith("\\$")) bare = bare.slice(0, -1);
  return bare;
}
