/** Reads small text files: the configuration and the secrets that it names. */
import { isUtf8 } from "node:buffer";
import { readFileSync, statSync } from "node:fs";

export type TextFile =
  | { readonly kind: "read"; readonly text: string }
  /** Why not, for a person, without the path; the line is that of the first byte that is no UTF-8, else 1. */
  | { readonly kind: "unreadable"; readonly reason: string; readonly line: number };

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  ENOTDIR: "no such file",
  EACCES: "no permission to read it",
  EPERM: "no permission to read it",
};

/** Reads a whole UTF-8 file of at most `maxBytes`; a byte order mark is left out. Never throws. */
export function readTextFile(path: string, maxBytes: number): TextFile {
  let bytes: Buffer;
  try {
    const status = statSync(path);
    if (!status.isFile()) return unreadable("it is not a regular file");
    if (status.size > maxBytes) return unreadable(`it has ${status.size} bytes; want at most ${maxBytes}`);
    bytes = readFileSync(path);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    return unreadable(REASONS[code] ?? code);
  }
  if (isUtf8(bytes)) return { kind: "read", text: new TextDecoder().decode(bytes) };
  return unreadable("it is not UTF-8 text", lineOfBadByte(bytes));
}

function unreadable(reason: string, line = 1): TextFile {
  return { kind: "unreadable", reason, line };
}

/** No byte of a longer UTF-8 sequence is a line feed, so lines can be looked at one by one. */
function lineOfBadByte(bytes: Buffer): number {
  let line = 1;
  for (let start = 0; start < bytes.length; line++) {
    const feed = bytes.indexOf(0x0a, start);
    const end = feed === -1 ? bytes.length : feed;
    if (!isUtf8(bytes.subarray(start, end))) return line;
    start = end + 1;
  }
  return line;
}
