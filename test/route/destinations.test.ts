import { describe, expect, it } from "vitest";
import type { Effect } from "../../src/engine/engine.ts";
import type { Decision, RouteDecision } from "../../src/route/decide.ts";
import { Destinations, type LaneAddress } from "../../src/route/destinations.ts";
import type { RouteOptions } from "../../src/route/options.ts";
import type { Placed } from "../../src/route/place.ts";
import type { Tally } from "../../src/route/tally.ts";
import { exampleRoute, slotsOf } from "./exampleRoute.ts";

const SMALL = { maxItems: 10, maxPlainBytes: 1000 };
const LARGE = { maxItems: 1000, maxPlainBytes: 100_000 };
const DESTINATIONS = new Destinations([
  { route: exampleRoute({ upstreams: slotsOf("a", "b", "c") }), limits: SMALL, lanes: 4 },
  { route: exampleRoute({ upstreams: slotsOf("d") }), limits: LARGE, lanes: 1 },
  { route: exampleRoute({ upstreams: slotsOf("e", "f") }), limits: LARGE, lanes: 3 },
]);
const REPLICATED = new Destinations([
  { route: replicated(3, "a", "b", "c", "d"), limits: SMALL, lanes: 2 },
  { route: replicated(2, "e", "f"), limits: LARGE, lanes: 3 },
]);

function replicated(replicas: number, ...names: readonly string[]): RouteOptions {
  const { placement } = exampleRoute();
  return exampleRoute({ upstreams: slotsOf(...names), placement: { ...placement, replicas } });
}
const SPLICES = [
  { keep: 3, resume: 5, inserted: Uint8Array.of(1, 2) },
  { keep: 60, resume: 60, inserted: Uint8Array.of(3) },
];
const NOT_SELECTED: RouteDecision = { kind: "not_selected" };

function placed(slots: readonly number[], placementKey: number, missingKeyLabels = false): Placed {
  return { key: 1, task: 2, placementKey, places: [{ slots, upstreams: slots }], missingKeyLabels };
}

/** Placed on one upstream, and sent there. */
function sentTo(slot: number, placementKey: number, missingKeyLabels = false): RouteDecision {
  return {
    kind: "placed",
    placed: placed([slot], placementKey, missingKeyLabels),
    copies: [{ upstream: slot, copy: { kind: "sent", splices: SPLICES } }],
  };
}

/** What effects do: where they send, and what they count. */
function told(
  effects: readonly Effect[],
  destinations = DESTINATIONS,
): {
  sent: (LaneAddress | undefined)[];
  counted: (Tally | undefined)[];
} {
  const sent = effects.flatMap((each) =>
    each.kind === "send" ? [destinations.addresses[each.destination]] : [],
  );
  const counted = effects.flatMap((each) =>
    each.kind === "count" ? [destinations.tallies[each.tally]] : [],
  );
  return { sent, counted };
}

/** The effects of a decision that is the same at all times. */
function alwaysDone(destinations: Destinations, decision: Decision): readonly Effect[] {
  const [only, ...more] = destinations.sections(decision);
  expect(only?.firstEpoch).toBe(0);
  expect(more).toEqual([]);
  return only?.effects ?? [];
}

function effectsOf(...routes: readonly RouteDecision[]): readonly Effect[] {
  return alwaysDone(DESTINATIONS, { kind: "offered", routes });
}

describe("destinations", () => {
  it("are every lane of every upstream of every route once, with the limits of the route", () => {
    expect(DESTINATIONS.addresses).toHaveLength(3 * 4 + 1 + 2 * 3);
    const texts = DESTINATIONS.addresses.map((address) => JSON.stringify(address));
    expect(new Set(texts).size).toBe(texts.length);
    expect(DESTINATIONS.limits).toEqual(
      DESTINATIONS.addresses.map(({ route }) => (route === 0 ? SMALL : LARGE)),
    );
  });

  it("are picked by upstream, and in it by the placement key, which spreads over all lanes", () => {
    for (const [route, slots, lanes] of [
      [0, 3, 4],
      [1, 1, 1],
      [2, 2, 3],
    ] as const) {
      for (let slot = 0; slot < slots; slot++) {
        for (let key = 0; key < 8; key++) {
          const routes = [0, 1, 2].map((each) => (each === route ? sentTo(slot, key) : NOT_SELECTED));
          expect(told(effectsOf(...routes)).sent).toEqual([
            { route, upstream: slot, replica: 0, lane: key % lanes },
          ]);
        }
      }
    }
  });

  it("are the same for keys beyond 2^31", () => {
    expect(told(effectsOf(NOT_SELECTED, NOT_SELECTED, sentTo(1, 2 ** 32 - 1))).sent).toEqual([
      { route: 2, upstream: 1, replica: 0, lane: 0 },
    ]);
  });
});

