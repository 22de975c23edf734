/** Samples, exemplars and histograms of numbered series that are told apart by their timestamps alone: built, and read again. */
import protobuf from "protobufjs";
import { field, label, sample, series, varint } from "../reference/build.ts";
import { NUMBER_LABEL } from "./arrivals.ts";

export const ITEM_KINDS = ["sample", "exemplar", "histogram"] as const;
export type ItemKind = (typeof ITEM_KINDS)[number];

/** One item of a series; there are no two of a kind with equal timestamps. */
export interface TimedItem {
  readonly kind: ItemKind;
  /** Since the epoch. */
  readonly timestampMs: number;
}

export interface TimedSeries {
  readonly number: number;
  readonly items: readonly TimedItem[];
}

// message TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; repeated Exemplar exemplars = 3;
//                      repeated Histogram histograms = 4; }
// message Label { string name = 1; string value = 2; }; message Sample { double value = 1; int64 timestamp = 2; }
// message Exemplar { repeated Label labels = 1; double value = 2; int64 timestamp = 3; }
// message Histogram { uint64 count_int = 1; double sum = 3; sint32 schema = 4; repeated BucketSpan positive_spans = 11;
//                     repeated sint64 positive_deltas = 12; int64 timestamp = 15; ... }
// message BucketSpan { sint32 offset = 1; uint32 length = 2; }
const LABELS_FIELD = 1;
const KIND_OF_FIELD: readonly (ItemKind | undefined)[] = [
  undefined,
  undefined,
  "sample",
  "exemplar",
  "histogram",
];
const TIMESTAMP_FIELD = { sample: 2, exemplar: 3, histogram: 15 } as const;
const DOUBLE_ONE = Buffer.from("000000000000f03f", "hex");

export function labelsOf(number: number): [string, string][] {
  return [
    ["__name__", `requests_${number % 20}_total`],
    ["instance", `host-${number}:9100`],
    [NUMBER_LABEL, String(number)],
  ];
}

/** The labels of a series, as fields of its message. */
export function labelFields(number: number): Buffer {
  return Buffer.concat(labelsOf(number).map(([name, value]) => label(name, value)));
}

/** A series of a request. @param labels by labelFields() */
export function timedSeries(labels: Buffer, items: readonly TimedItem[]): Buffer {
  const built = items.map(({ kind, timestampMs }) => BUILD[kind](timestampMs));
  // Fields in the order of their numbers, as senders write them.
  return series(
    labels,
    ...ITEM_KINDS.flatMap((kind) => built.filter((_, index) => items[index]?.kind === kind)),
  );
}

const BUILD: Readonly<Record<ItemKind, (timestampMs: number) => Buffer>> = {
  sample: (timestampMs) => sample(1, timestampMs),
  exemplar: (timestampMs) =>
    field(
      3,
      Buffer.concat([
        label("trace_id", "4bf92f35"),
        varint(0x11),
        DOUBLE_ONE,
        varint(0x18),
        varint(timestampMs),
      ]),
    ),
  // One observation, in one bucket of schema 0.
  histogram: (timestampMs) =>
    field(
      4,
      Buffer.concat([
        ...[varint(0x08), varint(1), varint(0x19), DOUBLE_ONE],
        ...[field(11, Buffer.from([0x08, 0, 0x10, 1])), field(12, Buffer.from([2]))],
        ...[varint(0x78), varint(timestampMs)],
      ]),
    ),
};

/** @param message of a series, without tag and length */
export function readTimedSeries(message: Uint8Array): TimedSeries {
  const reader = protobuf.Reader.create(message);
  const items: TimedItem[] = [];
  let number = NaN;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const fieldNumber = tag >>> 3;
    const kind = KIND_OF_FIELD[fieldNumber];
    if (fieldNumber !== LABELS_FIELD && kind === undefined) {
      reader.skipType(tag & 7);
      continue;
    }
    const end = reader.uint32() + reader.pos;
    if (kind !== undefined)
      items.push({ kind, timestampMs: timestampIn(reader, end, TIMESTAMP_FIELD[kind]) });
    else if (Number.isNaN(number)) number = numberIn(reader);
    reader.pos = end;
  }
  return { number, items };
}

function timestampIn(reader: protobuf.Reader, end: number, wanted: number): number {
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag >>> 3 === wanted) return Number(reader.int64());
    reader.skipType(tag & 7);
  }
  throw new Error("an item without timestamp arrived");
}

/** The number of the series, if this label has it. */
function numberIn(reader: protobuf.Reader): number {
  reader.skip(1);
  if (reader.string() !== NUMBER_LABEL) return NaN;
  reader.skip(1);
  return Number(reader.string());
}
