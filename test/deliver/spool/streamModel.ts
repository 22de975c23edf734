/** What a stream may and must give out, whatever happens to its process. */

/**
 * `must`: synced, and nobody has it. `may`: an append that was not acknowledged, or a record that was released, which a crash
 * may bring back. `out`: the caller has it. `never`: it ended as full or failed, and is not read in this process.
 */
type State = "under_way" | "must" | "may" | "out" | "done" | "never";

interface Entry {
  readonly number: number;
  state: State;
  /** It was acknowledged. One that was not may be found after a kill, and not be there after a power cut. */
  isPromised: boolean;
}

export class StreamModel {
  /** In the order of their appends. */
  #entries: Entry[] = [];

  appended(numbers: readonly number[]): void {
    this.#entries.push(
      ...numbers.map((number) => ({ number, state: "under_way" as const, isPromised: false })),
    );
  }

  ended(numbers: readonly number[], kind: "synced" | "full" | "failed", held: boolean): void {
    for (const entry of numbers.map((number) => this.#entry(number))) {
      entry.state = kind !== "synced" ? "never" : held ? "out" : "must";
      entry.isPromised = kind === "synced";
    }
  }

  /** @throws when it is not what may come now */
  gaveOut(number: number): void {
    const index = this.#entries.findIndex((entry) => entry.number === number && isReadable(entry));
    if (index === -1) throw new Error(`${number} comes, which is ${this.#find(number)?.state ?? "unknown"}`);
    for (const before of this.#entries.slice(0, index)) {
      if (before.state === "must") throw new Error(`${number} is given out before ${before.number}`);
      if (before.state === "may") before.state = "done";
    }
    this.#entry(number).state = "out";
  }

  /** Nothing is left to read. */
  ranOut(): void {
    const left = this.#entries.find(({ state }) => state === "must");
    if (left !== undefined) throw new Error(`${left.number} was not given out`);
    for (const entry of this.#entries) if (entry.state === "may") entry.state = "done";
  }

  released(number: number): void {
    this.#entry(number).state = "done";
  }

  crashed(): void {
    for (const entry of this.#entries) {
      const isWanted = entry.state === "out" || entry.state === "must";
      entry.state = isWanted && entry.isPromised ? "must" : "may";
    }
  }

  count(...states: readonly State[]): number {
    return this.#entries.filter(({ state }) => states.includes(state)).length;
  }

  #entry(number: number): Entry {
    const entry = this.#find(number);
    if (entry === undefined) throw new Error(`${number} is unknown`);
    return entry;
  }

  #find(number: number): Entry | undefined {
    return this.#entries.find((entry) => entry.number === number);
  }
}

function isReadable({ state }: Entry): boolean {
  return state === "must" || state === "may";
}
