/**
 * Looks for series that prove a rule wrong: real label sets, followed by the code that routes real traffic.
 *
 * The search is small and always the same. Series that all rules select are made from what the rules say; then one label after
 * another gets other values. What is found is a proof; that nothing is found is none.
 */
import type { Label } from "../relabel/rules.ts";
import type { Arrival, Journeys } from "./journeys.ts";

/** Values that a label may be given, for a number from 0. */
export type ValuesOf = (label: string) => (variant: number) => string;

/** Two series, or one twice, and where a copy of each arrives. */
export interface Witness {
  readonly series: readonly [readonly Label[], readonly Label[]];
  readonly arrivals: readonly [Arrival, Arrival];
}

/** Enough to meet another upstream, or another task, as good as for certain. */
const VARIANTS = 24;
/** Of those that arrive; they differ in what rules select. */
const MAX_BASES = 10;

export class WitnessSearch {
  readonly #journeys: Journeys;
  readonly #route: number;
  readonly #urls: ReadonlySet<string>;
  /** Series that arrive, with their copies. */
  readonly #bases: readonly Traveller[];
  readonly #labels: readonly string[];
  readonly #valuesOf: ValuesOf;

  /**
   * @param route  whose copies count, with those of other routes that arrive at its urls
   * @param seeds  label sets that may be selected
   * @param labels to be given other values, the likeliest first
   */
  constructor(
    journeys: Journeys,
    { route, urls }: { readonly route: number; readonly urls: ReadonlySet<string> },
    seeds: readonly (readonly Label[])[],
    labels: readonly string[],
    valuesOf: ValuesOf,
  ) {
    this.#journeys = journeys;
    this.#route = route;
    this.#urls = urls;
    this.#labels = labels;
    this.#valuesOf = valuesOf;
    const distinct = new Map(seeds.map((seed) => [JSON.stringify(seed), seed]));
    this.#bases = [...distinct.values()]
      .map((seed) => this.#travel(seed))
      .filter(({ arrivals }) => arrivals.length > 0)
      .slice(0, MAX_BASES);
  }

  /** A series of which several copies are aggregated in one group, at least one of them of the route. */
  doubled(): Witness | null {
    for (const base of this.#bases) {
      const found = this.#pair(
        base,
        base,
        (one, other) => one !== other && one.groupWithoutTask === other.groupWithoutTask,
      );
      if (found !== null) return found;
    }
    return null;
  }

  /** Two series with copies for which something holds, at least one of them of the route. */
  find(holds: (one: Arrival, other: Arrival) => boolean): Witness | null {
    for (const base of this.#bases) {
      for (const label of this.#labels) {
        for (const value of this.#values(label)) {
          const others = base.labels.filter(([name]) => name !== label);
          const other = this.#travel(value === "" ? others : [...others, [label, value]]);
          const found = this.#pair(base, other, holds);
          if (found !== null) return found;
        }
      }
    }
    return null;
  }

  #values(label: string): ReadonlySet<string> {
    const valueOf = this.#valuesOf(label);
    const values = Array.from({ length: VARIANTS }, (_, variant) => valueOf(variant));
    // Who sends series without a name would hardly follow.
    return new Set(label === "__name__" ? values : ["", ...values]);
  }

  #pair(base: Traveller, other: Traveller, holds: (one: Arrival, other: Arrival) => boolean): Witness | null {
    for (const one of base.arrivals) {
      for (const two of other.arrivals) {
        if (one.route !== this.#route && two.route !== this.#route) continue;
        if (holds(one, two)) return { series: [base.labels, other.labels], arrivals: [one, two] };
      }
    }
    return null;
  }

  #travel(labels: readonly Label[]): Traveller {
    const arrivals = this.#journeys.arrivals(labels).filter(({ url }) => this.#urls.has(url));
    return { labels, arrivals };
  }
}

interface Traveller {
  readonly labels: readonly Label[];
  readonly arrivals: readonly Arrival[];
}
