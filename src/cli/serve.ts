/** `serve`: runs the gateway until SIGTERM or SIGINT. */
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { type LoadOptions, loadConfig, parseSentConfig } from "../config/load.ts";
import { formatProblem } from "../config/problem.ts";
import { DeliveryError } from "../deliver/errors.ts";
import { SpoolError } from "../deliver/spool/errors.ts";
import type { ConfigFile } from "../configFile.ts";
import { Gateway, ListenError } from "../gateway.ts";
import { createLog } from "../telemetry/log.ts";
import { VERSION } from "../version.ts";
import { FileReloads } from "./fileReloads.ts";
import { tellChanges } from "./knownTopology.ts";
import { waitForSignal } from "./stopSignal.ts";

export interface ServeOptions extends LoadOptions {
  readonly logLevel: string;
}

/**
 * @returns 0 after a signal and an orderly end, 1 when the configuration is invalid or the address cannot be had
 */
export async function serve(file: string, options: ServeOptions): Promise<number> {
  const log = createLog(options.logLevel);
  const loaded = loadConfig(file, options);
  const { origin, config, problems } = loaded;
  for (const problem of problems) {
    log[problem.severity === "error" ? "error" : "warn"](formatProblem(problem));
  }
  if (config === null) {
    log.error({ file }, "the configuration is invalid, the gateway does not start");
    return 1;
  }
  const ended = waitForSignal("SIGTERM", "SIGINT");
  const endedAgain = ended.then(() => waitForSignal("SIGTERM", "SIGINT"));
  tellChanges(config, origin === "legacy", log);
  const reloads = new FileReloads(file, options, log);
  process.on("SIGHUP", () => void reloads.reload("signal", false));
  const gateway = await start(config, log, {
    reload: (force) => reloads.reload("request", force),
    read: (text, name) => parseSentConfig(text, name, options),
  });
  if (gateway === null) return 1;
  await reloads.begin(gateway, loaded);
  const routes = config.routes.map(({ route, upstreams }) => `${route.name} (${upstreams.length} upstreams)`);
  log.info(
    {
      version: VERSION,
      file,
      origin,
      host: config.listen.host,
      port: gateway.port,
      adminPort: gateway.adminPort,
      routes,
    },
    "listening",
  );
  const signal = await ended;
  reloads.stop();
  log.info({ signal }, "stopping: not ready any more, requests under way are finished");
  const haste = new AbortController();
  void endedAgain.then((again) => {
    log.warn({ signal: again }, "asked again: what is not delivered is spooled, or refused to its senders");
    haste.abort();
  });
  await gateway.stop(haste.signal);
  log.info("stopped");
  return 0;
}

/** Answers null, and says why, when the gateway cannot start. */
async function start(config: Config, log: Logger, configFile: ConfigFile): Promise<Gateway | null> {
  let gateway: Gateway;
  try {
    gateway = await Gateway.open(config, log, configFile);
  } catch (error) {
    if (!(error instanceof DeliveryError || error instanceof SpoolError)) throw error;
    log.error(`${error.message}; the gateway does not start`);
    return null;
  }
  try {
    await gateway.start();
    return gateway;
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    log.error(`${error.message}; the gateway does not start`);
    return null;
  }
}
