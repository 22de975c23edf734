/** Builds request bodies by hand, right or wrong ones, sharing nothing with the product. */
import { compress } from "snappyjs";

/** An unsigned varint. */
export function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 0x80);
  return Buffer.from([...bytes, rest]);
}

/** A length-delimited field. */
export function field(number: number, content: Uint8Array): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(content.length), content]);
}

export function label(name: string | Uint8Array, value: string | Uint8Array): Buffer {
  return field(1, Buffer.concat([field(1, Buffer.from(name)), field(2, Buffer.from(value))]));
}

/** A sample as a field of a series. */
export function sample(value: number, timestamp: number): Buffer {
  const double = Buffer.alloc(8);
  double.writeDoubleLE(value);
  return field(2, Buffer.concat([Buffer.from([0x09]), double, Buffer.from([0x10]), varint(timestamp)]));
}

/** A series of the request, of fields made by label() and sample(). */
export function series(...fields: readonly Uint8Array[]): Buffer {
  return field(1, Buffer.concat(fields));
}

/** A series `name` with one sample. */
export function oneSample(name: string, ...labels: readonly Uint8Array[]): Buffer {
  return series(label("__name__", name), ...labels, sample(1.5, 1_700_000_000_000));
}

/** A metadata entry of the request: a counter. */
export function metadata(family: string | Uint8Array): Buffer {
  return field(3, Buffer.concat([Buffer.from([0x08, 1]), field(2, Buffer.from(family))]));
}

/** A compressed request of top-level fields. */
export function requestBody(...fields: readonly Uint8Array[]): Uint8Array {
  return compress(new Uint8Array(Buffer.concat(fields)));
}
