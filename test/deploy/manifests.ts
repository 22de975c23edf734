/**
 * Renders our kustomize folders, by kubectl where it is installed, and everywhere by a few lines of our own, which know what
 * these folders use of kustomize and refuse everything else.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { REPOSITORY } from "./dockerfile.ts";
import { applyPatch, type PatchOperation } from "./jsonPatch.ts";

export const GATEWAY_FOLDER = join(REPOSITORY, "deploy/kubernetes");
export const STATEFULSET_FOLDER = join(REPOSITORY, "deploy/kubernetes-statefulset");
export const VMAGENTS_FOLDER = join(GATEWAY_FOLDER, "example-vmagents");

type Labels = Readonly<Record<string, string>>;

interface Selector {
  readonly matchLabels: Labels;
}

export interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

export interface Container {
  readonly image: string;
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe?: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly resources: {
    readonly requests: Readonly<Record<string, string>>;
    readonly limits: Readonly<Record<string, string>>;
  };
  readonly securityContext: unknown;
  readonly volumeMounts: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly subPath?: string;
    readonly readOnly?: boolean;
  }[];
}

interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly emptyDir?: { readonly sizeLimit: string };
}

interface PodTemplate {
  readonly metadata: { readonly labels: Labels; readonly annotations?: Labels };
  readonly spec: {
    readonly automountServiceAccountToken: boolean;
    readonly terminationGracePeriodSeconds?: number;
    readonly securityContext: {
      readonly runAsUser: number;
      readonly runAsGroup: number;
      readonly fsGroup?: number;
    };
    readonly topologySpreadConstraints?: readonly {
      readonly labelSelector: Selector;
      readonly matchLabelKeys?: readonly string[];
    }[];
    readonly containers: readonly Container[];
    readonly volumes: readonly Volume[];
  };
}

interface Metadata {
  readonly name: string;
}

export interface Workload {
  readonly metadata: Metadata;
  readonly spec: {
    readonly replicas: number;
    readonly selector: Selector;
    readonly template: PodTemplate;
  };
}

interface Kinds {
  readonly ConfigMap: { readonly metadata: Metadata; readonly data: Readonly<Record<string, string>> };
  readonly Deployment: Workload & { readonly spec: { readonly strategy: unknown } };
  readonly StatefulSet: Workload & {
    readonly spec: {
      readonly serviceName: string;
      readonly updateStrategy?: unknown;
      readonly volumeClaimTemplates: readonly {
        readonly metadata: Metadata;
        readonly spec: {
          readonly accessModes: readonly string[];
          readonly resources: { readonly requests: { readonly storage: string } };
        };
      }[];
    };
  };
  readonly Service: {
    readonly metadata: Metadata;
    readonly spec: {
      readonly clusterIP?: string;
      readonly selector: Labels;
      readonly ports: readonly { readonly port: number; readonly targetPort: string }[];
    };
  };
  readonly PodDisruptionBudget: {
    readonly spec: { readonly maxUnavailable: number; readonly selector: Selector };
  };
}

/** What a folder renders to, by kind; our folders have one manifest of a kind. */
export class Manifests {
  readonly #byKind: ReadonlyMap<string, unknown>;

