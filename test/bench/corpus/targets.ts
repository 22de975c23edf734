/** The series of a Kubernetes-like cluster in scrape order: target after target, family after family, as a sender sees them. */
import {
  CADVISOR_FAMILIES,
  type Family,
  KUBE_STATE_FAMILIES,
  nodeFamilies,
  SERVICE_FAMILIES,
  type ValueKind,
} from "./families.ts";
import type { Mulberry } from "./mulberry.ts";

/** A series with its one sample. */
export interface CorpusSeries {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly timestampMs: number;
}

type Labels = Readonly<Record<string, string>>;

/** A fixed time, so that the corpus is the same whenever it is made: 2026-01-01T00:00:00Z. */
export const CORPUS_TIME_MS = Date.UTC(2026, 0, 1);
const SCRAPE_INTERVAL_MS = 15_000;

const CLUSTERS = ["prod-eu-west-1", "prod-us-east-1", "staging-eu-west-1"];
const NAMESPACES = [
  ...["payments", "checkout", "catalog", "identity", "search", "kube-system", "monitoring"],
  ...["ingress-nginx", "data-platform", "notifications"],
];
const APPS = [
  ...["api", "worker", "gateway", "scheduler", "indexer", "billing", "frontend", "consumer"],
  ...["auth", "cart"],
];
const CONTAINERS_PER_NODE = 12;
const PODS_PER_SLICE = 20;

/** Every target is another one, so no series comes twice. Does not end. */
export function* corpusSeries(random: Mulberry): Generator<CorpusSeries, never> {
  const node = nodeFamilies(random);
  for (;;) {
    // External labels: what Prometheus adds on remote write.
    const external = {
      cluster: random.pick(CLUSTERS),
      prometheus_replica: `prometheus-k8s-${random.below(2)}`,
    };
    const dice = random.next();
    const timestampMs = CORPUS_TIME_MS - random.below(SCRAPE_INTERVAL_MS);
    for (const [family, labels] of targetSeries(random, dice, node)) {
      yield {
        labels: { __name__: family.name, ...external, ...labels },
        value: valueOf(random, family.kind),
        timestampMs,
      };
    }
  }
}

type TargetSeries = Generator<readonly [Family, Labels], void>;

function targetSeries(random: Mulberry, dice: number, node: readonly Family[]): TargetSeries {
  if (dice < 0.3) return nodeExporter(random, node);
  if (dice < 0.5) return cadvisor(random);
  if (dice < 0.65) return kubeStateMetrics(random);
  return service(random);
}

function* nodeExporter(random: Mulberry, node: readonly Family[]): TargetSeries {
  const target = {
    container: "node-exporter",
    instance: `${address(random)}:9100`,
    job: "node-exporter",
    namespace: "monitoring",
    node: nodeName(random),
    pod: `node-exporter-${random.suffix(5)}`,
    service: "node-exporter",
  };
  for (const family of node) yield* expand(family, target);
}

function* cadvisor(random: Mulberry): TargetSeries {
  const target = {
    instance: `${address(random)}:10250`,
    job: "kubelet",
    metrics_path: "/metrics/cadvisor",
    node: nodeName(random),
    service: "kubelet",
  };
  const containers = Array.from({ length: CONTAINERS_PER_NODE }, () => {
    const app = random.pick(APPS);
    const id = random.hex(24);
    return {
      container: app,
      id: `/kubepods.slice/pod${random.hex(16)}/${id}`,
      image: `registry.local/${app}:v${random.below(9)}.${random.below(30)}.${random.below(9)}`,
      namespace: random.pick(NAMESPACES),
      pod: podName(random, app),
    };
  });
  for (const family of CADVISOR_FAMILIES) {
    for (const container of containers) yield* expand(family, { ...target, ...container });
  }
}

function* kubeStateMetrics(random: Mulberry): TargetSeries {
  const target = {
    instance: `${address(random)}:8080`,
    job: "kube-state-metrics",
    service: "kube-state-metrics",
  };
  const pods = Array.from({ length: PODS_PER_SLICE }, () => {
    const app = random.pick(APPS);
    return {
      container: app,
      namespace: random.pick(NAMESPACES),
      node: nodeName(random),
      pod: podName(random, app),
      uid: random.uuid(),
    };
  });
  for (const family of KUBE_STATE_FAMILIES) {
    for (const pod of pods) yield* expand(family, { ...target, ...pod });
  }
}

function* service(random: Mulberry): TargetSeries {
  const app = random.pick(APPS);
  const namespace = random.pick(NAMESPACES);
  const target = {
    container: app,
    instance: `${address(random)}:8080`,
    job: `${namespace}/${app}`,
    namespace,
    pod: podName(random, app),
    service: app,
  };
  for (const family of SERVICE_FAMILIES) yield* expand(family, target);
}

/** A family's series of one target: all combinations of its dimensions' values. */
function* expand(family: Family, target: Labels, depth = 0): TargetSeries {
  const dimension = family.dimensions[depth];
  if (dimension === undefined) {
    yield [family, target];
    return;
  }
  const [label, values] = dimension;
  for (const value of values) yield* expand(family, { ...target, [label]: value }, depth + 1);
}

function valueOf(random: Mulberry, kind: ValueKind): number {
  switch (kind) {
    case "whole":
      return random.below(1e9);
    case "fraction":
      return Math.round(random.next() * 1e8) / 100 + random.next() / 1e6;
    case "bucket":
      return random.below(1e5);
    case "bytes":
      // Pages of 4 KiB, cut to 32 bits.
      return (random.below(2 ** 31) * 4) | 0;
    case "boolean":
      return random.below(2);
    case "gauge":
      return random.next() * 1000;
  }
}

function address(random: Mulberry): string {
  return `10.${random.below(250)}.${random.below(250)}.${1 + random.below(250)}`;
}

function nodeName(random: Mulberry): string {
  const part = (): number => random.below(250);
  return `ip-10-${part()}-${part()}-${part()}.eu-west-1.compute.internal`;
}

function podName(random: Mulberry, app: string): string {
  return `${app}-${random.hex(9)}-${random.suffix(5)}`;
}
