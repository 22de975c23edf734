/** `convert`: a file of the old Go gateway as a native one. */
import { Document } from "yaml";
import type { ScalarTag } from "yaml";
import { convertConfig } from "../config/load.ts";
import type { LoadOptions } from "../config/load.ts";
import type { ConfigNode } from "../config/node.ts";
import { formatProblem } from "../config/problem.ts";

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
  const yaml = new Document(plainValue(document), {
    aliasDuplicateObjects: false,
    customTags: [WRITTEN_NUMBER],
  });
  yaml.commentBefore = ` Converted from ${file}, a file of the old Go gateway, with --legacy-hash ${options.legacyHash}.`;
  for (const line of yaml.toString({ lineWidth: 0 }).trimEnd().split("\n")) print(line);
  return 0;
}

function plainValue(node: ConfigNode): unknown {
  switch (node.kind) {
    case "nothing":
      return null;
    case "text":
      return node.plain && /^[-+]?\d[\w.]*$/.test(node.text) ? new WrittenNumber(node.text) : node.text;
    case "list":
      return node.items.map(plainValue);
    case "map":
      return Object.fromEntries([...node.entries].map(([key, entry]) => [key, plainValue(entry.value)]));
  }
}

/** What stands in a file without quotes as numbers do; 0x10, 010 and 1.0 would be spelled otherwise after a conversion. */
class WrittenNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Writes them without quotes, and without a tag, which is what `default` means. */
const WRITTEN_NUMBER: ScalarTag = {
  tag: "!number",
  default: true,
  identify: (value) => value instanceof WrittenNumber,
  resolve: (text) => new WrittenNumber(text),
  stringify: ({ value }) => (value as WrittenNumber).text,
};
