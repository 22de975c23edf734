/**
 * Decodes remote write messages with protobufjs, losing nothing: 64-bit values keep their bits, names and values their
 * bytes, and fields that the schema does not have come along as they are.
 *
 * It is the reference that `inspect`, `sink` and the tests of the scanner trust. Objects for every sample are slow:
 * nothing on the gateway's own way uses it.
 */
import protobuf from "protobufjs";
import { loadSchema } from "./protoSchema.ts";

/** The 64 bits of a double or of an integer, as two halves of 32 bits (signed or not, as protobufjs has them). */
export interface Bits64 {
  readonly low: number;
  readonly high: number;
}

/** Bytes of a string field; an absent field is an empty array. */
export type RawText = Uint8Array | readonly never[];

export interface RawMessage {
  /** Fields that the schema does not have, and known ones with a foreign wire type: tag and value as they came. */
  readonly $unknowns?: readonly Uint8Array[];
}

export interface RawLabel extends RawMessage {
  readonly name: RawText;
  readonly value: RawText;
}

export interface RawSample extends RawMessage {
  readonly value: Bits64;
  readonly timestamp: Bits64;
  /** 2.0 only. */
  readonly start_timestamp?: Bits64;
}

export interface RawExemplar extends RawMessage {
  /** 1.0 only. */
  readonly labels?: readonly RawLabel[];
  /** 2.0 only. */
  readonly labels_refs?: readonly number[];
  readonly value: Bits64;
  readonly timestamp: Bits64;
}

export interface RawSpan extends RawMessage {
  readonly offset: number;
  readonly length: number;
}

/** `count` and `zero_count` name the member of the oneof that came, if any did. */
export interface RawHistogram extends RawMessage {
  readonly count?: "count_int" | "count_float";
  readonly count_int: Bits64;
  readonly count_float: Bits64;
  readonly sum: Bits64;
  readonly schema: number;
  readonly zero_threshold: Bits64;
  readonly zero_count?: "zero_count_int" | "zero_count_float";
  readonly zero_count_int: Bits64;
  readonly zero_count_float: Bits64;
  readonly negative_spans: readonly RawSpan[];
  readonly negative_deltas: readonly Bits64[];
  readonly negative_counts: readonly Bits64[];
  readonly positive_spans: readonly RawSpan[];
  readonly positive_deltas: readonly Bits64[];
  readonly positive_counts: readonly Bits64[];
  readonly reset_hint: number;
  readonly timestamp: Bits64;
  readonly custom_values: readonly Bits64[];
  /** 2.0 only. */
  readonly start_timestamp?: Bits64;
}

export interface RawSeries extends RawMessage {
  readonly labels: readonly RawLabel[];
  readonly samples: readonly RawSample[];
  readonly exemplars: readonly RawExemplar[];
  readonly histograms: readonly RawHistogram[];
}

export interface RawMetadata extends RawMessage {
  readonly type: number;
  readonly metric_family_name: RawText;
  readonly help: RawText;
  readonly unit: RawText;
  readonly account_id: number;
  readonly project_id: number;
}

/** A remote write 1.0 message, prometheus.WriteRequest. */
export interface RawWriteRequest extends RawMessage {
  readonly timeseries: readonly RawSeries[];
  readonly metadata: readonly RawMetadata[];
}

export interface RawSeries2 extends RawMessage {
  readonly labels_refs: readonly number[];
  readonly samples: readonly RawSample[];
  readonly histograms: readonly RawHistogram[];
  readonly exemplars: readonly RawExemplar[];
  readonly metadata: (RawMessage & { type: number; help_ref: number; unit_ref: number }) | null;
  readonly created_timestamp: Bits64;
}

/** A remote write 2.0 message, io.prometheus.write.v2.Request. */
export interface RawRequest2 extends RawMessage {
  readonly symbols: readonly RawText[];
  readonly timeseries: readonly RawSeries2[];
}

/** The bytes are no message of the schema. */
export class DecodeError extends Error {
  /** Where the decoder stood in the plain bytes when it gave up. */
  readonly offset: number;

  constructor(offset: number, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`the protobuf message cannot be decoded: ${reason}; reading had come to byte ${offset}`, { cause });
    this.name = "DecodeError";
    this.offset = offset;
  }
}

let writeRequest: protobuf.Type | undefined;
let request2: protobuf.Type | undefined;

/**
 * Decodes a plain remote write 1.0 message. The answer refers to the bytes of `plain`: do not change them.
 *
 * @throws {DecodeError}
 */
export function decodeWriteRequest(plain: Uint8Array): RawWriteRequest {
  writeRequest ??= loadSchema("remote_write_v1.proto", "raw").lookupType("prometheus.WriteRequest");
  return decode(writeRequest, plain) as unknown as RawWriteRequest;
}

/** Decodes a plain remote write 2.0 message, as decodeWriteRequest does for 1.0. */
export function decodeRequest2(plain: Uint8Array): RawRequest2 {
  request2 ??= loadSchema("remote_write_v2.proto", "raw").lookupType("io.prometheus.write.v2.Request");
  return decode(request2, plain) as unknown as RawRequest2;
}

function decode(type: protobuf.Type, plain: Uint8Array): protobuf.Message {
  const reader = protobuf.Reader.create(Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength));
  reader.discardUnknown = false;
  try {
    return type.decode(reader);
  } catch (error) {
    throw new DecodeError(reader.pos, error);
  }
}
