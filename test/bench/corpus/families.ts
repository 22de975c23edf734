/** The metric families that Kubernetes-like targets expose: names, kinds of values, and the labels that make their series. */
import type { Mulberry } from "./mulberry.ts";

/** How a family's values look: large whole numbers, fractions, bucket counts, bytes, 0 or 1, or a gauge. */
export type ValueKind = "whole" | "fraction" | "bucket" | "bytes" | "boolean" | "gauge";

/** A family has a series for every combination of its dimensions' values; the last dimension changes fastest. */
export interface Family {
  readonly name: string;
  readonly kind: ValueKind;
  readonly dimensions: readonly Dimension[];
}

export type Dimension = readonly [label: string, values: readonly string[]];

const family = (name: string, kind: ValueKind, ...dimensions: Dimension[]): Family => ({
  name,
  kind,
  dimensions,
});
const families = (names: readonly string[], kind: ValueKind, ...dimensions: Dimension[]): Family[] =>
  names.map((name) => family(name, kind, ...dimensions));
const numbers = (count: number): string[] => Array.from({ length: count }, (_, number) => String(number));
const words = (text: string): string[] => text.trim().split(/\s+/);

const CPU: Dimension = ["cpu", numbers(16)];
const LE: Dimension = ["le", words("0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 +Inf")];
const NODE_MEMORY =
  words(`Active AnonHugePages AnonPages Bounce Buffers Cached CommitLimit Committed_AS Dirty Inactive
  Mapped MemAvailable MemFree MemTotal PageTables Shmem Slab SReclaimable SUnreclaim SwapFree SwapTotal Writeback`);
const NODE_DISK = words(`reads_completed_total writes_completed_total read_bytes_total written_bytes_total
  io_time_seconds_total io_now read_time_seconds_total write_time_seconds_total`);
const NODE_NETWORK = words(`receive_bytes_total receive_packets_total receive_errs_total receive_drop_total
  transmit_bytes_total transmit_packets_total transmit_errs_total transmit_drop_total`);
const NETSTAT_FAMILIES = 40;

/** node-exporter. The names of the network statistics are random. */
export function nodeFamilies(random: Mulberry): readonly Family[] {
  const netstat = Array.from({ length: NETSTAT_FAMILIES }, (_, number) => {
    const protocol = random.pick(["Tcp", "TcpExt", "Udp", "Icmp", "IpExt"]);
    const direction = random.pick(["In", "Out", "Passive", "Active", "Retrans", "Listen"]);
    const what = random.pick(["Segs", "Opens", "Errors", "Drops", "Overflows", "Octets"]);
    return `node_netstat_${protocol}_${direction}${what}${number}`;
  });
  return [
    family("node_cpu_seconds_total", "fraction", CPU, [
      "mode",
      words("idle iowait irq nice softirq steal system user"),
    ]),
    family("node_cpu_guest_seconds_total", "fraction", CPU, ["mode", ["nice", "user"]]),
    ...families(
      NODE_MEMORY.map((name) => `node_memory_${name}_bytes`),
      "bytes",
    ),
    ...families(
      NODE_DISK.map((name) => `node_disk_${name}`),
      "whole",
      ["device", ["nvme0n1", "nvme1n1", "nvme2n1", "dm-0"]],
    ),
    ...families(
      words("avail_bytes size_bytes free_bytes files files_free readonly").map(
        (name) => `node_filesystem_${name}`,
      ),
      "bytes",
      ["device", ["/dev/nvme0n1p1"]],
      ["fstype", ["ext4", "tmpfs", "xfs"]],
      ["mountpoint", ["/", "/boot/efi", "/run", "/var/lib/kubelet", "/var/lib/containerd"]],
    ),
    ...families(
      NODE_NETWORK.map((name) => `node_network_${name}`),
      "whole",
      ["device", ["lo", "eth0", "eni1a2b3c4d5e6", "eni2b3c4d5e6f7", "eni3c4d5e6f7a8", "cni0"]],
    ),
    ...families(["node_load1", "node_load5", "node_load15"], "gauge"),
    ...families(
      words("node_boot_time_seconds node_context_switches_total node_forks_total node_procs_running"),
      "whole",
    ),
    ...families(netstat, "whole"),
  ];
}

