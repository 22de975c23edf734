/**
 * How the gateway placed series when it last ran here, kept in a file beside its spool.
 *
 * An upstream that is taken out of the middle of a list renumbers those behind it, which nobody sees in the list alone. So
 * each start compares with what the one before has left, and `check` can do so before it. The file only serves for that: a
 * gateway that cannot read or write it runs as well.
 */
import { existsSync } from "node:fs";
import { mkdir, open, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { readTextFile } from "../config/textFile.ts";
import {
  isRenumbered,
  newestPlacement,
  type RoutePlacement,
  type RouteTopology,
} from "../route/renumbering.ts";
import {
  changeLine,
  describeChange,
  type KnownRoute,
  pastTexts,
  type RouteChange,
} from "../plan/changeText.ts";
import { isKnownFile, readKnownRoutes, writeKnownRoutes } from "./knownFile.ts";

const FILE = "topology.json";
/** Some hundred thousand upstreams. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;

export type KnownTopology =
  | {
      readonly kind: "known";
      readonly file: string;
      readonly text: string;
      readonly routes: readonly KnownRoute[];
    }
  /** Nothing is kept there, or nobody may look. */
  | { readonly kind: "none" }
  | { readonly kind: "unusable"; readonly file: string; readonly reason: string };

/** Reads what is kept in a folder, which need not exist. Never throws, and changes nothing. */
export function readKnown(folder: string): KnownTopology {
  const file = join(folder, FILE);
  if (!existsSync(file)) return { kind: "none" };
  const read = readTextFile(file, MAX_FILE_BYTES);
  return read.kind === "read" ? understand(file, read.text) : { kind: "unusable", file, reason: read.reason };
}

/** Reads a file that may be what a start has kept, here or elsewhere: `none` if it is something else. Never throws. */
export function readIfKnown(file: string): KnownTopology {
  const read = readTextFile(file, MAX_FILE_BYTES);
  return read.kind === "read" && isKnownFile(read.text) ? understand(file, read.text) : { kind: "none" };
}

function understand(file: string, text: string): KnownTopology {
  const routes = readKnownRoutes(text);
  if (typeof routes === "string") return { kind: "unusable", file, reason: routes };
  return { kind: "known", file, text, routes };
}

/** What is different from what is kept in a folder, for each route that was there then. */
export function compareWithKnown(folder: string, config: Config): RouteChange[] {
  return forKnownRoutes(folder, config, (route, before, file) => [
    describeChange(`the last start (${file})`, before, route),
  ]);
}

/** What is to be said of periods that begin in the past, and that what is kept in a folder does not have. */
export function pastOfKnown(folder: string, config: Config, nowMs: number): string[] {
  return forKnownRoutes(folder, config, (route, before) => pastTexts(before, route, nowMs));
}

function forKnownRoutes<T>(
  folder: string,
  config: Config,
  tell: (route: RouteTopology, before: KnownRoute, file: string) => T[],
): T[] {
  const known = readKnown(folder);
  if (known.kind !== "known") return [];
  const byName = new Map(known.routes.map((route) => [route.last.name, route]));
  return config.routes.flatMap(({ route }) => {
    const before = byName.get(route.name);
    return before === undefined ? [] : tell(route, before, known.file);
  });
}

/** Logs what is different from what ran last: a warning where slots are renumbered, with how to write the list instead. */
export function tellChanges(config: Config, isLegacy: boolean, log: Logger): void {
  const { path } = config.spool;
  for (const change of compareWithKnown(path, config)) {
    if (change.kind === "same") continue;
    log[change.kind === "renumbered" ? "warn" : "info"](changeLine(change, isLegacy));
  }
  for (const text of pastOfKnown(path, config, Date.now())) log.warn(text);
}

/**
 * Keeps how a configuration places series, once it is in force. A file that says so already is left alone.
 *
 * @returns what somebody should know of the file: that it cannot be kept, or what was there could not be used; else null
 */
export async function keepKnown(folder: string, config: Config): Promise<string | null> {
  const known = readKnown(folder);
  const before = new Map(known.kind === "known" ? known.routes.map((route) => [route.last.name, route]) : []);
  const text = writeKnownRoutes(
    config.routes.map(({ route }) => ({ last: route, earlier: earlierOf(before.get(route.name), route) })),
  );
  if (known.kind === "known" && known.text === text) return null;
  const unusable = known.kind === "unusable" ? `${known.file} cannot be used: ${known.reason}; ` : "";
  try {
    await replaceFile(folder, text);
  } catch (error) {
    return `${unusable}cannot keep the list of upstreams in ${folder}: ${(error as Error).message}; the next start does not tell what a change of it moves`;
  }
  return unusable === "" ? null : `${unusable}replaced, and nothing was compared with it`;
}

/** The numbers that a change of the list was warned to have given up, until they are back. */
function earlierOf(known: KnownRoute | undefined, route: RouteTopology): RoutePlacement | null {
  if (known === undefined) return null;
  const last = newestPlacement(known.last);
  const now = newestPlacement(route);
  if (!isRenumbered(last, now)) return known.earlier;
  return known.earlier !== null && !isRenumbered(known.earlier, now) ? null : last;
}

/** Whatever happens meanwhile, the file is the one before or the new one, whole. */
async function replaceFile(folder: string, text: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const file = join(folder, FILE);
  const unfinished = `${file}.tmp`;
  const handle = await open(unfinished, "w");
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(unfinished, file);
  await syncFolder(folder);
}

/** The name of a file is part of its folder. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
