/** What a plan looks at of a configuration. */
import type { RelabelRuleList } from "../relabel/options.ts";
import type { LabelLimits, RouteOptions } from "../route/options.ts";

export interface PlanConfig {
  /** Applied before all routes. */
  readonly relabel: RelabelRuleList;
  readonly limits: LabelLimits;
  readonly routes: readonly PlanRoute[];
}

export interface PlanRoute {
  readonly route: RouteOptions;
  /** How its upstreams are reached. */
  readonly upstreams: readonly { readonly name: string; readonly url: URL }[];
}
