/**
 * Items by a number each, of which the lowest is wanted: what changes costs little however many there are.
 *
 * A binary heap whose items know their places.
 */
export class Ranking<Item> {
  readonly #heap: Entry<Item>[] = [];
  readonly #entries = new Map<Item, Entry<Item>>();

  /** The item of the lowest rank, any of them if there are several. */
  get first(): Item | undefined {
    return this.#heap[0]?.item;
  }

  /** Infinity with no items. */
  get lowestRank(): number {
    return this.#heap[0]?.rank ?? Infinity;
  }

  /** Adds an item, or changes its rank. */
  set(item: Item, rank: number): void {
    let entry = this.#entries.get(item);
    if (entry === undefined) {
      entry = { item, rank, place: this.#heap.length };
      this.#heap.push(entry);
      this.#entries.set(item, entry);
    } else if (entry.rank === rank) {
      return;
    }
    entry.rank = rank;
    this.#settle(entry);
  }

  delete(item: Item): void {
    const entry = this.#entries.get(item);
    const last = this.#heap.at(-1);
    if (entry === undefined || last === undefined) return;
    this.#entries.delete(item);
    this.#heap.pop();
    if (last === entry) return;
    this.#put(last, entry.place);
    this.#settle(last);
  }

  /** Moves an entry to where its rank belongs. */
  #settle(entry: Entry<Item>): void {
    for (let above = this.#above(entry); above !== undefined; above = this.#above(entry)) {
      if (above.rank <= entry.rank) break;
      this.#swap(entry, above);
    }
    for (let below = this.#lowestBelow(entry); below !== undefined; below = this.#lowestBelow(entry)) {
      if (below.rank >= entry.rank) break;
      this.#swap(entry, below);
    }
  }

  #above({ place }: Entry<Item>): Entry<Item> | undefined {
    return place === 0 ? undefined : this.#heap[(place - 1) >> 1];
  }

  #lowestBelow({ place }: Entry<Item>): Entry<Item> | undefined {
    const left = this.#heap[2 * place + 1];
    const right = this.#heap[2 * place + 2];
    return left !== undefined && right !== undefined && right.rank < left.rank ? right : left;
  }

  #swap(one: Entry<Item>, other: Entry<Item>): void {
    const { place } = one;
    this.#put(one, other.place);
    this.#put(other, place);
  }

  #put(entry: Entry<Item>, place: number): void {
    this.#heap[place] = entry;
    entry.place = place;
  }
}

interface Entry<Item> {
  readonly item: Item;
  rank: number;
  place: number;
}
