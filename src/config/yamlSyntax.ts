/**
 * YAML text to the syntax tree of the yaml library, within bounds.
 *
 * All scalars stay text (the failsafe schema). The library's own messages quote the source, which may be a secret, so
 * problems have words of their own here.
 */
import { Composer, LineCounter, Parser } from "yaml";
import type { CST, Document, ErrorCode, YAMLError } from "yaml";
import type { Place, ProblemList } from "./problem.ts";

/** What a Kubernetes ConfigMap holds at most; the parser needs seconds for some files above it. */
export const MAX_FILE_BYTES = 1024 * 1024;

/**
 * The deepest value of a real file is 8 deep. The composer recurses, and deep enough in its recursion the process dies
 * without an exception, so this is checked before composing.
 */
const MAX_DEPTH = 32;

const WORDS: Record<ErrorCode, string> = {
  ALIAS_PROPS: "an alias takes no anchor and no tag",
  BAD_ALIAS: "an anchor or alias without a proper name",
  BAD_COLLECTION_TYPE: "a tag that does not fit its value",
  BAD_DIRECTIVE: "a line that begins with % and is no YAML directive",
  BAD_DQ_ESCAPE: "an escape that double quotes do not know; single quotes keep a backslash as it is",
  BAD_INDENT: "indentation that fits nothing above it, or a bracket that is not closed or too far left",
  BAD_PROP_ORDER: "an anchor or a tag in the wrong place",
  BAD_SCALAR_START: "text cannot begin with this character; put it in quotes",
  BLOCK_AS_IMPLICIT_KEY:
    "two keys on one line; if the second colon belongs to the value, put the value in quotes",
  BLOCK_IN_FLOW: "an indented block inside brackets",
  DUPLICATE_KEY: "a key that stands here twice",
  IMPOSSIBLE: "something that is no YAML",
  KEY_OVER_1024_CHARS: "a key of more than 1024 characters",
  MISSING_CHAR: "something is missing here: a closing quote or bracket, a comma, a colon, or a blank",
  MULTILINE_IMPLICIT_KEY: "a key of more than one line, or a colon missing on the line above",
  MULTIPLE_ANCHORS: "more than one anchor on a value",
  MULTIPLE_DOCS: "a second YAML document; want one",
  MULTIPLE_TAGS: "more than one tag on a value",
  NON_STRING_KEY: "a key that is no text",
  RESOURCE_EXHAUSTION: "a value that is too large",
  TAB_AS_INDENT: "a tab in the indentation; YAML wants blanks",
  TAG_RESOLVE_FAILED: "a YAML tag (!...); want plain values",
  UNEXPECTED_TOKEN: "something that does not belong here",
};

/** The document and where its offsets are, or null when it has syntax errors, which are then in `problems`. */
export function parseYaml(text: string, problems: ProblemList): { document: Document; lines: Lines } | null {
  const counter = new LineCounter();
  const lines = new Lines(counter);
  const tokens = [...new Parser(counter.addNewLine).parse(text)];
  const tooDeep = findDeeperThan(tokens, MAX_DEPTH);
  if (tooDeep !== null) {
    problems.error(lines.place(tooDeep), `values nested more than ${MAX_DEPTH} deep`);
    return null;
  }
  const composer = new Composer({ schema: "failsafe", uniqueKeys: false, prettyErrors: false });
  const documents = composer.compose(tokens, true, text.length);
  const document = documents.next().value;
  if (document === undefined) return null;
  // A closing bracket that is not indented is only a warning, and nothing is wrong with it.
  const warnings = document.warnings.filter(({ code }) => code !== "BAD_INDENT");
  reportFirstOfLines([...document.errors, ...warnings], lines, problems);
  const second = documents.next().value;
  if (second !== undefined) problems.error(lines.place(second.range[0]), `YAML: ${WORDS.MULTIPLE_DOCS}`);
  return problems.hasErrors ? null : { document, lines };
}

/** One error leads to others, mostly behind it on its line. */
function reportFirstOfLines(errors: readonly YAMLError[], lines: Lines, problems: ProblemList): void {
  const reported = new Set<number>();
  for (const { pos, code } of errors) {
    const place = lines.place(pos[0]);
    if (reported.has(place.line)) continue;
    reported.add(place.line);
    problems.error(place, `YAML: ${WORDS[code]}`);
  }
}

/** Offsets of one text as lines and columns. */
export class Lines {
  readonly #counter: LineCounter;

  constructor(counter: LineCounter) {
    this.#counter = counter;
  }

  place(offset: number, path = ""): Place {
    const { line, col } = this.#counter.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1), path };
  }
}

/** The offset of a value that lies deeper than `depth`, or null. Does not recurse. */
function findDeeperThan(tokens: readonly CST.Token[], depth: number): number | null {
  const open = tokens.map((token) => ({ token, at: 0 }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, at } = next;
    if (at > depth) return token.offset;
    for (const child of childrenOf(token)) open.push({ token: child, at: at + 1 });
  }
  return null;
}

function childrenOf(token: CST.Token): CST.Token[] {
  if (token.type === "document") return token.value === undefined ? [] : [token.value];
  if (!("items" in token)) return [];
  return token.items.flatMap((item) => [item.key ?? [], item.value ?? []].flat());
}
