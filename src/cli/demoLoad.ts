/**
 * A synthetic load like that of a Kubernetes cluster: pods of a few deployments, each with the same metrics.
 *
 * Pure: the same seed gives the same series, and the same series and round the same values.
 */
import type protobuf from "protobufjs";
import { compressBlock } from "../wire/snappy.ts";
import { loadSchema } from "./protoSchema.ts";

/** One series of the load. */
export interface DemoSeries {
  /** Sorted by name, bytewise; unique in a load. */
  readonly labels: readonly (readonly [string, string])[];
  /** The value of the sample in round 0, 1, 2 and so on; counters never fall. */
  readonly valueAt: (round: number) => number;
}

interface DemoMetric {
  readonly name: string;
  readonly kind: "counter" | "gauge";
  /** What a counter gains in a round, or a gauge's middle. */
  readonly scale: number;
  readonly labels: readonly (readonly [string, string])[];
}

const NAMESPACES = ["shop", "payments", "search", "platform"];
const DEPLOYMENTS = ["api", "cart", "checkout", "gateway", "indexer", "ledger", "worker"];
const METRICS: readonly DemoMetric[] = [
  { name: "container_cpu_usage_seconds_total", kind: "counter", scale: 2.5, labels: [] },
  { name: "container_memory_working_set_bytes", kind: "gauge", scale: 256e6, labels: [] },
  {
    name: "container_network_receive_bytes_total",
    kind: "counter",
    scale: 40e3,
    labels: [["interface", "eth0"]],
  },
  {
    name: "container_network_transmit_bytes_total",
    kind: "counter",
    scale: 60e3,
    labels: [["interface", "eth0"]],
  },
  { name: "kube_pod_container_status_restarts_total", kind: "counter", scale: 0.01, labels: [] },
  { name: "process_open_fds", kind: "gauge", scale: 120, labels: [] },
  ...["200", "404", "500"].map((code): DemoMetric => ({
    name: "http_requests_total",
    kind: "counter",
    scale: code === "200" ? 300 : 3,
    labels: [["code", code]],
  })),
  ...[["0.1", 210] as const, ["0.5", 290] as const, ["2.5", 303] as const, ["+Inf", 306] as const].map(
    ([le, scale]): DemoMetric => ({
      name: "http_request_duration_seconds_bucket",
      kind: "counter",
      scale,
      labels: [["le", le]],
    }),
  ),
];
const POD_LETTERS = "bcdfghjklmnpqrstvwxz2456789";

/** Makes `count` series. */
export function demoSeries(count: number, seed: number): DemoSeries[] {
  const random = seededRandom(seed);
  const pick = (from: readonly string[] | string): string => from[Math.floor(random() * from.length)] ?? "";
  const series: DemoSeries[] = [];
  for (let pod = 0; series.length < count; pod++) {
    const deployment = pick(DEPLOYMENTS);
    const suffix = Array.from({ length: 5 }, () => pick(POD_LETTERS)).join("");
    const podLabels: [string, string][] = [
      ["cluster", "demo"],
      ["container", deployment],
      ["instance", `10.42.${Math.floor(pod / 250)}.${(pod % 250) + 1}:8080`],
      ["job", "kubernetes-pods"],
      ["namespace", pick(NAMESPACES)],
      ["pod", `${deployment}-${suffix}`],
    ];
    // One factor for all of a pod's metrics, so that its buckets stay cumulative.
    const factor = random() + 0.5;
    const phase = random() * 2 * Math.PI;
    for (const metric of METRICS.slice(0, count - series.length)) {
      series.push(seriesOf(metric, podLabels, factor, phase));
    }
  }
  return series;
}

function seriesOf(
  metric: DemoMetric,
  podLabels: readonly (readonly [string, string])[],
  factor: number,
  phase: number,
): DemoSeries {
  const labels = [["__name__", metric.name] as const, ...metric.labels, ...podLabels];
  // All names are ASCII: the order of strings is that of bytes.
  labels.sort(([a], [b]) => (a < b ? -1 : 1));
  const middle = metric.scale * factor;
  return {
    labels,
    valueAt: (round) =>
      metric.kind === "counter" ? middle * round : middle * (1 + Math.sin(round / 7 + phase) / 4),
  };
}

/** The request bodies of a load. */
export class DemoEncoder {
  readonly #type: protobuf.Type;

  constructor() {
    this.#type = loadSchema("remote_write_v1.proto", "natural").lookupType("prometheus.WriteRequest");
  }

  /** A remote write 1.0 body, a snappy block, with one sample of each series. */
  encode(series: readonly DemoSeries[], round: number, timestampMs: number): Uint8Array {
    const plain = this.#type
      .encode({
        timeseries: series.map(({ labels, valueAt }) => ({
          labels: labels.map(([name, value]) => ({ name, value })),
          samples: [{ value: valueAt(round), timestamp: timestampMs }],
        })),
      })
      .finish();
    return compressBlock(plain);
  }
}

/** Numbers in [0, 1) that look random (a 32-bit counter, mixed by multiplications and shifts). */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}
