/**
 * Routes, their upstreams' lanes and what is counted, by the numbers that the engine knows them by.
 *
 * An upstream gets first copies of some series and further copies of others. Each replica has destinations of its own, so a
 * parcel holds copies of one replica and is counted with it, and the ledger of every (route, replica) adds up exactly. Parcels of
 * several replicas still share lanes, and so requests: they meet in the upstream's sender.
 */
import type { Effect, Section } from "../engine/engine.ts";
import {
  type CopyDecision,
  copyFor,
  type Decision,
  type PlacedDecision,
  type RouteDecision,
} from "./decide.ts";
import type { EpochItems } from "./epochItems.ts";
import { Epochs } from "./epochs.ts";
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
  /** In which decisions may differ. */
  readonly epochs: Epochs;
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
    this.epochs = new Epochs(routes.map(({ route }) => route.topology));
    this.#tallies = new Tallies(routes.map(({ route }) => route.placement.replicas));
    this.tallies = this.#tallies.all;
  }

  /** What the engine does with a series that is decided so: a section for each run of epochs in which that is the same. */
  sections(decision: Decision): readonly Section[] {
    const sections = [{ firstEpoch: 0, effects: this.#effects(decision, 0) }];
    for (let epoch = 1; epoch <= this.epochs.bounds.length; epoch++) {
      if (!this.#changes(decision, epoch)) continue;
      sections.push({ firstEpoch: epoch, effects: this.#effects(decision, epoch) });
    }
    return sections;
  }

  /**
   * The same for a series that has items of several epochs, and more than one section: every upstream gets the series with the
   * items of the epochs in which it is its place, whole if these are all. So a series may count as several, one for each part.
   */
  splitEffects(decision: Decision, series: EpochItems): readonly Effect[] {
    const effects: Effect[] = [];
    const routes = decision.kind === "offered" ? decision.routes : [];
    for (const [route, each] of routes.entries()) {
      if (each.kind === "placed") this.#addParts(effects, each, route, series);
      else this.#addEffects(effects, each, route, 0);
    }
    return effects;
  }

  /** Whether a series has another place in an epoch than in the one before. */
  #changes(decision: Decision, epoch: number): boolean {
    if (decision.kind !== "offered") return false;
    return decision.routes.some((each, route) => {
      if (each.kind !== "placed") return false;
      const before = this.#placeIn(each, route, epoch - 1);
      return this.#placeIn(each, route, epoch).some((upstream, replica) => upstream !== before[replica]);
    });
  }

  /** The upstreams, by replica. */
  #placeIn({ placed }: PlacedDecision, route: number, epoch: number): readonly number[] {
    return placed.places[this.epochs.periodOf(route, epoch)]?.upstreams ?? [];
  }

  #effects(decision: Decision, epoch: number): readonly Effect[] {
    if (decision.kind === "refused") return NO_EFFECT;
    if (decision.kind === "dropped") {
      return [this.#count({ kind: "unrouted", reason: decision.reason }), ...this.#selectedByNone()];
    }
    const effects: Effect[] = [];
    decision.routes.forEach((each, route) => {
      this.#addEffects(effects, each, route, epoch);
    });
    if (decision.routes.every(({ kind }) => kind === "not_selected")) {
      effects.push(this.#count({ kind: "unrouted", reason: "no_route" }));
    }
    return effects;
  }

  #addEffects(effects: Effect[], decision: RouteDecision, route: number, epoch: number): void {
    if (decision.kind === "not_selected") {
      effects.push(this.#count({ kind: "not_selected", route }));
      return;
    }
    if (decision.kind === "dropped") {
      effects.push(...this.#droppedInAll(route, decision.reason));
      return;
    }
    const { placed, copies } = decision;
    for (const [replica, upstream] of this.#placeIn(decision, route, epoch).entries()) {
      const copy = copyFor(copies, upstream);
      effects.push(this.#effectOf(copy, { route, upstream, replica }, placed.placementKey));
    }
    if (placed.missingKeyLabels) effects.push(this.#count({ kind: "missing_key_labels", route }));
  }

  #addParts(effects: Effect[], decision: PlacedDecision, route: number, series: EpochItems): void {
    const { placed, copies } = decision;
    const { replicas } = this.#numbering[route] ?? NO_ROUTE;
    for (let replica = 0; replica < replicas; replica++) {
      const byUpstream = new Map<number, Set<number>>();
      for (const epoch of series.occurring) {
        const upstream = this.#placeIn(decision, route, epoch)[replica] ?? -1;
        byUpstream.set(upstream, (byUpstream.get(upstream) ?? new Set()).add(epoch));
      }
      for (const [upstream, epochs] of byUpstream) {
        const copy = copyFor(copies, upstream);
        const effect = this.#effectOf(copy, { route, upstream, replica }, placed.placementKey);
        effects.push(byUpstream.size === 1 ? effect : series.part(effect, epochs));
      }
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
