/** The copies that a route makes of a series, and what becomes of them by a change. */
import { copyFor, type RouteDecision } from "../route/decide.ts";
import { type Estimate, estimateShare } from "../route/estimate.ts";
import type { RouteOptions } from "../route/options.ts";
import type { Share } from "./report.ts";

/** Where a series goes. */
export interface Copies {
  /** Names of its upstreams, by replica. */
  readonly upstreams: readonly string[];
  /** The task label that they get. */
  readonly task: string;
}

const NO_NAMES: readonly string[] = [];
const NO_COPIES: Copies = { upstreams: NO_NAMES, task: "" };

/** @param period the route's, by its number */
export function copiesOf(route: RouteOptions, decision: RouteDecision | undefined, period: number): Copies {
  if (decision?.kind !== "placed") return NO_COPIES;
  const { placed, copies } = decision;
  const sent = (placed.places[period]?.upstreams ?? []).filter(
    (upstream) => copyFor(copies, upstream).kind === "sent",
  );
  return {
    upstreams: sent.map((upstream) => route.upstreams[upstream]?.name ?? ""),
    task: taskText(route, placed.task),
  };
}

/** @param task null in a route without tasks */
export function taskText({ tasks }: RouteOptions, task: number | null): string {
  return tasks === null || task === null ? "" : `${tasks.label}=${task}`;
}

/** Counts what becomes of series' copies. */
export class Movement {
  /** Series that had a copy before, and that have one after. */
  seriesBefore = 0;
  seriesAfter = 0;
  /** Of series: any of its copies changed; all of them ceased; it had none before. */
  seriesChanged = 0;
  seriesCeased = 0;
  seriesBegun = 0;
  #copiesBefore = 0;
  #copiesAfter = 0;
  #moved = 0;
  #retasked = 0;
  #changed = 0;
  #ceased = 0;
  #begun = 0;
  readonly #before = new Map<string, number>();
  readonly #after = new Map<string, number>();
  readonly #fromTo = new Map<string, Map<string | null, number>>();

  /** A plan of made-up keys adds a million: so nothing is made here for a series that stays, or has one copy. */
  add(before: Copies, after: Copies): void {
    const [had, has] = [before.upstreams, after.upstreams];
    this.#countSeries(had.length > 0, has.length > 0);
    this.#copiesBefore += had.length;
    this.#copiesAfter += has.length;
    for (const name of had) count(this.#before, name);
    for (const name of has) count(this.#after, name);
    const left = without(had, has);
    const come = without(has, had);
    for (const name of had) if (!left.includes(name)) this.#pair(name, name);
    for (let index = 0; index < left.length; index++) this.#pair(left[index] ?? "", come[index] ?? null);
    this.#moved += left.length;
    this.#ceased += Math.max(0, left.length - come.length);
    this.#begun += Math.max(0, come.length - left.length);
    const isRetasked = has.length > 0 && before.task !== after.task;
    const changed = isRetasked ? had.length : left.length;
    this.#retasked += isRetasked ? Math.min(had.length, has.length) : 0;
    this.#changed += changed;
    if (changed > 0) this.seriesChanged += 1;
  }

  #countSeries(had: boolean, has: boolean): void {
    this.seriesBefore += had ? 1 : 0;
    this.seriesAfter += has ? 1 : 0;
    this.seriesCeased += had && !has ? 1 : 0;
    this.seriesBegun += has && !had ? 1 : 0;
  }

  #pair(from: string, to: string | null): void {
    const row = this.#fromTo.get(from) ?? new Map<string | null, number>();
    this.#fromTo.set(from, row);
    count(row, to);
  }

  /** @param fraction of all series that were counted */
  moved(fraction: number): Share {
    return this.#ofBefore(this.#moved, fraction);
  }

  retasked(fraction: number): Share {
    return this.#ofBefore(this.#retasked, fraction);
  }

  changed(fraction: number): Share {
    return this.#ofBefore(this.#changed, fraction);
  }

  ceased(fraction: number): Share {
    return this.#ofBefore(this.#ceased, fraction);
  }

  begun(fraction: number): Share {
    return shareOf(this.#begun, this.#copiesAfter, this.seriesAfter, fraction);
  }

  copiesBefore(upstream: string, fraction: number): Share {
    return this.#ofBefore(this.#before.get(upstream) ?? 0, fraction);
  }

  copiesAfter(upstream: string, fraction: number): Share {
    return shareOf(this.#after.get(upstream) ?? 0, this.#copiesAfter, this.seriesAfter, fraction);
  }

  /** All pairs that occur, those with the largest shares first. */
  fromTo(fraction: number): { from: string; to: string | null; share: Share }[] {
    const pairs = [...this.#fromTo].flatMap(([from, row]) =>
      [...row].map(([to, copies]) => ({ from, to, share: this.#ofBefore(copies, fraction) })),
    );
    return pairs.sort((a, b) => b.share.share - a.share.share);
  }

  #ofBefore(copies: number, fraction: number): Share {
    return shareOf(copies, this.#copiesBefore, this.seriesBefore, fraction);
  }
}

/** Those names that are not among others. */
function without(names: readonly string[], others: readonly string[]): readonly string[] {
  if (names.length === 1 && others.length === 1) return names[0] === others[0] ? NO_NAMES : names;
  return names.filter((name) => !others.includes(name));
}

function count<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Series are what was sampled, so the error is that of so many of them, however many copies each has. */
function shareOf(having: number, copies: number, series: number, fraction: number): Share {
  return asShare(estimateShare((having * series) / Math.max(1, copies), series, fraction));
}

export function asShare({ value, standardError }: Estimate): Share {
  return { share: value, standard_error: standardError };
}
