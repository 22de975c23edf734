/** The configuration as the stages take it: checked, complete, frozen. */
import type { AdminOptions } from "../admin/options.ts";
import type { DeliveryOptions, UpstreamOptions } from "../deliver/options.ts";
import type { SpoolOptions } from "../deliver/spool/options.ts";
import type { BodyLimits, ListenAddress } from "../receive/options.ts";
import type { RelabelRuleList } from "../relabel/options.ts";
import type { DecisionTableLimits, LabelLimits, RouteOptions } from "../route/options.ts";

export interface RouteConfig {
  readonly route: RouteOptions;
  /** How those of `route.upstreams` are reached, in the same order. */
  readonly upstreams: readonly UpstreamOptions[];
  readonly delivery: DeliveryOptions;
}

export interface ShutdownOptions {
  /** Between readiness off and no longer accepting connections, so that load balancers notice. */
  readonly drainDelayMs: number;
  /** From the signal to the exit, drain delay included. */
  readonly graceMs: number;
}

export interface ReloadOptions {
  /** Whether the file, and those that it names, are looked at again and again. */
  readonly watch: boolean;
  /** A change that moves a larger share of a route's series is refused. */
  readonly maxMovedRatio: number;
}

export interface Config {
  readonly listen: ListenAddress;
  readonly admin: AdminOptions;
  readonly reload: ReloadOptions;
  readonly limits: BodyLimits & LabelLimits & { readonly maxDecodedBytes: number };
  readonly memory: {
    /** Of bodies, parcels and batches together. */
    readonly inFlightBytes: number;
    readonly decisionTable: DecisionTableLimits;
  };
  readonly shutdown: ShutdownOptions;
  /** See ConnectionOptions. */
  readonly maxConnectionAgeMs: number;
  /** Used by the routes with `on_outage: spool`. */
  readonly spool: SpoolOptions;
  /** Applied before all routes. */
  readonly relabel: RelabelRuleList;
  readonly routes: readonly RouteConfig[];
}
