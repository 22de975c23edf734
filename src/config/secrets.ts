/** Secrets that stand in the configuration or in a file that it names. No message shows one. */
import { resolve } from "node:path";
import { secretText } from "./scalars.ts";
import type { Reader, Section } from "./section.ts";
import { readTextFile, type TextFile } from "./textFile.ts";

const MAX_SECRET_BYTES = 1024 * 1024;

/** The files that a configuration names, and which of them were read: when one changes, so does the configuration. */
export class SecretFiles {
  readonly #folder: string | null;
  readonly #paths = new Set<string>();

  /** @param folder where relative paths start; null: no file is looked at */
  constructor(folder: string | null) {
    this.#folder = folder;
  }

  /** Those that were asked for, there or not, as absolute paths. */
  get paths(): readonly string[] {
    return [...this.#paths];
  }

  /** Answers null when no file is looked at. */
  read(path: string): TextFile | null {
    if (this.#folder === null) return null;
    const absolute = resolve(this.#folder, path);
    this.#paths.add(absolute);
    return readTextFile(absolute, MAX_SECRET_BYTES);
  }
}

/** Where a value that may come from a file was given. */
export function givenAs(section: Section, key: string): string {
  return section.has(key) ? key : `${key}_file`;
}

/**
 * Reads `key`, or the file that `key`_file names, without white space at its ends, as Prometheus does.
 *
 * @returns undefined when neither is given, it was wrong, or no file is looked at
 */
export function secret(section: Section, key: string, files: SecretFiles): string | undefined {
  const fileKey = `${key}_file`;
  const inline = section.optional(key, secretText, undefined);
  const fromFile = section.optional(fileKey, secretFile(files), undefined);
  if (section.has(key) && section.has(fileKey)) {
    section.problems.error(section.placeOf(fileKey), `want either ${key} or ${fileKey}; got both`);
  }
  return inline ?? fromFile;
}

/** Reads the file that a key names, as secret() does; nothing where the path is empty. */
export function fileSecret(section: Section, key: string, files: SecretFiles): string | undefined {
  const node = section.node(key);
  if (node?.kind === "text" && node.text === "") return undefined;
  return section.optional(key, secretFile(files), undefined);
}

/** The path is not shown either: somebody may have put the secret itself there. */
function secretFile(files: SecretFiles): Reader<string> {
  return (node, problems) => {
    const path = secretText(node, problems);
    if (path === null) return null;
    if (path === "") {
      problems.error(node.place, "want the path of a file; got nothing");
      return null;
    }
    const file = files.read(path);
    if (file === null) return null;
    const reason = file.kind === "unreadable" ? file.reason : file.text.trim() === "" ? "it is empty" : null;
    if (file.kind === "read" && reason === null) return file.text.trim();
    problems.error(
      node.place,
      `cannot use the file: ${String(reason)} (relative paths start at the configuration's folder)`,
    );
    return null;
  };
}
