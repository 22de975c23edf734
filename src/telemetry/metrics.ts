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
import { Counts, ItemCounts } from "./counts.ts";
import { Growth } from "./growth.ts";
import { type Items, ItemTally, LEDGER_COUNTERS, NOTHING, UpstreamTallies, UpstreamTally } from "./ledger.ts";
import { byReason, copyLine, isNothing, type LedgerReport, routeLine } from "./ledgerReport.ts";

const PREFIX = "stream_metrics_route_";
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export const BREAKER_STATES = ["closed", "open", "half_open"] as const;
export type BreakerState = (typeof BREAKER_STATES)[number];

/** How a reload of the configuration ended. */
export const RELOAD_RESULTS = [
  /** The new configuration is in force, also if it says the same as the old one. */
  "applied",
  /** The file cannot be read, or is not valid. */
  "invalid",
  /** It would move more than may move. */
  "refused",
  /** It is valid and cannot be put into force, as with a certificate that cannot be used. */
  "failed",
] as const;
export type ReloadResult = (typeof RELOAD_RESULTS)[number];

/** By how much a spool grew in so long says when it will be full. */
const SPOOL_GROWTH_MS = 5 * 60_000;

const ITEMS = ["samples", "histograms", "exemplars"] as const;

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
  /** What its spool holds is no orphan any more. */
  watchSpool(look: () => SpoolState): void;
  watchLanes(lanes: LanesState): void;
  watchMemory(look: () => MemoryState): void;
  /** @param ageMs for how long its oldest data is in memory alone */
  watchAge(ageMs: () => number): void;
  /** @param newestTimestampMs of what it has accepted; what is of the future counts as of now */
  delivered(newestTimestampMs: number): void;
  attempted(result: string, seconds: number): void;
  breaker(state: BreakerState): void;
  /**
   * Its sender has closed: its gauges vanish, and nothing that is watched is looked at any more. What was counted stays, and
   * goes on when the upstream comes back.
   */
  close(): void;
}

