/** A route before and after a change: what differs, and the counts of what becomes of its copies, era by era. */
import type { RouteDecision } from "../route/decide.ts";
import type { NamedSlot } from "../hash/slots.ts";
import type { Period, RouteOptions } from "../route/options.ts";
import { type Copies, copiesOf, Movement } from "./copies.ts";
import { type Era, eraAt, erasOf } from "./eras.ts";
import type { PlanConfig, PlanRoute } from "./planConfig.ts";

/** A route in its configuration. */
export interface RouteSide {
  readonly config: PlanConfig;
  readonly index: number;
  readonly planned: PlanRoute;
}

const NOWHERE: Copies = { upstreams: [], task: "" };

export class RoutePair {
  readonly name: string;
  readonly before: RouteSide | null;
  readonly after: RouteSide | null;
  readonly eras: readonly Era[];
  /** By era. */
  readonly movements: readonly Movement[];
  /** Whether both sides take the same series, make the same keys of them and place these by the same method. */
  readonly keysAlike: boolean;

  constructor(before: RouteSide | null, after: RouteSide | null) {
    this.before = before;
    this.after = after;
    this.name = (after ?? before)?.planned.route.name ?? "";
    this.eras = erasOf(topologyOf(before), topologyOf(after));
    this.movements = this.eras.map(() => new Movement());
    this.keysAlike =
      before !== null &&
      after !== null &&
      withoutTopology(before, upstreamNames(after)) === withoutTopology(after, upstreamNames(before));
  }

  /** Whether nothing that is placed differs in an era, so that nothing can move. */
  isSameIn({ before, after }: Era): boolean {
    return (
      this.keysAlike &&
      placingSlots(slotsOf(this.before, before)) === placingSlots(slotsOf(this.after, after))
    );
  }

  get isSame(): boolean {
    return this.eras.every((era) => this.isSameIn(era));
  }

  /** The era that figures are given for. @param atMs null for the newest */
  mainEra(atMs: number | null): number {
    return atMs === null ? this.eras.length - 1 : eraAt(this.eras, atMs);
  }

  countDecided(before: readonly RouteDecision[], after: readonly RouteDecision[]): void {
    for (const [number, era] of this.eras.entries()) {
      const was = decidedCopies(this.before, before, era.before);
      this.movements[number]?.add(was, decidedCopies(this.after, after, era.after));
    }
  }

  /** @param before and after: by period; empty without the route */
  countPlaced(before: readonly Copies[], after: readonly Copies[]): void {
    for (const [number, era] of this.eras.entries()) {
      this.movements[number]?.add(before[era.before] ?? NOWHERE, after[era.after] ?? NOWHERE);
    }
  }
}

function decidedCopies(side: RouteSide | null, decisions: readonly RouteDecision[], period: number): Copies {
  return side === null ? NOWHERE : copiesOf(side.planned.route, decisions[side.index], period);
}

function topologyOf(side: RouteSide | null): readonly Period[] {
  return side?.planned.route.topology ?? [];
}

export function slotsOf(side: RouteSide | null, period: number): readonly NamedSlot[] {
  return topologyOf(side)[period]?.slots ?? [];
}

function upstreamNames({ planned: { route } }: RouteSide): readonly string[] {
  return route.upstreams.map(({ name }) => name);
}

/**
 * All that decides which series a route gets and what keys they have: of the routes before it, what those leave to it; of its
 * upstreams, the rules of those that are on the other side as well.
 */
function withoutTopology(
  { config, index, planned: { route } }: RouteSide,
  others: readonly string[],
): string {
  const upstreams = [...route.upstreams].sort((a, b) => (a.name < b.name ? -1 : 1));
  const earlier = config.routes.slice(0, index).map(({ route: other }) => other);
  return JSON.stringify([
    config.relabel,
    config.limits.maxLabels,
    config.limits.maxLabelNameBytes,
    config.limits.maxLabelValueBytes,
    earlier.filter(({ final }) => final).map(({ relabel, tenant }) => [relabel, tenant]),
    placing(route),
    upstreams.filter(({ name, writeRelabel }) => writeRelabel.rules.length > 0 && others.includes(name)),
  ]);
}

function placing({ relabel, tenant, keyFormat, tasks, placement }: RouteOptions): unknown {
  return [relabel, tenant.header, tenant.label, keyFormat, tasks, placement];
}

/** What of slots says which keys they get. */
function placingSlots(slots: readonly NamedSlot[]): string {
  return JSON.stringify(slots.map(({ name, weight, removed }) => [name, weight ?? 1, removed === true]));
}

/** Pairs by name, in the order of the new configuration, then what is gone. */
export function routePairs(before: PlanConfig, after: PlanConfig): readonly RoutePair[] {
  const old = new Map(sidesOf(before).map((side) => [side.planned.route.name, side]));
  const pairs = sidesOf(after).map((side) => {
    const { name } = side.planned.route;
    const pair = new RoutePair(old.get(name) ?? null, side);
    old.delete(name);
    return pair;
  });
  return [...pairs, ...[...old.values()].map((side) => new RoutePair(side, null))];
}

function sidesOf(config: PlanConfig): RouteSide[] {
  return config.routes.map((planned, index) => ({ config, index, planned }));
}
