/** Which routes a series goes to, and what becomes of it where rules leave none of it: its sender is told of nothing. */
import { afterEach, describe, expect, it } from "vitest";
import { label, oneSample, requestBody, sample, series } from "../reference/build.ts";
import { GatewayRig } from "./gatewayRig.ts";

let rig: GatewayRig;

afterEach(async () => {
  await rig.stop();
});

const ofJob = (name: string, job: string): Buffer => oneSample(name, label("job", job));
const names = (slot: number): string[] =>
  rig.receiver(slot).series.map(({ labels }) => labels.find(([name]) => name === "__name__")?.[1] ?? "");

/** A route for each receiver; `routes` are their options besides name and upstreams. */
function start(routes: readonly string[], top = ""): Promise<GatewayRig> {
  return GatewayRig.start(routes.length, (urls) =>
    [
      top,
      "routes:",
      ...routes.map(
        (options, route) =>
          `  - {name: route-${route}, upstreams: [{name: up-${route}, url: "${urls[route]}"}], ${options}}`,
      ),
    ].join("\n"),
  );
}

async function sendAll(...fields: readonly Buffer[]): Promise<void> {
  expect(await rig.send(requestBody(...fields))).toMatchObject({ status: 204, text: "" });
}

const KEEP_A = "{source_labels: [job], regex: a, action: keep}";

describe("a final route", () => {
  it("keeps what it selects from the routes behind it, and leaves them the rest", async () => {
    rig = await start(["", `final: true, relabel_configs: [${KEEP_A}]`, ""]);
    await sendAll(ofJob("one", "a"), ofJob("two", "b"), ofJob("three", "a"));
    expect(names(0)).toEqual(["one", "two", "three"]);
    expect(names(1)).toEqual(["one", "three"]);
    expect(names(2)).toEqual(["two"]);
    expect(await rig.metric("samples_not_selected_total", 'route="route-1"')).toBe(1);
    expect(await rig.metric("samples_not_selected_total", 'route="route-2"')).toBe(2);
    expect(await rig.metric("samples_dropped_total")).toBe(0);
  });

  it("has a series, too, that it selects and then drops", async () => {
    rig = await start([
      `final: true, relabel_configs: [${KEEP_A}, {regex: __name__, action: labeldrop}]`,
      "",
    ]);
    await sendAll(ofJob("one", "a"), ofJob("two", "b"));
    expect(names(0)).toEqual([]);
    expect(names(1)).toEqual(["two"]);
    expect(await rig.metric("samples_dropped_total", 'route="route-0",reason="no_metric_name"')).toBe(1);
  });

  it("is nothing to the routes before it, and two of them are as good as one", async () => {
    rig = await start([`final: true, relabel_configs: [${KEEP_A}]`, `final: true`, ""]);
    await sendAll(ofJob("one", "a"), ofJob("two", "b"));
    expect([names(0), names(1), names(2)]).toEqual([["one"], ["two"], []]);
  });
});

describe("a series that no route keeps", () => {
  it("is counted as dropped for want of a route, while its sender gets 204", async () => {
    rig = await start([`relabel_configs: [${KEEP_A}]`, `relabel_configs: [${KEEP_A}]`]);
    await sendAll(ofJob("one", "b"), ofJob("two", "c"), ofJob("three", "a"));
    expect([names(0), names(1)]).toEqual([["three"], ["three"]]);
    expect(await rig.metric("samples_dropped_total", 'route="",reason="no_route"')).toBe(2);
    expect(await rig.metric("series_dropped_total", 'route="",reason="no_route"')).toBe(2);
    expect(await rig.metric("samples_not_selected_total")).toBe(4);
  });

  it("is counted as dropped by global rules where they drop it", async () => {
    rig = await start(["", ""], `relabel_configs: [${KEEP_A}]`);
    await sendAll(ofJob("one", "b"), ofJob("two", "a"));
    expect([names(0), names(1)]).toEqual([["two"], ["two"]]);
    expect(await rig.metric("samples_dropped_total", 'route="",reason="relabel_configs"')).toBe(1);
    expect(await rig.metric("samples_dropped_total", 'reason="no_route"')).toBe(0);
  });
});

