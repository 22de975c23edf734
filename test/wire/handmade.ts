/** Protobuf bytes put together by hand, so that tests can make what no sender should. */

export const VARINT = 0;
export const FIXED64 = 1;
export const LENGTH_DELIMITED = 2;
export const START_GROUP = 3;
export const END_GROUP = 4;
export const FIXED32 = 5;

/** A varint, padded with empty groups of seven bits to `bytes` bytes where it would be shorter. */
export function varint(value: number | bigint, bytes = 1): Buffer {
  const groups: number[] = [];
  for (let rest = BigInt.asUintN(64, BigInt(value)); groups.length < bytes || rest > 0n; rest >>= 7n) {
    groups.push(Number(rest & 0x7fn));
  }
  return Buffer.from(groups.map((group, index) => (index < groups.length - 1 ? group | 0x80 : group)));
}

export function tag(field: number, wireType: number): Buffer {
  return varint(BigInt(field) * 8n + BigInt(wireType));
}

/** A length-delimited field: text, bytes or the fields of a message. */
export function nested(field: number, ...content: readonly (Uint8Array | string)[]): Buffer {
  const bytes = Buffer.concat(content.map((part) => Buffer.from(part)));
  return Buffer.concat([tag(field, LENGTH_DELIMITED), varint(bytes.length), bytes]);
}

export function varintField(field: number, value: number | bigint): Buffer {
  return Buffer.concat([tag(field, VARINT), varint(value)]);
}

/** A double's field, its bits as 16 hex digits. */
export function doubleField(field: number, bits = "3ff0000000000000"): Buffer {
  return Buffer.concat([tag(field, FIXED64), Buffer.from(bits, "hex").reverse()]);
}

export function fixed32Field(field: number): Buffer {
  return Buffer.concat([tag(field, FIXED32), Buffer.from([1, 2, 3, 4])]);
}

export function label(name: Uint8Array | string, value: Uint8Array | string): Buffer {
  return nested(1, nested(1, name), nested(2, value));
}

export function sample(timestamp: number | bigint, bits?: string): Buffer {
  return nested(2, doubleField(1, bits), varintField(2, timestamp));
}

export function exemplar(...fields: readonly Uint8Array[]): Buffer {
  return nested(3, ...fields);
}

export function histogram(...fields: readonly Uint8Array[]): Buffer {
  return nested(4, ...fields);
}

export function series(...fields: readonly Uint8Array[]): Buffer {
  return nested(1, ...fields);
}

export function metadata(...fields: readonly Uint8Array[]): Buffer {
  return nested(3, ...fields);
}

/** A label set in the order given, and one sample. */
export function seriesOf(labels: readonly (readonly [string, string])[], timestamp = 1): Buffer {
  return series(...labels.map(([name, value]) => label(name, value)), sample(timestamp));
}
