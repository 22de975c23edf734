/** Where every task number goes before a change and after it: exact, since all of them are placed. */
import type { Period, RouteOptions } from "../route/options.ts";
import { namesPicker } from "./synthetic.ts";

/** Further ones are not placed one by one: so many spread as evenly as they will. */
const MAX_TASKS = 1_000_000;
const TASKS_A_LOOK = 256;

/** A route in one of its periods. */
export interface RouteInPeriod {
  readonly route: RouteOptions;
  readonly period: Period;
}

/** How the tasks of one side spread. */
export interface TaskSpread {
  readonly maxOverAverage: number;
  /** Names of live upstreams without any. */
  readonly empty: readonly string[];
}

export interface PlacedTasks {
  /** null where tasks are not what is placed. */
  readonly before: TaskSpread | null;
  readonly after: TaskSpread | null;
  /** Of the numbers that both sides have, those that lose an upstream; null unless both place tasks. */
  readonly moved: { readonly tasks: number; readonly of: number } | null;
}

/** @param isDue whether it is time for a pause */
export function* compareTasks(
  before: RouteInPeriod | null,
  after: RouteInPeriod | null,
  isDue: () => boolean,
): Generator<undefined, PlacedTasks, undefined> {
  const old = TaskPlaces.of(before);
  if (isDue()) yield;
  const now = TaskPlaces.of(after);
  const both = Math.min(old?.count ?? 0, now?.count ?? 0);
  let moved = 0;
  for (let task = 0; task < Math.max(old?.count ?? 0, now?.count ?? 0); task++) {
    if (task % TASKS_A_LOOK === 0 && isDue()) yield;
    const [had, has] = [old?.place(task) ?? [], now?.place(task) ?? []];
    if (task < both && had.some((name) => !has.includes(name))) moved += 1;
  }
  return {
    before: old?.spread ?? null,
    after: now?.spread ?? null,
    moved: old === null || now === null ? null : { tasks: moved, of: both },
  };
}

class TaskPlaces {
  readonly count: number;
  readonly #live: readonly string[];
  readonly #namesOf: (task: number) => readonly string[];
  readonly #tasks = new Map<string, number>();

  private constructor({ route: { placement }, period }: RouteInPeriod, count: number) {
    this.count = Math.min(count, MAX_TASKS);
    this.#live = period.slots.filter(({ removed }) => removed !== true).map(({ name }) => name);
    this.#namesOf = namesPicker(placement, period.slots);
  }

  static of(side: RouteInPeriod | null): TaskPlaces | null {
    const tasks = side?.route.tasks ?? null;
    return side === null || tasks === null || side.route.placement.key.kind !== "task"
      ? null
      : new TaskPlaces(side, tasks.count);
  }

  /** Places and counts a task; none beyond those that there are. */
  place(task: number): readonly string[] {
    if (task >= this.count) return [];
    const names = this.#namesOf(task);
    for (const name of names) this.#tasks.set(name, (this.#tasks.get(name) ?? 0) + 1);
    return names;
  }

  get spread(): TaskSpread {
    const counts = this.#live.map((name) => this.#tasks.get(name) ?? 0);
    const all = counts.reduce((sum, count) => sum + count, 0);
    return {
      maxOverAverage: Math.max(...counts) / (all / counts.length),
      empty: this.#live.filter((name) => !this.#tasks.has(name)),
    };
  }
}
