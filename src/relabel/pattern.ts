/**
 * A rule's regular expression: RE2's language and its promise that time is linear in the length of the text, whatever the
 * pattern.
 *
 * Prometheus puts the pattern between `^(?s:` and `)$` and does not look at it on its own, so `a)|(?:b` is valid: it matches
 * what begins with a or ends with b. For such, where a match is and how many there are matters.
 */
import { type Matcher, RE2JS, RE2JSException, RE2JSSyntaxException } from "re2js";
import { RelabelError } from "./errors.ts";
import { toEngineSyntax } from "./goSyntax.ts";
import { MatchMemo } from "./matchMemo.ts";
import { MAX_PLAIN_LENGTH, plainRegex } from "./plainRegex.ts";
import { shortcutOf } from "./shortcut.ts";
import { expand, type Groups, type Template } from "./template.ts";

export interface Pattern {
  /** By number, empty for groups without a name; the first is the whole match. */
  readonly groupNames: readonly string[];
  matches(text: string): boolean;
  /** The groups of the first match, null when there is none. */
  find(text: string): Groups | null;
  /** The text with every match replaced by the template, filled in with its groups. */
  replaceAll(text: string, template: Template): string;
}

/** @throws {RelabelError} RELABEL_REGEX for what Go does not take, or what this engine would read otherwise */
export function compilePattern(regex: string): Pattern {
  return shortcutOf(regex) ?? compileWithEngine(regex);
}

/** What a pattern is compiled into, and what a dot in it stands for where that is one thing. */
export interface Frame {
  readonly before: string;
  readonly after: string;
  readonly dot: string | null;
}

export const WHOLE_TEXT: Frame = { before: "^(?s:", after: ")$", dot: "[^]" };
/** As WHOLE_TEXT, but a dot matches no line feed. */
export const WHOLE_LINE: Frame = { before: "^(?:", after: ")$", dot: "[^\\n]" };
export const ANYWHERE: Frame = { before: "", after: "", dot: null };

/** As compilePattern(), without shortcuts. */
export function compileWithEngine(regex: string, { before, after, dot }: Frame = WHOLE_TEXT): Pattern {
  try {
    const { pattern, groupNames } = toEngineSyntax(regex);
    const engine = RE2JS.compile(before + pattern + after);
    return new EnginePattern(engine, groupNames, dot === null ? null : plainRegex(regex, dot));
  } catch (cause) {
    if (!(cause instanceof RE2JSException || cause instanceof SyntaxError)) throw cause;
    const reason = reasonOf(cause, regex);
    throw new RelabelError("RELABEL_REGEX", "regex", `want a regular expression of RE2; ${reason}`, {
      cause,
    });
  }
}

class EnginePattern implements Pattern {
  readonly groupNames: readonly string[];
  readonly #engine: RE2JS;
  /** For the groups of short texts. */
  readonly #plain: RegExp | null;
  // Most patterns are asked one of these only, and a memo that nobody asks is empty.
  readonly #matches: MatchMemo<boolean>;
  readonly #groups: MatchMemo<Groups | null>;

  constructor(engine: RE2JS, groupNames: readonly string[], plain: RegExp | null) {
    this.#engine = engine;
    this.groupNames = groupNames;
    this.#plain = plain;
    this.#matches = new MatchMemo((text) => engine.test(text));
    // A Matcher would match twice, for the place of the match and again for its groups.
    this.#groups = new MatchMemo((text) => engine.re2().findSubmatch(text) as Groups | null);
  }

  matches(text: string): boolean {
    return this.#matches.answer(text);
  }

  find(text: string): Groups | null {
    // As fast as remembering.
    if (this.#plain !== null && text.length <= MAX_PLAIN_LENGTH) return groupsOf(this.#plain.exec(text));
    return this.#groups.answer(text);
  }

  replaceAll(text: string, template: Template): string {
    const matcher = this.#engine.matcher(text);
    let replaced = "";
    let copied = 0;
    for (let from = 0; from <= text.length && matcher.find(from);) {
      const start = matcher.start();
      const end = matcher.end();
      replaced += text.slice(copied, start);
      // An empty match right behind another is none.
      if (end > copied || start === 0) replaced += expand(template, this.#groupsOf(matcher));
      copied = end;
      from = Math.max(end, from + characterLength(text, from));
    }
    return replaced + text.slice(copied);
  }

  #groupsOf(matcher: Matcher): Groups {
    return this.groupNames.map((_, number) => matcher.group(number));
  }
}

function groupsOf(match: RegExpExecArray | null): Groups | null {
  if (match === null) return null;
  const groups: (string | null)[] = [];
  for (let number = 0; number < match.length; number++) groups.push(match[number] ?? null);
  return groups;
}

function characterLength(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}

/** What the engine says, with the part of the pattern that it says it of, if that stands in the pattern as it was written. */
function reasonOf(error: Error, regex: string): string {
  if (!(error instanceof RE2JSSyntaxException)) return error.message;
  const part = error.getPattern();
  if (part === null || part === regex || !regex.includes(part)) return error.getDescription();
  return `${error.getDescription()}: ${JSON.stringify(part)}`;
}
