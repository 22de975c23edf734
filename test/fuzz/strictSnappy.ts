/**
 * Decompresses a snappy block, one byte at a time and strict about everything.
 *
 * Like the format's description and unlike fast codecs: what a mutant stands for is held against this.
 *
 * @throws {RangeError} when the block is not valid to its last byte
 */
export function strictUncompress(block: Uint8Array): Uint8Array {
  let pos = 0;
  const next = (): number => {
    const byte = block[pos++];
    if (byte === undefined) throw new RangeError("the block ends too early");
    return byte;
  };
  const littleEndian = (bytes: number): number => {
    let value = 0;
    for (let i = 0; i < bytes; i++) value += next() * 256 ** i;
    return value;
  };
  let declared = 0;
  for (let scale = 1, more = true; more; scale *= 128) {
    const byte = next();
    declared += (byte & 0x7f) * scale;
    more = byte >= 0x80;
  }
  const plain: number[] = [];
  while (pos < block.length) {
    const tag = next();
    const upper = tag >>> 2;
    if ((tag & 3) === 0) {
      const length = upper < 60 ? upper : littleEndian(upper - 59);
      for (let i = 0; i <= length; i++) plain.push(next());
      continue;
    }
    const isNear = (tag & 3) === 1;
    const length = isNear ? (upper & 7) + 4 : upper + 1;
    const offset = isNear ? (tag >>> 5) * 256 + next() : littleEndian((tag & 3) === 2 ? 2 : 4);
    for (let i = 0; i < length; i++) {
      const byte = offset === 0 ? undefined : plain[plain.length - offset];
      if (byte === undefined) throw new RangeError("a copy from outside");
      plain.push(byte);
    }
  }
  if (plain.length !== declared) throw new RangeError("another length than declared");
  return Uint8Array.from(plain);
}
