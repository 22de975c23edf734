#!/usr/bin/env -S node --single-threaded-gc
/** argv in, exit code out. */
import { run } from "../src/cli/program.ts";

// The reader of a pipe may have seen enough, as in `... | head`.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

process.exitCode = await run(process.argv.slice(2));
