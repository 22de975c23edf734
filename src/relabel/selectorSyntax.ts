/**
 * Series selectors as MetricsQL writes them: `name{label="value",other=~"regex" or third!="x"}`.
 *
 * What MetricsQL has beyond selectors is refused, and so are its WITH templates, which vmagent takes in selectors too.
 */

export interface SelectorFilter {
  readonly label: string;
  readonly operator: "=" | "!=" | "=~" | "!~";
  readonly value: string;
}

interface Token {
  readonly kind: "name" | "string" | "sign" | "end";
  readonly text: string;
}

const ITSELF = String.raw`(?![xXuU])[\p{L}\p{M}\p{N}\p{P}\p{S} ]`;
const ESCAPED = String.raw`\\(?:[xX][0-9a-fA-F]{2}|[uU][0-9a-fA-F]{4}|${ITSELF})`;
const BLANK = /(?:[ \t\n\v\f\r]|#[^\n]*(?:\n|$))*/y;
const TOKEN = new RegExp(
  String.raw`(?<name>(?:[\p{L}_:]|${ESCAPED})(?:[\p{L}_:0-9.]|${ESCAPED})*)` +
    String.raw`|(?<string>"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|` +
    "`(?:[^`\\\\]|\\\\[^])*`)|(?<sign>=~|!~|!=|=|[{}(),+])",
  "uy",
);
const NAME_ESCAPE = new RegExp(String.raw`\\(?:[xX]([0-9a-fA-F]{2})|[uU]([0-9a-fA-F]{4})|(${ITSELF}))`, "gu");

/**
 * Reads a selector.
 *
 * @returns alternatives of which one has to match, each with filters that all have to; none for `{}`, which matches nothing
 * @throws {SyntaxError} for what is no selector
 */
export function parseSelector(text: string): SelectorFilter[][] {
  const parser = new SelectorParser(text);
  const alternatives = parser.selector();
  parser.expectEnd();
  return sharingName(alternatives);
}

/** A metric name that is the only one among the alternatives holds for those that say nothing of the name as well. */
function sharingName(alternatives: SelectorFilter[][]): SelectorFilter[][] {
  const [name, ...others] = new Set(metricNames(alternatives.flat()).filter((given) => given !== ""));
  if (name === undefined || others.length > 0) return alternatives;
  return alternatives.map((filters) =>
    filters.some(({ label }) => label === "__name__") ? filters : [nameFilter(name), ...filters],
  );
}

function metricNames(filters: readonly SelectorFilter[]): string[] {
  return filters
    .filter(({ label, operator }) => label === "__name__" && operator === "=")
    .map(({ value }) => value);
}

class SelectorParser {
  readonly #text: string;
  #at = 0;
  #next: Token;

  constructor(text: string) {
    this.#text = text;
    this.#next = this.#read();
  }

  selector(): SelectorFilter[][] {
    // Counted: vmagent takes any number of them, and recursion would end at some ten thousand.
    let parentheses = 0;
    while (this.#take("(")) parentheses += 1;
    const alternatives = this.#bareSelector();
    for (; parentheses > 0; parentheses -= 1) if (!this.#take(")")) throw this.#unexpected("a )");
    return alternatives;
  }

  #bareSelector(): SelectorFilter[][] {
    const name = this.#next.kind === "name" ? this.#metricName() : null;
    if (!this.#take("{")) {
      if (name === null) throw this.#unexpected("a metric name or a {");
      return [[name]];
    }
    if (this.#take("}")) return name === null ? [] : [[name]];
    const alternatives: SelectorFilter[][] = [];
    do alternatives.push(this.#filters(name));
    while (this.#takeOr());
    if (!this.#take("}")) throw this.#unexpected("a comma, an or, or a }");
    return alternatives;
  }

  expectEnd(): void {
    if (this.#next.kind !== "end") throw this.#unexpected("the end");
  }

  #metricName(): SelectorFilter {
    // Numbers for MetricsQL.
    if (/^(?:inf|nan)$/i.test(this.#next.text)) throw this.#unexpected("a metric name");
    return nameFilter(unescapeName(this.#advance().text));
  }

  #filters(name: SelectorFilter | null): SelectorFilter[] {
    const read: SelectorFilter[] = [];
    do {
      if (this.#isAt("}") && read.length > 0) break;
      read.push(this.#filter());
    } while (this.#take(","));
    const filters = name === null ? read : [name, ...read];
    const names = metricNames(filters);
    // An empty name may be followed by another, but may not follow one.
    const first = names.findIndex((given) => given !== "");
    if (first !== -1 && names.slice(first).some((given) => given !== names[first])) {
      throw new SyntaxError("two metric names at once");
    }
    return filters;
  }

  #filter(): SelectorFilter {
    const token = this.#next;
    if (token.kind !== "name" && token.kind !== "string") throw this.#unexpected("a label name");
    this.#advance();
    // Quotes around a name do not make it a string: its escapes are those of names.
    const label = unescapeName(token.kind === "name" ? token.text : token.text.slice(1, -1));
    const operator = (["=", "!=", "=~", "!~"] as const).find((sign) => this.#take(sign));
    if (operator === undefined) {
      // A name in quotes alone is the metric's.
      if (token.kind === "string") return nameFilter(label);
      throw this.#unexpected("one of = != =~ !~");
    }
    return { label: label === "" ? "__name__" : label, operator, value: this.#strings() };
  }

  #strings(): string {
    let value = "";
    do {
      if (this.#next.kind !== "string") throw this.#unexpected("text in quotes");
      value += unquote(this.#advance().text);
    } while (this.#take("+"));
    return value;
  }

  #take(sign: string): boolean {
    const taken = this.#isAt(sign);
    if (taken) this.#advance();
    return taken;
  }

  #takeOr(): boolean {
    const taken = this.#next.kind === "name" && this.#next.text.toLowerCase() === "or";
    if (taken) this.#advance();
    return taken;
  }

  #isAt(sign: string): boolean {
    return this.#next.kind === "sign" && this.#next.text === sign;
  }

  #advance(): Token {
    const token = this.#next;
    this.#next = this.#read();
    return token;
  }

  #read(): Token {
    BLANK.lastIndex = this.#at;
    this.#at += BLANK.exec(this.#text)?.[0].length ?? 0;
    if (this.#at === this.#text.length) return { kind: "end", text: "" };
    TOKEN.lastIndex = this.#at;
    const groups = TOKEN.exec(this.#text)?.groups ?? {};
    for (const kind of ["name", "string", "sign"] as const) {
      const text = groups[kind];
      if (text === undefined) continue;
      this.#at += text.length;
      return { kind, text };
    }
    throw new SyntaxError(`got ${JSON.stringify(this.#text.slice(this.#at))}, which begins nothing`);
  }

  #unexpected(wanted: string): SyntaxError {
    const { kind, text } = this.#next;
    return new SyntaxError(`got ${kind === "end" ? "the end" : text} where ${wanted} should be`);
  }
}

function nameFilter(value: string): SelectorFilter {
  return { label: "__name__", operator: "=", value };
}

/** What begins no escape stays as it is, and half of a surrogate pair is a replacement character. */
function unescapeName(name: string): string {
  return name.replaceAll(
    NAME_ESCAPE,
    (_, hex2: string | undefined, hex4: string | undefined, character: string | undefined) => {
      if (character !== undefined) return character;
      const codePoint = Number.parseInt(hex2 ?? hex4 ?? "", 16);
      return isCharacter(codePoint) ? String.fromCodePoint(codePoint) : "\ufffd";
    },
  );
}

const SIMPLE_ESCAPES: Readonly<Record<string, string>> = {
  a: "\u0007",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
};
const STRING_PART =
  /[^\\\n]+|\\(?:([abfnrtv\\])|x([0-9a-fA-F]{2})|([0-3][0-7]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))|\\(["'])/y;

/** A string literal of Go, or one in single quotes. */
function unquote(literal: string): string {
  const quote = literal.charAt(0);
  const inner = literal.slice(1, -1);
  if (quote === "`") return inner.replaceAll("\r", "");
  const bytes: Buffer[] = [];
  for (let at = 0; at < inner.length;) {
    STRING_PART.lastIndex = at;
    const part = STRING_PART.exec(inner);
    if (part === null || (part[6] !== undefined && part[6] !== quote)) {
      throw new SyntaxError(`a string that Go does not read: ${literal}`);
    }
    at += part[0].length;
    bytes.push(bytesOf(part));
  }
  const all = Buffer.concat(bytes);
  const value = all.toString("utf8");
  if (!Buffer.from(value, "utf8").equals(all)) throw new SyntaxError(`text that is no UTF-8: ${literal}`);
  return value;
}

function bytesOf([all, simple, hex2, octal, hex4, hex8, quote]: RegExpExecArray): Buffer {
  if (hex2 !== undefined) return Buffer.from([Number.parseInt(hex2, 16)]);
  if (octal !== undefined) return Buffer.from([Number.parseInt(octal, 8)]);
  const codePoint = hex4 ?? hex8;
  if (codePoint !== undefined) return Buffer.from(characterOf(Number.parseInt(codePoint, 16)));
  return Buffer.from(simple === undefined ? (quote ?? all) : (SIMPLE_ESCAPES[simple] ?? ""));
}

function isCharacter(codePoint: number): boolean {
  return codePoint <= 0x10ffff && (codePoint < 0xd800 || codePoint > 0xdfff);
}

function characterOf(codePoint: number): string {
  if (!isCharacter(codePoint)) throw new SyntaxError(`an escape for no character: ${codePoint.toString(16)}`);
  return String.fromCodePoint(codePoint);
}
