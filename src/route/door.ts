/**
 * The checks at the door: what a series must be to be taken in at all.
 *
 * They look at the labels as they came, before any rule. What fails is refused: its sender is told and still has it.
 */
import { isAscii } from "node:buffer";
import {
  compareRanges,
  extentOf,
  type LabelSpans,
  namesIncrease,
  SortedRanges,
  SPAN_STRIDE,
} from "../hash/labelOrder.ts";
import { isUtf8Range } from "../wire/utf8.ts";
import type { LabelLimits } from "./options.ts";

/** Why a series is refused; the names are the label values of the metric and what `explain` prints. */
export const REFUSAL_REASONS = [
  "too_many_labels",
  "empty_label_name",
  "label_name_too_long",
  "label_value_too_long",
  "invalid_utf8",
  "duplicate_label_name",
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** What a scan finds of a series, as far as it matters here. */
interface IncomingSeries extends LabelSpans {
  /** Counts the labels above the limit too. */
  readonly labelsFound: number;
  /** Whether the strings that are not in `spans` are UTF-8. */
  readonly restIsText: boolean;
  /** By label, after rules: -1 for one that they made; the others have passed the door with these limits. */
  readonly sources?: readonly number[];
}

/** Answers why a series is refused, or null when it may come in. */
export function checkAtDoor(labels: IncomingSeries, limits: LabelLimits): RefusalReason | null {
  if (labels.labelsFound > limits.maxLabels) return "too_many_labels";
  const { sources } = labels;
  // What rules make is written as UTF-8.
  const isText = sources !== undefined || isAsciiThroughout(labels);
  for (let label = 0; label < labels.count; label++) {
    if (sources !== undefined && sources[label] !== -1) continue;
    const at = label * SPAN_STRIDE;
    const reason = checkLengths(labels, at, limits) ?? (isText ? null : checkText(labels, at));
    if (reason !== null) return reason;
  }
  if (!namesIncrease(labels) && hasDuplicateName(labels)) return "duplicate_label_name";
  // Upstreams that check it would refuse the whole request.
  return labels.restIsText ? null : "invalid_utf8";
}

/** Whether all labels, and what is between them, is ASCII: nearly always, and one call says it of all of them. */
function isAsciiThroughout(labels: LabelSpans): boolean {
  const { first, last } = extentOf(labels);
  return isAscii(labels.bytes.subarray(first, last));
}

function checkLengths({ spans }: LabelSpans, at: number, limits: LabelLimits): RefusalReason | null {
  const nameBytes = (spans[at + 1] ?? 0) - (spans[at] ?? 0);
  const valueBytes = (spans[at + 3] ?? 0) - (spans[at + 2] ?? 0);
  if (nameBytes === 0) return "empty_label_name";
  if (nameBytes > limits.maxLabelNameBytes) return "label_name_too_long";
  return valueBytes > limits.maxLabelValueBytes ? "label_value_too_long" : null;
}

/** Two series that differ only in invalid bytes would become one downstream. */
function checkText({ bytes, spans }: LabelSpans, at: number): RefusalReason | null {
  const isText =
    isUtf8Range(bytes, spans[at] ?? 0, spans[at + 1] ?? 0) &&
    isUtf8Range(bytes, spans[at + 2] ?? 0, spans[at + 3] ?? 0);
  return isText ? null : "invalid_utf8";
}

const names = new SortedRanges();

function hasDuplicateName({ bytes, spans, count }: LabelSpans): boolean {
  names.clear();
  for (let at = 0; at < count * SPAN_STRIDE; at += SPAN_STRIDE) {
    names.add(bytes, spans[at] ?? 0, spans[at + 1] ?? 0, at);
  }
  for (let i = 1; i < names.length; i++) {
    const order = compareRanges(bytes, names.start(i - 1), names.end(i - 1), names.start(i), names.end(i));
    if (order === 0) return true;
  }
  return false;
}
