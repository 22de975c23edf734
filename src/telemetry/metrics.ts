/**
 * The gateway's metrics.
 *
 * Names follow Prometheus: a prefix, base units, `_total` for counters. Labels are names from the configuration, never
 * URLs. Everything is counted per request or parcel, not per sample; what is counted for every parcel is added up in plain
 * numbers, and given to prom-client when somebody looks.
 *
 * With replicas every series is there several times, and each of its copies has a ledger of its own: what is counted from the
 * choice of upstreams on has the label `copy`, "0" for the first. It is not called `replica`, since that is what many a
 * Prometheus calls itself in its external labels, which do not replace a label that is there.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import { Growth } from "./growth.ts";
import { type Items, LEDGER_COUNTERS, NOTHING, UpstreamTallies, UpstreamTally } from "./ledger.ts";

const PREFIX = "stream_metrics_route_";
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export const BREAKER_STATES = ["closed", "open", "half_open"] as const;
export type BreakerState = (typeof BREAKER_STATES)[number];

/** By how much a spool grew in so long says when it will be full. */
const SPOOL_GROWTH_MS = 5 * 60_000;

const ITEMS = ["samples", "histograms", "exemplars"] as const;

/** The same counter for samples, histograms and exemplars, as three metrics. */
class ItemCounters<Label extends string> {
  readonly #counters: Readonly<Record<keyof Items, Counter<Label>>>;

  constructor(registry: Registry, suffix: string, what: string, labelNames: readonly Label[]) {
    const counter = (item: keyof Items): Counter<Label> => {
      const { name, help } = describeItem(item, suffix, what);
      return new Counter({ name: PREFIX + name, help, labelNames: [...labelNames], registers: [registry] });
    };
    this.#counters = {
      samples: counter("samples"),
      histograms: counter("histograms"),
      exemplars: counter("exemplars"),
    };
  }

  add(labels: Record<Label, string>, items: Items): void {
    for (const item of ITEMS) this.#counters[item].inc(labels, items[item]);
  }
}

function describeItem(item: keyof Items, suffix: string, what: string): { name: string; help: string } {
  return {
    name: `${item}_${suffix}`,
    help: `${item.charAt(0).toUpperCase()}${item.slice(1)} ${what}`,
  };
}

/** What the decision table is and did. */
export interface DecisionTable {
  readonly series: number;
  readonly bytes: number;
  readonly knownSeries: number;
  readonly newSeries: number;
}

type UpstreamLabels = Readonly<Record<"route" | "upstream", string>>;

/** Who holds memory for what is under way. */
export interface MemoryState {
  readonly heldBytes: number;
  /** How often there was no more for it. */
  readonly refusals: number;
}

/** What an upstream's spool holds. */
export interface SpoolState {
  readonly bytes: number;
  /** When the oldest of it was put there; null when it is empty. */
  readonly oldestAtMs: number | null;
  /** How many it may hold. */
  readonly maxBytes: number;
  /** Of the spools of all upstreams. */
  readonly all: { readonly bytes: number; readonly maxBytes: number };
}

/** What an upstream's lanes hold and how they are, asked for whenever somebody looks. */
export interface LanesState {
  /** Of a replica, in memory alone and without an end. */
  inFlight(replica: number): Items;
  /** How many write to disk what comes for them. */
  readonly lanesBehind: number;
}

/** The metrics of one (route, upstream). */
export interface UpstreamMetrics {
  routed(replica: number, series: number, items: Items): void;
  /** Found in the spool at the start. */
  foundInSpool(replica: number, items: Items): void;
  /** @param end delivered, refused, spooled, skipped_resend, or the reason of a drop */
  settled(replica: number, end: string, from: "in_flight" | "spooled", items: Items): void;
  spoolDamaged(bytes: number): void;
  watchSpool(look: () => SpoolState): void;
  watchLanes(lanes: LanesState): void;
  watchMemory(look: () => MemoryState): void;
  /** @param ageMs for how long its oldest data is in memory alone */
  watchAge(ageMs: () => number): void;
  /** @param newestTimestampMs of what it has accepted; what is of the future counts as of now */
  delivered(newestTimestampMs: number): void;
  attempted(result: string, seconds: number): void;
  breaker(state: BreakerState): void;
}

