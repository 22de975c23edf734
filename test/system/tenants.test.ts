/** Tenants that requests name in a header: as a label, passed on, both, or not at all. */
import { afterEach, describe, expect, it } from "vitest";
import { label, metadata, oneSample, requestBody } from "../reference/build.ts";
import { GatewayRig } from "./gatewayRig.ts";

let rig: GatewayRig;

afterEach(async () => {
  await rig.stop();
});

const BODY = requestBody(oneSample("up", label("job", "node")));

/** One route with these options over one receiver. */
function start(options: string): Promise<GatewayRig> {
  return GatewayRig.start(
    1,
    ([url]) => `routes: [{name: r, ${options}, upstreams: [{name: a, url: "${url}"}]}]`,
  );
}

const tenantLabels = (): (string | undefined)[] =>
  rig
    .receiver(0)
    .series.map(({ labels }) => labels.find(([name]) => name === "tenant")?.[1])
    .map((latin1) => (latin1 === undefined ? undefined : Buffer.from(latin1, "latin1").toString()));
const passedOn = (header = "x-scope-orgid"): unknown[] =>
  rig.receiver(0).headers.map((headers) => headers[header]);
/** A header's value is bytes; fetch takes each as a character. */
const asHeader = (text: string): string => Buffer.from(text).toString("latin1");

describe("a tenant as a label", () => {
  it("is what the header says, whatever came in that label, and it is not passed on", async () => {
    rig = await start("tenant: {label: tenant}");
    const forged = requestBody(oneSample("up", label("tenant", "forged")));
    await rig.send(forged, { "X-Scope-OrgID": "team-a" });
    await rig.send(forged, { "x-scope-orgid": "team-b" });
    await rig.send(forged);
    await rig.send(forged, { "X-Scope-OrgID": "" });
    expect(tenantLabels()).toEqual(["team-a", "team-b", undefined, undefined]);
    expect(passedOn()).toEqual([undefined, undefined, undefined, undefined]);
  });

  it("can be selected by, and taken away again, by the route's rules", async () => {
    rig = await start(
      "tenant: {label: tenant}, relabel_configs: [{source_labels: [tenant], regex: team-a, action: keep}, " +
        "{regex: tenant, action: labeldrop}]",
    );
    expect(await rig.send(BODY, { "X-Scope-OrgID": "team-a" })).toMatchObject({ status: 204 });
    expect(await rig.send(BODY, { "X-Scope-OrgID": "team-b" })).toMatchObject({ status: 204 });
    expect(await rig.send(BODY)).toMatchObject({ status: 204 });
    expect(rig.receiver(0).series.map(({ labels }) => labels)).toEqual([
      [
        ["__name__", "up"],
        ["job", "node"],
      ],
    ]);
    expect(await rig.metric("samples_dropped_total", 'reason="no_route"')).toBe(2);
  });

  it("may be any text of UTF-8, and may come from another header", async () => {
    rig = await start("tenant: {header: X-Team, label: tenant, pass: true}");
    await rig.send(BODY, { "X-Team": asHeader("Zürich 東京") });
    await rig.send(BODY, { "X-Scope-OrgID": "team-a" });
    expect(tenantLabels()).toEqual(["Zürich 東京", undefined]);
    expect(passedOn("x-team")).toEqual([asHeader("Zürich 東京"), undefined]);
  });

  it("that is not UTF-8 is refused with its reason, and nothing of the request is forwarded", async () => {
    rig = await start("tenant: {label: tenant, pass: true}");
    const answer = await rig.send(BODY, { "X-Scope-OrgID": "team-\u00ff" });
    expect(answer.status).toBe(400);
    expect(answer.text).toMatch(/tenant.*header x-scope-orgid.*not UTF-8.*; nothing was forwarded$/);
    expect(rig.receiver(0).requests).toEqual([]);
    expect(await rig.metric("malformed_requests_total", 'code="WIRE_TENANT"')).toBe(1);
    expect(await rig.metric("samples_received_total")).toBe(0);
    expect(await rig.send(BODY, { "X-Scope-OrgID": "team-a" })).toMatchObject({ status: 204 });
    expect(tenantLabels()).toEqual(["team-a"]);
  });
});

describe("a tenant that is passed on", () => {
  it("reaches the upstream byte for byte, UTF-8 or not, and changes no series", async () => {
    rig = await start("tenant: {pass: true}");
    for (const tenant of ["team-a", "team|b", "\u00ff\u00fe", asHeader("é")]) {
      expect(await rig.send(BODY, { "X-Scope-OrgID": tenant })).toMatchObject({ status: 204 });
    }
    await rig.send(BODY);
    expect(passedOn()).toEqual(["team-a", "team|b", "\u00ff\u00fe", asHeader("é"), undefined]);
    expect(tenantLabels()).toEqual(Array.from({ length: 5 }, () => undefined));
  });

  it("is not, by default, nor does it become a label", async () => {
    rig = await start("tenant: {}");
    await rig.send(BODY, { "X-Scope-OrgID": "team-a" });
    expect(passedOn()).toEqual([undefined]);
    expect(tenantLabels()).toEqual([undefined]);
  });
});

describe("metadata with tenants", () => {
  it("goes to an upstream once for each way in which its routes tell it the tenant", async () => {
    rig = await GatewayRig.start(2, ([a, b]) => {
      const upstreams = `upstreams: [{name: a, url: "${a}"}]`;
      return `
routes:
  - {name: passes, tenant: {pass: true}, ${upstreams}}
  - {name: passes-too, tenant: {pass: true, label: tenant}, ${upstreams}}
  - {name: labels, tenant: {label: tenant}, ${upstreams}}
  - {name: plain, ${upstreams}}
  - {name: other-header, tenant: {header: X-Team, pass: true}, ${upstreams}}
  - {name: elsewhere, tenant: {pass: true}, upstreams: [{name: b, url: "${b}"}]}
`;
    });
    const told = (slot: number): string[] =>
      rig
        .receiver(slot)
        .headers.map((headers) => `${String(headers["x-scope-orgid"])} ${String(headers["x-team"])}`)
        .sort();
    const answer = await rig.send(requestBody(metadata("requests")), {
      "X-Scope-OrgID": "org",
      "X-Team": "team",
    });
    expect(answer.status).toBe(204);
    await expect.poll(() => rig.metric("metadata_delivered_total")).toBe(4);
    expect(told(0)).toEqual(["org undefined", "undefined team", "undefined undefined"]);
    expect(told(1)).toEqual(["org undefined"]);
    for (const receiver of rig.receivers) {
      for (const { metadata: got } of receiver.requests)
        expect(got.map(({ family }) => family)).toEqual(["requests"]);
    }
  });
});
