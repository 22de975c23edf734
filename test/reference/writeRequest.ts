/**
 * Remote write 1.0 requests as protobufjs and snappyjs decode them, in plain objects that can be compared.
 *
 * It shares no code with src/wire: what the gateway's scanner, splitter and senders do is held against it. Doubles are
 * their 16 hex digits, 64-bit integers decimal strings, and names and values latin1 strings, one character a byte, so
 * that stale markers, counts beyond 2^53 and invalid UTF-8 compare as what they are.
 */
import type protobuf from "protobufjs";
import { uncompress } from "snappyjs";
import { bitsHex, bytesOf, toSigned, toUnsigned } from "../../src/cli/exactValue.ts";
import { loadSchema } from "../../src/cli/protoSchema.ts";
import {
  type Bits64,
  decodeWriteRequest,
  type RawExemplar,
  type RawHistogram,
  type RawLabel,
  type RawMessage,
  type RawMetadata,
  type RawSample,
  type RawSeries,
  type RawSpan,
  type RawText,
} from "../../src/cli/referenceDecoder.ts";

/** Fields that the schema does not have, as hex of tag and value, in their order; absent when there are none. */
export interface WithUnknown {
  readonly unknown?: readonly string[];
}

/** A label is [name, value], or [name, value, unknown fields]. */
export type ReferenceLabel = readonly [string, string] | readonly [string, string, readonly string[]];

export interface ReferenceSample extends WithUnknown {
  readonly valueBits: string;
  readonly timestamp: string;
}

export interface ReferenceExemplar extends WithUnknown {
  readonly labels: readonly ReferenceLabel[];
  readonly valueBits: string;
  readonly timestamp: string;
}

export interface ReferenceSpan extends WithUnknown {
  readonly offset: number;
  readonly length: number;
}

/** A count is [field name, value]; null when neither member of its oneof came. */
export interface ReferenceHistogram extends WithUnknown {
  readonly count: readonly [string, string] | null;
  readonly sumBits: string;
  readonly schema: number;
  readonly zeroThresholdBits: string;
  readonly zeroCount: readonly [string, string] | null;
  readonly negativeSpans: readonly ReferenceSpan[];
  readonly negativeDeltas: readonly string[];
  readonly negativeCountBits: readonly string[];
  readonly positiveSpans: readonly ReferenceSpan[];
  readonly positiveDeltas: readonly string[];
  readonly positiveCountBits: readonly string[];
  readonly resetHint: number;
  readonly timestamp: string;
  readonly customValueBits: readonly string[];
}

export interface ReferenceSeries extends WithUnknown {
  readonly labels: readonly ReferenceLabel[];
  readonly samples: readonly ReferenceSample[];
  readonly exemplars: readonly ReferenceExemplar[];
  readonly histograms: readonly ReferenceHistogram[];
}

export interface ReferenceMetadata extends WithUnknown {
  readonly type: number;
  readonly family: string;
  readonly help: string;
  readonly unit: string;
  readonly accountId: number;
  readonly projectId: number;
}

export interface ReferenceRequest extends WithUnknown {
  readonly series: readonly ReferenceSeries[];
  readonly metadata: readonly ReferenceMetadata[];
}

/**
 * Decodes a plain request.
 *
 * @throws {DecodeError} when protobufjs cannot decode it. Invalid UTF-8 is no reason: names and values are bytes here
 */
export function decodeReference(plain: Uint8Array): ReferenceRequest {
  const request = decodeWriteRequest(plain);
  return {
    series: request.timeseries.map(referenceSeries),
    metadata: request.metadata.map(referenceMetadata),
    ...unknownOf(request),
  };
}

/** Decodes a request body, a snappy block. */
export function decodeBody(body: Uint8Array): ReferenceRequest {
  return decodeReference(uncompressBody(body));
}

/** Decompresses a request body with snappyjs. */
export function uncompressBody(body: Uint8Array): Uint8Array {
  return uncompress(new Uint8Array(body.buffer, body.byteOffset, body.byteLength));
}

let writer: protobuf.Type | undefined;

/**
 * Encodes a request with protobufjs: fields in ascending order, zero scalars left out, repeated scalars packed.
 * Decoding the answer gives `request` again.
 */
export function encodeReference(request: ReferenceRequest): Uint8Array {
  writer ??= loadSchema("remote_write_v1.proto", "raw").lookupType("prometheus.WriteRequest");
  return writer
    .encode({
      timeseries: request.series.map((series) => ({
        labels: series.labels.map(rawLabel),
        samples: series.samples.map((sample) => ({
          value: bitsOfHex(sample.valueBits),
          timestamp: bitsOfDecimal(sample.timestamp),
          ...rawUnknown(sample),
        })),
        exemplars: series.exemplars.map((exemplar) => ({
          labels: exemplar.labels.map(rawLabel),
          value: bitsOfHex(exemplar.valueBits),
          timestamp: bitsOfDecimal(exemplar.timestamp),
          ...rawUnknown(exemplar),
        })),
        histograms: series.histograms.map(rawHistogram),
        ...rawUnknown(series),
      })),
      metadata: request.metadata.map((metadata) => ({
        type: metadata.type,
        metric_family_name: Buffer.from(metadata.family, "latin1"),
        help: Buffer.from(metadata.help, "latin1"),
        unit: Buffer.from(metadata.unit, "latin1"),
        account_id: metadata.accountId,
        project_id: metadata.projectId,
        ...rawUnknown(metadata),
      })),
      ...rawUnknown(request),
    })
    .finish();
}

