/** Routing over the border of topology periods, against the oracle that looks at every item by itself. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RouteOptions } from "../../src/route/options.ts";
import type { Router } from "../../src/route/router.ts";
import { expectedParts, itemCount } from "../oracle/periods.ts";
import { decodeBody, type ReferenceSeries } from "../reference/writeRequest.ts";
import {
  doubleField,
  exemplar,
  fixed32Field,
  histogram,
  label,
  nested,
  sample,
  series,
  varintField,
} from "../wire/handmade.ts";
import { type ExampleSlot, exampleRoute, slotsOf, TASK_LABEL } from "./exampleRoute.ts";
import { MIB, type Routed, routePlain, routerOf, type RouterShape } from "./routed.ts";
import { drop, labelDrop, rulesOf, set } from "./rules.ts";

const NOON = Date.UTC(2026, 11, 1, 12);
const HOUR = 3_600_000;
const STALE = "7ff0000000000002";
const ROOMY = { maxItems: 10_000, maxPlainBytes: 8 * MIB };

const THREE = slotsOf("a", "b", "c");
const FOUR = slotsOf("a", "b", "c", "d");

function removed(slots: readonly ExampleSlot[], ...names: readonly string[]): ExampleSlot[] {
  return slots.map((slot) => (names.includes(slot.name) ? { ...slot, removed: true } : slot));
}

function ruled(slots: readonly ExampleSlot[]): ExampleSlot[] {
  const rules = [
    rulesOf(set("up", "b")),
    rulesOf(drop("n", ".*[02468]")),
    rulesOf(labelDrop("n"), set("Z", "1")),
  ];
  return slots.map((slot, index) => ({ ...slot, writeRelabel: rules[index - 1] ?? slot.writeRelabel }));
}

const GROWING = exampleRoute({
  name: "growing",
  periods: [
    { fromMs: null, slots: THREE },
    { fromMs: NOON, slots: FOUR },
  ],
});
const { placement } = GROWING;
const ROUTES: readonly RouteOptions[] = [
  GROWING,
  exampleRoute({
    name: "replicated",
    placement: { ...placement, key: { kind: "all" }, replicas: 2 },
    relabel: rulesOf(drop("n", "7")),
    periods: [
      { fromMs: null, slots: ruled(FOUR) },
      { fromMs: NOON - HOUR, slots: removed(ruled(FOUR), "b") },
      { fromMs: NOON + 1, slots: removed(ruled(slotsOf("a", "b", "c", "d", "e")), "a") },
    ],
  }),
  exampleRoute({
    name: "steady",
    tasks: null,
    placement: { ...placement, key: { kind: "all" } },
    upstreams: ruled(FOUR),
  }),
];

function routerFor(routes: readonly RouteOptions[], shape: RouterShape = {}): Router {
  return routerOf(
    routes.map((route) => ({ route, limits: ROOMY })),
    shape,
  );
}

/** What was sent, decoded, by "route/upstream/replica". */
function sentBy({ consignments }: Routed, routes: readonly RouteOptions[]): Map<string, ReferenceSeries[]> {
  return new Map(
    consignments.map(({ route, upstream, replica, parcels }) => {
      const { name = "", upstreams = [] } = routes[route] ?? {};
      const key = `${name}/${upstreams[upstream]?.name ?? ""}/${replica}`;
      return [key, parcels.flatMap(({ body }) => decodeBody(body).series)];
    }),
  );
}

function itemsIn({ samples, histograms, exemplars }: Routed["received"]): number {
  return samples + histograms + exemplars;
}

/** Items by what they are counted as. */
function counted({ tallies }: Routed, routes: readonly RouteOptions[], kind: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const { tally, counts } of tallies) {
    if (tally.kind !== kind || tally.kind === "unrouted" || itemsIn(counts) === 0) continue;
    const name = routes[tally.route]?.name ?? "";
    found.set(tally.kind === "dropped" ? `${name}/${tally.replica}/${tally.reason}` : name, itemsIn(counts));
  }
  return found;
}