/** One (route, upstream): what is looked at while it has a sender, and what stays. */
interface WatchedUpstream {
  readonly labels: UpstreamLabels;
  readonly tallies: UpstreamTallies;
  readonly metrics: UpstreamMetrics;
  hasSender: boolean;
  spool: { readonly look: () => SpoolState; readonly growth: Growth; readonly growthOfAll: Growth } | null;
  lanes: LanesState | null;
  ageMs: (() => number) | null;
  memory: (() => MemoryState) | null;
  /** Of senders before; null as long as no memory was watched. */
  refusalsBefore: number | null;
  newestDeliveredMs: number;
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
  /** By route: what came while it was configured. */
  readonly #offered = new Map<string, { readonly received: ItemTally; readonly refused: ItemTally }>();
  /** By route and upstream, those of before too. */
  readonly #watched = new Map<string, WatchedUpstream>();
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
  readonly metadataReceived = this.#counts(
    "metadata_received_total",
    "Metadata entries in well-formed requests",
  );
  readonly metadataDropped = this.#counts("metadata_dropped_total", "Metadata entries not forwarded", [
    "reason",
  ]);
  readonly metadataForwarded = this.#counts(
    "metadata_forwarded_total",
    "Metadata entries given to an upstream's sender",
    ["upstream"],
  );
  readonly metadataDelivered = this.#counts("metadata_delivered_total", "Metadata entries accepted", [
    "upstream",
  ]);
  readonly metadataLost = this.#counts("metadata_lost_total", "Metadata entries not accepted", ["upstream"]);
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
  readonly #reloads = this.#counter("reloads_total", "Reloads of the configuration, by how they ended", [
    "result",
  ]);
  readonly #reloadSuccessful = this.#gauge(
    "config_last_reload_successful",
    "Whether the last reload of the configuration was successful",
  );
  readonly #reloadSuccessAt = this.#gauge(
    "config_last_reload_success_timestamp_seconds",
    "When a configuration was put into force last, at the start or by a reload",
  );
  readonly #config = this.#gauge(
    "config_info",
    "1, labelled by a hash of the configuration that is in force; replicas should agree on it",
    ["hash"],
  );
  readonly #moved = this.#gauge(
    "reload_moved_ratio",
    "Share of a route's series, as copies, that the last reload has moved to other upstreams",
    ["route"],
  );
  readonly #retasked = this.#gauge(
    "reload_retasked_ratio",
    "Share of a route's series, as copies, that the last reload has given another task",
    ["route"],
  );

  /** @param reasons metrics with these are there from the start */
  constructor(version: string, reasons: Reasons) {
    this.#dropReasons = reasons.drop;
    this.#deliveryDropReasons = reasons.delivery;
    for (const reason of reasons.refusal) {
      this.seriesRefused.inc({ reason }, 0);
      this.refusedAtDoor.add({ reason }, NOTHING);
    }
    for (const result of RELOAD_RESULTS) this.#reloads.inc({ result }, 0);
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

  /**
   * The metrics of one upstream of one route, present from then on. The same ones for each call with these names: a reload may
   * ask again, with another number of replicas.
   *
   * @param replicas of each series in this route
   */
  upstream(route: string, upstream: string, replicas: number): UpstreamMetrics {
    this.#addRoute(route, replicas);
    const key = JSON.stringify([route, upstream]);
    const watched = this.#watched.get(key) ?? this.#watch({ route, upstream });
    this.#watched.set(key, watched);
    watched.tallies.haveReplicas(replicas);
    if (!watched.hasSender) {
      watched.hasSender = true;
      watched.metrics.breaker("closed");
      for (const count of [this.metadataForwarded, this.metadataDelivered, this.metadataLost]) {
        count.inc({ upstream }, 0);
      }
    }
    return watched.metrics;
  }

  #watch(labels: UpstreamLabels): WatchedUpstream {
    const tallies = this.#tallyCopies(labels.route, labels.upstream, 0, this.#deliveryDropReasons);
    const watched: WatchedUpstream = {
      labels,
      tallies,
      hasSender: false,
      spool: null,
      lanes: null,
      ageMs: null,
      memory: null,
      refusalsBefore: null,
      newestDeliveredMs: -Infinity,
      metrics: {
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
          watched.lanes = lanes;
        },
        watchSpool: (look) => {
          const [growth, growthOfAll] = [new Growth(SPOOL_GROWTH_MS), new Growth(SPOOL_GROWTH_MS)];
          watched.spool = { look, growth, growthOfAll };
          this.#orphanBytes.remove(labels);
        },
        watchMemory: (look) => {
          watched.refusalsBefore = refusalsOf(watched);
          watched.memory = look;
        },
        watchAge: (ageMs) => {
          watched.ageMs = ageMs;
        },
        delivered: (newestTimestampMs) => {
          const atMs = Math.min(newestTimestampMs, Date.now());
          watched.newestDeliveredMs = Math.max(watched.newestDeliveredMs, atMs);
        },
        attempted: (result, seconds) => {
          this.#attempts.inc({ ...labels, result });
          this.#attemptSeconds.observe(labels, seconds);
        },
        breaker: (state) => {
          for (const each of BREAKER_STATES)
            this.#breaker.set({ ...labels, state: each }, each === state ? 1 : 0);
        },
        close: () => {
          for (const state of BREAKER_STATES) this.#breaker.remove({ ...labels, state });
          tallies.inFlight = () => NOTHING;
          if (watched.memory !== null) watched.refusalsBefore = refusalsOf(watched);
          watched.spool = watched.lanes = watched.ageMs = watched.memory = null;
          watched.newestDeliveredMs = -Infinity;
          watched.hasSender = false;
        },
      },
    };
    return watched;
  }

  #addRoute(route: string, replicas: number): void {
    const unplaced = this.#unplaced.get(route) ?? this.#tallyCopies(route, "", replicas, this.#dropReasons);
    this.#unplaced.set(route, unplaced);
    unplaced.haveReplicas(replicas);
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

  /** Counts what came of a request for the ledger's line of a route, which was configured when the request was routed. */
  offered(route: string, received: Items, refusedAtDoor: Iterable<Items>): void {
    const offered = this.#offered.get(route) ?? { received: new ItemTally(), refused: new ItemTally() };
    this.#offered.set(route, offered);
    offered.received.add(received);
    for (const items of refusedAtDoor) offered.refused.add(items);
  }

  /** All of the ledger at this moment. */
  ledger(): LedgerReport {
    const copies = this.#upstreams.map(copyLine);
    const routes = [...this.#unplaced.keys()].map((route) => {
      const offered = this.#offered.get(route);
      const [received, refused] = [offered?.received ?? NOTHING, offered?.refused ?? NOTHING];
      return routeLine(route, received, refused, this.notSelected.get({ route }), copies);
    });
    return {
      adds_up: [...copies, ...routes].every(({ difference }) => isNothing(difference)),
      routes,
      copies,
      unrouted: byReason(this.#unrouted),
      metadata: {
        received: this.metadataReceived.get({}),
        dropped: Object.fromEntries(
          [...this.metadataDropped.all()].map(({ labels: { reason }, value }) => [reason, value]),
        ),
        upstreams: [...this.metadataForwarded.all()].map(({ labels, value }) => ({
          upstream: labels.upstream,
          forwarded: value,
          delivered: this.metadataDelivered.get(labels),
          lost: this.metadataLost.get(labels),
        })),
      },
    };
  }

  /**
   * Takes note of the configuration that is in force from now on.
   *
   * @param hash the same for the same configuration, whoever has it
   * @param atMs milliseconds since the epoch
   */
  configured(hash: string, atMs: number): void {
    this.#config.reset();
    this.#config.set({ hash }, 1);
    this.#reloadSuccessful.set(1);
    this.#reloadSuccessAt.set(atMs / 1000);
  }

  /** Counts a reload; after one that was applied, configured() is called as well. */
  reloaded(result: ReloadResult): void {
    this.#reloads.inc({ result });
    this.#reloadSuccessful.set(result === "applied" ? 1 : 0);
  }

  /** @param routes with shares from 0 to 1; those that are not in it have none any more */
  moved(
    routes: readonly { readonly route: string; readonly moved: number; readonly retasked: number }[],
  ): void {
    this.#moved.reset();
    this.#retasked.reset();
    for (const { route, moved, retasked } of routes) {
      this.#moved.set({ route }, moved);
      this.#retasked.set({ route }, retasked);
    }
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

  /** What is held of the memory for what is under way, and how many requests found none. */
  watchMemory(
    budget: { readonly maxBytes: number; readonly heldBytes: number },
    refusedRequests: () => number,
  ): void {
    const limit = "What may be held in memory for what is under way (memory.in_flight_bytes)";
    this.#collected(Gauge, "in_flight_limit_bytes", limit, [], (set) => {
      set({}, budget.maxBytes);
    });
    const all = "Held in memory for what is under way: bodies, and what is to be delivered";
    this.#collected(Gauge, "in_flight_bytes", all, [], (set) => {
      set({}, budget.heldBytes);
    });
    const refused = "Write requests answered 503 unread, since too much was under way";
    this.#collected(Counter, "requests_refused_for_memory_total", refused, [], (set) => {
      set({}, refusedRequests());
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
      for (const { labels, ageMs } of this.#watched.values()) if (ageMs !== null) set(labels, ageMs() / 1000);
    });
    const lag = "How old the newest data is that the upstream has accepted; absent before there is any";
    this.#collected(Gauge, "delivered_lag_seconds", lag, labels, (set) => {
      for (const { labels, newestDeliveredMs } of this.#watched.values()) {
        if (newestDeliveredMs > -Infinity) set(labels, Math.max(0, Date.now() - newestDeliveredMs) / 1000);
      }
    });
  }

  #exposeMemories(): void {
    const labels = ["route", "upstream"];
    const held = "Held in memory to be delivered to the upstream";
    this.#collected(Gauge, "upstream_in_flight_bytes", held, labels, (set) => {
      for (const { labels, memory } of this.#watched.values())
        if (memory !== null) set(labels, memory().heldBytes);
    });
    const refused = "Parts of requests not taken, since too much was held for their upstream";
    this.#collected(Counter, "upstream_refused_for_memory_total", refused, labels, (set) => {
      for (const watched of this.#watched.values())
        if (watched.refusalsBefore !== null) set(watched.labels, refusalsOf(watched));
    });
  }

  #exposeSpools(): void {
    const labels = ["route", "upstream"];
    const behind =
      "Lanes whose upstream is away or slow, so that what comes for them is written to disk first";
    this.#collected(Gauge, "lanes_behind", behind, labels, (set) => {
      for (const { labels, lanes } of this.#watched.values())
        if (lanes !== null) set(labels, lanes.lanesBehind);
    });
    this.#collected(Gauge, "spool_bytes", "Bytes of the upstream's spool on disk", labels, (set) => {
      for (const { labels, spool } of this.#watched.values())
        if (spool !== null) set(labels, spool.look().bytes);
    });
    const help = "How long the oldest data of the upstream's spool has been there; 0 when it is empty";
    this.#collected(Gauge, "spool_oldest_age_seconds", help, labels, (set) => {
      for (const { labels, spool } of this.#watched.values()) {
        if (spool === null) continue;
        const { oldestAtMs } = spool.look();
        set(labels, oldestAtMs === null ? 0 : Math.max(0, Date.now() - oldestAtMs) / 1000);
      }
    });
    const full =
      "When the upstream's spool is full if it goes on growing as in the last minutes; absent if it does not";
    this.#collected(Gauge, "spool_until_full_seconds", full, labels, (set) => {
      for (const { labels, spool } of this.#watched.values()) {
        if (spool === null) continue;
        const { bytes, maxBytes, all } = spool.look();
        const now = Date.now();
        const seconds = Math.min(
          untilFull(maxBytes - bytes, spool.growth.look(now, bytes)),
          untilFull(all.maxBytes - all.bytes, spool.growthOfAll.look(now, all.bytes)),
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

  #gauge<Label extends string>(name: string, help: string, labelNames: Label[] = []): Gauge<Label> {
    return new Gauge({ name: PREFIX + name, help, labelNames, registers: [this.#registry] });
  }

  /** A counter that can be read at once. */
  #counts<Label extends string>(name: string, help: string, labelNames: Label[] = []): Counts<Label> {
    const counts = new Counts<Label>();
    this.#collected(Counter, name, help, labelNames, (set) => {
      for (const { labels, value } of counts.all()) set(labels, value);
    });
    return counts;
  }

  /** The same for samples, histograms and exemplars, as three metrics. */
  #items<Label extends string>(suffix: string, what: string, labelNames: Label[] = []): ItemCounts<Label> {
    const counts = new ItemCounts<Label>();
    for (const item of ITEMS) {
      const { name, help } = describeItem(item, suffix, what);
      this.#collected(Counter, name, help, labelNames, (set) => {
        for (const { labels, items } of counts.all()) set(labels, items[item]);
      });
    }
    return counts;
  }
}

/** How often memory was refused for an upstream, in the life of the process. */
function refusalsOf({ refusalsBefore, memory }: WatchedUpstream): number {
  return (refusalsBefore ?? 0) + (memory?.().refusals ?? 0);
}

/** Seconds; Infinity when nothing says that it ever will be. */
function untilFull(freeBytes: number, bytesPerSecond: number | null): number {
  if (bytesPerSecond === null || bytesPerSecond <= 0) return Infinity;
  return Math.max(0, freeBytes) / bytesPerSecond;
}
