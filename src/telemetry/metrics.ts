/**
 * The gateway's metrics.
 *
 * Names follow Prometheus: a prefix, base units, `_total` for counters. Labels are names from the configuration, never
 * URLs. Everything is counted per request or parcel, not per sample.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

const PREFIX = "stream_metrics_route_";
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export const BREAKER_STATES = ["closed", "open", "half_open"] as const;
export type BreakerState = (typeof BREAKER_STATES)[number];

/** Counts of what a request or a parcel holds. */
export interface Items {
  readonly samples: number;
  readonly histograms: number;
  readonly exemplars: number;
}

const NOTHING: Items = { samples: 0, histograms: 0, exemplars: 0 };
const ITEMS = ["samples", "histograms", "exemplars"] as const;

/** The same counter for samples, histograms and exemplars, as three metrics. */
class ItemCounters<Label extends string> {
  readonly #counters: Readonly<Record<keyof Items, Counter<Label>>>;

  constructor(registry: Registry, suffix: string, what: string, labelNames: readonly Label[]) {
    const counter = (item: keyof Items): Counter<Label> =>
      new Counter({
        ...describeItem(item, suffix, what),
        labelNames: [...labelNames],
        registers: [registry],
      });
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

/** The same gauge for samples, histograms and exemplars, by route and upstream. */
class ItemGauges {
  readonly #gauges: Readonly<Record<keyof Items, Gauge<"route" | "upstream">>>;

  constructor(registry: Registry, suffix: string, what: string) {
    const gauge = (item: keyof Items): Gauge<"route" | "upstream"> =>
      new Gauge({
        ...describeItem(item, suffix, what),
        labelNames: ["route", "upstream"],
        registers: [registry],
      });
    this.#gauges = {
      samples: gauge("samples"),
      histograms: gauge("histograms"),
      exemplars: gauge("exemplars"),
    };
  }

  change(labels: { route: string; upstream: string }, items: Items, sign: 1 | -1): void {
    for (const item of ITEMS) this.#gauges[item].inc(labels, sign * items[item]);
  }
}

function describeItem(item: keyof Items, suffix: string, what: string): { name: string; help: string } {
  return {
    name: `${PREFIX}${item}_${suffix}`,
    help: `${item.charAt(0).toUpperCase()}${item.slice(1)} ${what}`,
  };
}

/** The metrics of one (route, upstream). */
export interface UpstreamMetrics {
  routed(series: number, items: Items): void;
  settled(end: "delivered" | "refused", items: Items): void;
  attempted(result: string, seconds: number): void;
  breaker(state: BreakerState): void;
}

export class Metrics {
  readonly #registry = new Registry();
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
  readonly #seriesRouted = this.#counter(
    "series_routed_total",
    "Series messages given to an upstream's sender",
    ["route", "upstream"],
  );
  readonly #routed = this.#items("routed_total", "given to an upstream's sender", ["route", "upstream"]);
  readonly #delivered = this.#items("delivered_total", "accepted by their upstream", ["route", "upstream"]);
  readonly #refused = this.#items("refused_total", "not delivered, with an error that their sender saw", [
    "route",
    "upstream",
  ]);
  readonly #inFlight = new ItemGauges(
    this.#registry,
    "in_flight",
    "routed, and neither delivered nor refused yet",
  );
  readonly #attempts = this.#counter("upstream_requests_total", "Attempts to send a parcel, by result", [
    "route",
    "upstream",
    "result",
  ]);
  readonly #attemptSeconds = new Histogram({
    name: `${PREFIX}upstream_request_duration_seconds`,
    help: "Duration of one attempt to send a parcel",
    labelNames: ["route", "upstream"],
    buckets: DURATION_BUCKETS,
    registers: [this.#registry],
  });
  readonly #breaker = new Gauge({
    name: `${PREFIX}breaker_state`,
    help: "1 for the state that the upstream's circuit breaker is in",
    labelNames: ["route", "upstream", "state"],
    registers: [this.#registry],
  });

  /** @param refusalReasons why series are refused at the door: those metrics are there from the start */
  constructor(version: string, refusalReasons: readonly string[]) {
    for (const reason of refusalReasons) {
      this.seriesRefused.inc({ reason }, 0);
      this.refusedAtDoor.add({ reason }, NOTHING);
    }
    collectDefaultMetrics({ register: this.#registry });
    new Gauge({
      name: `${PREFIX}build_info`,
      help: "1, labelled by the version that runs",
      labelNames: ["version"],
      registers: [this.#registry],
    }).set({ version }, 1);
  }

  /** The metrics of one upstream of one route, present from the start. */
  upstream(route: string, upstream: string): UpstreamMetrics {
    const labels = { route, upstream };
    this.missingKeyLabels.inc({ route }, 0);
    this.metadataDelivered.inc({ upstream }, 0);
    this.metadataLost.inc({ upstream }, 0);
    this.#seriesRouted.inc(labels, 0);
    for (const counters of [this.#routed, this.#delivered, this.#refused]) counters.add(labels, NOTHING);
    this.#inFlight.change(labels, NOTHING, 1);
    const breaker = (state: BreakerState): void => {
      for (const each of BREAKER_STATES)
        this.#breaker.set({ ...labels, state: each }, each === state ? 1 : 0);
    };
    breaker("closed");
    return {
      routed: (series, items) => {
        this.#seriesRouted.inc(labels, series);
        this.#routed.add(labels, items);
        this.#inFlight.change(labels, items, 1);
      },
      settled: (end, items) => {
        (end === "delivered" ? this.#delivered : this.#refused).add(labels, items);
        this.#inFlight.change(labels, items, -1);
      },
      attempted: (result, seconds) => {
        this.#attempts.inc({ ...labels, result });
        this.#attemptSeconds.observe(labels, seconds);
      },
      breaker,
    };
  }

  async exposition(): Promise<{ contentType: string; text: string }> {
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[] = []): Counter<Label> {
    return new Counter({ name: PREFIX + name, help, labelNames, registers: [this.#registry] });
  }

  #items<Label extends string>(suffix: string, what: string, labelNames: Label[] = []): ItemCounters<Label> {
    return new ItemCounters(this.#registry, suffix, what, labelNames);
  }
}
