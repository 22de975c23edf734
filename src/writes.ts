/**
 * A write request's journey through the gateway: routed by the setup in force, delivered, counted and answered.
 *
 * It is counted here, since the stages know no metrics.
 */
import { setImmediate } from "node:timers";
import type { Logger } from "pino";
import { now } from "./clock.ts";
import type { ParcelOutcome } from "./deliver/outcome.ts";
import { AcceptedParcels } from "./deliver/resends.ts";
import type { Sender } from "./deliver/sender.ts";
import { composeAnswer, type WriteAnswer, type WriteReport } from "./receive/answer.ts";
import type { RequestHeaders } from "./receive/server.ts";
import type { Consignment, RoutedRequest, SeriesCounts } from "./route/requestParts.ts";
import type { Tally } from "./route/tally.ts";
import type { RequestTenants } from "./route/tenants.ts";
import type { Setup } from "./setup.ts";
import type { Metrics } from "./telemetry/metrics.ts";
import type { Rarely } from "./telemetry/rarely.ts";
import type { Turns } from "./turns.ts";
import type { Destination } from "./upstreams.ts";
import type { Parcel } from "./wire/parcel.ts";

/** Grows with whatever reaches the gateway: requests, their bodies, and upstreams' answers. */
export interface Arrivals {
  count: number;
}

/** What writes share with the rest of the gateway. */
export interface WriteTools {
  readonly arrivals: Arrivals;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly rarely: Rarely;
  readonly turns: Turns;
}

/** A request on its way, with the setup that has routed it: another may be in force by the time that it is answered. */
interface Write {
  readonly setup: Setup;
  readonly tenants: RequestTenants;
  readonly routed: RoutedRequest;
}

export class Writes {
  readonly #log: Logger;
  readonly #metrics: Metrics;
  readonly #rarely: Rarely;
  readonly #turns: Turns;
  readonly #arrivals: Arrivals;
  #setup: Setup;
  /** Senders that got parcels which may wait for company. */
  readonly #unflushed = new Set<Sender>();
  #watchesForIdle = false;

  constructor(setup: Setup, { arrivals, log, metrics, rarely, turns }: WriteTools) {
    this.#setup = setup;
    this.#arrivals = arrivals;
    this.#log = log;
    this.#metrics = metrics;
    this.#rarely = rarely;
    this.#turns = turns;
  }

  /** What routes requests now. */
  get setup(): Setup {
    return this.#setup;
  }

