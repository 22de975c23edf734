/**
 * Where a route sends a series: a pure function of the route and the series' labels, as they are after its rules.
 *
 * Stage 1 gives the label set's key one of the route's tasks, stage 2 gives the task, or a key of its own, one of the
 * route's upstreams, or several that get a copy each. Gateways with the same configuration agree without talking. A route
 * of several periods has as many places for a series: which of them an item goes to is for its timestamp to say.
 */
import { buildBuckets } from "../hash/buckets.ts";
import type { LabelSpans } from "../hash/labelOrder.ts";
import { compileKey, EMPTY_KEY, type LabelSetKey, NO_KEY_LABEL } from "../hash/labelSetKey.ts";
import { buildPlacement, type Placement } from "../hash/placement.ts";
import type { PlacementOptions, RouteOptions, TaskOptions } from "./options.ts";

/** Where one route sends a series. */
export interface Placed {
  /** Stage 1's key and task; null in a route without tasks. */
  readonly key: number | null;
  readonly task: number | null;
  /** What stage 2 hashed: the task with `key: task`. */
  readonly placementKey: number;
  /** By period of the route: where its items of that period go. */
  readonly places: readonly Place[];
  /** Whether the series has none of the labels of a `by` key of this route. */
  readonly missingKeyLabels: boolean;
}

/** Where the copies of a series go in one period, by replica. */
export interface Place {
  /** Distinct slots of the period, the first of them the one that a single replica would pick. */
  readonly slots: readonly number[];
  /** The same as indexes of the route's upstreams. */
  readonly upstreams: readonly number[];
}

/** Places a series by its labels. */
export type Placer = (labels: LabelSpans) => Placed;

interface Stage<Picked> {
  readonly key: number;
  readonly picked: Picked;
  readonly missing: boolean;
}

type StageFunction<Picked> = (labels: LabelSpans, task: number | null) => Stage<Picked>;

/** Compiles both stages of a route. */
export function compilePlacer(options: RouteOptions): Placer {
  const taskOf = options.tasks === null ? null : compileTasks(options.tasks, options);
  const placesOf = compilePlacement(options.placement, options);
  return (labels) => {
    const stage1 = taskOf === null ? null : taskOf(labels, null);
    const stage2 = placesOf(labels, stage1?.picked ?? null);
    return {
      key: stage1?.key ?? null,
      task: stage1?.picked ?? null,
      placementKey: stage2.key,
      places: stage2.picked,
      missingKeyLabels: stage2.missing || (stage1?.missing ?? false),
    };
  };
}

function compileTasks(tasks: TaskOptions, route: RouteOptions): StageFunction<number> {
  return compileStage(
    compileKey(tasks.key, route.keyFormat, tasks.label),
    // Tasks have no choice of their own for series without the labels: they are one output group, so one task.
    () => EMPTY_KEY,
    buildBuckets(tasks.algorithm, tasks.count),
  );
}

function compilePlacement(placement: PlacementOptions, route: RouteOptions): StageFunction<readonly Place[]> {
  const placesOf = compilePicker(route);
  if (placement.key.kind === "task") {
    return (_labels, task) => {
      const key = task ?? 0;
      return { key, picked: placesOf(key), missing: false };
    };
  }
  const taskLabel = route.tasks?.label ?? null;
  const whole = compileKey({ kind: "all" }, route.keyFormat, taskLabel);
  return compileStage(
    compileKey(placement.key, route.keyFormat, taskLabel),
    placement.missingKey === "whole_set" ? whole : () => EMPTY_KEY,
    placesOf,
  );
}

/** The places of a key, by period. */
function compilePicker({ placement, topology, upstreams }: RouteOptions): (key: number) => readonly Place[] {
  const indexes = new Map(upstreams.map(({ name }, index) => [name, index]));
  const pickers = topology.map(({ slots }) => {
    // Tombstones, which are never picked, need be no upstreams of the route.
    const upstreamOf = slots.map(({ name }) => indexes.get(name) ?? -1);
    return compilePeriod(buildPlacement(placement, slots, placement.replicas), upstreamOf);
  });
  const [only] = pickers;
  if (only !== undefined && pickers.length === 1) return (key) => [only(key)];
  return (key) => pickers.map((placeOf) => placeOf(key));
}

/**
 * The place of a key in one period. That of a single replica is made here, once for each slot, and not for each series.
 *
 * @param upstreamOf by slot
 */
function compilePeriod(
  { place, placeReplicas, replicas }: Placement,
  upstreamOf: readonly number[],
): (key: number) => Place {
  const placeAt = (slots: readonly number[]): Place => {
    return { slots, upstreams: slots.map((slot) => upstreamOf[slot] ?? -1) };
  };
  if (replicas === 1) {
    const alone = upstreamOf.map((_, slot) => placeAt(Object.freeze([slot])));
    return (key) => alone[place(key)] ?? placeAt([]);
  }
  const picked = new Int32Array(replicas);
  return (key) => {
    placeReplicas(key, picked);
    return placeAt(Array.from(picked));
  };
}

function compileStage<Picked>(
  keyOf: LabelSetKey,
  keyWithoutLabels: LabelSetKey,
  place: (key: number) => Picked,
): StageFunction<Picked> {
  return (labels, task) => {
    const found = keyOf(labels, task);
    const missing = found === NO_KEY_LABEL;
    const key = missing ? keyWithoutLabels(labels, task) : found;
    return { key, picked: place(key), missing };
  };
}
