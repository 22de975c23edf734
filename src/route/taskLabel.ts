/** Where the task label goes in a series. */
import { compareRangeTo, rangeEquals, SPAN_STRIDE } from "../hash/labelOrder.ts";
import { encodeLabelField, type LabelEdit } from "../wire/emit.ts";
import type { SeriesScan } from "../wire/scan.ts";

const FIELD_STRIDE = 2;
const encoder = new TextEncoder();

/**
 * The edit that gives a series its task label: before the first label with a greater name, in place of a task label that
 * came from outside. The other labels keep the sender's order.
 *
 * @param name the task label's name, encoded
 */
export function taskLabelEdit(series: SeriesScan, name: Uint8Array, task: number): LabelEdit {
  const { bytes, spans, fields, count } = series;
  let insertAt = -1;
  let cutStart = -1;
  let cutEnd = -1;
  let lastEnd = series.start;
  for (let label = 0; label < count; label++) {
    const nameStart = spans[label * SPAN_STRIDE] ?? 0;
    const nameEnd = spans[label * SPAN_STRIDE + 1] ?? 0;
    const fieldStart = fields[label * FIELD_STRIDE] ?? 0;
    lastEnd = fields[label * FIELD_STRIDE + 1] ?? 0;
    if (rangeEquals(bytes, nameStart, nameEnd, name)) {
      cutStart = fieldStart;
      cutEnd = lastEnd;
    } else if (insertAt < 0 && compareRangeTo(bytes, nameStart, nameEnd, name) > 0) {
      insertAt = fieldStart;
    }
  }
  if (insertAt < 0) insertAt = lastEnd;
  if (cutStart < 0) cutStart = cutEnd = insertAt;
  return { label: encodeLabelField(name, encoder.encode(String(task))), insertAt, cutStart, cutEnd };
}
