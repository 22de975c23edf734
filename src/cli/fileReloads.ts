/** Keeps a gateway at what its configuration file says: reads it again when it changes, on SIGHUP, and on request. */
import { resolve } from "node:path";
import type { Logger } from "pino";
import { type LoadedConfig, loadConfig, type LoadOptions } from "../config/load.ts";
import { formatProblem } from "../config/problem.ts";
import type { Gateway } from "../gateway.ts";
import { FileWatch } from "../reload/fileWatch.ts";
import type { ReloadOutcome, ReloadTrigger } from "../reload/outcome.ts";
import { Reloads } from "../reload/reloads.ts";
import { keepKnown } from "./knownTopology.ts";

export class FileReloads {
  readonly #file: string;
  readonly #log: Logger;
  readonly #reloads: Reloads;
  readonly #begun: Promise<Gateway>;
  #tellBegun: (gateway: Gateway) => void = () => undefined;
  #gateway: Gateway | null = null;
  #watch: FileWatch | null = null;

  constructor(file: string, options: LoadOptions, log: Logger) {
    this.#file = file;
    this.#log = log;
    this.#begun = new Promise((resolve) => {
      this.#tellBegun = resolve;
    });
    this.#reloads = new Reloads({
      load: () => loadConfig(file, options),
      apply: async (...change) => (await this.#begun).reload(...change),
      ended: (outcome, trigger, loaded) => {
        this.#ended(outcome, trigger, loaded);
      },
    });
  }

  /** See Reloads.reload(). What is asked for while the gateway starts waits until it has: the file may be another by then. */
  async reload(trigger: ReloadTrigger, force: boolean): Promise<ReloadOutcome> {
    await this.#begun;
    return this.#reloads.reload(trigger, force);
  }

  /** Begins with what the gateway was started with. */
  async begin(gateway: Gateway, loaded: LoadedConfig): Promise<void> {
    this.#gateway = gateway;
    this.#follow(loaded);
    await this.#keep(loaded);
    this.#tellBegun(gateway);
  }

  /** Looks at no file any longer. */
  stop(): void {
    this.#watch?.stop();
    this.#watch = null;
  }

  #ended(outcome: ReloadOutcome, trigger: ReloadTrigger, loaded: LoadedConfig): void {
    this.#gateway?.countReload(outcome, trigger);
    this.#tell(outcome, trigger, loaded);
    if (outcome.kind === "applied" || outcome.kind === "unchanged") this.#follow(loaded);
    else this.#watch?.watch(this.#filesOf(loaded));
    if (outcome.kind === "applied") void this.#keep(loaded);
  }

  #tell(outcome: ReloadOutcome, trigger: ReloadTrigger, { problems }: LoadedConfig): void {
    const context = { file: this.#file, trigger };
    switch (outcome.kind) {
      case "unchanged":
        this.#log[trigger === "watch" ? "debug" : "info"](context, "reload: nothing is different");
        return;
      case "applied":
        for (const problem of problems) this.#log.warn(formatProblem(problem));
        for (const warning of outcome.warnings) this.#log.warn(`reload: ${warning}`);
        for (const line of outcome.lines) this.#log.info(`reload: ${line}`);
        this.#log.info(context, "reload: the configuration is in force");
        return;
      case "invalid":
      case "refused":
      case "failed":
        for (const line of outcome.lines) this.#log.error(`reload: ${line}`);
        this.#log.error(
          context,
          `reload: the configuration is ${REASONS[outcome.kind]}; the one before stays in force`,
        );
    }
  }

  #follow(loaded: LoadedConfig): void {
    const watches = loaded.config?.reload.watch === true;
    if (!watches) this.stop();
    else if (this.#watch !== null) this.#watch.watch(this.#filesOf(loaded));
    else this.#watch = new FileWatch(this.#filesOf(loaded), () => void this.reload("watch", false));
  }

  #filesOf({ secretFiles }: LoadedConfig): readonly string[] {
    return [resolve(this.#file), ...secretFiles];
  }

  /** Keeps what runs now for the next start to compare with. */
  async #keep({ config }: LoadedConfig): Promise<void> {
    if (config === null) return;
    const fault = await keepKnown(config.spool.path, config);
    if (fault !== null) this.#log.warn(fault);
  }
}

const REASONS = { invalid: "invalid", refused: "refused", failed: "not to be had" } as const;
