/**
 * Leaves the items out of a plain remote write 1.0 request that are older than a given time. What stays, stays bit for bit.
 *
 * The request has been checked before: it is walked here, not judged.
 *
 * @see proto/remote_write_v1.proto
 */
import { Cursor, LENGTH_DELIMITED } from "./cursor.ts";
import { SeriesFields } from "./items.ts";
import { seriesRequest } from "./labelField.ts";
import type { ItemCounts } from "./parcel.ts";

// message WriteRequest { repeated TimeSeries timeseries = 1; ... }
const TIMESERIES = (1 << 3) | LENGTH_DELIMITED;

/** What is left of a request, and what that holds. */
export interface YoungRequest {
  readonly plain: Uint8Array;
  readonly series: number;
  readonly items: ItemCounts;
}

/**
 * Leaves out all items older than `oldestMs`, and series of which no item is left then.
 *
 * @param plain not changed
 * @returns null if no item is older
 */
export function withoutOldItems(plain: Uint8Array, oldestMs: number): YoungRequest | null {
  const cursor = new Cursor(plain);
  const walk = new SeriesWalk(cursor, oldestMs);
  const kept: Uint8Array[] = [];
  let series = 0;
  while (cursor.pos < plain.length) {
    const start = cursor.pos;
    if (cursor.readTag() !== TIMESERIES) throw new Error(`bug: no series at byte ${start} of a parcel`);
    const young = walk.series(start, cursor.readEnd());
    if (young === null) continue;
    kept.push(young);
    series += 1;
  }
  if (walk.old === 0) return null;
  const { samples, histograms, exemplars } = walk;
  return { plain: Buffer.concat(kept), series, items: { samples, histograms, exemplars } };
}

class SeriesWalk implements ItemCounts {
  readonly #cursor: Cursor;
  readonly #field: SeriesFields;
  readonly #oldestMs: number;
  old = 0;
  /** Those that are left. */
  samples = 0;
  histograms = 0;
  exemplars = 0;

  constructor(cursor: Cursor, oldestMs: number) {
    this.#cursor = cursor;
    this.#field = new SeriesFields(cursor);
    this.#oldestMs = oldestMs;
  }

  /** The field of a series, [start, end), without its old items; null if no other items are in it. */
  series(start: number, end: number): Uint8Array | null {
    const cursor = this.#cursor;
    const oldBefore = this.old;
    const pieces: Uint8Array[] = [];
    let young = 0;
    let keptFrom = cursor.pos;
    while (cursor.pos < end) {
      const fieldAt = cursor.pos;
      const what = this.#skipField();
      if (what === "young") young += 1;
      if (what !== "old") continue;
      pieces.push(cursor.bytes.subarray(keptFrom, fieldAt));
      keptFrom = cursor.pos;
    }
    if (this.old === oldBefore) return cursor.bytes.subarray(start, end);
    if (young === 0) return null;
    pieces.push(cursor.bytes.subarray(keptFrom, end));
    return seriesRequest(Buffer.concat(pieces));
  }

  /** Passes over a field of a series, and counts the item in it. */
  #skipField(): "young" | "old" | "no_item" {
    const field = this.#field;
    field.next();
    if (field.kind === null) return "no_item";
    if (field.timestampMs >= this.#oldestMs) {
      this[field.kind] += 1;
      return "young";
    }
    this.old += 1;
    return "old";
  }
}
