/**
 * The memory for what is under way: one budget of bytes, and those who hold something of it.
 *
 * What one holder leaves free is there for the others, and nobody has a fixed part. But a holder takes more only as long as
 * it then holds no more than is still free. So one that never lets go comes to half of the budget, two to a third each, n
 * to one part of n + 1, and as much stays free for all others: nobody takes the last of it.
 *
 * The budget may change. What is held beyond a smaller one stays held; nobody takes more until enough of it is given back.
 *
 * A holder that holds nothing takes whatever comes: what is larger than its part would otherwise be sent for again for ever.
 *
 * @see Choudhury & Hahne, Dynamic Queue Length Thresholds for Shared-Memory Packet Switches, 1998
 */

export class MemoryBudget {
  maxBytes: number;
  #heldBytes = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** What all holders hold together. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  holder(): MemoryHolder {
    return new MemoryHolder(
      () => this.maxBytes,
      () => this.#heldBytes,
      (bytes) => {
        this.#heldBytes += bytes;
      },
    );
  }
}

/** One who holds something of a budget, and gives all of it back in the end. */
export class MemoryHolder {
  readonly #maxBytes: () => number;
  readonly #heldByAll: () => number;
  readonly #add: (bytes: number) => void;
  #heldBytes = 0;
  #refusals = 0;
  #isClosed = false;

  /** @param add to what all hold; less than nothing for what is given back */
  constructor(maxBytes: () => number, heldByAll: () => number, add: (bytes: number) => void) {
    this.#maxBytes = maxBytes;
    this.#heldByAll = heldByAll;
    this.#add = add;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** How often tryTake() has answered false. */
  get refusals(): number {
    return this.#refusals;
  }

  /** Takes so many bytes; false, and nothing, when it would then hold more than is free. */
  tryTake(bytes: number): boolean {
    const freeThen = this.#maxBytes() - this.#heldByAll() - bytes;
    if (this.#heldBytes > 0 && this.#heldBytes + bytes > freeThen) {
      this.#refusals += 1;
      return false;
    }
    this.take(bytes);
    return true;
  }

  /** Takes so many bytes, free or not. */
  take(bytes: number): void {
    if (this.#isClosed) return;
    this.#heldBytes += bytes;
    this.#add(bytes);
  }

  release(bytes: number): void {
    if (!this.#isClosed) this.take(-bytes);
  }

  /** Gives back all that is left. From now on it holds nothing, whatever it is told. */
  close(): void {
    this.release(this.#heldBytes);
    this.#isClosed = true;
  }
}
