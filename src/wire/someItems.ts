/** A plain remote write 1.0 series with a part of its items. What stays, stays bit for bit and in its order. */
import { Cursor } from "./cursor.ts";
import { SeriesFields } from "./items.ts";
import type { ItemCounts } from "./parcel.ts";

/** Shorter ranges are copied faster byte by byte than by a view of them. */
const LONG_RANGE = 64;

export interface PartOfSeries {
  /** Without the series' tag and length. */
  readonly message: Uint8Array;
  readonly items: ItemCounts;
}

/**
 * Leaves out the items that are not to stay; labels, and fields that this version does not know, stay.
 *
 * @param message of a series that was checked before; not changed
 * @param stays   whether an item with this timestamp stays: exact up to 2^53, any negative one is -1
 */
export function withItems(message: Uint8Array, stays: (timestampMs: number) => boolean): PartOfSeries {
  const cursor = new Cursor(message);
  const field = new SeriesFields(cursor);
  const kept = Buffer.allocUnsafe(message.length);
  const items = { samples: 0, histograms: 0, exemplars: 0 };
  let keptBytes = 0;
  let keptFrom = 0;
  while (cursor.pos < message.length) {
    const start = cursor.pos;
    field.next();
    if (field.kind === null) continue;
    if (stays(field.timestampMs)) {
      items[field.kind] += 1;
      continue;
    }
    keptBytes = copyRange(message, keptFrom, start, kept, keptBytes);
    keptFrom = cursor.pos;
  }
  keptBytes = copyRange(message, keptFrom, message.length, kept, keptBytes);
  return { message: kept.subarray(0, keptBytes), items };
}

/** Copies bytes[start, end) to a place, and answers where the copy ends. */
function copyRange(bytes: Uint8Array, start: number, end: number, target: Uint8Array, at: number): number {
  if (end - start < LONG_RANGE) for (let i = start; i < end; i++) target[at + i - start] = bytes[i] ?? 0;
  else target.set(bytes.subarray(start, end), at);
  return at + end - start;
}
