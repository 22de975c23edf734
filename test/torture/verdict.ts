/** What a torture says. */

export interface Verdict {
  readonly passed: boolean;
  readonly text: string;
}

const SHOWN = 20;

/** Passes when nothing was found. @param what names what should not be there */
export function noneOf(what: string, found: readonly string[]): Verdict {
  if (found.length === 0) return { passed: true, text: `${what}: none` };
  const shown = found.slice(0, SHOWN).join("\n       ");
  return { passed: false, text: `${what}: ${found.length}\n       ${shown}` };
}

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
