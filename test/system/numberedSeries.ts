/**
 * Series whose samples are numbered, so that a receiver can tell from a sample alone what came before it.
 *
 * Each series has a number, in a label, and sample n of it, counted from 1, has the value n and a timestamp that grows with
 * n. A request has one sample of each of its series.
 */
import protobuf from "protobufjs";
import { compressSync } from "snappy";
import { Random } from "../fuzz/random.ts";
import { label, sample, series } from "../reference/build.ts";
import { NUMBER_LABEL } from "./arrivals.ts";

export interface NumberedSeries {
  readonly number: number;
  readonly labels: readonly (readonly [name: string, value: string])[];
}

export interface NumberedSample {
  /** Of the series. */
  readonly number: number;
  /** Of the sample in its series. */
  readonly place: number;
}

const FIRST_TIMESTAMP_MS = 1_796_006_259_632;

// message TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; }
// message Label { string name = 1; string value = 2; }; message Sample { double value = 1; int64 timestamp = 2; }
const LABEL = (1 << 3) | 2;
const SAMPLE = (2 << 3) | 2;

/** @param textBytes of a label that makes a series long, and is hard to compress; 0 for none */
export function numberedSeries(first: number, count: number, textBytes = 0): NumberedSeries[] {
  return Array.from({ length: count }, (_, index) => {
    const number = first + index;
    const labels: [string, string][] = [
      ["__name__", `requests_${number % 20}_total`],
      ["instance", `host-${number}:9100`],
      [NUMBER_LABEL, String(number)],
    ];
    if (textBytes > 0) {
      const random = new Random(number + 1).bytes((textBytes * 3) / 4);
      labels.push(["text", Buffer.from(random).toString("base64")]);
    }
    return { number, labels };
  });
}

/** A request with the sample of one place of each series. */
export function requestOf(all: readonly NumberedSeries[], place: number): Uint8Array {
  const point = sample(place, FIRST_TIMESTAMP_MS + place);
  return compressSync(
    Buffer.concat(
      all.map(({ labels }) => series(...labels.map(([name, value]) => label(name, value)), point)),
    ),
  );
}

/** @param message of a series, without tag and length */
export function samplesIn(message: Uint8Array): NumberedSample[] {
  const reader = protobuf.Reader.create(message);
  const samples: NumberedSample[] = [];
  let number: number | null = null;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const end = reader.uint32() + reader.pos;
    if (tag === LABEL && number === null) number = numberIn(reader);
    else if (tag === SAMPLE) {
      reader.skip(1);
      samples.push({ number: number ?? NaN, place: reader.double() });
    }
    reader.pos = end;
  }
  return samples;
}

/** The number of the series, if this label has it. */
function numberIn(reader: protobuf.Reader): number | null {
  reader.skip(1);
  if (reader.string() !== NUMBER_LABEL) return null;
  reader.skip(1);
  return Number(reader.string());
}
