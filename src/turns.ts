/**
 * Shares the event loop among the requests that are being routed.
 *
 * A request is routed at once, in one go, when it is the only one and short, as nearly all are. When more come than fit into a
 * few milliseconds, they take turns, step by step, and between two rounds everything else is served: health checks, what
 * arrives, what leaves. So neither a huge request nor a thousand new senders hold up the rest.
 */
import { setImmediate } from "node:timers";

/** Work of steps: yields between them and returns its result. */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** Not nothing: work goes on, however many come that it gives way to. */
const SHORT_ROUND_MS = 1;

export class Turns {
  readonly #now: () => number;
  readonly #budgetMs: number;
  readonly #waiting: (() => boolean)[] = [];
  /** What is to happen between two works, and the works that have come since it was asked for. */
  #between: { readonly callbacks: (() => void)[]; readonly held: (() => boolean)[] } | null = null;
  #betweenComes = false;
  #spentMs = 0;
  /** When the step that goes on began. */
  #stepStart = 0;
  #roundEnds = false;
  #working = false;
  #givesWay = false;

  /** @param budgetMs how long steps go on before others are served; the last one may exceed it */
  constructor(now: () => number, budgetMs: number) {
    this.#now = now;
    this.#budgetMs = budgetMs;
  }

  /** How many have not come to their end. */
  get waiting(): number {
    return this.#waiting.length + (this.#between?.held.length ?? 0);
  }

  /**
   * Keeps this round short, or the next if this one is over. For others who wait for several rounds: connections are
   * accepted one a round, so that a new one waits for as many as there are before it.
   */
  giveWay(): void {
    this.#givesWay = true;
  }

  /** Whether the step that goes on has used up what there was: others are served when it ends. */
  get isDue(): boolean {
    return this.#spentMs + this.#now() - this.#stepStart >= this.#roundMs;
  }

  /**
   * Takes all steps, each in its turn. Rejects with what a step throws.
   *
   * @param begin called when it is the work's turn for the first time
   */
  run<Result>(begin: () => Steps<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      let steps: Steps<Result> | null = null;
      const takeStep = (): boolean => {
        try {
          steps ??= begin();
          const step = steps.next();
          if (step.done !== true) return false;
          resolve(step.value);
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
        return true;
      };
      if (this.#between !== null) {
        this.#between.held.push(takeStep);
        return;
      }
      this.#waiting.push(takeStep);
      if (!this.#working) this.#work();
    });
  }

  /**
   * Calls back when no work is under way: what has begun is ended before, and who waited for it has gone on with the result;
   * what comes from now on begins afterwards. So the callback may change what works, and those who use their results, share.
   *
   * @returns when it has been called
   */
  between(callback: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#between ??= { callbacks: [], held: [] };
      this.#between.callbacks.push(() => {
        try {
          callback();
          resolve();
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      });
      this.#awaitBetween();
    });
  }

  /** A work that has just ended has its result taken up before the loop has been round. */
  #awaitBetween(): void {
    if (this.#between === null || this.#waiting.length > 0 || this.#betweenComes) return;
    this.#betweenComes = true;
    setImmediate(() => {
      this.#betweenComes = false;
      this.#endBetween();
    });
  }

  #endBetween(): void {
    const { callbacks, held } = this.#between ?? { callbacks: [], held: [] };
    for (const callback of callbacks) callback();
    this.#between = null;
    this.#waiting.push(...held);
    if (held.length > 0) this.#work();
  }

  get #roundMs(): number {
    return this.#givesWay ? SHORT_ROUND_MS : this.#budgetMs;
  }

  #work(): void {
    this.#working = true;
    this.#stepStart = this.#now();
    while (this.#spentMs < this.#roundMs) {
      const step = this.#waiting[0];
      if (step === undefined) break;
      const isDone = step();
      this.#waiting.shift();
      if (!isDone) this.#waiting.push(step);
      const after = this.#now();
      this.#spentMs += after - this.#stepStart;
      this.#stepStart = after;
    }
    this.#working = false;
    this.#endRound();
    this.#awaitBetween();
  }

  /** What was spent is forgotten once the loop has been round. */
  #endRound(): void {
    if (this.#roundEnds) return;
    this.#roundEnds = true;
    setImmediate(() => {
      this.#roundEnds = false;
      this.#spentMs = 0;
      if (this.#waiting.length > 0) this.#work();
      this.#givesWay = false;
    });
  }
}
