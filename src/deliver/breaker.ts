/**
 * The breaker of one upstream: after so many failed attempts in a row none is made for a while, then one, whose end decides.
 *
 * opossum holds the states, the timer and the single attempt of half-open. Around it:
 *
 * - opossum opens by a share of failures in a rolling window, in which late failures can outnumber starts. That is switched
 *   off (a volume that is never reached), failures in a row are counted here and open() is called.
 * - While half-open, opossum takes any end for that of its one attempt. Attempts begun before it opened can end then, up to
 *   a remote timeout later. So opening releases all attempts under way: opossum sees them end there and then, and what
 *   they come to in truth is for their caller alone.
 * - Its own timeout is off: an attempt ends by its own hard deadline, so the one of half-open does too. There is no
 *   abort controller, cache or coalescing, no snapshot timer and no percentiles; its timers do not keep a process alive.
 */
import CircuitBreaker from "opossum";
import type { BreakerOptions } from "./options.ts";

export type BreakerState = "closed" | "open" | "half_open";

export class Breaker {
  readonly #options: BreakerOptions;
  readonly #now: () => number;
  readonly #circuit: CircuitBreaker<[Promise<void>], void>;
  /** Ends, for opossum, the attempts under way. */
  readonly #releases = new Set<() => void>();
  #failuresInARow = 0;
  #openedAt = 0;

  /** @param onChange told of every change of state, after it; does not throw */
  constructor(options: BreakerOptions, now: () => number, onChange: (state: BreakerState) => void) {
    this.#options = options;
    this.#now = now;
    this.#circuit = new CircuitBreaker((verdict: Promise<void>) => verdict, {
      timeout: false,
      resetTimeout: options.resetAfterMs,
      volumeThreshold: Number.MAX_SAFE_INTEGER,
      enableSnapshots: false,
      rollingPercentilesEnabled: false,
      // It keeps every latency until its bucket goes, asked for or not: one bucket, gone after a second.
      rollingCountBuckets: 1,
      rollingCountTimeout: 1000,
    });
    this.#circuit.on("success", () => {
      this.#failuresInARow = 0;
    });
    this.#circuit.on("failure", () => {
      this.#countFailure();
    });
    this.#circuit.on("open", () => {
      this.#openedAt = this.#now();
      this.#failuresInARow = 0;
      this.#releaseAll();
      onChange("open");
    });
    this.#circuit.on("halfOpen", () => {
      onChange("half_open");
    });
    this.#circuit.on("close", () => {
      onChange("closed");
    });
  }

  get state(): BreakerState {
    if (this.#circuit.closed) return "closed";
    return this.#circuit.halfOpen ? "half_open" : "open";
  }

  /** Milliseconds until the next attempt is let through; 0 unless open. */
  get untilHalfOpenMs(): number {
    return this.state === "open" ? Math.max(0, this.#openedAt + this.#options.resetAfterMs - this.#now()) : 0;
  }

  /**
   * Starts an attempt, if one may start now, and counts how it ends.
   *
   * @param start     called at once or not at all
   * @param isFailure whether an end speaks against the upstream; an attempt that rejects always does
   * @returns how the attempt ended, once that is counted; null while open, and while half-open with its one attempt under way
   */
  begin<T>(start: () => Promise<T>, isFailure: (end: T) => boolean): Promise<T> | null {
    // A circuit that was shut down while half-open still calls itself ready for its one attempt.
    if (this.#circuit.isShutdown) return null;
    if (!this.#circuit.closed && !this.#circuit.pendingClose) return null;
    const running = start();
    const verdict = new Promise<void>((resolve, reject) => {
      this.#releases.add(resolve);
      const settle = (failed: boolean): void => {
        this.#releases.delete(resolve);
        if (failed) reject(new Error("the attempt failed"));
        else resolve();
      };
      running.then(
        (end) => {
          settle(isFailure(end));
        },
        () => {
          settle(true);
        },
      );
    });
    const counted = this.#circuit.fire(verdict);
    return counted.then(
      () => running,
      () => running,
    );
  }

  /** Ends all timers; begin() answers null from now on. */
  shutdown(): void {
    this.#releaseAll();
    this.#circuit.shutdown();
  }

  #countFailure(): void {
    if (!this.#circuit.closed) return; // half-open: opossum opens by itself
    this.#failuresInARow += 1;
    if (this.#failuresInARow >= this.#options.consecutiveFailures) this.#circuit.open();
  }

  #releaseAll(): void {
    for (const release of this.#releases) release();
    this.#releases.clear();
  }
}
