/** A configuration file, native or of the old Go gateway, to a frozen Config and all that is to be said about it. */
import { dirname, resolve } from "node:path";
import type { Config } from "./config.ts";
import { readDocument } from "./document.ts";
import { convertLegacy, isLegacy } from "./legacy.ts";
import type { LegacyHash } from "./legacy.ts";
import { readNative } from "./native.ts";
import type { StageChecks } from "./native.ts";
import type { MapNode } from "./node.ts";
import { ProblemList } from "./problem.ts";
import type { Problem } from "./problem.ts";
import { SecretFiles } from "./secrets.ts";
import { readTextFile } from "./textFile.ts";
import { MAX_FILE_BYTES } from "./yamlSyntax.ts";

export interface LoadOptions extends StageChecks {
  /** How a file of the old gateway picks tasks and upstreams; without effect on native files. */
  readonly legacyHash: LegacyHash;
}

export interface LoadedConfig {
  /** Which format the file has; native when that cannot be told. */
  readonly origin: "native" | "legacy";
  /** Deeply frozen; null if and only if a problem is an error. */
  readonly config: Config | null;
  /** In the order of the file. */
  readonly problems: readonly Problem[];
  /** Absolute paths of the files that it names, there or not. */
  readonly secretFiles: readonly string[];
}

export interface LoadedDocument extends LoadedConfig {
  /** In native form; null when the file has no such. */
  readonly document: MapNode | null;
}

export interface ConvertedConfig {
  readonly origin: LoadedConfig["origin"];
  /** The native document; null for native files and for those with errors. */
  readonly document: MapNode | null;
  readonly problems: readonly Problem[];
}

/** Reads a file. Never throws: a file that cannot be read is a problem as well. */
export function loadConfig(file: string, options: LoadOptions): LoadedConfig {
  const { origin, config, problems, secretFiles } = understandFile(file, options);
  return { origin, config, problems, secretFiles };
}

/** Reads a file of the old gateway as the native document that stands for it. */
export function convertConfig(file: string, options: LoadOptions): ConvertedConfig {
  const { origin, document, config, problems } = understandFile(file, options);
  const isConverted = origin === "legacy" && config !== null;
  return { origin, document: isConverted ? document : null, problems };
}

/** Reads a file, with the document that its config was read from: for those of the old gateway, the native one that stands for it. */
export function loadDocument(file: string, options: LoadOptions): LoadedDocument {
  return understandFile(file, options);
}

/**
 * Says what is wrong with a native document that was put together from those of files.
 *
 * @param file as in parseConfig()
 * @returns with the places that its values have where they come from
 */
export function checkDocument(document: MapNode, file: string, options: LoadOptions): readonly Problem[] {
  const problems = new ProblemList(file);
  readNative(document, new SecretFiles(dirname(resolve(file))), options, problems);
  return problems.inOrder();
}

/**
 * Reads the text of a file.
 *
 * @param file name for messages; relative paths of secrets start at its folder
 */
export function parseConfig(text: string, file: string, options: LoadOptions): LoadedConfig {
  const { origin, config, problems, secretFiles } = understand(text, file, options);
  return { origin, config, problems, secretFiles };
}

/**
 * Reads the text of a file that somebody has sent who may not know whether the files that it names are there: none is looked at.
 * So its Config lacks what these hold, and serves for comparison alone.
 *
 * @param name for messages
 */
export function parseSentConfig(text: string, name: string, options: LoadOptions): LoadedConfig {
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_FILE_BYTES) return unread(name, 1, `it has ${bytes} bytes; want at most ${MAX_FILE_BYTES}`);
  const { origin, config, problems, secretFiles } = understand(text, name, options, new SecretFiles(null));
  return { origin, config, problems, secretFiles };
}

function understandFile(file: string, options: LoadOptions): LoadedDocument {
  const read = readTextFile(file, MAX_FILE_BYTES);
  if (read.kind === "read") return understand(read.text, file, options);
  return unread(file, read.line, read.reason);
}

function unread(file: string, line: number, reason: string): LoadedDocument {
  const problems = new ProblemList(file);
  problems.error({ line, column: 1, path: "" }, `cannot read the file: ${reason}`);
  return { origin: "native", document: null, config: null, problems: problems.inOrder(), secretFiles: [] };
}

function understand(
  text: string,
  file: string,
  options: LoadOptions,
  files = new SecretFiles(dirname(resolve(file))),
): LoadedDocument {
  const problems = new ProblemList(file);
  const top = readDocument(text, problems);
  const origin = top !== null && isLegacy(top) ? "legacy" : "native";
  const document =
    top === null || origin === "native" ? top : convertLegacy(top, options.legacyHash, problems);
  const config = document === null ? null : readNative(document, files, options, problems);
  return {
    origin,
    document,
    secretFiles: files.paths,
    config: problems.hasErrors ? null : deepFreeze(config),
    problems: problems.inOrder(),
  };
}

/** Freezes what config/ has made: plain objects and arrays. Urls and maps are read only by their types. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.values(value).forEach(deepFreeze);
  return Object.freeze(value);
}
