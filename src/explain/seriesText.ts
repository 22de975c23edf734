/** Reads a label set in the notation of PromQL: `up{job="node"}`, `{__name__="up",job="node"}`, `{"http.requests",job="a"}`. */

const NAME = /[a-zA-Z_:][a-zA-Z0-9_:]*/y;
const STRING = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/y;
const ESCAPE = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))/gs;
const MAX_CODE_POINT = 0x10ffff;
const SINGLE: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  a: "\u0007",
  b: "\b",
  f: "\f",
  v: "\v",
  "\\": "\\",
  '"': '"',
  "'": "'",
};

/**
 * @returns names and values in the order they stand
 * @throws {SyntaxError} naming the column
 */
export function parseSeriesText(text: string): [string, string][] {
  const reader = new Reader(text);
  const pairs: [string, string][] = [];
  const metric = reader.name();
  if (metric !== null) pairs.push(["__name__", metric]);
  if (reader.take("{")) {
    while (!reader.take("}")) {
      pairs.push(readLabel(reader));
      if (!reader.take(",")) reader.expect("}");
      else continue;
      break;
    }
  } else if (metric === null) {
    throw reader.error(`a metric name or "{"`);
  }
  if (!reader.atEnd()) throw reader.error("the end");
  return pairs;
}

function readLabel(reader: Reader): [string, string] {
  const quoted = reader.string();
  const name = quoted ?? reader.name();
  if (name === null) throw reader.error("a label name");
  if (!reader.take("=")) {
    // A quoted string alone is the metric name.
    if (quoted !== null) return ["__name__", quoted];
    throw reader.error('"="');
  }
  const value = reader.string();
  if (value === null) throw reader.error("a value in quotes");
  return [name, value];
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  name(): string | null {
    return this.#match(NAME);
  }

  string(): string | null {
    const literal = this.#match(STRING);
    return literal === null ? null : literal.slice(1, -1).replace(ESCAPE, unescape);
  }

  take(character: string): boolean {
    this.#blanks();
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  expect(character: string): void {
    if (!this.take(character)) throw this.error(`"${character}"`);
  }

  atEnd(): boolean {
    this.#blanks();
    return this.#at === this.#text.length;
  }

  error(wanted: string): SyntaxError {
    const rest = this.#text.slice(this.#at, this.#at + 20);
    return new SyntaxError(
      `column ${this.#at + 1}: want ${wanted}, got ${rest === "" ? "the end" : JSON.stringify(rest)}`,
    );
  }

  #match(pattern: RegExp): string | null {
    this.#blanks();
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) return null;
    this.#at = pattern.lastIndex;
    return match[0];
  }

  #blanks(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at += 1;
  }
}

function unescape(whole: string, ...groups: (string | undefined)[]): string {
  const [hex, short, long, octal, single] = groups;
  const digits = hex ?? short ?? long;
  const code = Number.parseInt(digits ?? octal ?? "", digits === undefined ? 8 : 16);
  const text = code <= MAX_CODE_POINT ? String.fromCodePoint(code) : SINGLE[single ?? ""];
  if (text === undefined) throw new SyntaxError(`unknown escape ${whole}`);
  return text;
}
