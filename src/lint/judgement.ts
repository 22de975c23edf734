/** What is said of one rule behind one route. */
import type { Witness } from "./witness.ts";

export type Verdict = "safe" | "unsafe" | "unknown";

export interface Judgement {
  readonly verdict: Verdict;
  /** For a person: the proof, or what is wrong, or what is not known, naming the labels. */
  readonly reason: string;
  /** Labels at fault; of endlessly many those that show it. */
  readonly labels: readonly string[];
  /** Proves `unsafe`. */
  readonly witness: Witness | null;
  /** What to write instead, each on its own; none where it is safe. */
  readonly remedies: readonly string[];
  /** What else there is to know. */
  readonly notes: readonly string[];
}

export function unknown(reason: string): Judgement {
  return { verdict: "unknown", reason, labels: [], witness: null, remedies: [], notes: [] };
}

/** Unsafe with a witness, else unknown. */
export function provenBy(
  witness: Witness | null,
  reason: string,
  labels: readonly string[],
  remedies: readonly string[],
): Judgement {
  if (witness === null) return { ...unknown(`not proved safe: ${reason}`), labels, remedies };
  return { verdict: "unsafe", reason, labels, witness, remedies, notes: [] };
}
