/**
 * Parcels, and how several of them become one request body.
 *
 * A parcel is compressed once. As its elements reach back only into what the parcel itself gave, and a remote write 1.0
 * request is a run of series, parcels can stand one after another in any company: behind the sum of their lengths they
 * are a snappy block that holds a request.
 */

/** The part of one request that goes to one lane of one upstream, of one replica. */
export interface Parcel {
  /**
   * Snappy elements without a length in front. Not changed by anyone once they are made. HEADROOM bytes in front of them, in
   * the same buffer, are the parcel's too.
   */
  readonly elements: Uint8Array;
  /** Their length when decompressed. */
  readonly plainBytes: number;
  readonly series: number;
  readonly items: ItemCounts;
  /** Which copies of its series it holds: 0 are the first, and all where a series has one upstream. */
  readonly replica: number;
  /**
   * No item of it is newer; milliseconds since the epoch, a safe integer. It is that of the whole request, whose items are
   * mostly of one time.
   */
  readonly newestTimestampMs: number;
}

/** Free bytes in front of a parcel's elements: as many as snappy's length of a block takes, and some. */
const HEADROOM = 8;

/** A copy of elements, one after another, with the free bytes in front that a parcel has. */
export function withHeadroom(...elements: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat([new Uint8Array(HEADROOM), ...elements]).subarray(HEADROOM);
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
 * @returns a snappy block; that of a single parcel shares the parcel's bytes
 */
export function joinParcels(parcels: readonly Pick<Parcel, "elements" | "plainBytes">[]): Uint8Array {
  const [only] = parcels;
  if (only !== undefined && parcels.length === 1) return blockInPlace(only);
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

/** Writes the length into the free bytes before the elements, which saves copying them. */
function blockInPlace({ elements, plainBytes }: Pick<Parcel, "elements" | "plainBytes">): Uint8Array {
  const length = lengthBytes(plainBytes);
  const block = new Uint8Array(elements.buffer, elements.byteOffset - length, length + elements.length);
  writeLength(block, plainBytes);
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