  /**
   * Has requests routed by another setup, from the next one on.
   *
   * @param next given the one before; called when no request is being routed, and before the next one is
   */
  replaceSetup(next: (before: Setup) => Setup): Promise<void> {
    return this.#turns.between(() => {
      this.#setup = next(this.#setup);
    });
  }

  /** See WriteHandler. Routes first and delivers then, so that nothing holds the request while its parts wait. */
  write(body: readonly Uint8Array[], headers: RequestHeaders, onRouted: () => void): Promise<WriteAnswer> {
    return this.#route(body, headers).then((write) => {
      onRouted();
      return this.#deliverAll(write);
    });
  }

  #route(body: readonly Uint8Array[], headers: RequestHeaders): Promise<Write> {
    return this.#turns.run(() => routeBy(this.#setup, body, headers));
  }

  async #deliverAll(write: Write): Promise<WriteAnswer> {
    const { setup, tenants, routed } = write;
    this.#countReceived(write);
    this.#forwardMetadata(write);
    const key = JSON.stringify([routed.blockHash, tenants.byRoute.map((tenant) => tenant?.header)]);
    const delivered = this.#deliver(write, setup.resends.take(key));
    this.#flushWhenIdle();
    const { failed, accepted } = await delivered;
    const report = reportOf(routed, failed);
    this.#logProblems(report);
    const answer = composeAnswer(report, Math.random());
    if (answer.status === 503) setup.resends.remember(key, accepted);
    return answer;
  }

  /**
   * Delivers what was not accepted before.
   *
   * @returns when all parcels have an outcome
   */
  #deliver({ setup, tenants, routed }: Write, acceptedBefore: AcceptedParcels): Promise<Delivered> {
    const { consignments } = routed;
    const started = now();
    return new Promise((resolve) => {
      const failed: NamedOutcome[] = [];
      const accepted = new AcceptedParcels();
      let open = consignments.length;
      if (open === 0) resolve({ failed, accepted });
      for (const [place, consignment] of consignments.entries()) {
        const { route, upstream, lane } = consignment;
        const destination = setup.destinations[route]?.[upstream];
        if (destination === undefined) throw new Error(`bug: no upstream ${upstream}`);
        const indexes = countRouted(destination, consignment, place, acceptedBefore, accepted);
        const parcels = indexes.flatMap((index) => consignment.parcels[index] ?? []);
        this.#unflushed.add(destination.sender);
        destination.sender.deliver(
          lane,
          parcels,
          tenants.byRoute[route]?.header ?? null,
          started + destination.deliveryDeadlineMs,
          (outcomes) => {
            if (outcomes.some(isOfRetiredPeriod)) {
              this.#warnOfRetired(setup.config.routes[route]?.route.name ?? "", destination.name, parcels);
            }
            for (const [number, outcome] of outcomes.entries()) {
              if (outcome.kind === "refused" || outcome.kind === "undelivered") {
                failed.push({ upstream: destination.name, outcome });
              } else accepted.add(place, indexes[number] ?? 0);
            }
            open -= 1;
            if (open === 0) resolve({ failed, accepted });
          },
          (number) => {
            accepted.add(place, indexes[number] ?? 0);
          },
        );
      }
    });
  }

  /**
   * Lets parcels go that wait for company, as soon as a turn of the event loop brings nothing new: while something arrives,
   * more parcels for the same upstreams are likely to come, and the time is not lost. It ends at batch_send_deadline.
   */
  #flushWhenIdle(): void {
    if (this.#watchesForIdle) return;
    this.#watchesForIdle = true;
    let seen = this.#arrivals.count;
    const look = (): void => {
      if (this.#turns.waiting > 0 || seen !== this.#arrivals.count) {
        seen = this.#arrivals.count;
        setImmediate(look);
        return;
      }
      this.#watchesForIdle = false;
      for (const sender of this.#unflushed) sender.flush();
      this.#unflushed.clear();
    };
    setImmediate(look);
  }

  /**
   * Best effort: the answer to the sender neither waits for it nor depends on it. Metadata belongs to no route, so an upstream
   * of several gets it once, unless their requests to it differ: by the last of its senders, unless its periods are over there.
   */
  #forwardMetadata({ setup, tenants, routed }: Write): void {
    if (routed.metadata.length === 0) return;
    const once = new Map<
      string,
      { readonly sender: Sender; readonly name: string; readonly tenant: string | null }
    >();
    for (const ofRoute of setup.destinations) {
      for (const { name, sender, identity, route, passesTenant } of ofRoute) {
        const tenant = passesTenant ? (tenants.byRoute[route]?.header ?? null) : null;
        const header = setup.config.routes[route]?.route.tenant.header;
        const key = tenant === null ? identity : JSON.stringify([identity, header, tenant]);
        if (!sender.isPeriodRetired || !once.has(key)) once.set(key, { sender, name, tenant });
      }
    }
    for (const { sender, name, tenant } of once.values()) {
      for (const { entries, body } of routed.metadata) {
        this.#metrics.metadataForwarded.inc({ upstream: name }, entries);
        void sender.deliverMetadata(body, tenant).then((accepted) => {
          (accepted ? this.#metrics.metadataDelivered : this.#metrics.metadataLost).inc(
            { upstream: name },
            entries,
          );
        });
      }
    }
  }

  #countReceived({ setup, routed }: Write): void {
    this.#metrics.seriesReceived.inc(routed.received.series);
    this.#metrics.received.add({}, routed.received);
    this.#metrics.metadataReceived.inc({}, routed.metadataEntries);
    this.#metrics.metadataDropped.inc({ reason: "invalid_utf8" }, routed.metadataDropped);
    this.#metrics.metadataDropped.inc({ reason: "too_many" }, routed.metadataBeyondLimit);
    this.#metrics.unknownFields.inc(routed.unknownFields);
    for (const [reason, counts] of routed.refused) {
      this.#metrics.seriesRefused.inc({ reason }, counts.series);
      this.#metrics.refusedAtDoor.add({ reason }, counts);
    }
    for (const { route } of setup.config.routes) {
      this.#metrics.offered(route.name, routed.received, routed.refused.values());
    }
    for (const { tally, counts } of routed.tallies) this.#countTally(setup, tally, counts);
  }

  #countTally(setup: Setup, tally: Tally, counts: SeriesCounts): void {
    if (tally.kind === "unrouted") {
      this.#metrics.unrouted(tally.reason, counts);
      return;
    }
    const route = setup.config.routes[tally.route]?.route.name ?? "";
    switch (tally.kind) {
      case "not_selected":
        this.#metrics.notSelected.add({ route }, counts);
        return;
      case "dropped":
        this.#metrics.dropped(route, tally.replica, tally.reason, counts);
        // Rules of an upstream are there to drop; the others have made what cannot be sent.
        if (tally.reason !== "write_relabel_configs") this.#warnOfDrop(route, tally.reason, counts.series);
        return;
      case "missing_key_labels":
        this.#metrics.missingKeyLabels.inc({ route }, counts.series);
        this.#rarely.say(`missing key labels of ${route}`, (heldBack) => {
          const message = `${counts.series} series have none of the labels that the route keys by`;
          this.#log.warn({ route, series: counts.series, heldBack }, message);
        });
    }
  }

  #warnOfDrop(route: string, reason: string, series: number): void {
    this.#rarely.say(`dropped ${reason} of ${route}`, (heldBack) => {
      const message = `${series} series are dropped: rules of the route, or of its upstreams, leave them unfit to be sent (${reason})`;
      this.#log.warn({ route, reason, series, heldBack }, message);
    });
  }

  #warnOfRetired(route: string, upstream: string, parcels: readonly Parcel[]): void {
    const series = parcels.reduce((sum, parcel) => sum + parcel.series, 0);
    this.#rarely.say(`retired ${upstream} of ${route}`, (heldBack) => {
      const message = `items of ${series} series are dropped: they belong to an upstream of past periods, and come later than retire_after (period_retired)`;
      this.#log.warn({ route, upstream, series, heldBack }, message);
    });
  }

  #logProblems(report: WriteReport): void {
    for (const { reason, series } of report.refusedExamples) {
      this.#rarely.say(`refused ${reason}`, (heldBack) => {
        this.#log.warn({ reason, series, heldBack }, "a series is refused, its sender has been told");
      });
    }
  }
}

