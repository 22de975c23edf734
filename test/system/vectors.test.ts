import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Explainer } from "../../src/explain/explainer.ts";
import { readVectors } from "../reference/vectors.ts";
import { decodeBody, type ReferenceSeries } from "../reference/writeRequest.ts";
import { GatewayRig, taskRoute } from "./gatewayRig.ts";

const TASK_LABEL = "stream_task_id";

/** Labels as text; the reference has them as Latin-1 of their bytes. */
function textLabels({ labels }: ReferenceSeries): [string, string][] {
  const utf8 = (latin1: string): string => Buffer.from(latin1, "latin1").toString("utf8");
  return labels.map(([name, value]) => [utf8(name), utf8(value)]);
}

function withoutTask(series: ReferenceSeries): ReferenceSeries {
  return { ...series, labels: series.labels.filter(([name]) => name !== TASK_LABEL) };
}

describe("captured requests of Prometheus and vmagent through the gateway to three receivers", () => {
  let rig: GatewayRig;
  beforeAll(async () => {
    rig = await GatewayRig.start(3, taskRoute);
  });
  afterAll(async () => {
    await rig.stop();
  });

  const vectors = [...readVectors("rw1_requests"), ...readVectors("vm_requests")];
  const snappy = vectors.filter(({ encoding }) => encoding === "snappy");

  it.each(snappy)("$name arrives once, bit for bit, in order, where explain says", async ({ body }) => {
    const sent = decodeBody(body);
    rig.receivers.forEach((receiver) => receiver.requests.splice(0));
    expect(await rig.send(body)).toMatchObject({ status: 204, text: "" });

    const explainer = new Explainer(rig.config);
    const expected: ReferenceSeries[][] = rig.receivers.map(() => []);
    for (const series of sent.series) {
      const explanation = explainer.explain(textLabels(series));
      const route = "routes" in explanation ? explanation.routes[0] : undefined;
      const labels = (route?.labels ?? []).map(
        ([name, value]) =>
          [Buffer.from(name).toString("latin1"), Buffer.from(value).toString("latin1")] as const,
      );
      expect(labels.filter(([name]) => name === TASK_LABEL)).toEqual([[TASK_LABEL, String(route?.task)]]);
      expect(withoutTask({ ...series, labels })).toEqual(series);
      expected[route?.slots?.[0] ?? -1]?.push({ ...series, labels });
    }
    // The same series in the same order at each upstream: nothing lost, doubled, moved or changed.
    expect(rig.receivers.map(({ series }) => series)).toEqual(expected);
    // Senders that sort find the task label in sorted place.
    for (const { labels } of rig.receivers.flatMap(({ series }) => series)) {
      const names = labels.map(([name]) => name).filter((name) => name !== TASK_LABEL);
      if (names.join() !== [...names].sort().join()) continue;
      const all = labels.map(([name]) => name);
      expect(all).toEqual([...all].sort());
    }
    // Metadata is not waited for, but comes to every upstream.
    for (const receiver of rig.receivers) {
      await expect.poll(() => receiver.requests.flatMap(({ metadata }) => metadata)).toEqual(sent.metadata);
    }
  });

  it("has seen samples, histograms, exemplars, metadata and stale markers", () => {
    const all = snappy.map(({ body }) => decodeBody(body));
    const series = all.flatMap((request) => request.series);
    expect(series.some(({ histograms }) => histograms.length > 0)).toBe(true);
    expect(series.some(({ exemplars }) => exemplars.length > 0)).toBe(true);
    expect(
      series.some(({ samples }) => samples.some(({ valueBits }) => valueBits === "7ff0000000000002")),
    ).toBe(true);
    expect(all.some(({ metadata }) => metadata.length > 0)).toBe(true);
  });

  it("adds up in the metrics", async () => {
    for (const items of ["samples", "histograms", "exemplars"]) {
      const received = await rig.metric(`${items}_received_total`);
      expect(received).toBeGreaterThan(0);
      expect(await rig.metric(`${items}_routed_total`)).toBe(received);
      expect(await rig.metric(`${items}_delivered_total`)).toBe(received);
      expect(await rig.metric(`${items}_in_flight`)).toBe(0);
    }
  });
});
