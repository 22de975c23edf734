/** Recorded request bodies in test/fixtures and what the program that recorded them decoded them to. */
import { readdirSync, readFileSync } from "node:fs";
import type {
  ReferenceExemplar,
  ReferenceHistogram,
  ReferenceRequest,
  ReferenceSample,
} from "./writeRequest.ts";

const FIXTURES = new URL("../fixtures/", import.meta.url);

type JsonDouble = number | string;
type JsonInteger = number | string;
type JsonLabel = [string, string];

interface JsonSample {
  value: JsonDouble;
  timestamp: JsonInteger;
}

interface JsonExemplar extends JsonSample {
  labels: JsonLabel[];
}

interface JsonHistogram {
  count_int?: JsonInteger;
  count_float?: JsonDouble;
  sum?: JsonDouble;
  schema?: number;
  zero_threshold?: JsonDouble;
  zero_count_int?: JsonInteger;
  zero_count_float?: JsonDouble;
  negative_spans?: { offset: number; length: number }[];
  negative_deltas?: JsonInteger[];
  negative_counts?: JsonDouble[];
  positive_spans?: { offset: number; length: number }[];
  positive_deltas?: JsonInteger[];
  positive_counts?: JsonDouble[];
  reset_hint?: number;
  timestamp: JsonInteger;
  custom_values?: JsonDouble[];
}

/** `decoded` of a remote write 1.0 vector. */
export interface JsonRequest {
  timeseries: {
    labels: JsonLabel[];
    samples?: JsonSample[];
    exemplars?: JsonExemplar[];
    histograms?: JsonHistogram[];
    /** Flat label-set key. */
    key: number;
  }[];
  metadata: { type: number; metric_family_name: string; help: string; unit: string }[];
}

export interface Vector {
  readonly name: string;
  /** The request body as it came. */
  readonly body: Buffer;
  readonly encoding: "snappy" | "zstd";
  readonly headers: Readonly<Record<string, string>>;
  readonly plainBytes: number;
  readonly plainSha256: string;
  readonly decoded: JsonRequest;
}

/** All vectors of a folder in test/fixtures, by name. */
export function readVectors(folder: "rw1_requests" | "vm_requests"): Vector[] {
  const base = new URL(`${folder}/`, FIXTURES);
  return readdirSync(base)
    .filter((file) => file.endsWith(".json"))
    .sort()
    .map((file) => {
      const vector = JSON.parse(readFileSync(new URL(file, base), "utf8")) as {
        body: string;
        request_headers: Record<string, string>;
        plain_length: number;
        plain_sha256: string;
        decoded: JsonRequest;
      };
      return {
        name: `${folder}/${file.replace(/\.json$/, "")}`,
        body: readFileSync(new URL(vector.body, base)),
        encoding: vector.request_headers["Content-Encoding"] === "zstd" ? "zstd" : "snappy",
        headers: vector.request_headers,
        plainBytes: vector.plain_length,
        plainSha256: vector.plain_sha256,
        decoded: vector.decoded,
      };
    });
}

/** What decodeReference() has to answer for a vector's request. */
export function expectedReference(decoded: JsonRequest): ReferenceRequest {
  return {
    series: decoded.timeseries.map(({ labels, samples = [], exemplars = [], histograms = [] }) => ({
      labels: labels.map(expectedLabel),
      samples: samples.map(expectedSample),
      exemplars: exemplars.map(expectedExemplar),
      histograms: histograms.map(expectedHistogram),
    })),
    metadata: decoded.metadata.map(({ type, metric_family_name, help, unit }) => ({
      type,
      family: utf8AsLatin1(metric_family_name),
      help: utf8AsLatin1(help),
      unit: utf8AsLatin1(unit),
      accountId: 0,
      projectId: 0,
    })),
  };
}

/** The bits of a double in a vector: a number, "StaleNaN", "NaN:" and 16 hex digits, "Inf" or "-Inf". */
export function expectedBits(value: JsonDouble): string {
  if (value === "StaleNaN") return "7ff0000000000002";
  if (value === "Inf") return "7ff0000000000000";
  if (value === "-Inf") return "fff0000000000000";
  if (typeof value === "string") return value.replace("NaN:", "");
  const bits = Buffer.alloc(8);
  bits.writeDoubleBE(value);
  return bits.toString("hex");
}

/** A string's UTF-8, one character a byte. */
export function utf8AsLatin1(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

function expectedLabel([name, value]: JsonLabel): readonly [string, string] {
  return [utf8AsLatin1(name), utf8AsLatin1(value)];
}

function expectedSample({ value, timestamp }: JsonSample): ReferenceSample {
  return { valueBits: expectedBits(value), timestamp: String(timestamp) };
}

function expectedExemplar({ labels, value, timestamp }: JsonExemplar): ReferenceExemplar {
  return { labels: labels.map(expectedLabel), ...expectedSample({ value, timestamp }) };
}

function expectedHistogram(histogram: JsonHistogram): ReferenceHistogram {
  return {
    count: expectedCount("count", histogram.count_int, histogram.count_float),
    sumBits: expectedBits(histogram.sum ?? 0),
    schema: histogram.schema ?? 0,
    zeroThresholdBits: expectedBits(histogram.zero_threshold ?? 0),
    zeroCount: expectedCount("zero_count", histogram.zero_count_int, histogram.zero_count_float),
    negativeSpans: histogram.negative_spans ?? [],
    negativeDeltas: (histogram.negative_deltas ?? []).map(String),
    negativeCountBits: (histogram.negative_counts ?? []).map(expectedBits),
    positiveSpans: histogram.positive_spans ?? [],
    positiveDeltas: (histogram.positive_deltas ?? []).map(String),
    positiveCountBits: (histogram.positive_counts ?? []).map(expectedBits),
    resetHint: histogram.reset_hint ?? 0,
    timestamp: String(histogram.timestamp),
    customValueBits: (histogram.custom_values ?? []).map(expectedBits),
  };
}

function expectedCount(
  oneof: "count" | "zero_count",
  integer: JsonInteger | undefined,
  float: JsonDouble | undefined,
): readonly [string, string] | null {
  if (integer !== undefined) return [`${oneof}_int`, String(integer)];
  return float === undefined ? null : [`${oneof}_float`, expectedBits(float)];
}
