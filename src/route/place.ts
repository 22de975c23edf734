/**
 * Where a route sends a series: a pure function of the route and the series' labels, as they are after its rules.
 *
 * Stage 1 gives the label set's key one of the route's tasks, stage 2 gives the task, or a key of its own, one of the
 * route's upstreams. Replicas with the same configuration agree without talking.
 */
import { buildBuckets } from "../hash/buckets.ts";
import type { LabelSpans } from "../hash/labelOrder.ts";
import { compileKey, EMPTY_KEY, type LabelSetKey, NO_KEY_LABEL } from "../hash/labelSetKey.ts";
import { buildPlacement } from "../hash/placement.ts";
import type { PlaceKey } from "../hash/slots.ts";
import type { PlacementOptions, RouteOptions, TaskOptions } from "./options.ts";

/** Where one route sends a series. */
export interface Placed {
  /** Stage 1's key and task; null in a route without tasks. */
  readonly key: number | null;
  readonly task: number | null;
  /** What stage 2 hashed: the task with `key: task`. */
  readonly placementKey: number;
  readonly slot: number;
  /** Whether the series has none of the labels of a `by` key of this route. */
  readonly missingKeyLabels: boolean;
}

/** Places a series by its labels. */
export type Placer = (labels: LabelSpans) => Placed;

interface Stage {
  readonly key: number;
  readonly picked: number;
  readonly missing: boolean;
}

type StageFunction = (labels: LabelSpans, task: number | null) => Stage;

/** Compiles both stages of a route. */
export function compilePlacer(options: RouteOptions): Placer {
  const taskOf = options.tasks === null ? null : compileTasks(options.tasks, options);
  const slotOf = compilePlacement(options.placement, options);
  return (labels) => {
    const stage1 = taskOf === null ? null : taskOf(labels, null);
    const stage2 = slotOf(labels, stage1?.picked ?? null);
    return {
      key: stage1?.key ?? null,
      task: stage1?.picked ?? null,
      placementKey: stage2.key,
      slot: stage2.picked,
      missingKeyLabels: stage2.missing || (stage1?.missing ?? false),
    };
  };
}

function compileTasks(tasks: TaskOptions, route: RouteOptions): StageFunction {
  return compileStage(
    compileKey(tasks.key, route.keyFormat, tasks.label),
    // Tasks have no choice of their own for series without the labels: they are one output group, so one task.
    () => EMPTY_KEY,
    buildBuckets(tasks.algorithm, tasks.count),
  );
}

function compilePlacement(placement: PlacementOptions, route: RouteOptions): StageFunction {
  const { place: slotOf } = buildPlacement(placement, route.upstreams);
  if (placement.key.kind === "task") {
    return (_labels, task) => {
      const key = task ?? 0;
      return { key, picked: slotOf(key), missing: false };
    };
  }
  const taskLabel = route.tasks?.label ?? null;
  const whole = compileKey({ kind: "all" }, route.keyFormat, taskLabel);
  return compileStage(
    compileKey(placement.key, route.keyFormat, taskLabel),
    placement.missingKey === "whole_set" ? whole : () => EMPTY_KEY,
    slotOf,
  );
}

function compileStage(keyOf: LabelSetKey, keyWithoutLabels: LabelSetKey, place: PlaceKey): StageFunction {
  return (labels, task) => {
    const found = keyOf(labels, task);
    const missing = found === NO_KEY_LABEL;
    const key = missing ? keyWithoutLabels(labels, task) : found;
    return { key, picked: place(key), missing };
  };
}
