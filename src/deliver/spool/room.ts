/** How many bytes the segments of an upstream, or of all, take and may take. */
export class Room {
  readonly maxBytes: number;
  readonly #parent: Room | null;
  #used = 0;

  /** @param parent what is taken here is taken there as well */
  constructor(maxBytes: number, parent: Room | null) {
    this.maxBytes = maxBytes;
    this.#parent = parent;
  }

  get used(): number {
    return this.#used;
  }

  /** Takes bytes, also beyond the bound: what is on disk already is there. */
  take(bytes: number): void {
    this.#used += bytes;
    this.#parent?.take(bytes);
  }

  give(bytes: number): void {
    this.take(-bytes);
  }

  /** How many bytes would be too many; 0 or less when there is room. */
  excess(bytes: number): number {
    return this.#used + bytes - this.maxBytes;
  }
}
