/**
 * A queue that is added to and taken from at both ends, at the same small cost however much it holds.
 *
 * Its slots make a ring. They double when all are taken, and stay as many as they once were; an empty one keeps nothing
 * alive.
 */

/** A power of two, and so is every later number of slots: a mask then keeps an index inside the ring. */
const SLOTS_AT_FIRST = 16;

export class Deque<Item> {
  #slots = emptySlots<Item>(SLOTS_AT_FIRST);
  #start = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get first(): Item | undefined {
    return this.#slots[this.#slotOf(0)];
  }

  get last(): Item | undefined {
    return this.#slots[this.#slotOf(this.#length - 1)];
  }

  /** From the first to the last; it must not change meanwhile. */
  *[Symbol.iterator](): Iterator<Item> {
    for (let index = 0; index < this.#length; index++) {
      const item = this.#slots[this.#slotOf(index)];
      if (item !== undefined) yield item;
    }
  }

  /** Adds behind the last. */
  push(item: Item): void {
    this.#makeRoom();
    this.#length += 1;
    this.#slots[this.#slotOf(this.#length - 1)] = item;
  }

  /** Adds before the first. */
  unshift(item: Item): void {
    this.#makeRoom();
    this.#length += 1;
    this.#start = this.#slotOf(-1);
    this.#slots[this.#start] = item;
  }

  /** Removes the first, if there is one. */
  dropFirst(): void {
    if (this.#length === 0) return;
    this.#slots[this.#start] = undefined;
    this.#start = this.#slotOf(1);
    this.#length -= 1;
  }

  /** Removes the last, if there is one. */
  dropLast(): void {
    if (this.#length === 0) return;
    this.#length -= 1;
    this.#slots[this.#slotOf(this.#length)] = undefined;
  }

  /** @param index 0 for the first; -1 for the slot before it */
  #slotOf(index: number): number {
    return (this.#start + index) & (this.#slots.length - 1);
  }

  #makeRoom(): void {
    const slots = this.#slots;
    if (this.#length < slots.length) return;
    this.#slots = [
      ...slots.slice(this.#start),
      ...slots.slice(0, this.#start),
      ...emptySlots<Item>(slots.length),
    ];
    this.#start = 0;
  }
}

function emptySlots<Item>(count: number): (Item | undefined)[] {
  return new Array<Item | undefined>(count).fill(undefined);
}
