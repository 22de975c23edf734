/** Times by name, per series. */

/** Stages by their names, in nanoseconds per series. */
export type Stages = Readonly<Record<string, number>>;

/** Adds times up under names. */
export class StopWatch {
  readonly #nanoseconds = new Map<string, number>();

  time<T>(name: string, work: () => T): T {
    const began = process.hrtime.bigint();
    const result = work();
    const elapsed = Number(process.hrtime.bigint() - began);
    this.#nanoseconds.set(name, (this.#nanoseconds.get(name) ?? 0) + elapsed);
    return result;
  }

  perSeries(series: number): Stages {
    return Object.fromEntries([...this.#nanoseconds].map(([name, elapsed]) => [name, elapsed / series]));
  }
}
