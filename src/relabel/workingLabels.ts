/** The label set of one series while rules work on it. Each dialect has its own, for the order of labels shows in it. */
import { compareBytewise } from "./byteOrder.ts";

export type Label = readonly [name: string, value: string];

/** What the actions need that both dialects have. */
export interface WorkingLabels {
  /** Characters of the longest value that was set. */
  readonly longestSet: number;
  /** The value of a label, empty when there is none. */
  get(name: string): string;
  /** Sets a label; one with the empty value is as good as none. */
  set(name: string, value: string): void;
  removeWhere(isUnwanted: (name: string) => boolean): void;
  /** The labels now: those that came in when nothing changed, else sorted by name, bytewise, and without empty values. */
  result(): readonly Label[];
}

/** Compares for sort(). */
export function byName([a]: Label, [b]: Label): number {
  return compareBytewise(a, b);
}
