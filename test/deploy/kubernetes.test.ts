import { readFileSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { parseConfig } from "../../src/config/load.ts";
import { WRITE_PATHS } from "../../src/receive/server.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";
import { VERSION } from "../../src/version.ts";
import { freePort, type Program } from "../peers/program.ts";
import { Rig } from "../peers/rig.ts";
import { until } from "../peers/until.ts";
import { execForm, lastOf, readStages, REPOSITORY } from "./dockerfile.ts";
import {
  bytesOf,
  GATEWAY_FOLDER,
  mountedFiles,
  mountPathOf,
  onlyContainer,
  portNumber,
  renderers,
  renderOurselves,
  STATEFULSET_FOLDER,
  unusedFiles,
} from "./manifests.ts";
import { expectRestricted } from "./restricted.ts";

const image = readStages().at(-1);
if (image === undefined) throw new Error("the Dockerfile has no stage");

const CONFIG_FILE = "config.yaml";
const configText = readFileSync(join(GATEWAY_FOLDER, CONFIG_FILE), "utf8");
const { config } = parseConfig(configText, CONFIG_FILE, {
  legacyHash: "jump",
  checkRule: faultOf,
  checkPlacement: placementFault,
});
if (config === null) throw new Error("config.yaml is invalid");
/** What files that are kept aside, names and positions may take on a volume besides the spool. */
const BESIDES_SPOOL_BYTES = 2 ** 29;

describe.each(renderers())("manifests of the gateway, rendered $name", ({ render }) => {
  const manifests = render(GATEWAY_FOLDER);
  const deployment = manifests.get("Deployment");
  const service = manifests.get("Service");
  const budget = manifests.get("PodDisruptionBudget");
  const pod = deployment.spec.template;
  const container = onlyContainer(deployment);

  it("are a Deployment, its Service, its configuration and its budget", () => {
    expect(manifests.kinds).toEqual(["ConfigMap", "Deployment", "PodDisruptionBudget", "Service"]);
    expect(unusedFiles(GATEWAY_FOLDER)).toEqual([]);
  });

  it("select the Deployment's pods everywhere", () => {
    const { labels } = pod.metadata;
    expect(deployment.spec.selector.matchLabels).toEqual(labels);
    expect(service.spec.selector).toEqual(labels);
    expect(budget.spec.selector.matchLabels).toEqual(labels);
    expect(pod.spec.topologySpreadConstraints?.map(({ labelSelector }) => labelSelector.matchLabels)).toEqual(
      [labels],
    );
  });

  it("start what the image starts, with a configuration file that is mounted as a folder", () => {
    expect(container.args).toEqual(execForm(lastOf(image, "CMD")));
    expect(mountedFiles(manifests, deployment)).toEqual([container.args.at(-1)]);
  });

  it("hold a configuration without errors and warnings that listens on all addresses of the pod's port", () => {
    const { config, problems } = parseConfig(
      manifests.get("ConfigMap").data[CONFIG_FILE] ?? "",
      CONFIG_FILE,
      { legacyHash: "jump", checkRule: faultOf, checkPlacement: placementFault },
    );
    expect(problems).toEqual([]);
    expect(config?.listen).toEqual({ host: "", port: portNumber(container, "http") });
    expect(lastOf(image, "EXPOSE")).toBe(String(config?.listen.port));
  });

  it("lead from the Service, the probes and the scrape to the port that the gateway listens on", () => {
    const ports = service.spec.ports.map(({ targetPort }) => portNumber(container, targetPort));
    const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
    expect(ports).toEqual([8080]);
    expect(probes.map((probe) => portNumber(container, probe?.httpGet.port ?? ""))).toEqual([
      8080, 8080, 8080,
    ]);
    expect(pod.metadata.annotations).toEqual({
      "prometheus.io/scrape": "true",
      "prometheus.io/port": "8080",
    });
  });

  it("leave the gateway more time to end than it takes", () => {
    const { graceMs } = config.shutdown;
    expect((pod.spec.terminationGracePeriodSeconds ?? 0) * 1000).toBeGreaterThanOrEqual(graceMs + 10_000);
  });

  it("have a volume for the spool that takes all of it, which the gateway may write and its node has room for", () => {
    const volume = pod.spec.volumes.find(({ name }) => name === "spool");
    const { sizeLimit } = volume?.emptyDir ?? {};
    expect(mountPathOf(deployment, "spool")).toBe(config.spool.path);
    expect(pod.spec.securityContext.fsGroup).toBe(pod.spec.securityContext.runAsGroup);
    expect(bytesOf(sizeLimit)).toBeGreaterThanOrEqual(config.spool.maxBytes + BESIDES_SPOOL_BYTES);
    expect(container.resources.requests["ephemeral-storage"]).toBe(sizeLimit);
  });

  it("keep every replica until its successor is ready, and take one at a time from a node", () => {
    expect(deployment.spec.strategy).toEqual({
      type: "RollingUpdate",
      rollingUpdate: { maxUnavailable: 0, maxSurge: 1 },
    });
    expect(budget.spec.maxUnavailable).toBe(1);
    expect(deployment.spec.replicas).toBeGreaterThan(budget.spec.maxUnavailable);
  });

  it("run this version's image as its user, who may do nothing but run it", () => {
    const { runAsUser, runAsGroup } = pod.spec.securityContext;
    expect(container.image).toBe(`stream-metrics-route:${VERSION}`);
    expect(`${runAsUser}:${runAsGroup}`).toBe(lastOf(image, "USER"));
    expectRestricted(deployment);
  });
});

describe.each(renderers())("manifests of the gateway as a StatefulSet, rendered $name", ({ render }) => {
  const manifests = render(STATEFULSET_FOLDER);
  const deployment = render(GATEWAY_FOLDER).get("Deployment");
  const group = manifests.get("StatefulSet");
  const pod = group.spec.template;

  it("have it in the place of the Deployment", () => {
    expect(manifests.kinds).toEqual(["ConfigMap", "PodDisruptionBudget", "Service", "StatefulSet"]);
    expect(unusedFiles(STATEFULSET_FOLDER)).toEqual([]);
  });

  it("give every pod a volume of its own, which takes all of the spool", () => {
    const [claim, ...more] = group.spec.volumeClaimTemplates;
    expect(more).toEqual([]);
    expect(claim?.metadata.name).toBe("spool");
    expect(claim?.spec.accessModes).toEqual(["ReadWriteOnce"]);
    expect(pod.spec.volumes.map(({ name }) => name)).toEqual(["config"]);
    expect(mountPathOf(group, "spool")).toBe(config.spool.path);
    expect(bytesOf(claim?.spec.resources.requests.storage)).toBeGreaterThanOrEqual(
      config.spool.maxBytes + BESIDES_SPOOL_BYTES,
    );
  });

  it("run the pods of the Deployment otherwise", () => {
    const { volumes: volumesOfGroup, topologySpreadConstraints: spread, ...ofGroup } = pod.spec;
    const { volumes, topologySpreadConstraints, ...ofDeployment } = deployment.spec.template.spec;
    const containers = ofDeployment.containers.map((container) => {
      const requests = Object.entries(container.resources.requests);
      const others = Object.fromEntries(requests.filter(([resource]) => resource !== "ephemeral-storage"));
      return { ...container, resources: { ...container.resources, requests: others } };
    });
    expect(ofGroup).toEqual({ ...ofDeployment, containers });
    expect(volumesOfGroup).toEqual(volumes.filter(({ name }) => name === "config"));
    expect(spread).toEqual(
      topologySpreadConstraints?.map((constraint) => ({
        ...constraint,
        matchLabelKeys: ["controller-revision-hash"],
      })),
    );
    expect(pod.metadata).toEqual(deployment.spec.template.metadata);
    expect(group.spec.replicas).toBe(deployment.spec.replicas);
    expect(group.spec.selector).toEqual(deployment.spec.selector);
    expect(group.spec).not.toHaveProperty("strategy");
    expectRestricted(group);
  });

  it("mount the configuration, and are behind the Service", () => {
    expect(mountedFiles(manifests, group)).toEqual([onlyContainer(group).args.at(-1)]);
    expect(group.spec.serviceName).toBe(manifests.get("Service").metadata.name);
  });
});

describe("docs/kubernetes.md", () => {
  const page = readFileSync(join(REPOSITORY, "docs/kubernetes.md"), "utf8");
  const service = renderOurselves(GATEWAY_FOLDER).get("Service");

  it("points Prometheus at the Service, its port and a write path", () => {
    const snippet = /```yaml\n(.*?)```/s.exec(page)?.[1] ?? "";
    const { remote_write: remoteWrite } = parse(snippet) as { remote_write: { url: string }[] };
    const [url, ...more] = remoteWrite.map((target) => new URL(target.url));
    expect(more).toEqual([]);
    expect(url?.hostname.split(".")).toEqual([service.metadata.name, "monitoring"]);
    expect(Number(url?.port)).toBe(service.spec.ports[0]?.port);
    expect(WRITE_PATHS).toContain(url?.pathname);
  });

  it("builds the image with this version's tag", () => {
    const tags = [...page.matchAll(/stream-metrics-route:(\d\S*)/g)].map(([, tag]) => tag);
    expect(tags).toEqual([VERSION, VERSION]);
  });
});

describe("gateway with the ConfigMap's configuration", () => {
  const container = onlyContainer(renderOurselves(GATEWAY_FOLDER).get("Deployment"));
  let rig: Rig;
  let program: Program;
  let address: string;
  let spoolFolder: string;

  beforeAll(async () => {
    rig = await Rig.create();
    address = `http://127.0.0.1:${await freePort()}`;
    const configFile = join(rig.folder, CONFIG_FILE);
    spoolFolder = join(rig.folder, "spool");
    const local = configText
      .replace(/^listen: .*$/m, `listen: ${new URL(address).host}\nadmin_listen: off`)
      .replace(/^ {2}path: .*$/m, `  path: ${spoolFolder}`);
    await writeFile(configFile, local);
    const args = container.args.map((arg) => (arg.endsWith(CONFIG_FILE) ? configFile : arg));
    program = await rig.start({
      name: "gateway",
      command: process.execPath,
      args: [join(REPOSITORY, "dist/cmd/main.js"), ...args],
      readyUrl: `${address}${container.readinessProbe.httpGet.path}`,
    });
  });

  afterAll(async () => {
    await rig.end();
  });

  async function statusOf(path: string, request: RequestInit = {}): Promise<number> {
    const response = await fetch(`${address}${path}`, request);
    await response.arrayBuffer();
    return response.status;
  }

  const probes = ["startupProbe", "livenessProbe", "readinessProbe"] as const;
  it.each(probes)("answers its %s with 200", async (probe) => {
    expect(await statusOf(container[probe]?.httpGet.path ?? "")).toBe(200);
  });

  it("answers a scrape with 200", async () => {
    expect(await statusOf("/metrics")).toBe(200);
  });

  it("has its spool, and what it knows of its upstreams, in the folder of spool.path", async () => {
    expect((await readdir(spoolFolder)).toSorted()).toEqual(["0", "topology.json"]);
  });

  it("after SIGTERM is not ready, goes on serving until the Service has taken it out, and exits with 0", async () => {
    program.signal("SIGTERM");
    await until("the gateway not to be ready", 3_000, async () => {
      return (await statusOf(container.readinessProbe.httpGet.path)) === 503;
    });
    expect(await statusOf(container.livenessProbe.httpGet.path)).toBe(200);
    const blockOfNothing = new Uint8Array([0]);
    expect(await statusOf(WRITE_PATHS[0], { method: "POST", body: blockOfNothing })).toBe(204);
    await until("the gateway to end", 15_000, () => !program.running);
    expect(await program.stop()).toEqual({ code: 0, signal: null });
  });
});
