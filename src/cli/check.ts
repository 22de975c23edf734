/** `check`: what a configuration file means, and all that is wrong or doubtful in it. */
import type { Config } from "../config/config.ts";
import { loadConfig } from "../config/load.ts";
import type { LoadOptions } from "../config/load.ts";
import { formatProblem } from "../config/problem.ts";
import type { Problem } from "../config/problem.ts";
import type { RouteOptions } from "../route/options.ts";
import {
  describeChange,
  type KnownRoute,
  LEGACY_REMEDY,
  pastTexts,
  type RouteChange,
} from "../plan/changeText.ts";
import { readIfKnown, readKnown } from "./knownTopology.ts";
import { periodTexts, routeText, rulesText, unevenText } from "./routeText.ts";

export interface CheckOptions extends LoadOptions {
  /** The configuration that ran before, or what a start kept of it; null to compare with what the last start here kept. */
  readonly against: string | null;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
}

/**
 * Prints every problem of a file and, when it is valid, what was understood.
 *
 * @param print takes one line at a time
 * @returns the exit code: 1 when the file, or the one to compare with, has an error, else 0
 */
export function check(file: string, options: CheckOptions, print: (line: string) => void): number {
  const { origin, config, problems } = loadConfig(file, options);
  for (const problem of problems) print(formatProblem(problem));
  if (config === null) {
    print(`${file}: invalid, ${countErrors(problems)}`);
    return 1;
  }
  const format = origin === "legacy" ? "valid, a file of the old Go gateway" : "valid";
  print(`${file}: ${format}; listens on ${writtenAddress(config.listen)}`);
  if (config.relabel.rules.length > 0) print(`before all routes: ${rulesText(config.relabel)}`);
  for (const { route } of config.routes) {
    print(`route ${route.name}: ${routeText(route)}`);
    for (const text of periodTexts(route)) print(`  ${text}`);
    for (const change of borderChanges(route)) printChange(change, print);
    const uneven = unevenText(route);
    if (uneven !== null) print(`warning: route ${route.name}: ${uneven}`);
  }
  const before = routesBefore(config.spool.path, options, print);
  if (before === "invalid") return 1;
  if (before === "none") return 0;
  const renumbered = compare(config, before, options.nowMs, print);
  if (renumbered && origin === "legacy") print(`  ${LEGACY_REMEDY}`);
  return 0;
}

/** What a configuration is compared with. */
interface Before {
  /** Where it comes from. */
  readonly from: string;
  readonly routes: readonly KnownRoute[];
}

/** Prints what is wrong with it, which is an error where it was asked for. @param folder in which a start keeps what it runs with */
function routesBefore(
  folder: string,
  options: CheckOptions,
  print: (line: string) => void,
): Before | "invalid" | "none" {
  if (options.against !== null) return routesOf(options.against, options, print);
  const known = readKnown(folder);
  switch (known.kind) {
    case "known":
      return { from: known.file, routes: known.routes };
    case "unusable":
      print(`warning: ${known.file} cannot be used: ${known.reason}; nothing is compared with it`);
      return "none";
    case "none":
      return "none";
  }
}

function routesOf(file: string, options: LoadOptions, print: (line: string) => void): Before | "invalid" {
  const known = readIfKnown(file);
  switch (known.kind) {
    case "known":
      return { from: file, routes: known.routes };
    case "unusable":
      print(`${file}: cannot be used: ${known.reason}; nothing is compared with it`);
      return "invalid";
    case "none":
      return routesConfigured(file, options, print);
  }
}

function routesConfigured(
  file: string,
  options: LoadOptions,
  print: (line: string) => void,
): Before | "invalid" {
  const { config, problems } = loadConfig(file, options);
  if (config !== null) {
    return { from: file, routes: config.routes.map(({ route }) => ({ last: route, earlier: null })) };
  }
  for (const problem of problems) print(formatProblem(problem));
  print(`${file}: invalid, ${countErrors(problems)}; nothing is compared with it`);
  return "invalid";
}

function countErrors(problems: readonly Problem[]): string {
  const errors = problems.filter(({ severity }) => severity === "error").length;
  return `${errors} ${errors === 1 ? "error" : "errors"}`;
}

/**
 * Prints what moves when `config` takes the place of what was before.
 *
 * @returns whether there is something to be written otherwise
 */
function compare(
  config: Config,
  { from, routes }: Before,
  nowMs: number,
  print: (line: string) => void,
): boolean {
  let renumbered = false;
  const gone = new Map(routes.map((known) => [known.last.name, known]));
  for (const { route } of config.routes) {
    const known = gone.get(route.name);
    gone.delete(route.name);
    if (known === undefined) {
      print(`route ${route.name} against ${from}: new`);
      continue;
    }
    const change = describeChange(from, known, route);
    printChange(change, print);
    for (const text of pastTexts(known, route, nowMs)) print(`warning: ${text}`);
    renumbered ||= change.remedies.length > 0;
  }
  for (const name of gone.keys()) print(`route ${name} against ${from}: gone`);
  return renumbered;
}

/** What moves at each border of a route's periods. */
function borderChanges(route: RouteOptions): RouteChange[] {
  return route.topology.slice(1).map((period, index) => {
    const before = { ...route, topology: route.topology.slice(index, index + 1) };
    const known = { last: before, earlier: null };
    return describeChange("the period before", known, { ...route, topology: [period] });
  });
}

function printChange({ kind, text, remedies }: RouteChange, print: (line: string) => void): void {
  print(kind === "renumbered" ? `warning: ${text}` : text);
  for (const remedy of remedies) print(`  ${remedy}`);
}

function writtenAddress({ host, port }: Config["listen"]): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
