/** `check`: what a configuration file means, and all that is wrong or doubtful in it. */
import type { Config } from "../config/config.ts";
import { loadConfig } from "../config/load.ts";
import type { LoadOptions } from "../config/load.ts";
import { formatProblem } from "../config/problem.ts";
import type { Problem } from "../config/problem.ts";
import { changeLines } from "./changeText.ts";
import { routeText, rulesText, unevenText } from "./routeText.ts";

export interface CheckOptions extends LoadOptions {
  /** The configuration that ran before; null for no comparison. */
  readonly against: string | null;
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
    const uneven = unevenText(route);
    if (uneven !== null) print(`warning: route ${route.name}: ${uneven}`);
  }
  if (options.against === null) return 0;
  const compared = compare(config, options.against, options, print);
  if (compared === "renumbered" && origin === "legacy")
    print(
      "  this takes a native file: files of the old Go gateway have no tombstones; see the command convert",
    );
  return compared === "invalid" ? 1 : 0;
}

function countErrors(problems: readonly Problem[]): string {
  const errors = problems.filter(({ severity }) => severity === "error").length;
  return `${errors} ${errors === 1 ? "error" : "errors"}`;
}

/** Prints what moves when `config` takes the place of the one in `file`. */
function compare(
  config: Config,
  file: string,
  options: LoadOptions,
  print: (line: string) => void,
): "invalid" | "renumbered" | "compared" {
  const { config: before, problems } = loadConfig(file, options);
  if (before === null) {
    for (const problem of problems) print(formatProblem(problem));
    print(`${file}: invalid, ${countErrors(problems)}; nothing is compared with it`);
    return "invalid";
  }
  let renumbered = false;
  const earlier = new Map(before.routes.map(({ route }) => [route.name, route]));
  for (const { route } of config.routes) {
    const old = earlier.get(route.name);
    earlier.delete(route.name);
    const lines =
      old === undefined ? [`route ${route.name} against ${file}: new`] : changeLines(file, old, route);
    lines.forEach(print);
    renumbered ||= lines.length > 1;
  }
  for (const name of earlier.keys()) print(`route ${name} against ${file}: gone`);
  return renumbered ? "renumbered" : "compared";
}

function writtenAddress({ host, port }: Config["listen"]): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
