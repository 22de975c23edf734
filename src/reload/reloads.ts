/**
 * Reloads of the configuration, one at a time, whoever asks for them.
 *
 * Each reads the file anew when its turn comes. So whoever asks while another waits is served by that one: it has not read yet.
 */
import type { Config } from "../config/config.ts";
import type { LoadedConfig } from "../config/load.ts";
import { formatProblem } from "../config/problem.ts";
import type { ReloadOutcome, ReloadTrigger } from "./outcome.ts";

export interface ReloadTools {
  readonly load: () => LoadedConfig;
  /** Puts a valid configuration in force. @param force whatever it moves */
  readonly apply: (config: Config, force: boolean, origin: LoadedConfig["origin"]) => Promise<ReloadOutcome>;
  /** Told of each that has come to its end. */
  readonly ended: (outcome: ReloadOutcome, trigger: ReloadTrigger, loaded: LoadedConfig) => void;
}

interface Waiting {
  readonly trigger: ReloadTrigger;
  readonly force: boolean;
  readonly outcome: Promise<ReloadOutcome>;
}

export class Reloads {
  readonly #tools: ReloadTools;
  /** Resolves when all that were asked for have ended. */
  #last: Promise<unknown> = Promise.resolve();
  /** The one that was asked for last, until it begins. */
  #waiting: Waiting | null = null;

  constructor(tools: ReloadTools) {
    this.#tools = tools;
  }

  /** Reads the file and puts what it says in force, or leaves everything as it is. Rejects only for a bug. */
  reload(trigger: ReloadTrigger, force: boolean): Promise<ReloadOutcome> {
    const waiting = this.#waiting;
    if (waiting?.trigger === trigger && waiting.force === force) return waiting.outcome;
    const outcome = this.#last.then(() => {
      if (this.#waiting?.outcome === outcome) this.#waiting = null;
      return this.#run(trigger, force);
    });
    this.#last = outcome.catch(() => undefined);
    this.#waiting = { trigger, force, outcome };
    return outcome;
  }

  async #run(trigger: ReloadTrigger, force: boolean): Promise<ReloadOutcome> {
    const loaded = this.#tools.load();
    const { origin, config, problems } = loaded;
    const outcome: ReloadOutcome =
      config === null
        ? { kind: "invalid", lines: problems.map(formatProblem) }
        : await this.#tools.apply(config, force, origin);
    this.#tools.ended(outcome, trigger, loaded);
    return outcome;
  }
}
