/** Long work of which nobody waits for the end, beside requests: a little of it in each round of the event loop. */
import { setImmediate as nextRound } from "node:timers/promises";
import { now } from "./clock.ts";

/** A request waits for no more than this of it. */
const BUDGET_MS = 5;

/**
 * Takes all steps of a work.
 *
 * @param begin given what tells a step that it is to yield
 * @returns its result; rejects with what it throws
 */
export async function beside<Result>(
  begin: (isDue: () => boolean) => Generator<undefined, Result, undefined>,
): Promise<Result> {
  let roundEnds = now() + BUDGET_MS;
  const steps = begin(() => now() >= roundEnds);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await nextRound();
    roundEnds = now() + BUDGET_MS;
  }
}
