/** Routing without pauses, and what comes of it in a form that tests can decode and compare. */
import { compress } from "snappyjs";
import type { RelabelRuleList } from "../../src/relabel/options.ts";
import type { LabelLimits, ParcelLimits, RouteOptions } from "../../src/route/options.ts";
import type { RoutedRequest } from "../../src/route/requestParts.ts";
import { Router } from "../../src/route/router.ts";
import { type RequestTenants, SHARED_CONTEXT } from "../../src/route/tenants.ts";
import { type ItemCounts, joinParcels } from "../../src/wire/parcel.ts";
import { NO_RULES } from "./exampleRoute.ts";

export const MIB = 1024 * 1024;
export const LABEL_LIMITS: LabelLimits = {
  maxLabels: 256,
  maxLabelNameBytes: 1024,
  maxLabelValueBytes: 65536,
};
/** Of a request whose tenant no route asks for. */
export const NO_TENANTS: RequestTenants = { context: SHARED_CONTEXT, byRoute: [] };
const HASH_KEY = Uint8Array.from({ length: 32 }, (_, index) => index * 7);

export interface RoutedParcel {
  /** The parcel as a request of its own: a whole snappy block. */
  readonly body: Uint8Array;
  readonly plainBytes: number;
  readonly series: number;
  readonly items: ItemCounts;
}

export interface RoutedConsignment {
  readonly route: number;
  readonly upstream: number;
  readonly replica: number;
  readonly lane: number;
  readonly parcels: readonly RoutedParcel[];
}

export type Routed = Omit<RoutedRequest, "consignments"> & {
  readonly consignments: readonly RoutedConsignment[];
};

export interface RouterShape {
  readonly limits?: ParcelLimits;
  readonly labels?: LabelLimits;
  readonly metadata?: ParcelLimits;
  readonly maxPlainBytes?: number;
  readonly tableSeries?: number;
  readonly tableBytes?: number;
  readonly globalRules?: RelabelRuleList;
  readonly isDue?: () => boolean;
  /** The router that this one takes the place of. */
  readonly before?: Router;
}

export function routerOf(
  routes: readonly { readonly route: RouteOptions; readonly limits: ParcelLimits; readonly lanes?: number }[],
  shape: RouterShape = {},
): Router {
  const { labels = LABEL_LIMITS, maxPlainBytes = 32 * MIB, tableSeries = 1000, tableBytes = MIB } = shape;
  const metadata = shape.metadata ?? { maxItems: 10_000, maxPlainBytes: 8 * MIB };
  const { globalRules = NO_RULES, isDue = () => false } = shape;
  return new Router(
    globalRules,
    routes.map((each) => ({ lanes: 1, ...each })),
    { labels, maxPlainBytes, metadata, table: { maxSeries: tableSeries, maxBytes: tableBytes } },
    { hashKey: HASH_KEY, isDue },
    shape.before ?? null,
  );
}

/** @throws {WireError} as the router does */
export function routeBlock(router: Router, block: Uint8Array, tenants = NO_TENANTS): Routed {
  const steps = router.route([block], tenants);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return withBodies(step.value);
}

export function routePlain(router: Router, plain: Uint8Array, tenants = NO_TENANTS): Routed {
  // A view without Buffer's type: snappyjs answers with the type that it was given.
  return routeBlock(router, compress(new Uint8Array(plain)), tenants);
}

/** What was routed, with parcels that can be decoded by themselves. */
export function withBodies(routed: RoutedRequest): Routed {
  const consignments = routed.consignments.map(({ route, upstream, replica, lane, parcels }) => ({
    route,
    upstream,
    replica,
    lane,
    parcels: parcels.map(({ plainBytes, series, items, elements }) => ({
      body: joinParcels([{ elements, plainBytes }]),
      plainBytes,
      series,
      items,
    })),
  }));
  return { ...routed, consignments };
}
