/** Splitting without pauses. */
import type { SplitRequest, Splitter } from "../../src/route/split.ts";

export function splitWhole(splitter: Splitter, plain: Uint8Array): SplitRequest {
  const steps = splitter.split(plain);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}