/** cAdvisor: each of these names once for every container. */
export const CADVISOR_FAMILIES: readonly Family[] = families(
  words(`cpu_usage_seconds_total cpu_cfs_periods_total cpu_cfs_throttled_periods_total
    cpu_cfs_throttled_seconds_total fs_reads_bytes_total fs_writes_bytes_total memory_cache memory_rss memory_swap
    memory_usage_bytes memory_working_set_bytes memory_failcnt network_receive_bytes_total
    network_transmit_bytes_total processes threads sockets last_seen start_time_seconds
    spec_memory_limit_bytes`).map((name) => `container_${name}`),
  "whole",
);

const RESOURCES: readonly Dimension[] = [
  ["resource", ["cpu", "memory"]],
  ["unit", ["core", "byte"]],
];

/** A slice of kube-state-metrics: each family once for every pod. */
export const KUBE_STATE_FAMILIES: readonly Family[] = [
  family("kube_pod_status_phase", "boolean", ["phase", words("Failed Pending Running Succeeded Unknown")]),
  family("kube_pod_info", "boolean"),
  family("kube_pod_start_time", "whole"),
  family("kube_pod_created", "whole"),
  family("kube_pod_status_ready", "boolean", ["condition", ["true", "false", "unknown"]]),
  family("kube_pod_container_resource_requests", "gauge", ...RESOURCES),
  family("kube_pod_container_resource_limits", "gauge", ...RESOURCES),
  family("kube_pod_container_status_restarts_total", "whole"),
  family("kube_pod_container_status_ready", "boolean"),
  family("kube_pod_container_status_waiting", "boolean"),
];

const HTTP: readonly Dimension[] = [
  [
    "handler",
    words(`/api/v1/orders /api/v1/orders/:id /api/v1/customers/:id/payment-methods /api/v1/cart/items /healthz
      /metrics /api/v2/search/suggest /graphql`),
  ],
  ["method", ["GET", "POST"]],
  ["status_code", ["200", "404", "500"]],
];

/** A service written in Go. */
export const SERVICE_FAMILIES: readonly Family[] = [
  family("http_request_duration_seconds_bucket", "bucket", ...HTTP, LE),
  family("http_request_duration_seconds_count", "whole", ...HTTP),
  family("http_request_duration_seconds_sum", "fraction", ...HTTP),
  family(
    "grpc_server_handled_total",
    "whole",
    ["grpc_code", words("OK Canceled DeadlineExceeded Internal Unavailable")],
    ["grpc_method", words("GetOrder ListOrders CreatePayment RefundPayment")],
    ["grpc_service", ["shop.orders.v1.OrderService"]],
    ["grpc_type", ["unary"]],
  ),
  family(
    "db_client_operation_duration_seconds_bucket",
    "bucket",
    ["db_operation", ["SELECT", "INSERT", "UPDATE"]],
    ["db_system", ["postgresql"]],
    ["pool", ["primary", "replica-0", "replica-1"]],
    LE,
  ),
  ...families(
    words(`go_goroutines go_threads go_memstats_alloc_bytes go_memstats_heap_inuse_bytes go_memstats_heap_idle_bytes
      go_memstats_next_gc_bytes go_memstats_stack_inuse_bytes process_cpu_seconds_total process_open_fds
      process_resident_memory_bytes process_start_time_seconds process_virtual_memory_bytes`),
    "gauge",
  ),
  family("go_gc_duration_seconds", "gauge", ["quantile", words("0 0.25 0.5 0.75 1")]),
  family(
    "kafka_consumer_records_lag",
    "whole",
    ["client_id", ["consumer-orders-1", "consumer-orders-2"]],
    ["partition", numbers(12)],
    ["topic", ["orders.events.v1", "payments.events.v1"]],
  ),
];
