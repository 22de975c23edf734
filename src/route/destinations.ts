/**
 * Routes, their upstreams' lanes and what is counted, by the numbers that the engine knows them by.
 *
 * An upstream gets first copies of some series and further copies of others. Each replica has destinations of its own, so a
 * parcel holds copies of one replica and is counted with it, and the ledger of every (route, replica) adds up exactly. Parcels of
 * several replicas still share lanes, and so requests: they meet in the upstream's sender.
 */
import type { Effect } from "../engine/engine.ts";
import { type CopyDecision, copyFor, type Decision, type RouteDecision } from "./decide.ts";
import type { ParcelLimits, RouteOptions } from "./options.ts";
import { type DropReason, Tallies, type Tally } from "./tally.ts";

/** A route, the limits of what it sends, and how many lanes each of its upstreams has. */
export interface RouterRoute {
  readonly route: RouteOptions;
  readonly limits: ParcelLimits;
  readonly lanes: number;
}

/** Where parcels go: index of the route, of one of its upstreams, which copy they hold, and lane of that upstream. */
export interface LaneAddress {
  readonly route: number;
  readonly upstream: number;
  readonly replica: number;
  readonly lane: number;
}

/** Whose copy it is, whatever its lane. */
type CopyAddress = Omit<LaneAddress, "lane">;

/** A route's destinations: the number of lane 0 of the first copy at upstream 0, and how many lanes and replicas each has. */
interface RouteNumbering {
  readonly first: number;
  readonly lanes: number;
  readonly replicas: number;
}

const NO_ROUTE: RouteNumbering = { first: 0, lanes: 1, replicas: 1 };
const NO_EFFECT: readonly Effect[] = [];

export class Destinations {
  /** How many routes there are. */
  readonly routes: number;
  /** By number of the destination. */
  readonly addresses: readonly LaneAddress[];
  readonly limits: readonly ParcelLimits[];
  /** By number of the tally. */
  readonly tallies: readonly Tally[];
  readonly #tallies: Tallies;
  readonly #numbering: readonly RouteNumbering[];

  constructor(routes: readonly RouterRoute[]) {
    const addresses: LaneAddress[] = [];
    const limits: ParcelLimits[] = [];
    this.#numbering = routes.map(({ route, limits: ofRoute, lanes }, index) => {
      const first = addresses.length;
      const { replicas } = route.placement;
      for (let upstream = 0; upstream < route.upstreams.length; upstream++) {
        for (let replica = 0; replica < replicas; replica++) {
          for (let lane = 0; lane < lanes; lane++) {
            addresses.push({ route: index, upstream, replica, lane });
            limits.push(ofRoute);
          }
        }
      }
      return { first, lanes, replicas };
    });
    this.routes = routes.length;
    this.addresses = addresses;
    this.limits = limits;
    this.#tallies = new Tallies(routes.map(({ route }) => route.placement.replicas));
    this.tallies = this.#tallies.all;
  }

  /** What the engine does with a series that is decided so. */
  effects(decision: Decision): readonly Effect[] {
    if (decision.kind === "refused") return NO_EFFECT;
    if (decision.kind === "dropped") {
      return [this.#count({ kind: "unrouted", reason: decision.reason }), ...this.#selectedByNone()];
    }
    const effects: Effect[] = [];
    decision.routes.forEach((each, route) => {
      this.#addEffects(effects, each, route);
    });
    if (decision.routes.every(({ kind }) => kind === "not_selected")) {
      effects.push(this.#count({ kind: "unrouted", reason: "no_route" }));
    }
    return effects;
  }

  #addEffects(effects: Effect[], decision: RouteDecision, route: number): void {
    if (decision.kind === "not_selected") {
      effects.push(this.#count({ kind: "not_selected", route }));
      return;
    }
    if (decision.kind === "dropped") {
      effects.push(...this.#droppedInAll(route, decision.reason));
      return;
    }
    const { placed, copies } = decision;
    for (const [replica, upstream] of (placed.places[0]?.upstreams ?? []).entries()) {
      const copy = copyFor(copies, upstream);
      effects.push(this.#effectOf(copy, { route, upstream, replica }, placed.placementKey));
    }
    if (placed.missingKeyLabels) effects.push(this.#count({ kind: "missing_key_labels", route }));
  }

  #effectOf(copy: CopyDecision, at: CopyAddress, placementKey: number): Effect {
    const { route, replica } = at;
    if (copy.kind === "dropped") return this.#count({ kind: "dropped", route, replica, reason: copy.reason });
    return { kind: "send", destination: this.#destination(at, placementKey), splices: copy.splices };
  }

  #droppedInAll(route: number, reason: DropReason): Effect[] {
    const { replicas } = this.#numbering[route] ?? NO_ROUTE;
    return Array.from({ length: replicas }, (_, replica) =>
      this.#count({ kind: "dropped", route, replica, reason }),
    );
  }

  /** Lanes keep the order of a series, so a series has one lane at an upstream; neighbouring tasks get different ones. */
  #destination({ route, upstream, replica }: CopyAddress, placementKey: number): number {
    const { first, lanes, replicas } = this.#numbering[route] ?? NO_ROUTE;
    return first + (upstream * replicas + replica) * lanes + (placementKey % lanes);
  }

  #selectedByNone(): Effect[] {
    return this.#numbering.map((_, route) => this.#count({ kind: "not_selected", route }));
  }

  #count(tally: Tally): Effect {
    return { kind: "count", tally: this.#tallies.numberOf(tally) };
  }
}