function isOfRetiredPeriod(outcome: ParcelOutcome): boolean {
  return outcome.kind === "dropped" && outcome.reason === "period_retired";
}

function* routeBy(
  setup: Setup,
  body: readonly Uint8Array[],
  headers: RequestHeaders,
): Generator<undefined, Write, undefined> {
  const tenants = setup.tenants.of((name) => headers[name]);
  return { setup, tenants, routed: yield* setup.router.route(body, tenants) };
}

/**
 * Counts a consignment as routed, and what of it was accepted before as skipped.
 *
 * @returns the indexes of the parcels that are to be delivered
 */
function countRouted(
  { metrics }: Destination,
  { replica, parcels }: Consignment,
  place: number,
  acceptedBefore: AcceptedParcels,
  accepted: AcceptedParcels,
): readonly number[] {
  const indexes: number[] = [];
  for (const [index, { series, items }] of parcels.entries()) {
    metrics.routed(replica, series, items);
    if (!acceptedBefore.has(place, index)) {
      indexes.push(index);
      continue;
    }
    accepted.add(place, index);
    metrics.settled(replica, "skipped_resend", "in_flight", items);
  }
  return indexes;
}

interface NamedOutcome {
  readonly upstream: string;
  readonly outcome: Extract<ParcelOutcome, { kind: "refused" | "undelivered" }>;
}

interface Delivered {
  /** What was not accepted. */
  readonly failed: readonly NamedOutcome[];
  readonly accepted: AcceptedParcels;
}

function reportOf(routed: RoutedRequest, outcomes: readonly NamedOutcome[]): WriteReport {
  let refusedSeries = 0;
  for (const { series } of routed.refused.values()) refusedSeries += series;
  return {
    series: routed.received.series,
    refusedSeries,
    refusedExamples: routed.refusedExamples,
    undelivered: outcomes.flatMap(({ upstream, outcome }) =>
      outcome.kind === "undelivered" ? [{ upstream, ...outcome }] : [],
    ),
    refusals: outcomes.flatMap(({ upstream, outcome }) =>
      outcome.kind === "refused" ? [{ upstream, ...outcome }] : [],
    ),
  };
}
