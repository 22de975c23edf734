/**
 * Parcels, and how several of them become one request body.
 *
 * A parcel is compressed once. As its elements reach back only into what the parcel itself gave, and a remote write 1.0
 * request is a run of series, parcels can stand one after another in any company: behind the sum of their lengths they
 * are a snappy block that holds a request.
 */

/** The part of one request that goes to one lane of one upstream. */
export interface Parcel {
  /** Snappy elements without a length in front. Not changed by anyone once they are made. */
  readonly elements: Uint8Array;
  /** Their length when decompressed. */
  readonly plainBytes: number;
  readonly series: number;
  readonly items: ItemCounts;
}

/** Items of a parcel, a batch or a request. */
export interface ItemCounts {
  readonly samples: number;
  readonly histograms: number;
  readonly exemplars: number;
}

/**
 * Joins parcels into one remote write 1.0 request body.
 *
 * @param parcels in the order in which the receiver gets them; not changed
 * @returns a snappy block of its own bytes
 */
export function joinParcels(parcels: readonly Pick<Parcel, "elements" | "plainBytes">[]): Uint8Array {
  let plainBytes = 0;
  let elementBytes = 0;
  for (const parcel of parcels) {
    plainBytes += parcel.plainBytes;
    elementBytes += parcel.elements.length;
  }
  const block = Buffer.allocUnsafe(lengthBytes(plainBytes) + elementBytes);
  let end = writeLength(block, plainBytes);
  for (const { elements } of parcels) {
    block.set(elements, end);
    end += elements.length;
  }
  return block;
}

/** How many bytes snappy's varint of a length takes. */
function lengthBytes(length: number): number {
  let bytes = 1;
  for (let rest = length; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes += 1;
  return bytes;
}

/** Writes a varint to the start of a block and answers where it ends. */
function writeLength(block: Uint8Array, length: number): number {
  let end = 0;
  let rest = length;
  while (rest >= 0x80) {
    block[end++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  block[end++] = rest;
  return end;
}
