/** Routes, their upstreams' lanes and what is counted, by the numbers that the engine knows them by. */
import type { Effect } from "../engine/engine.ts";
import type { Decision, RouteDecision } from "./decide.ts";
import type { ParcelLimits, RouteOptions } from "./options.ts";
import type { Placed } from "./place.ts";
import { talliesOf, type Tally, tallyNumber } from "./tally.ts";

/** A route, the limits of what it sends, and how many lanes each of its upstreams has. */
export interface RouterRoute {
  readonly route: RouteOptions;
  readonly limits: ParcelLimits;
  readonly lanes: number;
}

/** Where parcels go: index of the route, slot number in it, and lane of that slot's upstream. */
export interface LaneAddress {
  readonly route: number;
  readonly slot: number;
  readonly lane: number;
}

const NO_EFFECT: readonly Effect[] = [];

export class Destinations {
  /** How many routes there are. */
  readonly routes: number;
  /** By number of the destination. */
  readonly addresses: readonly LaneAddress[];
  readonly limits: readonly ParcelLimits[];
  /** By number of the tally. */
  readonly tallies: readonly Tally[];
  /** By route: the number of lane 0 of slot 0, and how many lanes a slot has. */
  readonly #numbering: readonly { readonly first: number; readonly lanes: number }[];

  constructor(routes: readonly RouterRoute[]) {
    const addresses: LaneAddress[] = [];
    const limits: ParcelLimits[] = [];
    this.#numbering = routes.map(({ route, limits: ofRoute, lanes }, index) => {
      const first = addresses.length;
      for (let slot = 0; slot < route.upstreams.length; slot++) {
        for (let lane = 0; lane < lanes; lane++) {
          addresses.push({ route: index, slot, lane });
          limits.push(ofRoute);
        }
      }
      return { first, lanes };
    });
    this.routes = routes.length;
    this.addresses = addresses;
    this.limits = limits;
    this.tallies = talliesOf(routes.length);
  }

  /** What the engine does with a series that is decided so. */
  effects(decision: Decision): readonly Effect[] {
    if (decision.kind === "refused") return NO_EFFECT;
    if (decision.kind === "dropped") {
      return [count({ kind: "unrouted", reason: decision.reason }), ...this.#selectedByNone()];
    }
    const effects = decision.routes.flatMap((each, route) => this.#effectsOf(each, route));
    if (decision.routes.every(({ kind }) => kind === "not_selected")) {
      effects.push(count({ kind: "unrouted", reason: "no_route" }));
    }
    return effects;
  }

  #effectsOf(decision: RouteDecision, route: number): Effect[] {
    if (decision.kind === "not_selected") return [count({ kind: "not_selected", route })];
    const effects: Effect[] = [];
    if (decision.kind === "dropped") {
      effects.push(count({ kind: "dropped", route, reason: decision.reason }));
    } else {
      const { placed, splices } = decision;
      effects.push({ kind: "send", destination: this.#destination(route, placed), splices });
    }
    if (decision.placed?.missingKeyLabels === true)
      effects.push(count({ kind: "missing_key_labels", route }));
    return effects;
  }

  /** Lanes keep the order of a series, so a series has one lane; neighbouring tasks get different ones. */
  #destination(route: number, { slot, placementKey }: Placed): number {
    const { first, lanes } = this.#numbering[route] ?? { first: 0, lanes: 1 };
    return first + slot * lanes + (placementKey % lanes);
  }

  #selectedByNone(): Effect[] {
    return this.#numbering.map((_, route) => count({ kind: "not_selected", route }));
  }
}

function count(tally: Tally): Effect {
  return { kind: "count", tally: tallyNumber(tally) };
}