function referenceSeries(series: RawSeries): ReferenceSeries {
  return {
    labels: series.labels.map(referenceLabel),
    samples: series.samples.map(referenceSample),
    exemplars: series.exemplars.map(referenceExemplar),
    histograms: series.histograms.map(referenceHistogram),
    ...unknownOf(series),
  };
}

function referenceLabel(label: RawLabel): ReferenceLabel {
  const { unknown } = unknownOf(label);
  const pair = [latin1(label.name), latin1(label.value)] as const;
  return unknown === undefined ? pair : [...pair, unknown];
}

function referenceSample(sample: RawSample): ReferenceSample {
  return { valueBits: bitsHex(sample.value), timestamp: signed(sample.timestamp), ...unknownOf(sample) };
}

function referenceExemplar(exemplar: RawExemplar): ReferenceExemplar {
  return {
    labels: (exemplar.labels ?? []).map(referenceLabel),
    valueBits: bitsHex(exemplar.value),
    timestamp: signed(exemplar.timestamp),
    ...unknownOf(exemplar),
  };
}

function referenceHistogram(histogram: RawHistogram): ReferenceHistogram {
  return {
    count: referenceCount(histogram.count, histogram),
    sumBits: bitsHex(histogram.sum),
    schema: histogram.schema,
    zeroThresholdBits: bitsHex(histogram.zero_threshold),
    zeroCount: referenceCount(histogram.zero_count, histogram),
    negativeSpans: histogram.negative_spans.map(referenceSpan),
    negativeDeltas: histogram.negative_deltas.map(signed),
    negativeCountBits: histogram.negative_counts.map(bitsHex),
    positiveSpans: histogram.positive_spans.map(referenceSpan),
    positiveDeltas: histogram.positive_deltas.map(signed),
    positiveCountBits: histogram.positive_counts.map(bitsHex),
    resetHint: histogram.reset_hint,
    timestamp: signed(histogram.timestamp),
    customValueBits: histogram.custom_values.map(bitsHex),
    ...unknownOf(histogram),
  };
}

function referenceCount(
  field: RawHistogram["count"] | RawHistogram["zero_count"],
  histogram: RawHistogram,
): readonly [string, string] | null {
  if (field === undefined) return null;
  const isInteger = field === "count_int" || field === "zero_count_int";
  return [field, isInteger ? String(toUnsigned(histogram[field])) : bitsHex(histogram[field])];
}

function referenceSpan(span: RawSpan): ReferenceSpan {
  return { offset: span.offset, length: span.length, ...unknownOf(span) };
}

function referenceMetadata(metadata: RawMetadata): ReferenceMetadata {
  return {
    type: metadata.type,
    family: latin1(metadata.metric_family_name),
    help: latin1(metadata.help),
    unit: latin1(metadata.unit),
    accountId: metadata.account_id,
    projectId: metadata.project_id,
    ...unknownOf(metadata),
  };
}

function unknownOf({ $unknowns = [] }: RawMessage): WithUnknown {
  if ($unknowns.length === 0) return {};
  return { unknown: $unknowns.map((field) => Buffer.from(field).toString("hex")) };
}

function latin1(text: RawText): string {
  return Buffer.from(bytesOf(text)).toString("latin1");
}

function signed(bits: Bits64): string {
  return String(toSigned(bits));
}

function rawHistogram(histogram: ReferenceHistogram): object {
  return {
    ...rawCount(histogram.count),
    sum: bitsOfHex(histogram.sumBits),
    schema: histogram.schema,
    zero_threshold: bitsOfHex(histogram.zeroThresholdBits),
    ...rawCount(histogram.zeroCount),
    negative_spans: histogram.negativeSpans.map(rawSpan),
    negative_deltas: histogram.negativeDeltas.map(bitsOfDecimal),
    negative_counts: histogram.negativeCountBits.map(bitsOfHex),
    positive_spans: histogram.positiveSpans.map(rawSpan),
    positive_deltas: histogram.positiveDeltas.map(bitsOfDecimal),
    positive_counts: histogram.positiveCountBits.map(bitsOfHex),
    reset_hint: histogram.resetHint,
    timestamp: bitsOfDecimal(histogram.timestamp),
    custom_values: histogram.customValueBits.map(bitsOfHex),
    ...rawUnknown(histogram),
  };
}

function rawCount(count: readonly [string, string] | null): object {
  if (count === null) return {};
  const [field, value] = count;
  return { [field]: field.endsWith("_int") ? bitsOfDecimal(value) : bitsOfHex(value) };
}

function rawSpan(span: ReferenceSpan): object {
  return { offset: span.offset, length: span.length, ...rawUnknown(span) };
}

function rawLabel([name, value, unknown]: ReferenceLabel): object {
  return {
    name: Buffer.from(name, "latin1"),
    value: Buffer.from(value, "latin1"),
    ...rawUnknown(unknown === undefined ? {} : { unknown }),
  };
}

function rawUnknown({ unknown }: WithUnknown): object {
  return unknown === undefined ? {} : { $unknowns: unknown.map((hex) => Buffer.from(hex, "hex")) };
}

function bitsOfHex(hex: string): Bits64 {
  return bitsOf(BigInt(`0x${hex}`));
}

function bitsOfDecimal(decimal: string): Bits64 {
  return bitsOf(BigInt(decimal));
}

function bitsOf(value: bigint): Bits64 {
  return { low: Number(BigInt.asIntN(32, value)), high: Number(BigInt.asIntN(32, value >> 32n)) };
}
