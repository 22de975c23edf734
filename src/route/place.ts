/**
 * Where a route sends a series: a pure function of the route and the series' labels, as they are after its rules.
 *
 * Stage 1 gives the label set's key one of the route's tasks, stage 2 gives the task, or a key of its own, one of the
 * route's upstreams, or several that get a copy each. Gateways with the same configuration agree without talking.
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
  /** Where its copies go, by replica: distinct slots, the first of them the one that a single replica would pick. */
  readonly slots: readonly number[];
  /** Whether the series has none of the labels of a `by` key of this route. */
  readonly missingKeyLabels: boolean;
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
  const slotsOf = compilePlacement(options.placement, options);
  return (labels) => {
    const stage1 = taskOf === null ? null : taskOf(labels, null);
    const stage2 = slotsOf(labels, stage1?.picked ?? null);
    return {
      key: stage1?.key ?? null,
      task: stage1?.picked ?? null,
      placementKey: stage2.key,
      slots: stage2.picked,
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

function compilePlacement(
  placement: PlacementOptions,
  route: RouteOptions,
): StageFunction<readonly number[]> {
  const slotsOf = compilePicker(buildPlacement(placement, route.upstreams, placement.replicas));
  if (placement.key.kind === "task") {
    return (_labels, task) => {
      const key = task ?? 0;
      return { key, picked: slotsOf(key), missing: false };
    };
  }
  const taskLabel = route.tasks?.label ?? null;
  const whole = compileKey({ kind: "all" }, route.keyFormat, taskLabel);
  return compileStage(
    compileKey(placement.key, route.keyFormat, taskLabel),
    placement.missingKey === "whole_set" ? whole : () => EMPTY_KEY,
    slotsOf,
  );
}

/** The slots of all replicas. The array of a single one is made here, once for each slot, and not for each series. */
function compilePicker({
  place,
  placeReplicas,
  slots,
  replicas,
}: Placement): (key: number) => readonly number[] {
  if (replicas === 1) {
    const alone = Array.from({ length: slots }, (_, slot) => Object.freeze([slot]));
    return (key) => alone[place(key)] ?? [];
  }
  const picked = new Int32Array(replicas);
  return (key) => {
    placeReplicas(key, picked);
    return Array.from(picked);
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
