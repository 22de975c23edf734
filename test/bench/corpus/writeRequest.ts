/** Encodes series as a remote-write 1.0 request, and notes where the holes for new series are in it. */
import { HOLE_BYTES } from "./holes.ts";
import type { CorpusSeries } from "./targets.ts";

// message WriteRequest { repeated TimeSeries timeseries = 1; }
// message TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; }
// message Label { string name = 1; string value = 2; }     message Sample { double value = 1; int64 timestamp = 2; }
const SERIES = (1 << 3) | 2;
const LABEL = (1 << 3) | 2;
const SAMPLE = (2 << 3) | 2;
const LABEL_NAME = (1 << 3) | 2;
const LABEL_VALUE = (2 << 3) | 2;
const SAMPLE_VALUE = (1 << 3) | 1;
const SAMPLE_TIMESTAMP = (2 << 3) | 0;

/** Label whose value is a hole in a series that is to be new each time; every target has it. */
const HOLE_LABEL = "instance";
const HOLE_TEXT = "0".repeat(HOLE_BYTES);

export interface EncodedRequest {
  readonly plain: Uint8Array;
  /** Where in it the holes begin, in ascending order. */
  readonly holes: readonly number[];
}

/** Most labels come again in many series. All text is ASCII: a character is a byte. */
const encodedLabels = new Map<string, Buffer>();

/** @param isNew whether the series of this index gets a hole */
export function encodeRequest(
  series: readonly CorpusSeries[],
  isNew: (index: number) => boolean,
): EncodedRequest {
  const holes: number[] = [];
  const fields: Buffer[] = [];
  let length = 0;
  series.forEach((each, index) => {
    const message = encodeSeries(each, isNew(index));
    const head = tagAndLength(SERIES, message.length);
    fields.push(head, message);
    // The label's value is the only place where this text can be.
    if (isNew(index)) holes.push(length + head.length + message.indexOf(HOLE_TEXT));
    length += head.length + message.length;
  });
  return { plain: new Uint8Array(Buffer.concat(fields, length)), holes };
}

function encodeSeries({ labels, value, timestampMs }: CorpusSeries, hasHole: boolean): Buffer {
  const fields = Object.keys(labels)
    .sort()
    .map((name) => encodeLabel(name, hasHole && name === HOLE_LABEL ? HOLE_TEXT : (labels[name] ?? "")));
  fields.push(encodeSample(value, timestampMs));
  return Buffer.concat(fields);
}

function encodeLabel(name: string, value: string): Buffer {
  const key = `${name}=${value}`;
  const known = encodedLabels.get(key);
  if (known !== undefined) return known;
  const fields = Buffer.concat([
    tagAndLength(LABEL_NAME, name.length),
    Buffer.from(name),
    tagAndLength(LABEL_VALUE, value.length),
    Buffer.from(value),
  ]);
  const label = Buffer.concat([tagAndLength(LABEL, fields.length), fields]);
  encodedLabels.set(key, label);
  return label;
}

function encodeSample(value: number, timestampMs: number): Buffer {
  const timestamp = varint(timestampMs);
  const sample = Buffer.alloc(12);
  sample[0] = SAMPLE;
  sample[1] = 10 + timestamp.length;
  sample[2] = SAMPLE_VALUE;
  sample.writeDoubleLE(value, 3);
  sample[11] = SAMPLE_TIMESTAMP;
  return Buffer.concat([sample, timestamp]);
}

function tagAndLength(tag: number, length: number): Buffer {
  return Buffer.concat([Buffer.from([tag]), varint(length)]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}
