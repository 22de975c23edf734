/** What `npm start` runs: the gateway with config/default.yaml and receivers for its upstreams. */
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Screen } from "../src/cli/screen.ts";
import { start } from "../src/cli/start.ts";
import { waitForSignal } from "../src/cli/stopSignal.ts";

/** A file of the package as it is named from the current folder; this file is in dist/cmd/. */
function packageFile(path: string): string {
  return relative(process.cwd(), fileURLToPath(new URL(path, import.meta.url)));
}

/** Answers whether the demo was asked for, or null when the arguments make no sense. */
function readArguments(): boolean | null {
  try {
    return parseArgs({ options: { demo: { type: "boolean", default: false } } }).values.demo;
  } catch (error) {
    complain(`${(error as Error).message}; usage: npm start [-- --demo]`);
    return null;
  }
}

function complain(line: string): void {
  process.stderr.write(`${line}\n`);
}

// Whoever reads the output may be gone: a closed terminal, or `... | head`. Then everything ends in order.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", () => process.kill(process.pid, "SIGTERM"));
}

const demo = readArguments();
process.exitCode =
  demo === null
    ? 2
    : await start({
        configFile: packageFile("../../config/default.yaml"),
        mainFile: packageFile("./main.js"),
        demo,
        screen: new Screen(process.stdout),
        complain,
        nextSignal: () => waitForSignal("SIGTERM", "SIGINT", "SIGHUP"),
      });
