/** Parcels that tests can tell apart, in what an upstream received and in what was settled. */
import { uncompressBlock } from "../../src/wire/snappy.ts";
import { type Parcel, withHeadroom } from "../../src/wire/parcel.ts";

const LITERAL_OF_FOUR_LENGTH_BYTES = 63 << 2;
const MARK = /#(\d+)\.*/g;

/** Snappy elements that give `plain` as one literal. */
export function literal(plain: Uint8Array): Uint8Array {
  const head = Buffer.alloc(5);
  head[0] = LITERAL_OF_FOUR_LENGTH_BYTES;
  head.writeUInt32LE(plain.length - 1, 1);
  return Buffer.concat([head, plain]);
}

/** A parcel that says how many series it has, so that numbersIn() finds it by that number. */
export function makeParcel(series = 512, plainBytes = 100): Parcel {
  const plain = Buffer.from(`#${series}`.padEnd(plainBytes, "."));
  return {
    elements: withHeadroom(literal(plain)),
    plainBytes,
    series,
    items: { samples: series, histograms: 0, exemplars: 0 },
    replica: 0,
    newestTimestampMs: 0,
  };
}

/**
 * Parcels of 1, 2, 3 ... series. Each has a power of two as its number of exemplars, so that a sum of items tells which
 * are in it.
 */
export function makeParcels(count: number): Parcel[] {
  return Array.from({ length: count }, (_, index) => {
    const parcel = makeParcel(index + 1);
    return { ...parcel, items: { ...parcel.items, exemplars: 2 ** index } };
  });
}

/** The numbers of the parcels in a request body, in order. */
export function numbersIn(body: Uint8Array): number[] {
  const plain = Buffer.from(uncompressBlock(body, 2 ** 31)).toString();
  return Array.from(plain.matchAll(MARK), ([, number]) => Number(number));
}
