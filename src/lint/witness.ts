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

/** Of those that arrive; they differ in what rules select. */
const MAX_BASES = 16;
/** Enough to meet another upstream, or another task, as good as for certain: for the first bases, and for each of the others. */
const VARIANTS = 24;
const FIRST_BASES = 4;
const FEW_VARIANTS = 8;

/** What a search goes by. */
export interface SearchPlan {
  /** Whose copies count. */
  readonly route: number;
  /** With those of other routes that arrive at these vmagents, by their ids. */
  readonly aggregators: ReadonlySet<string>;
  /** Label sets that may be selected. */
  readonly seeds: readonly (readonly Label[])[];
  /** To be given other values, the likeliest first. */
  readonly labels: readonly string[];
  readonly valuesOf: ValuesOf;
  /** By other route: labels with which it may select a series. */
  readonly selecting: ReadonlyMap<number, readonly (readonly Label[])[]>;
  /** Labels that nobody needs to see where they make no difference. */
  readonly spare: readonly string[];
}

export class WitnessSearch {
  readonly #journeys: Journeys;
  readonly #plan: SearchPlan;
  /** Series that arrive, with their copies. */
  readonly #bases = new Map<readonly Label[], readonly Arrival[]>();
  readonly #values = new Map<string, readonly string[]>();

  constructor(journeys: Journeys, plan: SearchPlan) {
    this.#journeys = journeys;
    this.#plan = plan;
    const distinct = new Map(plan.seeds.map((seed) => [JSON.stringify(seed), seed]));
    for (const seed of distinct.values()) {
      if (this.#bases.size === MAX_BASES) break;
      const arrivals = this.#arrivals(seed);
      if (arrivals.length > 0) this.#bases.set(seed, arrivals);
    }
  }

  /**
   * A series of which several copies are aggregated in one group, at least one of them of the route.
   *
   * @param other the route of which the other copy is, by default the route itself
   */
  doubled(other = this.#plan.route): Witness | null {
    const holds = this.#isBetween(
      other,
      (one, copy) => one !== copy && one.groupWithoutTask === copy.groupWithoutTask,
    );
    for (const base of this.#bases.keys()) {
      for (const labels of [base, ...this.#selectedBy(other, base)]) {
        const found = this.#try(labels, labels, holds);
        if (found !== null) return this.#plainest(found, holds);
      }
    }
    return null;
  }

  /** Two series with copies for which something holds, one of them of the route. @param other as for doubled() */
  find(wanted: Holds, other = this.#plan.route): Witness | null {
    const holds = this.#isBetween(other, wanted);
    for (const [index, base] of [...this.#bases.keys()].entries()) {
      for (const labels of this.#variationsOf(base, index, other)) {
        const found = this.#try(base, labels, holds);
        if (found !== null) return this.#plainest(found, holds);
      }
    }
    return null;
  }

  #isBetween(other: number, holds: Holds): Holds {
    const { route } = this.#plan;
    const isOfBoth = (one: Arrival, copy: Arrival): boolean => one.route === route && copy.route === other;
    return (one, copy) => (isOfBoth(one, copy) || isOfBoth(copy, one)) && holds(one, copy);
  }

  *#variationsOf(base: readonly Label[], index: number, other: number): Generator<readonly Label[]> {
    yield* this.#selectedBy(other, base);
    const variants = index < FIRST_BASES ? VARIANTS : FEW_VARIANTS;
    for (const label of this.#plan.labels) {
      const others = base.filter(([name]) => name !== label);
      for (const value of this.#valuesOf(label, variants))
        yield value === "" ? others : [...others, [label, value]];
    }
  }

  /** A series with labels by which another route may select it. */
  #selectedBy(other: number, base: readonly Label[]): (readonly Label[])[] {
    const changes = this.#plan.selecting.get(other) ?? [];
    return changes.map((labels) => [...new Map([...base, ...labels])]);
  }

  /** Without the labels that make no difference. */
  #plainest(found: Witness, holds: Holds): Witness {
    return this.#plan.spare.reduce((plain, name) => {
      const [one, other] = plain.series.map((labels) => labels.filter(([label]) => label !== name));
      if (one === undefined || other === undefined) return plain;
      return this.#try(one, plain.series[0] === plain.series[1] ? one : other, holds) ?? plain;
    }, found);
  }

  #valuesOf(label: string, variants: number): ReadonlySet<string> {
    const values = this.#allValuesOf(label).slice(0, variants);
    // Who sends series without a name would hardly follow.
    return new Set(label === "__name__" ? values : [...values, ""]);
  }

  #allValuesOf(label: string): readonly string[] {
    const known = this.#values.get(label);
    if (known !== undefined) return known;
    const valueOf = this.#plan.valuesOf(label);
    const values = Array.from({ length: VARIANTS }, (_, variant) => valueOf(variant));
    this.#values.set(label, values);
    return values;
  }

  #try(first: readonly Label[], second: readonly Label[], holds: Holds): Witness | null {
    const ones = this.#arrivals(first);
    const others = first === second ? ones : this.#arrivals(second);
    for (const one of ones) {
      for (const other of others) {
        if (holds(one, other)) return { series: [first, second], arrivals: [one, other] };
      }
    }
    return null;
  }

  #arrivals(labels: readonly Label[]): readonly Arrival[] {
    const { aggregators } = this.#plan;
    const known = this.#bases.get(labels);
    return known ?? this.#journeys.arrivals(labels).filter(({ vmagent }) => aggregators.has(vmagent.id));
  }
}
