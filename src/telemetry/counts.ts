/**
 * Counters in plain numbers, by labels. prom-client gets them when somebody looks at the metrics; the ledger reads them at
 * once, which prom-client would only do later, one after another.
 */
import { type Items, ItemTally, NOTHING } from "./ledger.ts";

type Labels<Label extends string> = Readonly<Record<Label, string>>;

/** One number for each set of labels. */
export class Counts<Label extends string> {
  readonly #counts = new Map<string, { readonly labels: Labels<Label>; value: number }>();

  /** Adds to what these labels have; with 0, they are there. */
  inc(labels: Labels<Label>, value: number): void {
    const key = keyOf(labels);
    const count = this.#counts.get(key);
    if (count === undefined) this.#counts.set(key, { labels, value });
    else count.value += value;
  }

  get(labels: Labels<Label>): number {
    return this.#counts.get(keyOf(labels))?.value ?? 0;
  }

  all(): Iterable<{ readonly labels: Labels<Label>; readonly value: number }> {
    return this.#counts.values();
  }
}

/** Items for each set of labels. */
export class ItemCounts<Label extends string> {
  readonly #counts = new Map<string, { readonly labels: Labels<Label>; readonly items: ItemTally }>();

  /** Adds to what these labels have; with nothing, they are there. */
  add(labels: Labels<Label>, items: Items): void {
    const key = keyOf(labels);
    const count = this.#counts.get(key) ?? { labels, items: new ItemTally() };
    this.#counts.set(key, count);
    count.items.add(items);
  }

  get(labels: Labels<Label>): Items {
    return this.#counts.get(keyOf(labels))?.items ?? NOTHING;
  }

  all(): Iterable<{ readonly labels: Labels<Label>; readonly items: Items }> {
    return this.#counts.values();
  }
}

/** Callers give the labels of a counter in the same order always. */
function keyOf(labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(labels);
}
