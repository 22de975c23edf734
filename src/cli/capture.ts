/** Recognises what a file with the body of a write request holds: its compression and its message. */
import { WireError } from "../wire/errors.ts";
import { scanRequest } from "../wire/scan.ts";
import { uncompressBlock } from "../wire/snappy.ts";
import {
  decodeRequest2,
  decodeWriteRequest,
  type DecodeError,
  type RawRequest2,
  type RawWriteRequest,
} from "./referenceDecoder.ts";

interface CaptureEnvelope {
  readonly compression: "snappy" | "none";
  /** The message, decompressed. */
  readonly plain: Uint8Array;
}

export type Capture = CaptureEnvelope &
  (
    | {
        readonly version: "1.0";
        readonly request: RawWriteRequest;
        /** Why the gateway would refuse the request although it can be decoded, or null. */
        readonly malformed: string | null;
      }
    | { readonly version: "2.0"; readonly request: RawRequest2 }
  );

export type CaptureErrorCode =
  | "CAPTURE_EMPTY"
  | "CAPTURE_ENCODING" // compressed by something that is not decoded here
  | "CAPTURE_SNAPPY" // neither a snappy block nor a plain message
  | "CAPTURE_MESSAGE"; // a sound snappy block with something else in it

/** The bytes are no write request; the message names the byte where that shows. */
export class CaptureError extends SyntaxError {
  readonly code: CaptureErrorCode;

  constructor(code: CaptureErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "CaptureError";
    this.code = code;
  }
}

/** A declared length above this is taken for damage; senders stay below 32 MiB. */
const MAX_PLAIN_BYTES = 256 * 1024 * 1024;

const FOREIGN_ENCODINGS = [
  {
    name: "zstd",
    magic: [0x28, 0xb5, 0x2f, 0xfd],
    hint: "; a vmagent sends snappy with -remoteWrite.forcePromProto",
  },
  { name: "gzip", magic: [0x1f, 0x8b], hint: "" },
];

// Tags of the fields that a message can begin with, all length-delimited.
const TIMESERIES = (1 << 3) | 2;
const METADATA = (3 << 3) | 2;
const SYMBOLS_2 = (4 << 3) | 2;
const TIMESERIES_2 = (5 << 3) | 2;
const FIRST_TAGS = [TIMESERIES, METADATA, SYMBOLS_2, TIMESERIES_2];

/**
 * Decompresses and decodes a body. Remote write 2.0 is recognised by its fields, plain messages by their first byte.
 *
 * @throws {CaptureError}
 */
export function readCapture(body: Uint8Array): Capture {
  if (body.length === 0) throw new CaptureError("CAPTURE_EMPTY", "empty, want the body of a write request");
  for (const { name, magic, hint } of FOREIGN_ENCODINGS) {
    if (magic.every((byte, index) => body[index] === byte)) {
      throw new CaptureError("CAPTURE_ENCODING", `${name}, not decoded${hint}`);
    }
  }
  let plain: Uint8Array;
  try {
    plain = uncompressBlock(body, MAX_PLAIN_BYTES);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return readPlain(body, error);
  }
  try {
    return { compression: "snappy", plain, ...decodeMessage(plain) };
  } catch (error) {
    const reason = (error as DecodeError | WireError).message;
    throw new CaptureError(
      "CAPTURE_MESSAGE",
      `a snappy block of ${plain.length} plain bytes, but ${reason}`,
      error,
    );
  }
}

function readPlain(body: Uint8Array, notSnappy: WireError): Capture {
  if (!FIRST_TAGS.includes(body[0] ?? 0)) {
    throw new CaptureError(
      "CAPTURE_SNAPPY",
      `no snappy block (${notSnappy.message}), and no plain message by its first byte`,
      notSnappy,
    );
  }
  try {
    return { compression: "none", plain: body, ...decodeMessage(body) };
  } catch (error) {
    throw new CaptureError(
      "CAPTURE_SNAPPY",
      `neither a snappy block (${notSnappy.message}) nor a plain message (${(error as Error).message})`,
      error,
    );
  }
}

type Message =
  | { version: "1.0"; request: RawWriteRequest; malformed: string | null }
  | { version: "2.0"; request: RawRequest2 };

function decodeMessage(plain: Uint8Array): Message {
  const malformed = scanError(plain);
  let request: RawWriteRequest;
  try {
    request = decodeWriteRequest(plain);
  } catch (error) {
    // The scanner names the field that is wrong, the decoder only where it stood.
    throw malformed ?? error;
  }
  const { timeseries, metadata, $unknowns = [] } = request;
  const looksLike2 =
    timeseries.length === 0 &&
    metadata.length === 0 &&
    $unknowns.length > 0 &&
    $unknowns.every((field) => field[0] === SYMBOLS_2 || field[0] === TIMESERIES_2);
  if (looksLike2) return { version: "2.0", request: decodeRequest2(plain) };
  return { version: "1.0", request, malformed: malformed?.message ?? null };
}

function scanError(plain: Uint8Array): WireError | null {
  try {
    scanRequest(plain, 0, { series: () => undefined, metadata: () => undefined });
    return null;
  } catch (error) {
    if (error instanceof WireError) return error;
    throw error;
  }
}
