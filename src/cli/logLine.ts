/** Lines of the gateway's log, which are JSON, for a person who watches it start. */
import { printable } from "./printable.ts";

/** A line of the gateway's log as text: warnings and errors only, null for the rest. */
export function logLineText(line: string): string | null {
  let entry: unknown;
  try {
    entry = JSON.parse(line);
  } catch {
    // Not from the log, such as Node's own words about a crash.
    return printable(line);
  }
  if (typeof entry !== "object" || entry === null || !("level" in entry) || !("msg" in entry))
    return printable(line);
  if (entry.level !== "warn" && entry.level !== "error" && entry.level !== "fatal") return null;
  const upstream =
    "upstream" in entry && typeof entry.upstream === "string" ? `upstream ${entry.upstream}: ` : "";
  return printable(`${entry.level}: ${upstream}${String(entry.msg)}`);
}
