/**
 * Well-formedness of what travels through unread: samples, exemplars, histograms, metadata.
 *
 * An upstream refuses a whole request for one malformed field in it, so a request is checked down to the last field
 * before any of it is forwarded. Unknown fields pass if their wire type is sound.
 */
import { type Cursor, FIXED64, LENGTH_DELIMITED, VARINT } from "./cursor.ts";
import { WireError } from "./errors.ts";
import { isUtf8Range } from "./utf8.ts";

/** What a field may hold. Repeated scalars come packed or one by one; both are right. */
type FieldShape =
  | { readonly kind: "scalar"; readonly wireType: number; readonly packable: boolean }
  | { readonly kind: "text" }
  | { readonly kind: "message"; readonly shape: MessageShape };

/** The known fields of a message, by field number. */
export interface MessageShape {
  readonly name: string;
  readonly fields: readonly (FieldShape | undefined)[];
}

const varint: FieldShape = { kind: "scalar", wireType: VARINT, packable: false };
const double: FieldShape = { kind: "scalar", wireType: FIXED64, packable: false };
const varints: FieldShape = { kind: "scalar", wireType: VARINT, packable: true };
const doubles: FieldShape = { kind: "scalar", wireType: FIXED64, packable: true };
const text: FieldShape = { kind: "text" };

function shape(name: string, fields: Readonly<Record<number, FieldShape>>): MessageShape {
  const byNumber: (FieldShape | undefined)[] = [];
  for (const [number, field] of Object.entries(fields)) byNumber[Number(number)] = field;
  return { name, fields: byNumber };
}

// Field numbers as in proto/remote_write_v1.proto.
const LABEL = shape("a label", { 1: text, 2: text });
const BUCKET_SPAN = shape("a bucket span", { 1: varint, 2: varint });
const spans: FieldShape = { kind: "message", shape: BUCKET_SPAN };

export const SAMPLE_SHAPE = shape("a sample", { 1: double, 2: varint });
export const EXEMPLAR_SHAPE = shape("an exemplar", {
  1: { kind: "message", shape: LABEL },
  2: double,
  3: varint,
});
export const HISTOGRAM_SHAPE = shape("a histogram", {
  1: varint,
  2: double,
  3: double,
  4: varint,
  5: double,
  6: varint,
  7: double,
  8: spans,
  9: varints,
  10: doubles,
  11: spans,
  12: varints,
  13: doubles,
  14: varint,
  15: varint,
  16: doubles,
});
export const METADATA_SHAPE = shape("a metadata entry", {
  1: varint,
  2: text,
  4: text,
  5: text,
  11: varint,
  12: varint,
});

/**
 * Passes over a message that ends at `end`.
 *
 * @returns whether all its strings are UTF-8, as strings of proto3 must be
 * @throws {WireError} unless it is well-formed to its last field
 */
export function checkMessage(cursor: Cursor, end: number, message: MessageShape): boolean {
  let isText = true;
  while (cursor.pos < end) {
    const at = cursor.pos;
    const tag = cursor.readTag();
    const field = message.fields[tag >>> 3];
    if (field === undefined) cursor.skipValue(tag);
    else if (!checkField(cursor, tag, at, field, message)) isText = false;
  }
  cursor.expectEnd(end, message.name);
  return isText;
}

function checkField(
  cursor: Cursor,
  tag: number,
  at: number,
  field: FieldShape,
  message: MessageShape,
): boolean {
  const wireType = tag & 7;
  if (field.kind === "scalar") {
    if (wireType === field.wireType) cursor.skipValue(tag);
    else if (field.packable && wireType === LENGTH_DELIMITED) checkPacked(cursor, field.wireType, message);
    else throw wrongType(tag, at, message.name);
    return true;
  }
  if (wireType !== LENGTH_DELIMITED) throw wrongType(tag, at, message.name);
  const end = cursor.readEnd();
  if (field.kind === "message") return checkMessage(cursor, end, field.shape);
  const start = cursor.pos;
  cursor.pos = end;
  return isUtf8Range(cursor.bytes, start, end);
}

function checkPacked(cursor: Cursor, wireType: number, message: MessageShape): void {
  const end = cursor.readEnd();
  while (cursor.pos < end) cursor.skipValue(wireType);
  cursor.expectEnd(end, message.name);
}

/** The error for a known field of `message` with a wire type that its schema does not allow. */
export function wrongType(tag: number, at: number, message: string): WireError {
  return new WireError(
    "WIRE_TYPE",
    at,
    `field ${tag >>> 3} of ${message} at byte ${at} has wire type ${tag & 7}, which its schema does not allow`,
  );
}
