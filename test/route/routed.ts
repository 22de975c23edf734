/** Routing without pauses, and what comes of it in a form that tests can decode and compare. */
import { compress } from "snappyjs";
import type { Route } from "../../src/route/decide.ts";
import type { LabelLimits, ParcelLimits } from "../../src/route/options.ts";
import type { RoutedRequest } from "../../src/route/requestParts.ts";
import { Router } from "../../src/route/router.ts";
import { type ItemCounts, joinParcels } from "../../src/wire/parcel.ts";

export const MIB = 1024 * 1024;
export const LABEL_LIMITS: LabelLimits = {
  maxLabels: 256,
  maxLabelNameBytes: 1024,
  maxLabelValueBytes: 65536,
};
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
  readonly slot: number;
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
}

export function routerOf(
  routes: readonly { readonly route: Route; readonly limits: ParcelLimits }[],
  shape: RouterShape = {},
): Router {
  const { labels = LABEL_LIMITS, maxPlainBytes = 32 * MIB, tableSeries = 1000, tableBytes = MIB } = shape;
  const metadata = shape.metadata ?? { maxItems: 10_000, maxPlainBytes: 8 * MIB };
  return new Router(
    routes.map((each) => ({ ...each, lanes: 1 })),
    { labels, maxPlainBytes, metadata, table: { maxSeries: tableSeries, maxBytes: tableBytes } },
    HASH_KEY,
  );
}

/** @throws {WireError} as the router does */
export function routeBlock(router: Router, block: Uint8Array): Routed {
  const steps = router.route([block]);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return withBodies(step.value);
}

export function routePlain(router: Router, plain: Uint8Array): Routed {
  // A view without Buffer's type: snappyjs answers with the type that it was given.
  return routeBlock(router, compress(new Uint8Array(plain)));
}

/** What was routed, with parcels that can be decoded by themselves. */
export function withBodies(routed: RoutedRequest): Routed {
  const consignments = routed.consignments.map(({ route, slot, parcels }) => ({
    route,
    slot,
    parcels: parcels.map(({ plainBytes, series, items, elements }) => ({
      body: joinParcels([{ elements, plainBytes }]),
      plainBytes,
      series,
      items,
    })),
  }));
  return { ...routed, consignments };
}
