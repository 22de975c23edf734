/** What a route needs to know to give series their tasks and upstreams. Made by config/, where the defaults live. */
import type { BucketAlgorithm } from "../hash/buckets.ts";
import type { KeyFormat, KeyRule } from "../hash/keyRule.ts";
import type { PlacementMethod } from "../hash/placement.ts";
import type { NamedSlot } from "../hash/slots.ts";
import type { RelabelRuleList } from "../relabel/options.ts";

/** Stage 1: from the label set to a task. */
export interface TaskOptions {
  /** Tasks are the numbers 0 <= task < count. */
  readonly count: number;
  /** Name of the label that carries the task. */
  readonly label: string;
  readonly algorithm: BucketAlgorithm;
  readonly key: KeyRule;
}

/** What stage 2 hashes: the task that stage 1 chose, or labels of the series (`{kind: "all"}` is `key: series`). */
export type PlacementKey = { readonly kind: "task" } | KeyRule;

/** Stage 2: from the task, or from labels, to a slot. */
export type PlacementOptions = PlacementMethod & {
  readonly key: PlacementKey;
  /** Where series go that have none of the labels of a `by` key: all where the empty key goes, or by their whole set. */
  readonly missingKey: "one_place" | "whole_set";
  /** How many upstreams get a copy of each series; at most as many as are no tombstones. */
  readonly replicas: number;
};

/** What a route does with the tenant that a request names in a header. */
export interface TenantOptions {
  /** In lower case. */
  readonly header: string;
  /** The label that carries the tenant, before the route's rules; null for none. */
  readonly label: string | null;
  /** Whether upstreams get the header too. */
  readonly pass: boolean;
}

/** An upstream as its route knows it, whichever slots it has. */
export interface RouteUpstream {
  readonly name: string;
  /** Applied after keying to what goes to this upstream, so it cannot change placement. */
  readonly writeRelabel: RelabelRuleList;
}

/** The slots that are in force from a moment on, for items with timestamps from then on. */
export interface Period {
  /** Milliseconds since the epoch; null for the first period, which has all that is older than the second. */
  readonly fromMs: number | null;
  /** The place in this list is the slot number. */
  readonly slots: readonly NamedSlot[];
}

export interface RouteOptions {
  readonly name: string;
  readonly tenant: TenantOptions;
  /** Applied before keying: they select the route's series, and rewrite them. */
  readonly relabel: RelabelRuleList;
  /** Whether a series that is kept here goes to no later route. */
  readonly final: boolean;
  readonly keyFormat: KeyFormat;
  /** null: series get no task label. */
  readonly tasks: TaskOptions | null;
  readonly placement: PlacementOptions;
  /** One period or more, in ascending order of their moments, no two of which are equal. */
  readonly topology: readonly Period[];
  /** Every upstream that is no tombstone in some period, once each, in the order in which they first appear. */
  readonly upstreams: readonly RouteUpstream[];
  /** How long an upstream is kept past the end of the last period that has it. */
  readonly retireAfterMs: number;
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
