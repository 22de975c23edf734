/**
 * Decides the new series of one request.
 *
 * It remembers what the engine does not, since a step can end early: decisions of a step that is then scanned once more, and one
 * that takes longer than others can wait, as a thousand rules do on a long value. That one goes on in the steps that follow,
 * on a copy of its series, for the engine's memory is free for others in between.
 */
import { Cursor } from "../wire/cursor.ts";
import { scanSeries, SeriesScan } from "../wire/scan.ts";
import type { Decider, Decision } from "./decide.ts";
import { type RequestTenants, UNKEPT_CONTEXT } from "./tenants.ts";

/** A decision under way. */
interface LongDecision {
  readonly at: number;
  readonly steps: Generator<undefined, Decision, undefined>;
}

export class RequestDecider {
  readonly tenants: RequestTenants;
  readonly #decider: Decider;
  readonly #isDue: () => boolean;
  /**
   * Of this step, by the places of their series: those that the table does not keep, and long ones, for the table may lose what
   * it keeps. Holding on to all of them would cost more, in collecting garbage, than making the few again that are asked for.
   */
  readonly #made = new Map<number, Decision>();
  #long: LongDecision | null = null;

  /** @param isDue whether others wait for the step to end */
  constructor(decider: Decider, tenants: RequestTenants, isDue: () => boolean) {
    this.#decider = decider;
    this.tenants = tenants;
    this.#isDue = isDue;
  }

  /** Whether a decision is under way, which is that of the next new series. */
  get isLong(): boolean {
    return this.#long !== null;
  }

  /** Gives it up, since its series has a decision now, through another request. */
  dropLong(): void {
    this.#long = null;
  }

  /** Forgets the decisions of the step before. */
  beginStep(): void {
    this.#made.clear();
  }

  /**
   * @param at     where in the request the series is
   * @param series valid now
   * @returns null when the decision takes longer: the step has to end before this series
   */
  decide(at: number, series: SeriesScan): Decision | null {
    const made = this.#made.get(at);
    if (made !== undefined) return made;
    const long = this.#long?.at === at ? this.#long : null;
    const decision = long === null ? this.#begin(at, series) : this.#goOn(long);
    if (decision !== null && (long !== null || !this.keeps(decision))) this.#made.set(at, decision);
    return decision;
  }

  /** Whether the engine's table is to keep a decision of this request. */
  keeps({ kind }: Decision): boolean {
    // A refused series is looked at each time it comes: its sender is told each time.
    return kind !== "refused" && this.tenants.context !== UNKEPT_CONTEXT;
  }

  /** The decision without a pause: it was made in this step, but for one that was in the table then and fell out of it. */
  decideNow(at: number, series: SeriesScan): Decision {
    return this.#made.get(at) ?? this.#decider.decide(series, this.tenants.byRoute);
  }

  #begin(at: number, series: SeriesScan): Decision | null {
    this.#long = null;
    const step = this.#steps(series).next();
    if (step.done === true) return step.value;
    this.#long = { at, steps: this.#steps(copyOf(series)) };
    return null;
  }

  #goOn({ steps }: LongDecision): Decision | null {
    const step = steps.next();
    if (step.done !== true) return null;
    this.#long = null;
    return step.value;
  }

  #steps(series: SeriesScan): LongDecision["steps"] {
    return this.#decider.decideInSteps(series, this.tenants.byRoute, this.#isDue);
  }
}

/** A scan of a copy of the bytes that a series was scanned from. */
function copyOf({ bytes, start, end, labelsFound }: SeriesScan): SeriesScan {
  const copied = bytes.slice(start, end);
  const copy = new SeriesScan(copied, labelsFound);
  scanSeries(new Cursor(copied), copied.length, copy);
  return copy;
}
