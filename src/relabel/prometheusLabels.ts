/**
 * The label set of one series while Prometheus' rules work on it.
 *
 * Which of two labels wins when labelmap gives both one name depends on the order in which labels are visited, so that order
 * is Prometheus' here: what the series came with, by name, and behind it what rules have set, in the order they set it.
 *
 * Label sets are small and most rules change nothing, so this searches arrays, and makes them when there is something to put
 * in. Maps cost several times more.
 */
import { byName, type Label, type WorkingLabels } from "./workingLabels.ts";

export class PrometheusLabels implements WorkingLabels {
  longestSet = 0;
  readonly #incoming: readonly Label[];
  /** Whether a label that came in was set or removed since, by its place; null while none was. */
  #touched: boolean[] | null = null;
  /** What rules have set, in the order they set it, without empty values. */
  #set: Label[] = [];

  /** @param incoming unique names, in any order; a label with an empty value is as good as none */
  constructor(incoming: readonly Label[]) {
    this.#incoming = incoming;
  }

  get(name: string): string {
    const set = indexOf(this.#set, name);
    if (set !== -1) return this.#set[set]?.[1] ?? "";
    const at = indexOf(this.#incoming, name);
    // Reading an array at -1 takes longer than all of the search.
    return at === -1 || this.#touched?.[at] === true ? "" : (this.#incoming[at]?.[1] ?? "");
  }

  set(name: string, value: string): void {
    if (value === "") {
      this.#remove(name);
      return;
    }
    this.#touch(name);
    this.longestSet = Math.max(this.longestSet, value.length);
    const at = indexOf(this.#set, name);
    if (at === -1) this.#set.push([name, value]);
    else this.#set[at] = [name, value];
  }

  removeWhere(isUnwanted: (name: string) => boolean): void {
    for (const [name] of this.#untouched()) if (isUnwanted(name)) this.#touch(name);
    this.#set = this.#set.filter(([name]) => !isUnwanted(name));
  }

  /** All labels in visiting order, as a copy: what is set meanwhile is not visited. */
  visitingOrder(): Label[] {
    return [...this.#untouched().sort(byName), ...this.#set];
  }

  result(): readonly Label[] {
    if (!this.#hasChanged()) return this.#incoming;
    const labels = this.#untouched();
    if (!isSorted(labels)) labels.sort(byName);
    // Few beside those that are in order already: sorting all of them again would cost more.
    for (const label of this.#set) labels.splice(placeFor(label, labels), 0, label);
    return labels;
  }

  #remove(name: string): void {
    this.#touch(name);
    const at = indexOf(this.#set, name);
    if (at !== -1) this.#set.splice(at, 1);
  }

  #touch(name: string): void {
    const at = indexOf(this.#incoming, name);
    if (at === -1) return;
    this.#touched ??= this.#incoming.map(() => false);
    this.#touched[at] = true;
  }

  #untouched(): Label[] {
    return this.#incoming.filter(([, value], at) => value !== "" && this.#touched?.[at] !== true);
  }

  #hasChanged(): boolean {
    const touched = this.#touched;
    if (touched === null) return this.#set.length > 0;
    if (this.#set.some(([name]) => indexOf(this.#incoming, name) === -1)) return true;
    return this.#incoming.some(([name, value], at) => touched[at] === true && this.get(name) !== value);
  }
}

function isSorted(labels: readonly Label[]): boolean {
  let before: Label | null = null;
  for (const label of labels) {
    if (before !== null && byName(before, label) > 0) return false;
    before = label;
  }
  return true;
}

/** Where a label belongs among labels in the order of their names. */
function placeFor(label: Label, labels: readonly Label[]): number {
  let low = 0;
  let high = labels.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = labels[middle];
    if (other !== undefined && byName(other, label) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function indexOf(labels: readonly Label[], name: string): number {
  for (let at = 0; at < labels.length; at++) if (labels[at]?.[0] === name) return at;
  return -1;
}
