/** What a route needs to know to give series their tasks and upstreams. Made by config/, where the defaults live. */
import type { KeyFormat, KeyRule } from "../hash/keyRule.ts";
import type { PlacementAlgorithm } from "../hash/placement.ts";

/** Stage 1: from the label set to a task. */
export interface TaskOptions {
  /** Tasks are the numbers 0 <= task < count. */
  readonly count: number;
  /** Name of the label that carries the task. */
  readonly label: string;
  readonly algorithm: PlacementAlgorithm;
  readonly key: KeyRule;
}

/** What stage 2 hashes: the task that stage 1 chose, or labels of the series (`{kind: "all"}` is `key: series`). */
export type PlacementKey = { readonly kind: "task" } | KeyRule;

/** Stage 2: from the task, or from labels, to a slot. */
export interface PlacementOptions {
  readonly key: PlacementKey;
  readonly algorithm: PlacementAlgorithm;
  /** Where series go that have none of the labels of a `by` key: all where the empty key goes, or by their whole set. */
  readonly missingKey: "one_place" | "whole_set";
}

export interface RouteOptions {
  readonly name: string;
  readonly keyFormat: KeyFormat;
  /** null: series get no task label. */
  readonly tasks: TaskOptions | null;
  readonly placement: PlacementOptions;
  /** Upstream names; the index is the slot number. */
  readonly upstreams: readonly string[];
}

/** Limits on one series, checked when it comes in. */
export interface LabelLimits {
  readonly maxLabels: number;
  readonly maxLabelNameBytes: number;
  readonly maxLabelValueBytes: number;
}

/** When a parcel is closed. A single series above a limit goes in a parcel of its own. */
export interface ParcelLimits {
  /** Samples, histograms and exemplars together. */
  readonly maxItems: number;
  /** Plain (uncompressed) bytes. */
  readonly maxPlainBytes: number;
}

/** Bounds of the table that keeps decisions. */
export interface DecisionTableLimits {
  /** Series whose decisions are kept for certain; as many of an older generation may be there besides. */
  readonly maxSeries: number;
  /** Memory for all of it, in bytes. */
  readonly maxBytes: number;
}
