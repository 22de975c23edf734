/**
 * Places made-up keys as a route places those of series, for when too few series are there to tell what placement does.
 *
 * A series stands for a number: its key by a rule is a hash of the number and the rule, so that two configurations which make
 * keys alike give it equal keys, and else keys that have nothing to do with each other.
 */
import { buildBuckets } from "../hash/buckets.ts";
import { mix32 } from "../hash/mix.ts";
import { buildPlacement } from "../hash/placement.ts";
import type { NamedSlot } from "../hash/slots.ts";
import type { PlacementOptions, RouteOptions } from "../route/options.ts";
import { type Copies, taskText } from "./copies.ts";

/** So many tell a share within a twentieth of a percent. */
export const SYNTHETIC_KEYS = 1_000_000;
/** 2^32 divided by the golden ratio. */
const STEP = 0x9e3779b9;

/** Numbers for the ways in which keys are made, in the order in which they are first asked for. */
export class KeyRules {
  readonly #numbers = new Map<string, number>();

  /** A function from a series' number to its key, unsigned, under a rule. */
  keyBy(rule: unknown): (series: number) => number {
    const text = JSON.stringify(rule);
    const number = this.#numbers.get(text) ?? this.#numbers.size;
    this.#numbers.set(text, number);
    const salt = Math.imul(number, STEP);
    return (series) => mix32(mix32(series) ^ salt) >>> 0;
  }
}

/** Answers by the route's period, and a series' number, where it goes. */
export function syntheticPlacer(route: RouteOptions, rules: KeyRules): (series: number) => readonly Copies[] {
  const { tasks, placement, keyFormat } = route;
  const taskKey = tasks === null ? null : rules.keyBy([keyFormat, tasks.key]);
  const taskOf = tasks === null ? null : buildBuckets(tasks.algorithm, tasks.count);
  const slotKey = placement.key.kind === "task" ? null : rules.keyBy(slotRule(route));
  const namesOf = route.topology.map(({ slots }) => namesPicker(placement, slots));
  const textOf = remembered((task: number | null) => taskText(route, task));
  const copiesOf = (key: number, task: number | null): readonly Copies[] => {
    const text = textOf(task);
    return namesOf.map((names) => ({ upstreams: names(key), task: text }));
  };
  // Where the task is the key, there are no more answers than tasks.
  const copiesOfTask = remembered((task: number) => copiesOf(task, task));
  return (series) => {
    const task = taskKey === null || taskOf === null ? null : taskOf(taskKey(series));
    return slotKey === null ? copiesOfTask(task ?? 0) : copiesOf(slotKey(series), task);
  };
}

/** A function that makes each of its answers once. */
function remembered<Asked, Answer>(make: (asked: Asked) => Answer): (asked: Asked) => Answer {
  const made = new Map<Asked, Answer>();
  return (asked) => {
    const known = made.get(asked);
    if (known !== undefined) return known;
    const answer = make(asked);
    made.set(asked, answer);
    return answer;
  };
}

/** A flat key by a list with the task label holds the task. */
function slotRule({ placement: { key }, keyFormat, tasks }: RouteOptions): unknown {
  const holdsTask = key.kind === "by" && tasks !== null && key.names.includes(tasks.label);
  return holdsTask ? [keyFormat, key, tasks] : [keyFormat, key];
}

/** Gives a key the names of its upstreams, by replica. */
export function namesPicker(
  placement: PlacementOptions,
  slots: readonly NamedSlot[],
): (key: number) => readonly string[] {
  const { place, placeReplicas, replicas } = buildPlacement(placement, slots, placement.replicas);
  if (replicas === 1) {
    const alone = slots.map(({ name }) => Object.freeze([name]));
    return (key) => alone[place(key)] ?? [];
  }
  const picked = new Int32Array(replicas);
  return (key) => {
    placeReplicas(key, picked);
    return Array.from(picked, (slot) => slots[slot]?.name ?? "");
  };
}
