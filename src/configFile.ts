/** Where the configuration of a gateway comes from, as far as the gateway asks for it. */
import type { LoadedConfig } from "./config/load.ts";
import type { ReloadOutcome } from "./reload/outcome.ts";

export interface ConfigFile {
  /** Reads it again, and puts what it says in force. @param force whatever that moves */
  readonly reload: (force: boolean) => Promise<ReloadOutcome>;
  /** Reads a text as if it were the file's, to compare it: it looks at no file that the text names. @param name for messages */
  readonly read: (text: string, name: string) => LoadedConfig;
}

const REASON = "the configuration of this gateway comes from no file";

export const NO_FILE: ConfigFile = {
  reload: () => Promise.resolve({ kind: "failed", lines: [REASON] }),
  read: (_text, file) => ({
    origin: "native",
    config: null,
    problems: [{ severity: "error", file, line: 1, column: 1, path: "", message: REASON }],
    secretFiles: [],
  }),
};
