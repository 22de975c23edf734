/** Random numbers and names that are the same in every run (mulberry32). */
const NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789";
const HEX_DIGITS = "0123456789abcdef";

export class Mulberry {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** 0 <= it < 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer, 0 <= it < limit. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  pick(items: readonly string[]): string {
    return items[this.below(items.length)] ?? "";
  }

  /** Hexadecimal digits. */
  hex(length: number): string {
    return this.#letters(length, HEX_DIGITS);
  }

  /** What Kubernetes puts at the end of generated names. */
  suffix(length: number): string {
    return this.#letters(length, NAME_LETTERS);
  }

  uuid(): string {
    return `${this.hex(8)}-${this.hex(4)}-4${this.hex(3)}-a${this.hex(3)}-${this.hex(12)}`;
  }

  #letters(length: number, alphabet: string): string {
    return Array.from({ length }, () => alphabet[this.below(alphabet.length)]).join("");
  }
}
