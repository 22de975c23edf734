/** What the spool does not have of its own. */
import type { Logger } from "pino";
import type { SpoolFiles } from "./files.ts";

export interface SpoolTools {
  readonly files: SpoolFiles;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** 0 <= random() < 1; senders must not be able to guess it. */
  readonly random: () => number;
  readonly log: Pick<Logger, "error" | "warn" | "info">;
}
