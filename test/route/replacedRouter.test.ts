import { describe, expect, it } from "vitest";
import type { RouteOptions } from "../../src/route/options.ts";
import type { Router } from "../../src/route/router.ts";
import { oneSample, requestBody } from "../reference/build.ts";
import { exampleRoute, slotsOf } from "./exampleRoute.ts";
import { MIB, routeBlock, type RouterShape, routerOf } from "./routed.ts";

const LIMITS = { maxItems: 100, maxPlainBytes: MIB };
const SERIES = 3_000;
const BODIES = [0, 1].map((half) =>
  requestBody(...Array.from({ length: SERIES / 2 }, (_, number) => oneSample(`metric_${number * 2 + half}`))),
);

interface Routing extends RouterShape {
  readonly name: string;
  readonly routes: readonly RouteOptions[];
}

const many = slotsOf(...Array.from({ length: 200 }, (_, slot) => `vmagent-${slot}`));

/** Each takes the place of the one before it. */
const ROUTINGS: readonly Routing[] = [
  { name: "three upstreams", routes: [exampleRoute()] },
  {
    name: "two hundred upstreams in two routes",
    routes: [exampleRoute({ upstreams: many }), exampleRoute()],
  },
  {
    name: "a larger table and periods",
    routes: [
      exampleRoute({
        periods: [
          { fromMs: null, slots: slotsOf("a", "b") },
          { fromMs: 1, slots: slotsOf("a", "b", "c") },
        ],
      }),
    ],
    tableSeries: 50_000,
    tableBytes: 64 * MIB,
  },
  {
    name: "one upstream and a tiny table",
    routes: [exampleRoute({ upstreams: slotsOf("only") })],
    tableSeries: 10,
  },
  { name: "three upstreams again", routes: [exampleRoute()] },
];

function routed(router: Router): unknown {
  // Twice, so that decisions of the table are replayed.
  return [...BODIES, ...BODIES].map((body) => {
    const { consignments, received, tallies } = routeBlock(router, body);
    return { consignments, received, tallies };
  });
}

describe("a router in the place of another", () => {
  it("routes as one that is the first, whatever the one before had decided and however it was laid out", () => {
    let before: Router | undefined;
    for (const { name, routes, ...shape } of ROUTINGS) {
      const all = routes.map((route) => ({ route, limits: LIMITS }));
      const router = routerOf(all, { ...shape, ...(before === undefined ? {} : { before }) });
      expect(router.decisionTable.series, name).toBe(0);
      expect(routed(router), name).toEqual(routed(routerOf(all, shape)));
      before = router;
    }
  });

  it("goes on counting the series that were known and new", () => {
    const all = [{ route: exampleRoute(), limits: LIMITS }];
    const first = routerOf(all, { tableSeries: 2 * SERIES });
    routed(first);
    const { knownSeries, newSeries } = first.decisionTable;
    expect([knownSeries, newSeries]).toEqual([SERIES, SERIES]);
    const second = routerOf(all, { tableSeries: 2 * SERIES, before: first });
    routed(second);
    expect(second.decisionTable).toMatchObject({ knownSeries: 2 * SERIES, newSeries: 2 * SERIES });
  });
});
