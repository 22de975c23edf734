import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { parseConfig } from "../../src/config/load.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";
import { judged } from "../lint/judged.ts";
import { describeWithPeers } from "../peers/peers.ts";
import { freePort } from "../peers/program.ts";
import { Rig } from "../peers/rig.ts";
import {
  GATEWAY_FOLDER,
  mountedFiles,
  onlyContainer,
  portNumber,
  renderers,
  renderOurselves,
  unusedFiles,
  VMAGENTS_FOLDER,
} from "./manifests.ts";
import { expectRestricted } from "./restricted.ts";

/** Outputs of single tasks may be added to that of the whole; those that a repeated sample does not change. */
const SUMMABLE = ["total_prometheus", "increase_prometheus"];

interface AggregationRule {
  readonly by: readonly string[];
  readonly outputs: readonly string[];
}

/** The configuration in the gateway's manifests. */
function gatewayConfig(): string {
  return renderOurselves(GATEWAY_FOLDER).get("ConfigMap").data["config.yaml"] ?? "";
}

/** The route of the gateway's manifests. */
function gatewayRoute(): { taskLabel: string | undefined; upstreams: { name: string; url: string }[] } {
  const route = parseConfig(gatewayConfig(), "config.yaml", {
    legacyHash: "jump",
    checkRule: faultOf,
    checkPlacement: placementFault,
  }).config?.routes[0];
  return {
    taskLabel: route?.route.tasks?.label,
    upstreams: (route?.upstreams ?? []).map(({ name, url }) => ({ name, url: url.href })),
  };
}

describe.each(renderers())("example vmagents, rendered $name", ({ render }) => {
  const manifests = render(VMAGENTS_FOLDER);
  const group = manifests.get("StatefulSet");
  const service = manifests.get("Service");
  const container = onlyContainer(group);

  it("are a StatefulSet, its headless Service and its aggregation", () => {
    expect(manifests.kinds).toEqual(["ConfigMap", "Service", "StatefulSet"]);
    expect(unusedFiles(VMAGENTS_FOLDER)).toEqual([]);
    expect(service.spec.clusterIP).toBe("None");
    expect(group.spec.serviceName).toBe(service.metadata.name);
    expect(group.spec.selector.matchLabels).toEqual(group.spec.template.metadata.labels);
    expect(service.spec.selector).toEqual(group.spec.template.metadata.labels);
  });

  it("are the gateway's upstreams, one pod each, in order", () => {
    const port = portNumber(container, "http");
    const pods = Array.from({ length: group.spec.replicas }, (_, pod) => `${group.metadata.name}-${pod}`);
    expect(gatewayRoute().upstreams).toEqual(
      pods.map((pod) => ({
        name: pod,
        url: `http://${pod}.${service.metadata.name}:${port}/api/v1/write`,
      })),
    );
    expect(service.spec.ports).toEqual([{ name: "http", port, targetPort: "http" }]);
    expect(container.args).toContain(`-httpListenAddr=:${port}`);
  });

  it("read the aggregation that is mounted, and keep their queue on a volume of their own", () => {
    const [queue] = group.spec.volumeClaimTemplates;
    const mount = container.volumeMounts.find(({ name }) => name === queue?.metadata.name);
    expect(mountedFiles(manifests, group).map((file) => `-streamAggr.config=${file}`)).toEqual(
      container.args.filter((arg) => arg.startsWith("-streamAggr.config=")),
    );
    expect(container.args).toContain(`-remoteWrite.tmpDataPath=${mount?.mountPath ?? ""}`);
  });

  it("aggregate by task, into what may be added up over tasks", () => {
    const rules = parse(manifests.get("ConfigMap").data["aggregation.yaml"] ?? "") as AggregationRule[];
    const { taskLabel } = gatewayRoute();
    expect(rules).not.toEqual([]);
    for (const { by, outputs } of rules) {
      expect(by).toContain(taskLabel);
      expect(SUMMABLE).toEqual(expect.arrayContaining([...outputs]));
    }
  });

  it("aggregate safely behind the gateway, as lint has it", () => {
    const { verdict, reason } = judged(
      gatewayConfig(),
      manifests.get("ConfigMap").data["aggregation.yaml"] ?? "",
    );
    expect({ verdict, reason }).toEqual({ verdict: "safe", reason });
  });

  it("may do nothing but run", () => {
    expectRestricted(group);
  });
});

describeWithPeers("example vmagents, a real vmagent with their arguments and aggregation", (peers) => {
  let rig: Rig;

  beforeAll(async () => {
    rig = await Rig.create();
  });

  afterAll(async () => {
    await rig.end();
  });

  it("starts and answers its probes with 200", async () => {
    const manifests = renderOurselves(VMAGENTS_FOLDER);
    const container = onlyContainer(manifests.get("StatefulSet"));
    const aggregation = join(rig.folder, "aggregation.yaml");
    await writeFile(aggregation, manifests.get("ConfigMap").data["aggregation.yaml"] ?? "");
    const address = `127.0.0.1:${await freePort()}`;
    const here: Record<string, string> = {
      "-httpListenAddr": address,
      // Nobody listens there: nothing is sent.
      "-remoteWrite.url": `http://127.0.0.1:${await freePort()}/api/v1/write`,
      "-remoteWrite.tmpDataPath": "queue",
      "-streamAggr.config": aggregation,
    };
    const args = container.args.map((arg) => {
      const [flag = ""] = arg.split("=", 1);
      return here[flag] === undefined ? arg : `${flag}=${here[flag]}`;
    });
    await rig.start({
      name: "vmagent",
      command: peers.vmagent,
      args,
      readyUrl: `http://${address}${container.readinessProbe.httpGet.path}`,
    });
    const alive = await fetch(`http://${address}${container.livenessProbe.httpGet.path}`);
    await alive.arrayBuffer();
    expect(alive.status).toBe(200);
  });
});
