/** Memory for many short arrays: one of its own for each would cost more than all that is done with it. */

const CHUNK_LENGTH = 16_384;

export class Chunks<A extends Int32Array | Uint8Array> {
  readonly #allocate: (length: number) => A;
  #chunk: A;
  #taken = 0;

  constructor(allocate: (length: number) => A) {
    this.#allocate = allocate;
    this.#chunk = allocate(CHUNK_LENGTH);
  }

  /** An array that is in use nowhere else. */
  take(length: number): A {
    if (this.#taken + length > this.#chunk.length) {
      this.#chunk = this.#allocate(Math.max(CHUNK_LENGTH, length));
      this.#taken = 0;
    }
    this.#taken += length;
    return this.#chunk.subarray(this.#taken - length, this.#taken) as A;
  }
}
