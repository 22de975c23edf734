/**
 * The label set of one series while vmagent's rules work on it: a list, in the order in which labels came and were set.
 *
 * A label that was set to the empty value stays in its place until the end. Names may come to repeat, by labelmap_all; then
 * the first is read and set.
 */
import { byName, type Label, type WorkingLabels } from "./workingLabels.ts";

interface WorkingLabel {
  name: string;
  value: string;
}

export class VictoriaMetricsLabels implements WorkingLabels {
  longestSet = 0;
  readonly #incoming: readonly Label[];
  #labels: WorkingLabel[];

  constructor(incoming: readonly Label[]) {
    this.#incoming = incoming;
    this.#labels = incoming.map(([name, value]) => ({ name, value }));
  }

  get isEmpty(): boolean {
    return this.#labels.length === 0;
  }

  get(name: string): string {
    return this.#find(name)?.value ?? "";
  }

  /** Whether a label of the name has a value that passes; null when there is no label of the name. */
  hasValue(name: string, test: (value: string) => boolean): boolean | null {
    let found: boolean | null = null;
    for (const label of this.#labels) {
      if (label.name !== name) continue;
      if (test(label.value)) return true;
      found = false;
    }
    return found;
  }

  set(name: string, value: string): void {
    this.longestSet = Math.max(this.longestSet, value.length);
    const label = this.#find(name);
    if (label === undefined) this.#labels.push({ name, value });
    else label.value = value;
  }

  /** Answers whether there were some. */
  removeWhere(isUnwanted: (name: string) => boolean): boolean {
    const before = this.#labels.length;
    this.#labels = this.#labels.filter(({ name }) => !isUnwanted(name));
    return this.#labels.length < before;
  }

  /** Copies values to other names. What a copy overwrites further on is copied on with its new value, what it adds is not. */
  copy(nameOf: (name: string) => string): void {
    for (const label of this.#labels.slice()) {
      const name = nameOf(label.name);
      if (name !== label.name) this.set(name, label.value);
    }
  }

  rename(nameOf: (name: string) => string): void {
    for (const label of this.#labels) label.name = nameOf(label.name);
  }

  result(): readonly Label[] {
    if (!this.#hasChanged()) return this.#incoming;
    return this.#labels
      .filter(({ name, value }) => name !== "" && value !== "")
      .map(({ name, value }): Label => [name, value])
      .sort(byName);
  }

  #find(name: string): WorkingLabel | undefined {
    for (const label of this.#labels) if (label.name === name) return label;
    return undefined;
  }

  #hasChanged(): boolean {
    const incoming = this.#incoming;
    if (incoming.length !== this.#labels.length) return true;
    return this.#labels.some(({ name, value }, at) => {
      const label = incoming[at];
      return value === "" || label === undefined || label[0] !== name || label[1] !== value;
    });
  }
}