/** Routes requests of one series each as one, and compares all that comes of it with the oracle. */
function expectRight(
  router: Router,
  requests: readonly Uint8Array[],
  routes: readonly RouteOptions[],
): Routed {
  const routed = routePlain(router, Buffer.concat(requests));
  const expected = expectedParts(requests, routes);
  expect(sentBy(routed, routes)).toEqual(expected.sent);
  expect(counted(routed, routes, "dropped")).toEqual(expected.dropped);
  expect(counted(routed, routes, "not_selected")).toEqual(expected.notSelected);
  // The parcels say what they hold, and it adds up to what came in, for each route and replica.
  for (const [
    index,
    {
      name,
      placement: { replicas },
    },
  ] of routes.entries()) {
    for (let replica = 0; replica < replicas; replica++) {
      const own = routed.consignments.filter((each) => each.route === index && each.replica === replica);
      const parcels = own.flatMap((each) => each.parcels);
      for (const { body, items, series: count } of parcels) {
        const decoded = decodeBody(body).series;
        expect(count).toBe(decoded.length);
        expect(items).toEqual({
          samples: decoded.reduce((sum, each) => sum + each.samples.length, 0),
          histograms: decoded.reduce((sum, each) => sum + each.histograms.length, 0),
          exemplars: decoded.reduce((sum, each) => sum + each.exemplars.length, 0),
        });
      }
      const sent = parcels.reduce((sum, { items }) => sum + itemsIn({ series: 0, ...items }), 0);
      const drops = [...expected.dropped].filter(([key]) => key.startsWith(`${name}/${replica}/`));
      const dropped = drops.reduce((sum, [, count]) => sum + count, 0);
      expect(sent + dropped + (expected.notSelected.get(name) ?? 0)).toBe(itemsIn(routed.received));
    }
  }
  return routed;
}

const timestamps = fc.oneof(
  fc.constantFrom(NOON - HOUR - 1, NOON - HOUR, NOON - 1, NOON, NOON + 1, NOON + 2, 0, -1, -(2 ** 40)),
  fc.integer({ min: NOON - 2 * HOUR, max: NOON + HOUR }),
);
const bits = fc.constantFrom(undefined, STALE, "7ff8000000000001");
const items = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(timestamps, bits).map(([at, value]) => sample(at, value)) },
  {
    weight: 1,
    arbitrary: timestamps.map((at) => exemplar(label("trace", "é"), doubleField(2), varintField(3, at))),
  },
  {
    weight: 1,
    arbitrary: timestamps.map((at) => histogram(varintField(1, 3), fixed32Field(30), varintField(15, at))),
  },
  // The last of several timestamps is valid, and one that is left out is 0.
  {
    weight: 1,
    arbitrary: fc
      .tuple(timestamps, timestamps)
      .map(([a, b]) => nested(2, varintField(2, a), varintField(2, b))),
  },
  { weight: 1, arbitrary: fc.constant(nested(2, doubleField(1))) },
);
const fields = fc.array(
  fc.oneof({ weight: 6, arbitrary: items }, { weight: 1, arbitrary: fc.constant(nested(9, "new")) }),
  {
    maxLength: 6,
  },
);
/** Labels that begin the series, and some behind its items now and then: those are decided anew each time. */
const oneSeries = fc
  .tuple(fc.nat(30), fields, fc.constantFrom("none", "label", "task"))
  .map(([number, content, behind]) =>
    series(
      label("n", String(number)),
      ...content,
      ...(behind === "label" ? [label("zone", "x")] : []),
      ...(behind === "task" ? [label(TASK_LABEL, "3"), label("zone", "x")] : []),
    ),
  );
const requests = fc.array(oneSeries, { minLength: 1, maxLength: 12 });

