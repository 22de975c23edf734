/**
 * The breaker of one upstream: after so many failed attempts in a row none is made for a while, then one, whose end decides.
 *
 * opossum holds the states and the time that it stays open. Attempts do not run inside it: every one would cost several
 * promises and events, and it takes any end in half-open for that of its one attempt, also when the attempt began before
 * it opened and ends up to a remote timeout later. It also opens by a share of failures in a rolling window, in which late
 * failures can outnumber starts. So failures in a row are counted here, open() and close() are called, and an attempt
 * counts only in the period, from one change of state to the next, that it began in.
 */
import { EventEmitter } from "node:events";
import CircuitBreaker from "opossum";
import type { BreakerOptions } from "./options.ts";

/** What opossum reads each time it opens. */
interface CircuitTimes {
  resetTimeout: number;
}

export type BreakerState = "closed" | "open" | "half_open";

export class Breaker {
  readonly #options: () => BreakerOptions;
  readonly #times: CircuitTimes;
  readonly #now: () => number;
  readonly #circuit: CircuitBreaker<[], void>;
  #period = 0;
  /** Attempts begun in this period. */
  #begun = 0;
  #failuresInARow = 0;
  #openUntil = 0;

  /**
   * @param options  those in force; while it is open, the time goes on that was in force when it opened
   * @param onChange told of every change of state, after it; does not throw
   */
  constructor(options: () => BreakerOptions, now: () => number, onChange: (state: BreakerState) => void) {
    this.#options = options;
    this.#now = now;
    const settings = {
      resetTimeout: options().resetAfterMs,
      enableSnapshots: false,
      // Its statistics have nothing to count: without rotation they need no timer.
      rotateBucketController: new EventEmitter(),
    };
    this.#times = settings;
    this.#circuit = new CircuitBreaker(() => Promise.resolve(), settings);
    const change = (state: BreakerState): void => {
      this.#period += 1;
      this.#begun = 0;
      this.#failuresInARow = 0;
      onChange(state);
    };
    this.#circuit.on("open", () => {
      this.#openUntil = this.#now() + this.#times.resetTimeout;
      change("open");
    });
    this.#circuit.on("halfOpen", () => {
      change("half_open");
    });
    this.#circuit.on("close", () => {
      change("closed");
    });
  }

  get state(): BreakerState {
    if (this.#circuit.closed) return "closed";
    return this.#circuit.halfOpen ? "half_open" : "open";
  }

  /** Milliseconds until the next attempt is let through; 0 unless open. */
  get untilHalfOpenMs(): number {
    return this.state === "open" ? Math.max(0, this.#openUntil - this.#now()) : 0;
  }

  /** Whether an attempt may begin: not while open, and while half-open only the first. */
  get admits(): boolean {
    return this.#circuit.closed || (this.#circuit.halfOpen && this.#begun === 0);
  }

  /**
   * Takes note that an attempt begins, which `admits` allowed.
   *
   * @returns what end() wants to know of it
   */
  begin(): number {
    this.#begun += 1;
    return this.#period;
  }

  /**
   * Takes note that an attempt ended, once for each that began; what follows from it has happened when this returns.
   *
   * @param period what begin() returned
   * @param failed whether its end speaks against the upstream
   */
  end(period: number, failed: boolean): void {
    if (period !== this.#period || this.#circuit.isShutdown) return;
    if (!failed) {
      this.#failuresInARow = 0;
      this.#circuit.close();
      return;
    }
    this.#failuresInARow += 1;
    const { consecutiveFailures, resetAfterMs } = this.#options();
    const limit = this.#circuit.halfOpen ? 1 : consecutiveFailures;
    if (this.#failuresInARow < limit) return;
    this.#times.resetTimeout = resetAfterMs;
    this.#circuit.open();
  }

  /** Ends all timers; nothing is admitted and nothing changes from now on. */
  shutdown(): void {
    this.#circuit.shutdown();
  }
}
