/** `convert`: a file of the old Go gateway as a native one. */
import { convertConfig } from "../config/load.ts";
import type { LoadOptions } from "../config/load.ts";
import { formatProblem } from "../config/problem.ts";
import { yamlLines } from "./nodeYaml.ts";

/**
 * Prints the native YAML that means the same as an old file. It holds the passwords that the old file's urls hold.
 *
 * @param print      takes the YAML, one line at a time
 * @param printError takes what was assumed, ignored or wrong
 * @returns the exit code: 1 when there is nothing to print, else 0
 */
export function convert(
  file: string,
  options: LoadOptions,
  print: (line: string) => void,
  printError: (line: string) => void,
): number {
  const { origin, document, problems } = convertConfig(file, options);
  for (const problem of problems) printError(formatProblem(problem));
  if (document === null) {
    const valid = problems.every((problem) => problem.severity !== "error");
    if (valid && origin === "native") printError(`${file}: is a native file already`);
    return 1;
  }
  const comment = `Converted from ${file}, a file of the old Go gateway, with --legacy-hash ${options.legacyHash}.`;
  for (const line of yamlLines(document, comment)) print(line);
  return 0;
}
