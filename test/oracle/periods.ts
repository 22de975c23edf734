/**
 * The oracle of topology periods: every item by itself, through the route as it would be with the slots of its period alone.
 *
 * It knows nothing of epochs, sections or tables: requests are decoded with the reference decoder, and what one upstream has to
 * get of a series is what it would get of all of it, less the items of other periods.
 */
import { type CopyDecision, copyFor, Decider } from "../../src/route/decide.ts";
import type { RouteOptions } from "../../src/route/options.ts";
import { seriesRequest } from "../../src/wire/labelField.ts";
import { spliced } from "../../src/wire/splice.ts";
import { decodeReference, type ReferenceSeries } from "../reference/writeRequest.ts";
import { NO_RULES } from "../route/exampleRoute.ts";
import { LABEL_LIMITS } from "../route/routed.ts";
import { scanOfOne } from "../wire/scanned.ts";

/** What upstreams have to get, series by series, and what is dropped: by "route/upstream/replica" and "route/replica". */
export interface ExpectedParts {
  readonly sent: Map<string, ReferenceSeries[]>;
  /** Items, all kinds together. */
  readonly dropped: Map<string, number>;
  readonly notSelected: Map<string, number>;
}

export function itemCount({ samples, exemplars, histograms }: ReferenceSeries): number {
  return samples.length + exemplars.length + histograms.length;
}

/** @param requests of one series each */
export function expectedParts(
  requests: readonly Uint8Array[],
  routes: readonly RouteOptions[],
): ExpectedParts {
  const expected: ExpectedParts = { sent: new Map(), dropped: new Map(), notSelected: new Map() };
  for (const request of requests) for (const route of routes) addExpected(request, route, expected);
  return expected;
}

function addExpected(request: Uint8Array, route: RouteOptions, expected: ExpectedParts): void {
  const [whole] = decodeReference(request).series;
  if (whole === undefined) throw new Error("a request of no series");
  for (let replica = 0; replica < route.placement.replicas; replica++) {
    const periods = new Map<string, { periods: Set<number>; copy: CopyDecision }>();
    for (const period of route.topology.keys()) {
      const decided = decidedIn(request, route, period, replica);
      const known = periods.get(decided.upstream) ?? { periods: new Set(), copy: decided.copy };
      known.periods.add(period);
      periods.set(decided.upstream, known);
    }
    for (const [upstream, { periods: own, copy }] of periods) {
      const isOwn = (timestamp: string): boolean => own.has(periodOf(route, timestamp));
      const partly = partOf(whole, isOwn);
      const newest = own.has(route.topology.length - 1);
      // A series without items goes by the newest period.
      if (itemCount(whole) === 0 ? !newest : itemCount(partly) === 0) continue;
      if (upstream === "not selected") {
        if (replica === 0) add(expected.notSelected, route.name, itemCount(partly));
      } else if (copy.kind === "dropped") {
        add(expected.dropped, `${route.name}/${replica}/${copy.reason}`, itemCount(partly));
      } else {
        const scan = scanOfOne(request);
        const message = spliced(scan.bytes.subarray(scan.start, scan.end), ...copy.splices);
        const [sent] = decodeReference(seriesRequest(message)).series;
        if (sent === undefined) throw new Error("a copy of no series");
        const key = `${route.name}/${upstream}/${replica}`;
        expected.sent.set(key, [...(expected.sent.get(key) ?? []), partOf(sent, isOwn)]);
      }
    }
  }
}

const NOT_SELECTED: CopyDecision = { kind: "sent", splices: [] };

/** Where a copy of a series goes, by name, and how, in a route that always had the slots of one period. */
function decidedIn(
  request: Uint8Array,
  route: RouteOptions,
  period: number,
  replica: number,
): { readonly upstream: string; readonly copy: CopyDecision } {
  const decision = decidersOf(route)[period]?.decide(scanOfOne(request), [null]);
  const [decided] = decision?.kind === "offered" ? decision.routes : [];
  if (decided?.kind !== "placed") return { upstream: "not selected", copy: NOT_SELECTED };
  const upstream = decided.placed.places[0]?.upstreams[replica] ?? -1;
  return { upstream: route.upstreams[upstream]?.name ?? "", copy: copyFor(decided.copies, upstream) };
}

const deciders = new WeakMap<RouteOptions, readonly Decider[]>();

/** One for each period of a route. */
function decidersOf(route: RouteOptions): readonly Decider[] {
  const known = deciders.get(route);
  if (known !== undefined) return known;
  const made = route.topology.map(({ slots }) => {
    return new Decider(NO_RULES, [{ ...route, topology: [{ fromMs: null, slots }] }], LABEL_LIMITS);
  });
  deciders.set(route, made);
  return made;
}

function periodOf({ topology }: RouteOptions, timestamp: string): number {
  const starts = topology.map(({ fromMs }) => fromMs ?? Number.NEGATIVE_INFINITY);
  return starts.filter((startMs) => startMs <= Number(timestamp)).length - 1;
}

function partOf(series: ReferenceSeries, isOwn: (timestamp: string) => boolean): ReferenceSeries {
  return {
    ...series,
    samples: series.samples.filter(({ timestamp }) => isOwn(timestamp)),
    exemplars: series.exemplars.filter(({ timestamp }) => isOwn(timestamp)),
    histograms: series.histograms.filter(({ timestamp }) => isOwn(timestamp)),
  };
}

function add(counts: Map<string, number>, key: string, count: number): void {
  if (count > 0) counts.set(key, (counts.get(key) ?? 0) + count);
}
