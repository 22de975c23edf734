/**
 * The label set of one series while rules work on it.
 *
 * Which of two labels wins when labelmap gives both one name depends on the order in which labels are visited, so that order
 * is Prometheus' here: what the series came with, by name, and behind it what rules have set, in the order they set it.
 */
import { compareBytewise } from "./byteOrder.ts";

export type Label = readonly [name: string, value: string];

export class WorkingLabels {
  readonly #incoming: readonly Label[];
  readonly #values: ReadonlyMap<string, string>;
  readonly #set = new Map<string, string>();
  readonly #removed = new Set<string>();

  /** @param incoming unique names, in any order; a label with an empty value is as good as none */
  constructor(incoming: readonly Label[]) {
    this.#incoming = incoming;
    this.#values = new Map(incoming);
  }

  /** The value of a label, empty when there is none. */
  get(name: string): string {
    const set = this.#set.get(name);
    if (set !== undefined) return set;
    return this.#removed.has(name) ? "" : (this.#values.get(name) ?? "");
  }

  /** Sets a label; the empty value removes it. */
  set(name: string, value: string): void {
    if (value === "") this.remove(name);
    else this.#set.set(name, value);
  }

  remove(name: string): void {
    this.#set.delete(name);
    this.#removed.add(name);
  }

  /** All labels in visiting order, as a copy: what is set meanwhile is not visited. */
  visitingOrder(): Label[] {
    return [...this.#untouched().sort(byName), ...this.#set];
  }

  /** The labels now: those that came in when nothing changed, else sorted by name, bytewise, and without empty values. */
  result(): readonly Label[] {
    return this.#hasChanged() ? [...this.#untouched(), ...this.#set].sort(byName) : this.#incoming;
  }

  #untouched(): Label[] {
    return this.#incoming.filter(
      ([name, value]) => value !== "" && !this.#set.has(name) && !this.#removed.has(name),
    );
  }

  #hasChanged(): boolean {
    for (const [name, value] of this.#set) if (this.#values.get(name) !== value) return true;
    for (const name of this.#removed) {
      if (!this.#set.has(name) && (this.#values.get(name) ?? "") !== "") return true;
    }
    return false;
  }
}

function byName([a]: Label, [b]: Label): number {
  return compareBytewise(a, b);
}
