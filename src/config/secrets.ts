/** Secrets that stand in the configuration or in a file that it names. No message shows one. */
import { resolve } from "node:path";
import { secretText } from "./scalars.ts";
import type { Reader, Section } from "./section.ts";
import { readTextFile } from "./textFile.ts";

const MAX_SECRET_BYTES = 1024 * 1024;

/** Where a value that may come from a file was given. */
export function givenAs(section: Section, key: string): string {
  return section.has(key) ? key : `${key}_file`;
}

/**
 * Reads `key`, or the file that `key`_file names, without white space at its ends, as Prometheus does.
 *
 * @param folder where relative paths start
 * @returns undefined when neither is given, or it was wrong
 */
export function secret(section: Section, key: string, folder: string): string | undefined {
  const fileKey = `${key}_file`;
  const inline = section.optional(key, secretText, undefined);
  const fromFile = section.optional(fileKey, secretFile(folder), undefined);
  if (section.has(key) && section.has(fileKey)) {
    section.problems.error(section.placeOf(fileKey), `want either ${key} or ${fileKey}; got both`);
  }
  return inline ?? fromFile;
}

/** Reads the file that a key names, as secret() does; nothing where the path is empty. */
export function fileSecret(section: Section, key: string, folder: string): string | undefined {
  const node = section.node(key);
  if (node?.kind === "text" && node.text === "") return undefined;
  return section.optional(key, secretFile(folder), undefined);
}

/** The path is not shown either: somebody may have put the secret itself there. */
function secretFile(folder: string): Reader<string> {
  return (node, problems) => {
    const path = secretText(node, problems);
    if (path === null) return null;
    if (path === "") {
      problems.error(node.place, "want the path of a file; got nothing");
      return null;
    }
    const file = readTextFile(resolve(folder, path), MAX_SECRET_BYTES);
    const reason = file.kind === "unreadable" ? file.reason : file.text.trim() === "" ? "it is empty" : null;
    if (file.kind === "read" && reason === null) return file.text.trim();
    problems.error(
      node.place,
      `cannot use the file: ${String(reason)} (relative paths start at the configuration's folder)`,
    );
    return null;
  };
}
