/** Where the task label goes in a series. */
import { compareRangeTo, rangeEquals, SPAN_STRIDE } from "../hash/labelOrder.ts";
import { encodeLabelField } from "../wire/labelField.ts";
import type { Splice } from "../wire/splice.ts";
import { FIELD_STRIDE, type LabelFields } from "./rewrite.ts";

/** Fields of tasks below this are kept; a route may have millions of tasks. */
const KEPT_FIELDS = 16_384;
const encoder = new TextEncoder();

/** A route's task label, with the fields that it has made already. */
export class TaskLabel {
  readonly #name: Uint8Array;
  /** By task. */
  readonly #fields: Uint8Array[] = [];

  constructor(name: string) {
    this.#name = encoder.encode(name);
  }

  /**
   * What gives a series its task label: before the first label with a greater name, in place of a task label that came
   * from outside. The other labels keep the sender's order.
   */
  splice(series: LabelFields, task: number): Splice {
    const { bytes, spans, fields, count, start } = series;
    const name = this.#name;
    let insertAt = -1;
    let cutStart = -1;
    let cutEnd = -1;
    let lastEnd = start;
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
    const field = this.#field(task);
    if (cutStart < 0) return { keep: insertAt - start, resume: insertAt - start, inserted: field };
    return {
      keep: Math.min(insertAt, cutStart) - start,
      resume: Math.max(insertAt, cutEnd) - start,
      // Fields between the two places stay, on the side of the new label where they were.
      inserted: Buffer.concat([bytes.subarray(cutEnd, insertAt), field, bytes.subarray(insertAt, cutStart)]),
    };
  }

  #field(task: number): Uint8Array {
    const kept = this.#fields[task];
    if (kept !== undefined) return kept;
    const field = encodeLabelField(this.#name, encoder.encode(String(task)));
    if (task < KEPT_FIELDS) this.#fields[task] = field;
    return field;
  }
}
