/**
 * What an operator reads about one upstream. Every attempt is a debug line; above that, of each kind of trouble one line,
 * and the next after a while with the number of those in between: an upstream that is down must not fill the disk.
 */
import type { Logger } from "pino";
import type { BreakerState } from "./breaker.ts";
import { formatMs } from "./cleanText.ts";
import type { BreakerOptions } from "./options.ts";
import type { Parcel } from "../wire/parcel.ts";

const QUIET_MS = 60_000;

type Trouble = "retry" | "redirect" | "refusal";

export class DeliveryLog {
  readonly #logger: Logger;
  readonly #upstream: string;
  readonly #now: () => number;
  readonly #quietUntil = new Map<Trouble, number>();
  readonly #heldBack = new Map<Trouble, number>();
  #breaker: BreakerState = "closed";

  constructor(logger: Logger, upstream: string, now: () => number) {
    this.#logger = logger;
    this.#upstream = upstream;
    this.#now = now;
  }

  delivered(parcel: Parcel, attempt: number): void {
    this.#logger.debug(`${this.#subject()} took ${describe(parcel)}, attempt ${attempt}`);
  }

  /** The data of the parcel is lost unless its sender mends it. */
  refused(parcel: Parcel, attempt: number, status: number, reply: string): void {
    const words = reply === "" ? "" : `: ${reply}`;
    const what = `${this.#subject()}: ${status} for ${describe(parcel)}, attempt ${attempt}`;
    this.#report("error", "refusal", `${what}; refused, its sender is told${words}`);
  }

  /** @param next what happens with the parcel now */
  retry(parcel: Parcel, attempt: number, cause: string, next: string): void {
    const what = `${this.#subject()}: ${cause} for ${describe(parcel)}, attempt ${attempt}`;
    this.#report("warn", "retry", `${what}; ${next}`);
  }

  /** Nothing gets through until somebody mends the url, or what is behind it. */
  redirected(parcel: Parcel, attempt: number, cause: string, next: string): void {
    const what = `${this.#subject()}: ${cause}, for ${describe(parcel)}, attempt ${attempt}`;
    this.#report("error", "redirect", `${what}; set url to where the receiver is; ${next}`);
  }

  breakerChanged(state: BreakerState, options: BreakerOptions, lastCause: string): void {
    const before = this.#breaker;
    this.#breaker = state;
    const pause = `nothing is sent for ${formatMs(options.resetAfterMs)}`;
    switch (state) {
      case "open":
        if (before === "closed") {
          const failures = `${options.consecutiveFailures} failed attempts in a row`;
          this.#logger.warn(
            `${this.#subject()}: breaker open after ${failures}, last: ${lastCause}; ${pause}`,
          );
        } else {
          this.#logger.debug(`${this.#subject()}: breaker open again: ${lastCause}; ${pause}`);
        }
        break;
      case "half_open":
        this.#logger.debug(`${this.#subject()}: breaker half-open, one parcel is tried`);
        break;
      case "closed":
        this.#logger.info(`${this.#subject()}: breaker closed, parcels are sent again`);
        break;
    }
  }

  #subject(): string {
    return `upstream ${this.#upstream}`;
  }

  #report(level: "warn" | "error", trouble: Trouble, message: string): void {
    const heldBack = this.#heldBack.get(trouble) ?? 0;
    if (this.#now() < (this.#quietUntil.get(trouble) ?? 0)) {
      this.#heldBack.set(trouble, heldBack + 1);
      this.#logger.debug(message);
      return;
    }
    this.#quietUntil.set(trouble, this.#now() + QUIET_MS);
    this.#heldBack.set(trouble, 0);
    this.#logger[level](
      heldBack === 0 ? message : `${message} (and ${heldBack} more since the last such line)`,
    );
  }
}

function describe(parcel: Parcel): string {
  const bytes = parcel.body.byteLength;
  const size = bytes < 1024 ? `${bytes} B` : `${Math.round(bytes / 1024)} KiB`;
  return `a parcel of ${parcel.series} series (${size})`;
}
