/**
 * What an operator reads about one upstream. Every attempt is a debug line; above that, of each kind of trouble one line,
 * and the next after a while with the number of those in between: an upstream that is down must not fill the disk.
 */
import type { Logger } from "pino";
import type { Batch } from "./batch.ts";
import type { BreakerState } from "./breaker.ts";
import { isRedirect } from "./classify.ts";
import type { AttemptEnd } from "./classify.ts";
import { formatMs } from "./cleanText.ts";
import type { BreakerOptions } from "./options.ts";
import type { Parcel } from "../wire/parcel.ts";

const QUIET_MS = 60_000;

type SentBatch = Pick<Batch, "parcels" | "body" | "series" | "attempts">;
type Trouble =
  "retry" | "redirect" | "refusal" | "behind" | "returned" | "not_spooled" | "unreadable" | "unopened";

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

  delivered(batch: SentBatch): void {
    if (!this.#logger.isLevelEnabled("debug")) return; // the line would cost more than all else
    this.#logger.debug(`${this.#subject()} took ${describe(batch)}`);
  }

  /** The data of a parcel is lost unless its sender mends it; which of several it is about is found out first. */
  refused(batch: SentBatch, status: number, reply: string): void {
    const words = reply === "" ? "" : `: ${reply}`;
    const what = `${this.#subject()}: ${status} for ${describe(batch)}`;
    const parcels = batch.parcels.length;
    if (parcels === 1) this.#report("error", "refusal", `${what}; refused, its sender is told${words}`);
    else this.#logger.debug(`${what}; its ${parcels} parcels are sent again in two halves${words}`);
  }

  /** @param waitMs until the next attempt; null if its senders keep all of it */
  retry(batch: SentBatch, end: Extract<AttemptEnd, { kind: "retry" }>, waitMs: number | null): void {
    const source = end.retryAfterMs === null ? "" : " (Retry-After)";
    const next =
      waitMs === null ? "its senders are told to come again" : `next attempt in ${formatMs(waitMs)}${source}`;
    const what = `${this.#subject()}: ${end.cause}`;
    if (isRedirect(end.status)) {
      // Nothing gets through until somebody mends the url, or what is behind it.
      const advice = "set url to where the receiver is";
      this.#report("error", "redirect", `${what}, for ${describe(batch)}; ${advice}; ${next}`);
    } else {
      this.#report("warn", "retry", `${what} for ${describe(batch)}; ${next}`);
    }
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
        this.#logger.debug(`${this.#subject()}: breaker half-open, one batch is tried`);
        break;
      case "closed":
        this.#logger.info(`${this.#subject()}: breaker closed, batches are sent again`);
        break;
    }
  }

  /** @param cause why a lane cannot send what it has */
  behind(cause: string): void {
    this.#report(
      "warn",
      "behind",
      `${this.#subject()}: behind, what comes for it goes to the spool and is sent in order; ${cause}`,
    );
  }

  returned(): void {
    this.#report("info", "returned", `${this.#subject()}: no longer behind, its spool is empty`);
  }

  notSpooled(parcels: number, cause: string): void {
    const what = `${parcels} parcels are not spooled: ${cause}`;
    this.#report("error", "not_spooled", `${this.#subject()}: ${what}; their senders are told to come again`);
  }

  unreadable(cause: string): void {
    this.#report("error", "unreadable", `${this.#subject()}: ${cause}; it is tried again`);
  }

  /** @param isFromDisk whether it is dropped; otherwise it is sent as it is */
  unopened({ series }: Pick<Parcel, "series">, cause: string, isFromDisk: boolean): void {
    const fate = isFromDisk ? "it is dropped as spool_damaged" : "it is sent as it is";
    const what = `a parcel of ${series} series cannot be opened to look for samples that are too old`;
    this.#report("error", "unopened", `${this.#subject()}: ${what} (${cause}); ${fate}`);
  }

  #subject(): string {
    return `upstream ${this.#upstream}`;
  }

  #report(level: "info" | "warn" | "error", trouble: Trouble, message: string): void {
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

function describe({ body, series, attempts }: SentBatch): string {
  const bytes = body.byteLength;
  const size = bytes < 1024 ? `${bytes} B` : `${Math.round(bytes / 1024)} KiB`;
  return `a batch of ${series} series (${size}), attempt ${attempts}`;
}