describe("a route whose rules leave less than a series", () => {
  const CASES = [
    { name: "no labels", rules: "{regex: none, action: labelkeep}", reason: "no_labels" },
    { name: "no metric name", rules: "{regex: __name__, action: labeldrop}", reason: "no_metric_name" },
    {
      name: "an empty metric name",
      rules: "{target_label: __name__, replacement: ''}",
      reason: "no_metric_name",
    },
    {
      name: "a label without a name",
      rules: "{regex: job, replacement: $1, action: labelmap}",
      reason: "empty_label_name",
    },
    {
      name: "a label name that is too long",
      rules: `{target_label: ${"n".repeat(21)}, replacement: x}`,
      reason: "label_name_too_long",
    },
    {
      name: "a label value that is too long",
      rules: `{target_label: x, replacement: ${"v".repeat(21)}}`,
      reason: "label_value_too_long",
    },
    {
      name: "too many labels",
      rules: "{target_label: x, replacement: x}, {target_label: y, replacement: y}",
      reason: "too_many_labels",
    },
  ];
  const LIMITS = "limits: {max_labels: 3, max_label_name_bytes: 20, max_label_value_bytes: 20}";

  it.each(CASES)("drops it for $name, counted, and other routes have it", async ({ rules, reason }) => {
    rig = await start([`relabel_configs: [${rules}]`, "tasks: {count: 8}"], LIMITS);
    await sendAll(ofJob("one", "a"));
    expect([names(0), names(1)]).toEqual([[], ["one"]]);
    expect(await rig.metric("samples_dropped_total", `route="route-0",reason="${reason}"`)).toBe(1);
    expect(await rig.metric("series_dropped_total")).toBe(1);
    expect(await rig.metric("samples_routed_total", 'route="route-0",upstream=""')).toBe(1);
  });

  it("drops it at one upstream whose rules do so, and not at another", async () => {
    rig = await GatewayRig.start(
      2,
      ([a, b]) => `
routes:
  - name: r
    placement: {key: series}
    upstreams:
      - {name: a, url: "${a}", write_relabel_configs: [{regex: __name__, action: labeldrop}]}
      - {name: b, url: "${b}"}
`,
    );
    const sent = Array.from({ length: 40 }, (_, number) => ofJob(`metric_${number}`, "a"));
    await sendAll(...sent);
    expect(names(0)).toEqual([]);
    const dropped = await rig.metric("samples_dropped_total", 'route="r",reason="no_metric_name"');
    expect(dropped).toBeGreaterThan(0);
    expect(names(1)).toHaveLength(sent.length - dropped);
  });

  it("leaves a series alone that came without a name or labels, since no rule took them", async () => {
    rig = await start(["relabel_configs: [{source_labels: [job], target_label: was, regex: (.+)}]"]);
    await sendAll(series(sample(1, 1)), series(label("job", "a"), sample(1, 1)));
    expect(rig.receiver(0).series.map(({ labels }) => labels)).toEqual([
      [],
      [
        ["job", "a"],
        ["was", "a"],
      ],
    ]);
    expect(await rig.metric("samples_dropped_total")).toBe(0);
  });
});

describe("a request of which nothing is kept", () => {
  it("is answered 204 without any upstream having been asked", async () => {
    rig = await start([`relabel_configs: [${KEEP_A}]`]);
    await sendAll(ofJob("one", "b"));
    await sendAll(ofJob("one", "b"));
    expect(rig.receiver(0).requests).toEqual([]);
    expect(await rig.metric("samples_dropped_total", 'reason="no_route"')).toBe(2);
  });
});
