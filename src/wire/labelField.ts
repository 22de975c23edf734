/**
 * Encodes labels, as fields of a series and as whole requests.
 */
import { LENGTH_DELIMITED } from "./cursor.ts";

const TIMESERIES = (1 << 3) | LENGTH_DELIMITED;
const LABELS = (1 << 3) | LENGTH_DELIMITED;
const NAME = (1 << 3) | LENGTH_DELIMITED;
const VALUE = (2 << 3) | LENGTH_DELIMITED;

/** Bytes that a varint of `value` takes. */
export function varintBytes(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 128)) length += 1;
  return length;
}

/** Writes a varint and answers where it ends. */
function writeVarint(target: Uint8Array, at: number, value: number): number {
  let pos = at;
  let rest = value;
  while (rest >= 0x80) {
    target[pos++] = (rest & 0x7f) | 0x80;
    rest = Math.floor(rest / 128);
  }
  target[pos++] = rest;
  return pos;
}

/** Encodes one label as a field of a series, tag included: the name, and the value, which ends the field. */
export function encodeLabelField(name: Uint8Array, value: Uint8Array): Uint8Array {
  const content = contentBytes(name.length, value.length);
  const field = new Uint8Array(1 + varintBytes(content) + content);
  field[0] = LABELS;
  let pos = writeVarint(field, 1, content);
  field[pos] = NAME;
  pos = writeVarint(field, pos + 1, name.length);
  field.set(name, pos);
  pos += name.length;
  field[pos] = VALUE;
  pos = writeVarint(field, pos + 1, value.length);
  field.set(value, pos);
  return field;
}

/** Places of a label that was written. */
export interface WrittenLabel {
  readonly nameStart: number;
  readonly nameEnd: number;
  readonly valueStart: number;
  /** Of the value and of the field. */
  readonly end: number;
}

const encoder = new TextEncoder();

/** Length of the label field of these texts. */
export function labelFieldBytes(name: string, value: string): number {
  const content = contentBytes(utf8Bytes(name), utf8Bytes(value));
  return 1 + varintBytes(content) + content;
}

/** encodeLabelField() of texts to a place that has labelFieldBytes(). */
export function writeLabelField(target: Uint8Array, at: number, name: string, value: string): WrittenLabel {
  const nameBytes = utf8Bytes(name);
  const valueBytes = utf8Bytes(value);
  target[at] = LABELS;
  const nameAt = writeVarint(target, at + 1, contentBytes(nameBytes, valueBytes));
  target[nameAt] = NAME;
  const nameStart = writeVarint(target, nameAt + 1, nameBytes);
  const nameEnd = writeText(target, nameStart, name);
  target[nameEnd] = VALUE;
  const valueStart = writeVarint(target, nameEnd + 1, valueBytes);
  return { nameStart, nameEnd, valueStart, end: writeText(target, valueStart, value) };
}

/** Length of a label's message whose name and value have these lengths. */
function contentBytes(nameBytes: number, valueBytes: number): number {
  return 1 + varintBytes(nameBytes) + nameBytes + 1 + varintBytes(valueBytes) + valueBytes;
}

// Nearly all labels are ASCII and short, and a call of the encoder for each would cost more than the loops below.

/** Bytes of text as UTF-8. */
function utf8Bytes(text: string): number {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) >= 0x80) return Buffer.byteLength(text);
  return text.length;
}

/** Writes text as UTF-8 and answers where it ends. */
function writeText(target: Uint8Array, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0x80) return at + i + encoder.encodeInto(text.slice(i), target.subarray(at + i)).written;
    target[at + i] = code;
  }
  return at + text.length;
}

/** Encodes a request of one series that has labels and nothing else. */
export function encodeLabelSet(namesAndValues: readonly Uint8Array[]): Uint8Array {
  const fields: Uint8Array[] = [];
  for (let i = 0; i + 1 < namesAndValues.length; i += 2) {
    const [name, value] = namesAndValues.slice(i, i + 2);
    if (name !== undefined && value !== undefined) fields.push(encodeLabelField(name, value));
  }
  return seriesRequest(Buffer.concat(fields));
}

/** A request of one series with this message. */
export function seriesRequest(message: Uint8Array): Uint8Array {
  const request = new Uint8Array(1 + varintBytes(message.length) + message.length);
  request[0] = TIMESERIES;
  request.set(message, writeVarint(request, 1, message.length));
  return request;
}
