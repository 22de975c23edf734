/** Where the fields of a plain request stand, and the request with one of them replaced. */
import protobuf from "protobufjs";
import { varint } from "../wire/handmade.ts";

export interface Field {
  readonly number: number;
  readonly kind: "message" | "text" | "varint" | "other";
  /** bytes[start, end): the field, its tag included. */
  readonly start: number;
  readonly end: number;
  /** Where its length stands, and the content behind the length; both are null when it has none. */
  readonly lengthAt: number | null;
  readonly contentAt: number | null;
  /** The message that it is in; null is the request. */
  readonly parent: Field | null;
}

/** Which fields are messages and strings, at each level. */
interface Messages {
  readonly [field: number]: Messages | "text";
}

const LABEL: Messages = { 1: "text", 2: "text" };
const SERIES: Messages = { 1: LABEL, 2: {}, 3: { 1: LABEL }, 4: { 8: {}, 11: {} } };
const REQUEST: Messages = { 1: SERIES, 3: { 2: "text", 4: "text", 5: "text" } };

/**
 * Finds all fields of all messages, an outer one before those in it.
 *
 * @throws protobufjs' error when the bytes are no request
 */
export function fieldsOf(plain: Uint8Array): Field[] {
  const fields: Field[] = [];
  const bytes = Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength);
  collect(protobuf.Reader.create(bytes), REQUEST, null, plain.length, fields);
  return fields;
}

function collect(
  reader: protobuf.Reader,
  messages: Messages,
  parent: Field | null,
  end: number,
  fields: Field[],
): void {
  while (reader.pos < end) {
    const start = reader.pos;
    const tag = reader.tag();
    const number = tag >>> 3;
    if ((tag & 7) !== 2) {
      reader.skipType(tag & 7);
      const kind = (tag & 7) === 0 ? "varint" : "other";
      fields.push({ number, kind, start, end: reader.pos, lengthAt: null, contentAt: null, parent });
      continue;
    }
    const lengthAt = reader.pos;
    const contentEnd = reader.uint32() + reader.pos;
    const nested = messages[number];
    const kind = nested === undefined ? "other" : nested === "text" ? "text" : "message";
    const field: Field = { number, kind, start, end: contentEnd, lengthAt, contentAt: reader.pos, parent };
    fields.push(field);
    if (nested === undefined || nested === "text") reader.pos = contentEnd;
    else collect(reader, nested, field, contentEnd, fields);
  }
}

/** The request with `bytes` in the place of a field, and the lengths around it set right. */
export function replaceField(plain: Uint8Array, field: Field, bytes: Uint8Array): Uint8Array {
  let replacement = bytes;
  let { start, end, parent } = field;
  while (parent !== null && parent.lengthAt !== null && parent.contentAt !== null) {
    const content = Buffer.concat([
      plain.subarray(parent.contentAt, start),
      replacement,
      plain.subarray(end, parent.end),
    ]);
    replacement = Buffer.concat([
      plain.subarray(parent.start, parent.lengthAt),
      varint(content.length),
      content,
    ]);
    ({ start, end, parent } = parent);
  }
  return Buffer.concat([plain.subarray(0, start), replacement, plain.subarray(end)]);
}