  constructor(manifests: readonly { readonly kind: string }[]) {
    this.#byKind = new Map(manifests.map((manifest) => [manifest.kind, manifest]));
    if (this.#byKind.size < manifests.length) throw new Error("want one manifest of a kind");
  }

  get kinds(): string[] {
    return [...this.#byKind.keys()].toSorted();
  }

  get<K extends keyof Kinds>(kind: K): Kinds[K] {
    const manifest = this.#byKind.get(kind);
    if (manifest === undefined) throw new Error(`there is no ${kind}`);
    return manifest as Kinds[K];
  }
}

export interface Renderer {
  readonly name: string;
  readonly render: (folder: string) => Manifests;
}

/** Those that can be had here. */
export function renderers(): Renderer[] {
  const ours = { name: "by ourselves", render: renderOurselves };
  try {
    execFileSync("kubectl", ["version", "--client"], { stdio: "ignore" });
  } catch (error) {
    process.stderr.write(`not rendered with kubectl, which does not run here: ${(error as Error).message}\n`);
    return [ours];
  }
  return [ours, { name: "by kubectl", render: renderWithKubectl }];
}

function renderWithKubectl(folder: string): Manifests {
  const rendered = execFileSync("kubectl", ["kustomize", folder], { encoding: "utf8" });
  return new Manifests(parseAllDocuments(rendered).map((document) => document.toJS() as { kind: string }));
}

interface Resource {
  readonly kind: string;
}

interface Kustomization {
  readonly resources: readonly string[];
  readonly configMapGenerator?: readonly { readonly name: string; readonly files: readonly string[] }[];
  readonly images?: readonly { readonly name: string; readonly newName: string; readonly newTag: string }[];
  readonly patches?: readonly {
    readonly path: string;
    readonly target: { readonly kind: string; readonly name: string };
  }[];
}

const KNOWN = new Set(["apiVersion", "kind", "resources", "configMapGenerator", "images", "patches"]);

/** ConfigMaps keep their names without hash, and so does what refers to them. */
export function renderOurselves(folder: string): Manifests {
  return new Manifests(build(folder));
}

function build(folder: string): readonly Resource[] {
  const kustomization = readYaml(join(folder, "kustomization.yaml")) as Kustomization;
  const unknown = Object.keys(kustomization).filter((key) => !KNOWN.has(key));
  if (unknown.length > 0) throw new Error(`cannot render these keys of a kustomization: ${unknown.join()}`);
  const { resources, configMapGenerator = [], images = [], patches = [] } = kustomization;
  const configMaps = configMapGenerator.map(({ name, files }) => ({
    kind: "ConfigMap",
    metadata: { name },
    data: Object.fromEntries(files.map((file) => [basename(file), readFileSync(join(folder, file), "utf8")])),
  }));
  const built = resources.flatMap((resource) => {
    const path = join(folder, resource);
    return statSync(path).isDirectory() ? build(path) : [readYaml(path) as Resource];
  });
  const patched = patches.reduce<readonly Resource[]>((all, { path, target }) => {
    const operations = readYaml(join(folder, path)) as readonly PatchOperation[];
    const isTarget = (resource: Resource): boolean =>
      resource.kind === target.kind && (resource as Workload & Resource).metadata.name === target.name;
    if (!all.some(isTarget)) throw new Error(`there is no ${target.kind} ${target.name} to patch`);
    return all.map((resource) => (isTarget(resource) ? applyPatch(resource, operations) : resource));
  }, built);
  return [...configMaps, ...patched.map((resource) => withImages(resource, images))];
}

function withImages(resource: Resource, images: NonNullable<Kustomization["images"]>): Resource {
  return JSON.parse(JSON.stringify(resource), (key, value: unknown) => {
    const image = key === "image" ? images.find(({ name }) => name === value) : undefined;
    return image === undefined ? value : `${image.newName}:${image.newTag}`;
  }) as Resource;
}

/** The files in a kustomize folder that its kustomization does not name. */
export function unusedFiles(folder: string): string[] {
  const kustomization = readYaml(join(folder, "kustomization.yaml")) as Kustomization;
  const { resources, configMapGenerator = [], patches = [] } = kustomization;
  const used = new Set([
    "kustomization.yaml",
    ...resources,
    ...configMapGenerator.flatMap(({ files }) => files),
    ...patches.map(({ path }) => path),
  ]);
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && !used.has(entry.name))
    .map(({ name }) => name);
}

function readYaml(file: string): unknown {
  return parse(readFileSync(file, "utf8"));
}

export function onlyContainer({ spec }: Workload): Container {
  const [container, ...more] = spec.template.spec.containers;
  if (container === undefined || more.length > 0) throw new Error("want one container");
  return container;
}

/** The number of a container's port, by its name. */
export function portNumber({ ports }: Container, name: string): number {
  const port = ports.find((candidate) => candidate.name === name);
  if (port === undefined) throw new Error(`the container has no port ${name}`);
  return port.containerPort;
}

/** Where a volume is mounted in a workload's container. */
export function mountPathOf(workload: Workload, volume: string): string {
  const mount = onlyContainer(workload).volumeMounts.find(({ name }) => name === volume);
  if (mount === undefined || mount.readOnly === true)
    throw new Error(`${volume} is not mounted to be written`);
  return mount.mountPath;
}

/** Bytes of a Kubernetes quantity of memory or disk, in the units that our manifests use. */
export function bytesOf(quantity: string | undefined): number {
  const [, number, unit] = /^(\d+)(Mi|Gi)$/.exec(quantity ?? "") ?? [];
  if (number === undefined) throw new Error(`want a number of Mi or Gi; got ${quantity ?? "nothing"}`);
  return Number(number) * 2 ** (unit === "Gi" ? 30 : 20);
}

/** Paths of the files that a ConfigMap puts into a workload's container, as the container sees them. */
export function mountedFiles(manifests: Manifests, workload: Workload): string[] {
  const configMap = manifests.get("ConfigMap");
  const volume = workload.spec.template.spec.volumes.find(
    (candidate) => candidate.configMap?.name === configMap.metadata.name,
  );
  const mount = onlyContainer(workload).volumeMounts.find(({ name }) => name === volume?.name);
  if (mount === undefined) throw new Error(`${configMap.metadata.name} is not mounted`);
  if (mount.subPath !== undefined) throw new Error(`want the whole folder, got subPath ${mount.subPath}`);
  return Object.keys(configMap.data).map((file) => join(mount.mountPath, file));
}
