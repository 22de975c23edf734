/**
 * The ledger: what became of all items that came in, per copy of a series, in plain numbers that add up.
 *
 * Per copy at each (route, upstream):
 *
 *     routed + found_in_spool = delivered + refused + skipped_resend + dropped + in_flight + spooled
 *
 * All but in_flight are counted when something happens; in_flight is what lanes hold when somebody looks. So the difference of
 * the two sides is 0 only if no parcel was forgotten, or counted twice.
 */

/** Counts of what a request or a parcel holds. */
export interface Items {
  readonly samples: number;
  readonly histograms: number;
  readonly exemplars: number;
}

export const NOTHING: Items = { samples: 0, histograms: 0, exemplars: 0 };

/** Items that add up: cheaper than a labelled counter's inc(). */
export class ItemTally implements Items {
  samples = 0;
  histograms = 0;
  exemplars = 0;

  add({ samples, histograms, exemplars }: Items): void {
    this.samples += samples;
    this.histograms += histograms;
    this.exemplars += exemplars;
  }

  take({ samples, histograms, exemplars }: Items): void {
    this.samples -= samples;
    this.histograms -= histograms;
    this.exemplars -= exemplars;
  }
}

/** What is counted of copies of one replica at one (route, upstream); without upstream, of those that their route dropped. */
export class UpstreamTally {
  readonly labels: { readonly route: string; readonly upstream: string; readonly copy: string };
  series = 0;
  readonly routed = new ItemTally();
  readonly foundInSpool = new ItemTally();
  readonly delivered = new ItemTally();
  readonly refused = new ItemTally();
  readonly spooled = new ItemTally();
  readonly skippedResend = new ItemTally();
  /** By reason. */
  readonly #dropped = new Map<string, ItemTally>();

  /** Looks at what is in memory now. */
  readonly inFlight: () => Items;

  /** @param copy its replica; empty for what no route got */
  constructor(route: string, upstream: string, copy: string, inFlight = (): Items => NOTHING) {
    this.labels = { route, upstream, copy };
    this.inFlight = inFlight;
  }

  get dropped(): ReadonlyMap<string, ItemTally> {
    return this.#dropped;
  }

  /** Where what is dropped for a reason is added up. */
  droppedFor(reason: string): ItemTally {
    const tally = this.#dropped.get(reason) ?? new ItemTally();
    this.#dropped.set(reason, tally);
    return tally;
  }

  /** @param settlement delivered, refused, spooled, skipped_resend, or the reason of a drop */
  endOf(settlement: string): ItemTally {
    switch (settlement) {
      case "delivered":
      case "refused":
      case "spooled":
        return this[settlement];
      case "skipped_resend":
        return this.skippedResend;
      default:
        return this.droppedFor(settlement);
    }
  }

  /** What came and has no end by these counts; all of it should be in memory. */
  unsettled(item: keyof Items): number {
    let gone = this.delivered[item] + this.refused[item] + this.spooled[item] + this.skippedResend[item];
    for (const dropped of this.#dropped.values()) gone += dropped[item];
    return this.routed[item] + this.foundInSpool[item] - gone;
  }
}

/** The tallies of all copies at one (route, upstream). */
export class UpstreamTallies {
  /** Looks at what is in memory of a replica now. */
  inFlight: (replica: number) => Items = () => NOTHING;
  readonly #all: UpstreamTally[] = [];
  readonly #route: string;
  readonly #upstream: string;
  readonly #dropReasons: readonly string[];
  readonly #onNew: (tally: UpstreamTally) => void;

  /**
   * @param replicas    of which there are tallies from the start
   * @param dropReasons which are there from the start
   * @param onNew       told of every tally
   */
  constructor(
    route: string,
    upstream: string,
    replicas: number,
    dropReasons: readonly string[],
    onNew: (tally: UpstreamTally) => void,
  ) {
    this.#route = route;
    this.#upstream = upstream;
    this.#dropReasons = dropReasons;
    this.#onNew = onNew;
    this.haveReplicas(replicas);
  }

  /** Has tallies of so many replicas; those that there are already stay. */
  haveReplicas(replicas: number): void {
    for (let replica = 0; replica < replicas; replica++) this.of(replica);
  }

  /** Of a replica; the spool can have some that are not configured any more. */
  of(replica: number): UpstreamTally {
    const known = this.#all[replica];
    if (known !== undefined) return known;
    const inFlight = (): Items => this.inFlight(replica);
    const tally = new UpstreamTally(this.#route, this.#upstream, String(replica), inFlight);
    for (const reason of this.#dropReasons) tally.droppedFor(reason);
    this.#all[replica] = tally;
    this.#onNew(tally);
    return tally;
  }
}

/** What happened to items on their way through a (route, upstream), as counters. */
export const LEDGER_COUNTERS: readonly (readonly [string, string, (tally: UpstreamTally) => Items])[] = [
  [
    "routed_total",
    "given to an upstream's sender, or without upstream: dropped by the route",
    ({ routed }) => routed,
  ],
  ["found_in_spool_total", "that were in the spool at the start", ({ foundInSpool }) => foundInSpool],
  ["delivered_total", "accepted by their upstream", ({ delivered }) => delivered],
  ["refused_total", "not accepted, with an error that their sender saw", ({ refused }) => refused],
  [
    "skipped_resend_total",
    "sent again after a 503 and accepted before, so not forwarded again",
    ({ skippedResend }) => skippedResend,
  ],
];
