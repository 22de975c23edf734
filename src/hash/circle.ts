/**
 * Points on the circle of 32-bit integers, each owned by a slot: what ring and multi-probe hashing look a key up in.
 *
 * What follows a position is the first point at or past it; past the last point it is the first again.
 * The circle is cut into as many equal sections as there are points, about, and it is known which points lie in each: a
 * lookup searches one section, not the circle.
 */
import { invariant } from "./invariant.ts";

/** A point and its owner are sorted as one double: 32 bits and these. */
const MAX_OWNERS = 2 ** 21;

export class Circle {
  /** Ascending, and the first once more: it follows what lies past the last. */
  readonly #points: Uint32Array;
  /** By the same index. */
  readonly #owners: Uint32Array;
  /** Section s holds the points starts[s] <= index < starts[s + 1]. */
  readonly #starts: Uint32Array;
  /** The section of a position is what is left of it to the left of so many bits. */
  readonly #sectionBits: number;

  /**
   * @param points at least one, in any order; of equal points only the one with the least owner counts
   * @param owners slot of the point at the same index, below 2^21
   */
  constructor(points: Uint32Array, owners: Uint32Array) {
    invariant(points.length > 0 && points.length === owners.length, "a circle without points or owners");
    const sorted = Float64Array.from(
      points,
      (point, index) => point * MAX_OWNERS + (owners[index] ?? 0),
    ).sort();
    const closed = [...sorted, sorted[0] ?? 0];
    this.#points = Uint32Array.from(closed, (both) => Math.floor(both / MAX_OWNERS));
    this.#owners = Uint32Array.from(closed, (both) => both % MAX_OWNERS);
    const bits = Math.max(1, Math.ceil(Math.log2(sorted.length)));
    this.#sectionBits = 32 - bits;
    this.#starts = sectionStarts(this.#points.subarray(0, -1), 2 ** bits, this.#sectionBits);
  }

  /** The owner of the point that follows. @param position 32-bit integer, unsigned or signed */
  ownerAfter(position: number): number {
    return this.#owners[this.#indexAfter(position)] ?? 0;
  }

  /**
   * The owner of the point that follows one of the positions most closely; if two are as close, the first position's.
   *
   * @param positions at least one
   */
  nearestOwner(positions: Int32Array): number {
    let nearest = 0;
    let least = 0xffffffff;
    for (let i = 0; i < positions.length; i++) {
      const position = positions[i] ?? 0;
      const index = this.#indexAfter(position);
      const distance = ((this.#points[index] ?? 0) - position) >>> 0;
      if (distance < least || i === 0) {
        least = distance;
        nearest = index;
      }
    }
    return this.#owners[nearest] ?? 0;
  }

  #indexAfter(position: number): number {
    const at = position >>> 0;
    const section = at >>> this.#sectionBits;
    let low = this.#starts[section] ?? 0;
    let high = this.#starts[section + 1] ?? 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#points[middle] ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function sectionStarts(points: Uint32Array, sections: number, sectionBits: number): Uint32Array {
  const starts = new Uint32Array(sections + 1);
  for (const point of points) {
    const next = (point >>> sectionBits) + 1;
    starts[next] = (starts[next] ?? 0) + 1;
  }
  // From counts to sums.
  for (let section = 1; section <= sections; section++) {
    starts[section] = (starts[section] ?? 0) + (starts[section - 1] ?? 0);
  }
  return starts;
}
