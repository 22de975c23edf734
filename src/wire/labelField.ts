/**
 * Encodes labels, as fields of a series and as whole requests.
 */
import { LENGTH_DELIMITED } from "./cursor.ts";

const TIMESERIES = (1 << 3) | LENGTH_DELIMITED;
const LABELS = (1 << 3) | LENGTH_DELIMITED;
const NAME = (1 << 3) | LENGTH_DELIMITED;
const VALUE = (2 << 3) | LENGTH_DELIMITED;

/** Bytes that a varint of `value` takes. */
function varintBytes(value: number): number {
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

/** Encodes one label as a field of a series, tag included. */
export function encodeLabelField(name: Uint8Array, value: Uint8Array): Uint8Array {
  const content = 1 + varintBytes(name.length) + name.length + 1 + varintBytes(value.length) + value.length;
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
