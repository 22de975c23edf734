/**
 * The whole ledger as plain numbers, read in one go: what the equations say of a moment in which nothing moves.
 *
 * The names are those of the metrics. A line is there for all that was counted in the life of the process, also for what is
 * not configured any more.
 */
import { type Items, ItemTally, NOTHING, type UpstreamTally } from "./ledger.ts";

/** A copy of what a route selected, at one upstream; without upstream (""), what the route dropped before it had one. */
export interface CopyLine {
  readonly route: string;
  readonly upstream: string;
  /** Its replica, "0" for the first. */
  readonly copy: string;
  readonly routed: Items;
  readonly found_in_spool: Items;
  readonly delivered: Items;
  readonly refused: Items;
  readonly skipped_resend: Items;
  /** By reason. */
  readonly dropped: Readonly<Record<string, Items>>;
  readonly in_flight: Items;
  readonly spooled: Items;
  /** routed + found_in_spool, less all that follows them: anything but 0 is a bug. */
  readonly difference: Items;
}

/** What came while a route was configured, and what of it the route got. */
export interface RouteLine {
  readonly route: string;
  readonly received: Items;
  readonly refused_at_door: Items;
  readonly not_selected: Items;
  /** The first copy, at all upstreams and where it was dropped before it had one. */
  readonly routed: Items;
  /** received, less the other three: anything but 0 is a bug. */
  readonly difference: Items;
}

/** Entries of metadata, which is best effort: what was neither delivered nor lost is under way. */
export interface MetadataLine {
  readonly upstream: string;
  readonly forwarded: number;
  readonly delivered: number;
  readonly lost: number;
}

export interface LedgerReport {
  /** Whether all differences are 0. */
  readonly adds_up: boolean;
  readonly routes: readonly RouteLine[];
  readonly copies: readonly CopyLine[];
  /** What no route got, by reason. */
  readonly unrouted: Readonly<Record<string, Items>>;
  readonly metadata: {
    readonly received: number;
    /** By reason. */
    readonly dropped: Readonly<Record<string, number>>;
    readonly upstreams: readonly MetadataLine[];
  };
}

export function copyLine(tally: UpstreamTally): CopyLine {
  const inFlight = copyOf(tally.inFlight());
  const unsettled = {
    samples: tally.unsettled("samples"),
    histograms: tally.unsettled("histograms"),
    exemplars: tally.unsettled("exemplars"),
  };
  return {
    ...tally.labels,
    routed: copyOf(tally.routed),
    found_in_spool: copyOf(tally.foundInSpool),
    delivered: copyOf(tally.delivered),
    refused: copyOf(tally.refused),
    skipped_resend: copyOf(tally.skippedResend),
    dropped: byReason(tally),
    in_flight: inFlight,
    spooled: copyOf(tally.spooled),
    difference: less(unsettled, inFlight),
  };
}

/** @param received and refusedAtDoor while the route was configured */
export function routeLine(
  route: string,
  received: Items,
  refusedAtDoor: Items,
  notSelected: Items,
  copies: readonly CopyLine[],
): RouteLine {
  const routed = new ItemTally();
  for (const line of copies) if (line.route === route && line.copy === "0") routed.add(line.routed);
  return {
    route,
    received: copyOf(received),
    refused_at_door: copyOf(refusedAtDoor),
    not_selected: copyOf(notSelected),
    routed: copyOf(routed),
    difference: less(received, refusedAtDoor, notSelected, routed),
  };
}

export function byReason({ dropped }: Pick<UpstreamTally, "dropped">): Record<string, Items> {
  return Object.fromEntries([...dropped].map(([reason, items]) => [reason, copyOf(items)]));
}

export function isNothing({ samples, histograms, exemplars }: Items): boolean {
  return samples === NOTHING.samples && histograms === NOTHING.histograms && exemplars === NOTHING.exemplars;
}

/** Plain numbers, which do not change any more. */
function copyOf({ samples, histograms, exemplars }: Items): Items {
  return { samples, histograms, exemplars };
}

function less(whole: Items, ...parts: readonly Items[]): Items {
  const rest = new ItemTally();
  rest.add(whole);
  for (const part of parts) rest.take(part);
  return copyOf(rest);
}
