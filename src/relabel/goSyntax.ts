/**
 * A pattern of Go's RE2 as one that the engine reads alike.
 *
 * The engine is a port of Go's and differs little. Mended here: names of groups, which may repeat in Go, are taken out and
 * kept beside the pattern, and a `[:` in a class that begins no named class is made two characters. Refused: classes that Go
 * does not know, and escapes for halves of surrogate pairs, which for Go stand for no character and here would match half of
 * one. Whatever else is wrong with a pattern is left for the engine to say. It also refuses what Go takes since 1.25 only, long
 * and loose names of classes such as \p{Letter} and \p{greek}.
 */

export interface EngineSyntax {
  readonly pattern: string;
  /** By number, empty for groups without a name; the first is the whole match. */
  readonly groupNames: readonly string[];
}

const ESCAPE = String.raw`\\x\{[0-9A-Fa-f]+\}|\\[pP]\{[^}]*\}|\\[^]`;
/** A bracket right behind the beginning of a class does not end it. */
const OUTSIDE = new RegExp(String.raw`\\Q[^]*?(?:\\E|$)|${ESCAPE}|\(\?P?<\w+>|\(\??|\[\^?\]?|[^]`, "y");
const IN_CLASS = new RegExp(String.raw`\[:(?:[^]*?:\])?|${ESCAPE}|[^]`, "y");

const NAMED_GROUP = /^\(\?P?<(\w+)>$/;
const SURROGATE = /^\\x\{0*d[89a-f][0-9a-f]{2}\}$/i;
/**
 * The engine has these properties of characters as classes, Go has categories and scripts only. LC is one of Go's, but with
 * (?i) the engine puts U+0345 into it and Go does not.
 */
const FOREIGN_CLASS = new RegExp(
  String.raw`^\\[pP]\{\^?(?:ASCII_Hex_Digit|Alphabetic|Dash|Emoji|Emoji_Component|Emoji_Modifier|Emoji_Modifier_Base|` +
    "Emoji_Presentation|Extended_Pictographic|Hex_Digit|L[Cc]|Lowercase|Math|Quotation_Mark|Terminal_Punctuation|Unknown|" +
    String.raw`Uppercase|White_Space)\}$`,
);

/** @throws {SyntaxError} for what is refused */
export function toEngineSyntax(pattern: string): EngineSyntax {
  const groupNames = [""];
  let translated = "";
  let inClass = false;
  for (let at = 0; at < pattern.length;) {
    const token = tokenAt(pattern, at, inClass ? IN_CLASS : OUTSIDE);
    at += token.length;
    refuseForeign(token);
    if (inClass) {
      inClass = token !== "]";
      translated += token === "[:" ? "\\[:" : token;
    } else if (token.startsWith("(")) {
      const name = NAMED_GROUP.exec(token)?.[1];
      if (token !== "(?") groupNames.push(name ?? "");
      translated += name === undefined ? token : "(";
    } else {
      inClass = token.startsWith("[");
      translated += token;
    }
  }
  return { pattern: translated, groupNames };
}

function tokenAt(pattern: string, at: number, tokens: RegExp): string {
  tokens.lastIndex = at;
  // Both have an alternative for any character.
  return tokens.exec(pattern)?.[0] ?? "";
}

function refuseForeign(token: string): void {
  if (SURROGATE.test(token)) throw new SyntaxError(`${token} is half of a surrogate pair and no character`);
  if (FOREIGN_CLASS.test(token)) {
    throw new SyntaxError(`invalid character class range: ${JSON.stringify(token)}`);
  }
}