describe("items of several periods", () => {
  it.each([
    { name: "in one step", shape: {} },
    { name: "in many steps", shape: { isDue: () => true } },
    { name: "with a table that holds next to nothing", shape: { tableSeries: 3 } },
  ])("go each where its own timestamp says, and the ledger adds up: $name", ({ shape }) => {
    fc.assert(
      fc.property(fc.array(requests, { minLength: 1, maxLength: 3 }), (sent) => {
        const router = routerFor(ROUTES, shape);
        // What comes again has decisions in the table.
        for (const request of [...sent, ...sent]) expectRight(router, request, ROUTES);
      }),
      { numRuns: 50 },
    );
  });
});

function numbered(count: number, ...content: readonly Uint8Array[]): Buffer[] {
  return Array.from({ length: count }, (_, number) => series(label("n", String(number)), ...content));
}

describe("a table full of decisions from before the border", () => {
  const routes = [GROWING];

  it("is right behind it, and for what is replayed later, without a new decision", () => {
    const router = routerFor(routes);
    const count = 400;
    expectRight(router, numbered(count, sample(NOON - HOUR)), routes);
    expect(router.decisionTable).toMatchObject({ newSeries: count, knownSeries: 0 });
    const before = expectRight(router, numbered(count, sample(NOON - 1)), routes);
    const behind = expectRight(router, numbered(count, sample(NOON)), routes);
    const replayed = expectRight(
      router,
      numbered(count, sample(NOON - HOUR), sample(NOON - HOUR + 1)),
      routes,
    );
    expect(router.decisionTable).toMatchObject({ newSeries: count, knownSeries: 3 * count });
    expect([...sentBy(before, routes).keys()].some((key) => key.includes("/d/"))).toBe(false);
    expect(sentBy(behind, routes).get("growing/d/0")?.length).toBeGreaterThan(50);
    expect([...sentBy(replayed, routes).keys()].some((key) => key.includes("/d/"))).toBe(false);
  });

  it("is right for series that come with items of both sides, of which only those that move are cut", () => {
    const router = routerFor(routes);
    const count = 400;
    expectRight(router, numbered(count, sample(NOON - 1)), routes);
    const split = numbered(count, sample(NOON - 1, STALE), sample(NOON), sample(NOON - 2));
    const { consignments, received } = expectRight(router, split, routes);
    const sent = consignments
      .flatMap(({ parcels }) => parcels)
      .reduce((sum, parcel) => sum + parcel.series, 0);
    const moved = consignments.find(({ upstream }) => GROWING.upstreams[upstream]?.name === "d")?.parcels[0]
      ?.series;
    expect(received.series).toBe(count);
    expect(sent).toBe(count + (moved ?? 0));
    // Nothing of that was kept.
    expectRight(router, numbered(count, sample(NOON)), routes);
  });

  it("sends series without items where the newest period has them, whatever they come with", () => {
    const bare = numbered(50);
    for (const others of [[], numbered(3, sample(NOON - 1)), numbered(3, sample(NOON - 1), sample(NOON))]) {
      const routed = expectRight(routerFor(routes), [...bare, ...others], routes);
      const empty = [...sentBy(routed, routes).values()].flat().filter((each) => itemCount(each) === 0);
      expect(empty).toHaveLength(50);
    }
  });
});

describe("lanes", () => {
  it("stay those of the placement key in all periods", () => {
    const router = routerOf([{ route: GROWING, limits: ROOMY, lanes: 4 }]);
    const plain = Buffer.concat(numbered(200, sample(NOON - 1), sample(NOON)));
    const lanes = new Map<string, Set<number>>();
    for (const { lane, parcels } of routePlain(router, plain).consignments) {
      for (const each of parcels.flatMap(({ body }) => decodeBody(body).series)) {
        const n = JSON.stringify(each.labels);
        lanes.set(n, (lanes.get(n) ?? new Set()).add(lane));
      }
    }
    expect(lanes.size).toBe(200);
    expect([...lanes.values()].filter(({ size }) => size !== 1)).toEqual([]);
    expect(new Set([...lanes.values()].flatMap((of) => [...of])).size).toBe(4);
  });
});
