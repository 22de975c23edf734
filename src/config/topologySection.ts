/** `routes[].upstreams`, or `routes[].topology`: the upstreams of a route, of all time or period by period. */
import { listOf, someOf } from "./lists.ts";
import { formatMoment } from "../moment.ts";
import { moment } from "./moment.ts";
import type { Place } from "./problem.ts";
import { sectionOf } from "./section.ts";
import type { Reader, Section } from "./section.ts";
import type { ListedUpstream, LiveUpstream } from "./upstreamSection.ts";

/** Each series is placed in all periods when it is decided, and what differs is kept with it. */
const MAX_PERIODS = 32;

/** Upstreams that are in force from a moment on. */
export interface ListedPeriod {
  /** Milliseconds since the epoch; null for the first. */
  readonly fromMs: number | null;
  /** By slot. */
  readonly upstreams: readonly ListedUpstream[];
  /** Where the list of them stands. */
  readonly place: Place;
}

/** Gives a reader of the upstreams of one list, whose names must differ. */
export type ListReader = () => Reader<ListedUpstream>;

/** @returns one period or more; null when something in one of them is wrong: the others would have other numbers */
export function readPeriods(route: Section, readerForList: ListReader): readonly ListedPeriod[] | null {
  const topology = route.node("topology");
  if (topology === null) {
    const upstreams = readUpstreams(route, readerForList());
    return upstreams === null ? null : [{ fromMs: null, upstreams, place: route.placeOf("upstreams") }];
  }
  if (route.has("upstreams")) {
    route.problems.error(topology.place, "want either upstreams or topology; got both");
  }
  if (topology.kind === "list" && topology.items.length > MAX_PERIODS) {
    const message = `want at most ${MAX_PERIODS} periods, since every series is placed in each of them; got ${topology.items.length}`;
    route.problems.error(topology.place, message);
    return null;
  }
  const reader = new PeriodReader(readerForList);
  const periods = someOf(listOf(reader.read, "periods"), "periods")(topology, route.problems);
  return topology.kind === "list" && periods?.length === topology.items.length ? periods : null;
}

/** null when one of them is wrong. */
function readUpstreams(
  section: Section,
  readUpstream: Reader<ListedUpstream>,
): readonly ListedUpstream[] | null {
  const list = someOf(listOf(readUpstream, "upstreams"), "upstreams");
  const upstreams = section.required("upstreams", list, "a list of upstreams");
  const written = section.node("upstreams");
  return written?.kind === "list" && written.items.length === upstreams?.length ? upstreams : null;
}

/** Reads the periods of one route, one after another. */
class PeriodReader {
  readonly #readerForList: ListReader;
  #isFirst = true;
  /** The latest of those that were read. */
  #latest: { readonly fromMs: number; readonly line: number } | null = null;

  constructor(readerForList: ListReader) {
    this.#readerForList = readerForList;
  }

  readonly read: Reader<ListedPeriod> = (node, problems) => {
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    return sectionOf((period) => this.#period(period, isFirst))(node, problems);
  };

  #period(period: Section, isFirst: boolean): ListedPeriod | null {
    const fromMs = isFirst ? null : this.#readFrom(period);
    if (isFirst && period.has("from")) {
      const message =
        "the first period has none: it is in force for all that is older than the second; leave it out";
      period.problems.error(period.placeOf("from"), message);
    }
    const upstreams = readUpstreams(period, this.#readerForList());
    if (upstreams === null || (fromMs === null && !isFirst)) return null;
    return { fromMs, upstreams, place: period.placeOf("upstreams") };
  }

  #readFrom(period: Section): number | null {
    const want = "the time from which on these upstreams are in force, as 2026-12-01T00:00:00Z";
    const fromMs = period.required("from", moment, want);
    if (fromMs === null) return null;
    const latest = this.#latest;
    const place = period.placeOf("from");
    if (latest !== null && fromMs <= latest.fromMs) {
      const message = `want a time behind ${formatMoment(latest.fromMs)}, that of the period at line ${latest.line}; got ${formatMoment(fromMs)}`;
      period.problems.error(place, message);
      return null;
    }
    this.#latest = { fromMs, line: place.line };
    return fromMs;
  }
}

/** Every upstream that is no tombstone in some period, in the order in which they first appear. */
export function liveUpstreams(periods: readonly ListedPeriod[]): LiveUpstream[] {
  const live = new Map<string, LiveUpstream>();
  for (const { slot, live: found } of periods.flatMap(({ upstreams }) => upstreams)) {
    if (found !== null && !live.has(slot.name)) live.set(slot.name, found);
  }
  return [...live.values()];
}
