/**
 * Label-set keys: the 32-bit number that tasks and slots are picked by.
 *
 * A key depends on the labels alone, not on their order. Everything works on bytes.
 */
import { FNV_OFFSET_BASIS, fnv1a32, fnv1a32Byte } from "./fnv.ts";
import type { KeyFormat, KeyRule } from "./keyRule.ts";
import { labelSpans, type LabelSpans, rangeEquals, SortedRanges, SPAN_STRIDE } from "./labelOrder.ts";

/** Answer of a `by` key for a series that has none of its labels. */
export const NO_KEY_LABEL = -1;

/** Key of the empty label set, in both formats. */
export const EMPTY_KEY = FNV_OFFSET_BASIS;

/** Ends a name and a value in a `pairs` key; no byte of UTF-8. */
const SEPARATOR = 0xff;

/**
 * Computes the key of a label set.
 *
 * @param task the task of stage 1, which a `flat` key may contain; null where there is none
 * @returns unsigned 32-bit hash, or NO_KEY_LABEL for a `by` key when the set has none of its labels
 */
export type LabelSetKey = (labels: LabelSpans, task: number | null) => number;

const encoder = new TextEncoder();

/**
 * Compiles the key of a rule.
 *
 * @param taskLabel label that never takes part, since it comes from the key itself; null for none. Only a `by` list that
 *                  names it (a `flat` key of an old gateway file) hashes it, with the task of stage 1 as its value.
 */
export function compileKey(rule: KeyRule, format: KeyFormat, taskLabel: string | null): LabelSetKey {
  const collect = format === "pairs" ? collectPairs : collectFlat;
  const hash = format === "pairs" ? hashPairs : hashFlat;
  const task = taskLabel === null ? [] : [encoder.encode(taskLabel)];
  if (rule.kind === "by") {
    const names = rule.names.map((name) => encoder.encode(name));
    const isKeyLabel = (bytes: Uint8Array, start: number, end: number): boolean =>
      isOneOf(names, bytes, start, end);
    const hashesTask = taskLabel !== null && rule.names.includes(taskLabel);
    return (labels, number) => {
      const set = hashesTask && number !== null ? withTask(labels, taskLabel, number) : labels;
      collect(set, isKeyLabel);
      return sorted.length === 0 ? NO_KEY_LABEL : hash(set);
    };
  }
  const left = [...task, ...(rule.kind === "without" ? rule.names.map((name) => encoder.encode(name)) : [])];
  const takesPart = (bytes: Uint8Array, start: number, end: number): boolean =>
    !isOneOf(left, bytes, start, end);
  return (labels) => {
    collect(labels, takesPart);
    return hash(labels);
  };
}

type NameFilter = (bytes: Uint8Array, start: number, end: number) => boolean;

/** Filled by collect and read by hash at once; keys are computed one at a time. */
const sorted = new SortedRanges();

function collectPairs({ bytes, spans, count }: LabelSpans, takesPart: NameFilter): void {
  sorted.clear();
  for (let label = 0; label < count; label++) {
    const at = label * SPAN_STRIDE;
    const nameStart = spans[at] ?? 0;
    const nameEnd = spans[at + 1] ?? 0;
    // An empty value means that the label is not there.
    if (spans[at + 2] === spans[at + 3]) continue;
    if (takesPart(bytes, nameStart, nameEnd)) sorted.add(bytes, nameStart, nameEnd, at);
  }
}

function hashPairs({ bytes, spans }: LabelSpans): number {
  // An imported constant would make the loop's variable a number on the heap.
  let hash = FNV_OFFSET_BASIS >>> 0;
  for (let i = 0; i < sorted.length; i++) {
    const at = sorted.tag(i);
    hash = fnv1a32Byte(SEPARATOR, fnv1a32(bytes, sorted.start(i), sorted.end(i), hash));
    hash = fnv1a32Byte(SEPARATOR, fnv1a32(bytes, spans[at + 2] ?? 0, spans[at + 3] ?? 0, hash));
  }
  return hash;
}

function collectFlat({ bytes, spans, count }: LabelSpans, takesPart: NameFilter): void {
  sorted.clear();
  for (let label = 0; label < count; label++) {
    const at = label * SPAN_STRIDE;
    const nameStart = spans[at] ?? 0;
    const nameEnd = spans[at + 1] ?? 0;
    if (!takesPart(bytes, nameStart, nameEnd)) continue;
    sorted.add(bytes, nameStart, nameEnd, at);
    sorted.add(bytes, spans[at + 2] ?? 0, spans[at + 3] ?? 0, at);
  }
}

function hashFlat({ bytes }: LabelSpans): number {
  let hash = FNV_OFFSET_BASIS >>> 0;
  for (let i = 0; i < sorted.length; i++) hash = fnv1a32(bytes, sorted.start(i), sorted.end(i), hash);
  return hash;
}

function isOneOf(names: readonly Uint8Array[], bytes: Uint8Array, start: number, end: number): boolean {
  for (const name of names) {
    if (rangeEquals(bytes, start, end, name)) return true;
  }
  return false;
}

/** A copy of the label set with the task label set to `task`, in place of one that came in. */
function withTask(labels: LabelSpans, taskLabel: string, task: number): LabelSpans {
  const name = encoder.encode(taskLabel);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < labels.count * SPAN_STRIDE; at += SPAN_STRIDE) {
    const [nameStart = 0, nameEnd = 0, valueStart = 0, valueEnd = 0] = labels.spans.subarray(
      at,
      at + SPAN_STRIDE,
    );
    if (rangeEquals(labels.bytes, nameStart, nameEnd, name)) continue;
    parts.push(labels.bytes.subarray(nameStart, nameEnd), labels.bytes.subarray(valueStart, valueEnd));
  }
  parts.push(name, encoder.encode(String(task)));
  return labelSpans(parts);
}
