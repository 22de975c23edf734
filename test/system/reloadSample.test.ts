/** What a gateway knows of the series that come in is not lost by a reload that decides them anew. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SharesReport } from "../../src/plan/currentShares.ts";
import type { PlanReport } from "../../src/plan/report.ts";
import { label, requestBody, sample, series } from "../reference/build.ts";
import { GatewayRig } from "./gatewayRig.ts";

const SERIES = 2_000;
const TIMESTAMP_MS = 1_796_006_259_632;
const SHORTER = "delivery: {queue_config: {max_samples_per_send: 5000}}";
const ONE_JOB = "relabel_configs: [{source_labels: [job], regex: job-0, action: keep}]";

let rig: GatewayRig;

beforeEach(async () => {
  rig = await GatewayRig.start(3, (urls) => routeOf(urls), { adminListen: "127.0.0.1:0" });
  const all = Array.from({ length: SERIES }, (_, number) =>
    series(
      label("__name__", "known"),
      label("instance", String(number)),
      label("job", `job-${number % 5}`),
      sample(0, TIMESTAMP_MS),
    ),
  );
  expect(await rig.send(requestBody(...all))).toMatchObject({ status: 204 });
});

afterEach(async () => {
  await rig.stop();
});

function routeOf(urls: readonly string[], options = ""): string {
  const upstreams = urls.map((url, slot) => `{name: vmagent-${slot}, url: "${url}"}`);
  return `routes:
  - name: aggregation
    tasks: {count: 128}
    upstreams: [${upstreams.join(", ")}]
    ${options}
`;
}

/** Series are decided anew for other parcels, too. */
async function haveOtherParcels(): Promise<void> {
  expect(await rig.reload(routeOf(rig.urls, SHORTER))).toMatchObject({ status: 200 });
  expect(await rig.metric("decision_table_series")).toBe(0);
}

async function dataOf<Data>(path: string, init?: RequestInit): Promise<Data> {
  const response = await rig.admin(path, init);
  expect(response.status).toBe(200);
  return ((await response.json()) as { data: Data }).data;
}

describe("a gateway that has just lost all decisions by a reload", () => {
  beforeEach(haveOtherParcels);

  it("plans over the series that came before", async () => {
    const to = routeOf(rig.urls, ONE_JOB);
    const plan = await dataOf<PlanReport>("/api/v1/plan", { method: "POST", body: JSON.stringify({ to }) });
    expect(plan).toMatchObject({
      basis: "all",
      series: SERIES,
      known: { series: SERIES, standard_error: 0 },
      changed: { basis: "all", share: 0.8, standard_error: 0 },
    });
  });

  it("refuses what would move too many of them, though no made-up key tells of it", async () => {
    const { status, text } = await rig.reload(routeOf(rig.urls, ONE_JOB));
    expect(status).toBe(409);
    expect(text).toContain("80.0 % of route aggregation");
    expect(text).toContain(`exact, over all ${SERIES} series`);
  });

  it("tells where they are now", async () => {
    const shares = await dataOf<SharesReport>("/api/v1/status/series");
    expect(shares).toMatchObject({ exact: true, series: { count: SERIES, standard_error: 0 } });
    expect(shares.routes[0]?.series.count).toBe(SERIES);
  });
});

describe("a reload that gives series other tasks", () => {
  it("exposes and logs apart what goes elsewhere and what gets another task, as planned", async () => {
    const to = routeOf(rig.urls.slice(0, 2)).replace("count: 128", "count: 64");
    const plan = await dataOf<PlanReport>("/api/v1/plan", { method: "POST", body: JSON.stringify({ to }) });
    const [route] = plan.routes;
    const [moved, retasked] = [route?.moved.share ?? 0, route?.retasked.share ?? 0];
    expect(moved).toBeGreaterThan(0.3);
    expect(retasked).toBeGreaterThan(0.3);
    expect(retasked).not.toBe(moved);
    const { status, text } = await rig.reload(to, "?force=true");
    expect(status).toBe(200);
    const [movedText, retaskedText] = [moved, retasked].map((share) => `${(share * 100).toFixed(1)} %`);
    expect(text).toContain(
      `route aggregation: ${movedText ?? ""} of its copies leave their upstream; ${retaskedText ?? ""} get another task`,
    );
    const ofRoute = 'route="aggregation"';
    expect(await rig.metric("reload_moved_ratio", ofRoute)).toBe(moved);
    expect(await rig.metric("reload_retasked_ratio", ofRoute)).toBe(retasked);
  });
});