/** Why series are refused at the door, and dropped: by a route, before any route has them, and by delivery. */
export interface Reasons {
  readonly refusal: readonly string[];
  readonly drop: readonly string[];
  readonly unrouted: readonly string[];
  /** Of what was on its way to an upstream. */
  readonly delivery: readonly string[];
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #dropReasons: readonly string[];
  readonly #deliveryDropReasons: readonly string[];
  readonly #upstreams: UpstreamTally[] = [];
  /** By route and replica, of what it dropped before it had an upstream. */
  readonly #unplaced = new Map<string, UpstreamTallies>();
  /** Of what no route got. */
  readonly #unrouted = new UpstreamTally("", "", "");
  readonly #spools: {
    readonly labels: UpstreamLabels;
    readonly look: () => SpoolState;
    readonly growth: Growth;
    readonly growthOfAll: Growth;
  }[] = [];
  readonly #lanes: {
    readonly labels: { readonly route: string; readonly upstream: string };
    readonly lanes: LanesState;
  }[] = [];
  readonly #ages: { readonly labels: UpstreamLabels; readonly ageMs: () => number }[] = [];
  readonly #newestDelivered: { readonly labels: UpstreamLabels; atMs: number }[] = [];
  readonly #memories: {
    readonly labels: UpstreamLabels;
    readonly look: () => MemoryState;
  }[] = [];
  readonly requests = this.#counter("requests_total", "Write requests by status code; 'closed' for none", [
    "code",
  ]);
  readonly requestSeconds = new Histogram({
    name: `${PREFIX}request_duration_seconds`,
    help: "From the head of a write request to its answer",
    buckets: DURATION_BUCKETS,
    registers: [this.#registry],
  });
  readonly bodyBytes = this.#counter("request_body_bytes_total", "Compressed bytes of complete bodies");
  readonly malformed = this.#counter("malformed_requests_total", "Bodies refused whole, by error code", [
    "code",
  ]);
  readonly unknownFields = this.#counter(
    "request_unknown_fields_total",
    "Top-level fields of requests that this version does not know and does not forward",
  );
  readonly seriesReceived = this.#counter("series_received_total", "Series messages in well-formed requests");
  readonly received = this.#items("received_total", "in well-formed requests");
  readonly seriesRefused = this.#counter("series_refused_at_door_total", "Series refused as they came in", [
    "reason",
  ]);
  readonly refusedAtDoor = this.#items("refused_at_door_total", "of series refused as they came in", [
    "reason",
  ]);
  readonly notSelected = this.#items(
    "not_selected_total",
    "that a route's rules, or rules before it, did not keep",
    ["route"],
  );
  readonly #seriesDropped = this.#counter(
    "series_dropped_total",
    "Copies of series dropped, by route and reason",
    ["route", "reason", "copy"],
  );
  readonly missingKeyLabels = this.#counter(
    "series_missing_key_labels_total",
    "Series without any of the labels that their route keys by",
    ["route"],
  );
  readonly metadataReceived = this.#counter(
    "metadata_received_total",
    "Metadata entries in well-formed requests",
  );
  readonly metadataDropped = this.#counter("metadata_dropped_total", "Metadata entries not forwarded", [
    "reason",
  ]);
  readonly metadataDelivered = this.#counter("metadata_delivered_total", "Metadata entries accepted", [
    "upstream",
  ]);
  readonly metadataLost = this.#counter("metadata_lost_total", "Metadata entries not accepted", ["upstream"]);
  readonly #attempts = this.#counter("upstream_requests_total", "Attempts to send a batch, by result", [
    "route",
    "upstream",
    "result",
  ]);
  readonly #attemptSeconds = new Histogram({
    name: `${PREFIX}upstream_request_duration_seconds`,
    help: "Duration of one attempt to send a batch",
    labelNames: ["route", "upstream"],
    buckets: DURATION_BUCKETS,
    registers: [this.#registry],
  });
  readonly #spoolDamaged = this.#counter(
    "spool_damaged_bytes_total",
    "Bytes of the spool in which no data could be recognised",
    ["route", "upstream"],
  );
  readonly #orphanBytes = new Gauge({
    name: `${PREFIX}spool_orphan_bytes`,
    help: "Bytes that the spool held at the start for upstreams that are not configured",
    labelNames: ["route", "upstream"],
    registers: [this.#registry],
  });
  readonly #orphansDropped = this.#counter(
    "spool_orphan_parcels_dropped_total",
    "Parcels dropped that the spool held for upstreams that are not configured",
    ["route", "upstream"],
  );
  readonly #breaker = new Gauge({
    name: `${PREFIX}breaker_state`,
    help: "1 for the state that the upstream's circuit breaker is in",
    labelNames: ["route", "upstream", "state"],
    registers: [this.#registry],
  });

  /** @param reasons metrics with these are there from the start */
  constructor(version: string, reasons: Reasons) {
    this.#dropReasons = reasons.drop;
    this.#deliveryDropReasons = reasons.delivery;
    for (const reason of reasons.refusal) {
      this.seriesRefused.inc({ reason }, 0);
      this.refusedAtDoor.add({ reason }, NOTHING);
    }
    for (const reason of reasons.unrouted) this.unrouted(reason, { series: 0, ...NOTHING });
    this.#exposeUpstreams();
    collectDefaultMetrics({ register: this.#registry });
    new Gauge({
      name: `${PREFIX}build_info`,
      help: "1, labelled by the version that runs",
      labelNames: ["version"],
      registers: [this.#registry],
    }).set({ version }, 1);
  }

  /** The metrics of one upstream of one route, present from the start. @param replicas of each series in this route */
  upstream(route: string, upstream: string, replicas: number): UpstreamMetrics {
    const labels = { route, upstream };
    if (!this.#unplaced.has(route)) this.#addRoute(route, replicas);
    this.metadataDelivered.inc({ upstream }, 0);
    this.metadataLost.inc({ upstream }, 0);
    const tallies = this.#tallyCopies(route, upstream, replicas, this.#deliveryDropReasons);
    const breaker = (state: BreakerState): void => {
      for (const each of BREAKER_STATES)
        this.#breaker.set({ ...labels, state: each }, each === state ? 1 : 0);
    };
    breaker("closed");
    const newest = { labels, atMs: -Infinity };
    this.#newestDelivered.push(newest);
    return {
      routed: (replica, series, items) => {
        const tally = tallies.of(replica);
        tally.series += series;
        tally.routed.add(items);
      },
      foundInSpool: (replica, items) => {
        const tally = tallies.of(replica);
        tally.foundInSpool.add(items);
        tally.spooled.add(items);
      },
      settled: (replica, end, from, items) => {
        const tally = tallies.of(replica);
        if (from === "spooled") tally.spooled.take(items);
        tally.endOf(end).add(items);
      },
      spoolDamaged: (bytes) => {
        this.#spoolDamaged.inc(labels, bytes);
      },
      watchLanes: (lanes) => {
        tallies.inFlight = (replica) => lanes.inFlight(replica);
        this.#lanes.push({ labels, lanes });
      },
      watchSpool: (look) => {
        const [growth, growthOfAll] = [new Growth(SPOOL_GROWTH_MS), new Growth(SPOOL_GROWTH_MS)];
        this.#spools.push({ labels, look, growth, growthOfAll });
      },
      watchMemory: (look) => {
        this.#memories.push({ labels, look });
      },
      watchAge: (ageMs) => {
        this.#ages.push({ labels, ageMs });
      },
      delivered: (newestTimestampMs) => {
        newest.atMs = Math.max(newest.atMs, Math.min(newestTimestampMs, Date.now()));
      },
      attempted: (result, seconds) => {
        this.#attempts.inc({ ...labels, result });
        this.#attemptSeconds.observe(labels, seconds);
      },
      breaker,
    };
  }

  #addRoute(route: string, replicas: number): void {
    this.#unplaced.set(route, this.#tallyCopies(route, "", replicas, this.#dropReasons));
    this.missingKeyLabels.inc({ route }, 0);
    this.notSelected.add({ route }, NOTHING);
    for (const reason of this.#dropReasons) {
      for (let replica = 0; replica < replicas; replica++) {
        this.#seriesDropped.inc({ route, reason, copy: String(replica) }, 0);
      }
    }
  }

  #tallyCopies(
    route: string,
    upstream: string,
    replicas: number,
    dropReasons: readonly string[],
  ): UpstreamTallies {
    return new UpstreamTallies(route, upstream, replicas, dropReasons, (tally) => {
      this.#upstreams.push(tally);
    });
  }

  /** Counts series that no route got, with their items. */
  unrouted(reason: string, counts: Items & { readonly series: number }): void {
    this.#seriesDropped.inc({ route: "", reason, copy: "" }, counts.series);
    this.#unrouted.droppedFor(reason).add(counts);
  }

  /** Counts copies that are gone, with their items. A route that drops what it has selected has routed it, to no upstream. */
  dropped(route: string, replica: number, reason: string, counts: Items & { readonly series: number }): void {
    this.#seriesDropped.inc({ route, reason, copy: String(replica) }, counts.series);
    const tally = this.#unplaced.get(route)?.of(replica);
    tally?.routed.add(counts);
    tally?.droppedFor(reason).add(counts);
  }

  /** Takes note of what the spool holds for an upstream that is not configured, and whether it is dropped. */
  orphans(route: string, upstream: string, records: number, bytes: number, areDropped: boolean): void {
    const labels = { route, upstream };
    if (areDropped) this.#orphansDropped.inc(labels, records);
    else this.#orphanBytes.set(labels, bytes);
  }

  async exposition(): Promise<{ contentType: string; text: string }> {
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }

  /** How many decisions the table holds and what it did for the series that came; asked whenever somebody looks. */
  watchDecisionTable(look: () => DecisionTable): void {
    this.#collected(
      Counter,
      "decision_table_hits_total",
      "Series whose decision was in the table",
      [],
      (set) => {
        set({}, look().knownSeries);
      },
    );
    this.#collected(Counter, "decision_table_misses_total", "Series that were decided anew", [], (set) => {
      set({}, look().newSeries);
    });
    this.#collected(Gauge, "decision_table_series", "Decisions in the table", [], (set) => {
      set({}, look().series);
    });
    this.#collected(Gauge, "decision_table_bytes", "Memory that the table's decisions take", [], (set) => {
      set({}, look().bytes);
    });
  }

  /** What is held of the memory for what is under way, in all and for requests that are being received. */
  watchMemory(limitBytes: number, heldBytes: () => number, ofRequests: () => MemoryState): void {
    const limit = "What may be held in memory for what is under way (memory.in_flight_bytes)";
    this.#collected(Gauge, "in_flight_limit_bytes", limit, [], (set) => {
      set({}, limitBytes);
    });
    const all = "Held in memory for what is under way: bodies, and what is to be delivered";
    this.#collected(Gauge, "in_flight_bytes", all, [], (set) => {
      set({}, heldBytes());
    });
    const refused = "Write requests answered 503 unread, since too much was under way";
    this.#collected(Counter, "requests_refused_for_memory_total", refused, [], (set) => {
      set({}, ofRequests().refusals);
    });
  }

  #exposeUpstreams(): void {
    const labels = ["route", "upstream", "copy"];
    this.#collected(
      Counter,
      "series_routed_total",
      "Series messages given to an upstream's sender",
      labels,
      (set) => {
        for (const tally of this.#upstreams) set(tally.labels, tally.series);
      },
    );
    for (const item of ITEMS) {
      for (const [suffix, what, count] of LEDGER_COUNTERS) {
        const { name, help } = describeItem(item, suffix, what);
        this.#collected(Counter, name, help, labels, (set) => {
          for (const tally of this.#upstreams) set(tally.labels, count(tally)[item]);
        });
      }
      const dropped = describeItem(
        item,
        "dropped_total",
        "dropped, by reason; without upstream before they had one",
      );
      this.#collected(Counter, dropped.name, dropped.help, [...labels, "reason"], (set) => {
        for (const tally of [...this.#upstreams, this.#unrouted]) {
          for (const [reason, items] of tally.dropped) set({ ...tally.labels, reason }, items[item]);
        }
      });
      const inFlight = describeItem(item, "in_flight", "in memory, on their way to their upstream");
      this.#collected(Gauge, inFlight.name, inFlight.help, labels, (set) => {
        for (const tally of this.#upstreams) set(tally.labels, tally.inFlight()[item]);
      });
      const help = "What the ledger has no place for; anything but 0 is a bug";
      this.#collected(Gauge, `${item}_ledger_difference`, help, labels, (set) => {
        for (const tally of this.#upstreams)
          set(tally.labels, tally.unsettled(item) - tally.inFlight()[item]);
      });
      const spooled = describeItem(item, "spooled", "in the spool");
      this.#collected(Gauge, spooled.name, spooled.help, labels, (set) => {
        for (const tally of this.#upstreams) set(tally.labels, tally.spooled[item]);
      });
    }
    this.#exposeSpools();
    this.#exposeMemories();
    this.#exposeAges();
  }

  #exposeAges(): void {
    const labels = ["route", "upstream"];
    const age = "How long the oldest data for the upstream has been in memory alone; 0 when there is none";
    this.#collected(Gauge, "in_flight_oldest_age_seconds", age, labels, (set) => {
      for (const { labels, ageMs } of this.#ages) set(labels, ageMs() / 1000);
    });
    const lag = "How old the newest data is that the upstream has accepted; absent before there is any";
    this.#collected(Gauge, "delivered_lag_seconds", lag, labels, (set) => {
      for (const { labels, atMs } of this.#newestDelivered) {
        if (atMs > -Infinity) set(labels, Math.max(0, Date.now() - atMs) / 1000);
      }
    });
  }

  #exposeMemories(): void {
    const labels = ["route", "upstream"];
    const held = "Held in memory to be delivered to the upstream";
    this.#collected(Gauge, "upstream_in_flight_bytes", held, labels, (set) => {
      for (const { labels, look } of this.#memories) set(labels, look().heldBytes);
    });
    const refused = "Parts of requests not taken, since too much was held for their upstream";
    this.#collected(Counter, "upstream_refused_for_memory_total", refused, labels, (set) => {
      for (const { labels, look } of this.#memories) set(labels, look().refusals);
    });
  }

  #exposeSpools(): void {
    const labels = ["route", "upstream"];
    const behind =
      "Lanes whose upstream is away or slow, so that what comes for them is written to disk first";
    this.#collected(Gauge, "lanes_behind", behind, labels, (set) => {
      for (const { labels, lanes } of this.#lanes) set(labels, lanes.lanesBehind);
    });
    this.#collected(Gauge, "spool_bytes", "Bytes of the upstream's spool on disk", labels, (set) => {
      for (const { labels, look } of this.#spools) set(labels, look().bytes);
    });
    const help = "How long the oldest data of the upstream's spool has been there; 0 when it is empty";
    this.#collected(Gauge, "spool_oldest_age_seconds", help, labels, (set) => {
      for (const { labels, look } of this.#spools) {
        const { oldestAtMs } = look();
        set(labels, oldestAtMs === null ? 0 : Math.max(0, Date.now() - oldestAtMs) / 1000);
      }
    });
    const full =
      "When the upstream's spool is full if it goes on growing as in the last minutes; absent if it does not";
    this.#collected(Gauge, "spool_until_full_seconds", full, labels, (set) => {
      for (const { labels, look, growth, growthOfAll } of this.#spools) {
        const { bytes, maxBytes, all } = look();
        const now = Date.now();
        const seconds = Math.min(
          untilFull(maxBytes - bytes, growth.look(now, bytes)),
          untilFull(all.maxBytes - all.bytes, growthOfAll.look(now, all.bytes)),
        );
        if (seconds < Infinity) set(labels, seconds);
      }
    });
  }

  /** A metric whose values are read when it is exposed. */
  #collected(
    Kind: typeof Counter | typeof Gauge,
    name: string,
    help: string,
    labelNames: string[],
    collect: (set: (labels: Readonly<Record<string, string>>, value: number) => void) => void,
  ): void {
    const metric = new Kind({
      name: PREFIX + name,
      help,
      labelNames,
      registers: [this.#registry],
      collect: () => {
        metric.reset();
        collect((labels, value) => {
          metric.inc(labels, value);
        });
      },
    });
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[] = []): Counter<Label> {
    return new Counter({ name: PREFIX + name, help, labelNames, registers: [this.#registry] });
  }

  #items<Label extends string>(suffix: string, what: string, labelNames: Label[] = []): ItemCounters<Label> {
    return new ItemCounters(this.#registry, suffix, what, labelNames);
  }
}

/** Seconds; Infinity when nothing says that it ever will be. */
function untilFull(freeBytes: number, bytesPerSecond: number | null): number {
  if (bytesPerSecond === null || bytesPerSecond <= 0) return Infinity;
  return Math.max(0, freeBytes) / bytesPerSecond;
}
