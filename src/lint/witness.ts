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

/** Whether two copies prove what is looked for. */
type Holds = (one: Arrival, other: Arrival) => boolean;

/** Enough to meet another upstream, or another task, as good as for certain. */
const VARIANTS = 24;
/** Of those that arrive; they differ in what rules select. */
const MAX_BASES = 16;

export class WitnessSearch {
  readonly #journeys: Journeys;
  readonly #route: number;
  readonly #urls: ReadonlySet<string>;
  /** Series that arrive, with their copies. */
  readonly #bases = new Map<readonly Label[], readonly Arrival[]>();
  readonly #labels: readonly string[];
  readonly #valuesOf: ValuesOf;
  readonly #spare: readonly string[];

  /**
   * @param route  whose copies count, with those of other routes that arrive at its urls
   * @param seeds  label sets that may be selected
   * @param labels to be given other values, the likeliest first
   * @param spare  labels that nobody needs to see where they make no difference
   */
  constructor(
    journeys: Journeys,
    { route, urls }: { readonly route: number; readonly urls: ReadonlySet<string> },
    seeds: readonly (readonly Label[])[],
    labels: readonly string[],
    valuesOf: ValuesOf,
    spare: readonly string[],
  ) {
    this.#journeys = journeys;
    this.#route = route;
    this.#urls = urls;
    this.#labels = labels;
    this.#valuesOf = valuesOf;
    this.#spare = spare;
    const distinct = new Map(seeds.map((seed) => [JSON.stringify(seed), seed]));
    for (const seed of distinct.values()) {
      const arrivals = this.#arrivals(seed);
      if (arrivals.length > 0 && this.#bases.size < MAX_BASES) this.#bases.set(seed, arrivals);
    }
  }

  /** A series of which several copies are aggregated in one group, at least one of them of the route. */
  doubled(): Witness | null {
    const holds: Holds = (one, other) => one !== other && one.groupWithoutTask === other.groupWithoutTask;
    for (const labels of this.#bases.keys()) {
      const found = this.#try(labels, labels, holds);
      if (found !== null) return this.#plainest(found, holds);
    }
    return null;
  }

  /** Two series with copies for which something holds, at least one of them of the route. */
  find(holds: Holds): Witness | null {
    for (const base of this.#bases.keys()) {
      for (const label of this.#labels) {
        for (const value of this.#values(label)) {
          const others = base.filter(([name]) => name !== label);
          const found = this.#try(base, value === "" ? others : [...others, [label, value]], holds);
          if (found !== null) return this.#plainest(found, holds);
        }
      }
    }
    return null;
  }

  /** Without the labels that make no difference. */
  #plainest(found: Witness, holds: Holds): Witness {
    return this.#spare.reduce((plain, name) => {
      const [one, other] = plain.series.map((labels) => labels.filter(([label]) => label !== name));
      if (one === undefined || other === undefined) return plain;
      return this.#try(one, plain.series[0] === plain.series[1] ? one : other, holds) ?? plain;
    }, found);
  }

  #values(label: string): ReadonlySet<string> {
    const valueOf = this.#valuesOf(label);
    const values = Array.from({ length: VARIANTS }, (_, variant) => valueOf(variant));
    // Who sends series without a name would hardly follow.
    return new Set(label === "__name__" ? values : [...values, ""]);
  }

  #try(first: readonly Label[], second: readonly Label[], holds: Holds): Witness | null {
    const ones = this.#arrivals(first);
    const others = first === second ? ones : this.#arrivals(second);
    for (const one of ones) {
      for (const other of others) {
        if (one.route !== this.#route && other.route !== this.#route) continue;
        if (holds(one, other)) return { series: [first, second], arrivals: [one, other] };
      }
    }
    return null;
  }

  #arrivals(labels: readonly Label[]): readonly Arrival[] {
    return (
      this.#bases.get(labels) ?? this.#journeys.arrivals(labels).filter(({ url }) => this.#urls.has(url))
    );
  }
}
