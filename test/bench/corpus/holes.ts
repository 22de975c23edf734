/**
 * Snappy blocks with holes: places in the compressed bytes that can be overwritten with any text.
 *
 * The load driver makes new series by writing digits into a body that is compressed already, which costs it next to
 * nothing. That works if a hole is compressed as it is (a literal) and if nothing else in the block is a copy of it; no
 * ordinary encoder promises that, so this one does.
 *
 * @see format_description.txt in the sources of snappy
 */

/** Length of every hole. loadgen (corpus.h) knows it too. */
export const HOLE_BYTES = 16;

const COPY_2 = 2; // a copy whose offset has two bytes
/** A copy goes back within the same 64 KiB of text, as in what the usual encoders write; so two bytes hold its offset. */
const FRAGMENT_BITS = 16;
const MAX_COPY_BYTES = 64;
const MIN_COPY_BYTES = 4;
const HASH_BITS = 14;
const HASH_MULTIPLIER = 0x1e35a7bd;

export interface BlockWithHoles {
  readonly block: Uint8Array;
  /** Where in the block the holes begin. */
  readonly holes: readonly number[];
}

/**
 * Compresses into one block.
 *
 * @param holes where the holes begin, HOLE_BYTES long each, in ascending order and apart from one another
 */
export function compressWithHoles(plain: Uint8Array, holes: readonly number[]): BlockWithHoles {
  const encoder = new Encoder(plain, holes);
  let from = 0;
  for (const hole of holes) {
    encoder.compress(from, hole);
    from = hole + HOLE_BYTES;
  }
  encoder.compress(from, plain.length);
  return encoder.finish();
}

class Encoder {
  readonly #plain: Uint8Array;
  readonly #view: DataView;
  /** 1 where a hole is: copies end before it. */
  readonly #isHole: Uint8Array;
  readonly #holes: readonly number[];
  readonly #holesInBlock: number[] = [];
  /** Last place where four bytes of this hash began; -1 for none. */
  readonly #places = new Int32Array(1 << HASH_BITS).fill(-1);
  readonly #block: Uint8Array;
  #blockEnd = 0;
  /** Up to here everything is in the block; what follows will be a literal. */
  #written = 0;

  constructor(plain: Uint8Array, holes: readonly number[]) {
    this.#plain = plain;
    this.#view = new DataView(plain.buffer, plain.byteOffset, plain.byteLength);
    this.#holes = holes;
    this.#isHole = new Uint8Array(plain.length);
    for (const hole of holes) this.#isHole.fill(1, hole, hole + HOLE_BYTES);
    // At worst one long literal.
    this.#block = new Uint8Array(plain.length + Math.ceil(plain.length / 6) + 32);
    for (let rest = plain.length; ; rest >>>= 7) {
      this.#put(rest < 0x80 ? rest : (rest & 0x7f) | 0x80);
      if (rest < 0x80) break;
    }
  }

  /** Takes what lies between two holes. */
  compress(from: number, to: number): void {
    let at = from;
    while (at + MIN_COPY_BYTES <= to) {
      const word = this.#view.getUint32(at, true);
      const slot = Math.imul(word, HASH_MULTIPLIER) >>> (32 - HASH_BITS);
      const place = this.#places[slot] ?? -1;
      this.#places[slot] = at;
      const length = place >>> FRAGMENT_BITS === at >>> FRAGMENT_BITS ? this.#commonBytes(place, at, to) : 0;
      if (length < MIN_COPY_BYTES) {
        at += 1;
        continue;
      }
      this.#putLiteral(at);
      this.#putCopy(at - place, length);
      at += length;
    }
  }

  finish(): BlockWithHoles {
    this.#putLiteral(this.#plain.length);
    return { block: this.#block.slice(0, this.#blockEnd), holes: this.#holesInBlock };
  }

  #commonBytes(place: number, at: number, to: number): number {
    let length = 0;
    while (
      at + length < to &&
      this.#isHole[place + length] === 0 &&
      this.#plain[place + length] === this.#plain[at + length]
    ) {
      length += 1;
    }
    return length;
  }

  /** Everything that is not written yet, up to `to`, holes included. */
  #putLiteral(to: number): void {
    const last = to - this.#written - 1;
    if (last < 0) return;
    const lengthBytes = last < 60 ? 0 : last < 1 << 8 ? 1 : last < 1 << 16 ? 2 : last < 1 << 24 ? 3 : 4;
    this.#put((lengthBytes === 0 ? last : 59 + lengthBytes) << 2);
    for (let byte = 0; byte < lengthBytes; byte++) this.#put((last >>> (8 * byte)) & 0xff);
    const shift = this.#blockEnd - this.#written;
    this.#block.set(this.#plain.subarray(this.#written, to), this.#blockEnd);
    this.#blockEnd += last + 1;
    this.#written = to;
    while ((this.#holes[this.#holesInBlock.length] ?? Infinity) < to) {
      this.#holesInBlock.push((this.#holes[this.#holesInBlock.length] ?? 0) + shift);
    }
  }

  #putCopy(offset: number, length: number): void {
    for (let left = length; left > 0; left -= MAX_COPY_BYTES) {
      this.#put(((Math.min(left, MAX_COPY_BYTES) - 1) << 2) | COPY_2);
      this.#put(offset & 0xff);
      this.#put(offset >>> 8);
    }
    this.#written += length;
  }

  #put(byte: number): void {
    this.#block[this.#blockEnd++] = byte;
  }
}
