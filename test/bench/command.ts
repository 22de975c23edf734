/** What the commands of this folder share: options, and errors that are told in a few words. */
import { parseArgs, type ParseArgsConfig } from "node:util";
import { MissingTools } from "./tools.ts";

type OptionsConfig = NonNullable<ParseArgsConfig["options"]>;
type Values<Options extends OptionsConfig> = ReturnType<
  typeof parseArgs<{ args: string[]; options: Options }>
>["values"];

/** The command line is not as it should be. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** @throws {UsageError} */
export function parseOptions<const Options extends OptionsConfig>(
  args: readonly string[],
  options: Options,
): Values<Options> {
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (cause) {
    throw new UsageError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

/** @throws {UsageError} naming the option */
export function atLeast(least: number, option: string, text: string): number {
  const value = Number(text);
  if (!(value >= least)) throw new UsageError(`${option}: want a number of at least ${least}; got ${text}`);
  return value;
}

/** Runs a command; what its user can do something about is told without a stack. */
export async function runCommand(main: () => Promise<void>, usage: string): Promise<void> {
  if (process.argv.slice(2).some((arg) => arg === "--help" || arg === "-h")) {
    process.stdout.write(usage);
    return;
  }
  try {
    await main();
  } catch (error) {
    if (error instanceof MissingTools) process.stderr.write(`${error.message}\n`);
    else if (error instanceof UsageError) process.stderr.write(`${error.message}\n\n${usage}`);
    else throw error;
    process.exitCode = 1;
  }
}