describe("what is done with a series", () => {
  const sent = sentTo(0, 0);

  it("is nothing when it is refused, which is counted with its sender", () => {
    expect(alwaysDone(DESTINATIONS, { kind: "refused", reason: "invalid_utf8" })).toEqual([]);
  });

  it("is to be counted when a global rule drops it, and for every route as not selected", () => {
    expect(told(alwaysDone(DESTINATIONS, { kind: "dropped", reason: "relabel_configs" }))).toEqual({
      sent: [],
      counted: [
        { kind: "unrouted", reason: "relabel_configs" },
        ...[0, 1, 2].map((route) => ({ kind: "not_selected", route })),
      ],
    });
  });

  it("is to be counted when no route selects it", () => {
    expect(told(effectsOf(NOT_SELECTED, NOT_SELECTED, NOT_SELECTED))).toEqual({
      sent: [],
      counted: [
        ...[0, 1, 2].map((route) => ({ kind: "not_selected", route })),
        { kind: "unrouted", reason: "no_route" },
      ],
    });
  });

  it("has its route when the only one that selects it drops it", () => {
    const dropped: RouteDecision = { kind: "dropped", reason: "no_labels" };
    expect(told(effectsOf(NOT_SELECTED, dropped, NOT_SELECTED)).counted).toEqual([
      { kind: "not_selected", route: 0 },
      { kind: "dropped", route: 1, replica: 0, reason: "no_labels" },
      { kind: "not_selected", route: 2 },
    ]);
  });

  it("is to be sent with its splices by every route that selects it", () => {
    const effects = effectsOf(sent, sent, NOT_SELECTED);
    expect(effects.filter(({ kind }) => kind === "send")).toMatchObject([
      { splices: SPLICES },
      { splices: SPLICES },
    ]);
    expect(told(effects).sent).toEqual([
      { route: 0, upstream: 0, replica: 0, lane: 0 },
      { route: 1, upstream: 0, replica: 0, lane: 0 },
    ]);
  });

  it("counts that it has no key labels, sent or dropped by the upstream's rules", () => {
    const dropped: RouteDecision = {
      kind: "placed",
      placed: placed([0], 0, true),
      copies: [{ upstream: 0, copy: { kind: "dropped", reason: "write_relabel_configs" } }],
    };
    expect(told(effectsOf(sentTo(0, 0, true), dropped, sent)).counted).toEqual([
      { kind: "missing_key_labels", route: 0 },
      { kind: "dropped", route: 1, replica: 0, reason: "write_relabel_configs" },
      { kind: "missing_key_labels", route: 1 },
    ]);
  });
});

describe("the copies of a series in routes with replicas", () => {
  const of = (...routes: readonly RouteDecision[]): ReturnType<typeof told> =>
    told(alwaysDone(REPLICATED, { kind: "offered", routes }), REPLICATED);

  it("have destinations of their own at every upstream, in every lane", () => {
    const texts = REPLICATED.addresses.map((address) => JSON.stringify(address));
    expect(new Set(texts).size).toBe(4 * 3 * 2 + 2 * 2 * 3);
    expect(texts).toHaveLength(4 * 3 * 2 + 2 * 2 * 3);
    expect(REPLICATED.limits.filter((limits) => limits === SMALL)).toHaveLength(4 * 3 * 2);
  });

  it("go each to its own slot, in the lane of the key, with its own splices", () => {
    const [one, two] = [SPLICES.slice(0, 1), SPLICES.slice(1)];
    const sent: RouteDecision = {
      kind: "placed",
      placed: placed([1, 0], 5),
      copies: [
        { upstream: 1, copy: { kind: "sent", splices: one } },
        { upstream: 0, copy: { kind: "sent", splices: two } },
      ],
    };
    const effects = alwaysDone(REPLICATED, { kind: "offered", routes: [NOT_SELECTED, sent] });
    expect(told(effects, REPLICATED).sent).toEqual([
      { route: 1, upstream: 1, replica: 0, lane: 2 },
      { route: 1, upstream: 0, replica: 1, lane: 2 },
    ]);
    expect(effects.flatMap((each) => (each.kind === "send" ? [each.splices] : []))).toEqual([one, two]);
  });

  it("are dropped one by one, whatever becomes of the others, and lack key labels once", () => {
    const mixed: RouteDecision = {
      kind: "placed",
      placed: placed([3, 0, 2], 1, true),
      copies: [
        { upstream: 3, copy: { kind: "dropped", reason: "write_relabel_configs" } },
        { upstream: 0, copy: { kind: "sent", splices: SPLICES } },
        { upstream: 2, copy: { kind: "dropped", reason: "no_metric_name" } },
      ],
    };
    expect(of(mixed, NOT_SELECTED)).toEqual({
      sent: [{ route: 0, upstream: 0, replica: 1, lane: 1 }],
      counted: [
        { kind: "dropped", route: 0, replica: 0, reason: "write_relabel_configs" },
        { kind: "dropped", route: 0, replica: 2, reason: "no_metric_name" },
        { kind: "missing_key_labels", route: 0 },
        { kind: "not_selected", route: 1 },
      ],
    });
  });

  it("are all dropped with a series that has no place", () => {
    const dropped: RouteDecision = { kind: "dropped", reason: "no_labels" };
    expect(of(dropped, dropped).counted).toEqual([
      ...[0, 1, 2].map((replica) => ({ kind: "dropped", route: 0, replica, reason: "no_labels" })),
      ...[0, 1].map((replica) => ({ kind: "dropped", route: 1, replica, reason: "no_labels" })),
    ]);
  });
});
