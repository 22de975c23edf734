/**
 * What of parcels is too old to be sent, by `sample_age_limit`.
 *
 * A parcel says when its newest item is of, so most need not be opened: one whose newest item is too old goes as a whole, and
 * one that is new, as are those that have hardly waited, stays as it is. Only what is of an age between is looked at item by
 * item.
 */
import { compressBlock, readPlainLength, uncompressBlock } from "../wire/snappy.ts";
import { withoutOldItems } from "../wire/oldItems.ts";
import { type ItemCounts, joinParcels, type Parcel, withHeadroom } from "../wire/parcel.ts";

/** What is left of a parcel, and what is not. */
export interface Aged {
  /** null when nothing is. */
  readonly parcel: Parcel | null;
  readonly dropped: ItemCounts;
}

const NOTHING: ItemCounts = { samples: 0, histograms: 0, exemplars: 0 };

/**
 * Drops the items that are older than the limit.
 *
 * @param arrivedAt when the gateway got it, on the clock of `now`; an item of the far future must not keep the others for ever
 * @param limitMs   0 for none. Items of a request whose newest, and whose arrival, is not half as long ago are taken to be new
 */
export function dropOld(parcel: Parcel, arrivedAt: number, now: number, limitMs: number): Aged {
  if (limitMs === 0 || Math.min(parcel.newestTimestampMs, arrivedAt) > now - limitMs / 2) {
    return { parcel, dropped: NOTHING };
  }
  const oldestMs = now - limitMs;
  if (parcel.newestTimestampMs < oldestMs) return { parcel: null, dropped: parcel.items };
  const young = withoutOldItems(uncompressBlock(joinParcels([parcel]), parcel.plainBytes), oldestMs);
  if (young === null) return { parcel, dropped: NOTHING };
  const dropped = less(parcel.items, young.items);
  if (young.series === 0) return { parcel: null, dropped };
  return { parcel: { ...parcel, ...packed(young.plain), series: young.series, items: young.items }, dropped };
}

function packed(plain: Uint8Array): Pick<Parcel, "elements" | "plainBytes"> {
  const block = compressBlock(plain);
  const { elementsAt } = readPlainLength(block, plain.length);
  return { elements: withHeadroom(block.subarray(elementsAt)), plainBytes: plain.length };
}

function less(all: ItemCounts, part: ItemCounts): ItemCounts {
  return {
    samples: all.samples - part.samples,
    histograms: all.histograms - part.histograms,
    exemplars: all.exemplars - part.exemplars,
  };
}
