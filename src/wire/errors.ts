/** Why bytes could not be read. */
export type WireErrorCode =
  | "WIRE_TRUNCATED" // the bytes end inside a field
  | "WIRE_VARINT" // a varint of more than 64 bits, or a tag or length of more than five bytes
  | "WIRE_TAG" // field number 0 or above 2^29 - 1, a group, or an undefined wire type
  | "WIRE_TYPE" // a known field with another wire type than the schema's
  | "WIRE_OVERRUN" // a field runs past the end of its message
  | "WIRE_MESSAGE" // well-formed, but no remote write 1.0 request
  | "WIRE_VERSION_2" // a remote write 2.0 message
  | "WIRE_EMPTY" // no bytes at all
  | "WIRE_TENANT" // a header names more than one tenant, or one that no label can hold
  | "WIRE_SNAPPY" // no valid snappy block
  | "WIRE_TOO_LARGE"; // the body or its plain length is above the limit

/** Thrown by everything in wire/ that reads; nothing of the input has been used when it comes. */
export class WireError extends Error {
  readonly code: WireErrorCode;
  /** Where in the bytes that were being read: the compressed body for WIRE_SNAPPY and WIRE_TOO_LARGE, else the plain request. */
  readonly offset: number;

  constructor(code: WireErrorCode, offset: number, message: string) {
    super(message);
    this.name = "WireError";
    this.code = code;
    this.offset = offset;
  }
}
