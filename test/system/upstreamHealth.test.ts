/** What the metrics say of an upstream that is well, slow or away. */
import { afterEach, describe, expect, it } from "vitest";
import { label, requestBody, sample, series } from "../reference/build.ts";
import { GatewayRig, taskRoute } from "./gatewayRig.ts";

let rig: GatewayRig;
afterEach(() => rig.stop());

function bodyOf(ageMs: number, value = ""): Uint8Array {
  return requestBody(series(label("__name__", "a"), label("b", value), sample(1, Date.now() - ageMs)));
}

async function isThere(name: string): Promise<boolean> {
  const text = await (await fetch(`${rig.origin}/metrics`)).text();
  return text.includes(`\nstream_metrics_route_${name}{`);
}

describe("the lag of an upstream", () => {
  it("is the age of the newest data that it has accepted, and absent before", async () => {
    rig = await GatewayRig.start(1, taskRoute);
    expect(await isThere("delivered_lag_seconds")).toBe(false);
    await rig.send(bodyOf(3_600_000));
    const lag = await rig.metric("delivered_lag_seconds");
    expect(lag).toBeGreaterThanOrEqual(3_600);
    expect(lag).toBeLessThan(3_630);

    await rig.send(bodyOf(60_000));
    expect(await rig.metric("delivered_lag_seconds")).toBeLessThan(90);
    await rig.send(bodyOf(7_200_000));
    expect(await rig.metric("delivered_lag_seconds")).toBeLessThan(90);
  });

  it("grows again after data that is of the future", async () => {
    rig = await GatewayRig.start(1, taskRoute);
    await rig.send(bodyOf(-86_400_000));
    await expect.poll(() => rig.metric("delivered_lag_seconds")).toBeGreaterThan(0.05);
  });
});

describe("the age of what is in memory", () => {
  it("grows while the upstream does not answer, and is 0 when nothing is left", async () => {
    rig = await GatewayRig.start(1, (urls) => taskRoute(urls, "{on_outage: refuse}"));
    expect(await rig.metric("in_flight_oldest_age_seconds")).toBe(0);
    let answerIt: () => void = () => undefined;
    rig.receiver(0).answer = (response) => {
      answerIt = () => response.writeHead(204).end();
    };
    const answer = rig.send(bodyOf(0));
    await expect.poll(() => rig.metric("in_flight_oldest_age_seconds")).toBeGreaterThan(0.2);
    answerIt();
    expect((await answer).status).toBe(204);
    expect(await rig.metric("in_flight_oldest_age_seconds")).toBe(0);
  });
});

describe("the time until a spool is full", () => {
  it("is told while it grows, and not before", async () => {
    rig = await GatewayRig.start(1, (urls) => taskRoute(urls, "{spool_after: 20ms}"));
    rig.receiver(0).answer = (response) => response.writeHead(500).end();
    await rig.send(bodyOf(0));
    expect(await isThere("spool_until_full_seconds")).toBe(false);
    await expect
      .poll(async () => {
        await rig.send(bodyOf(0, "x".repeat(10_000)));
        return isThere("spool_until_full_seconds");
      })
      .toBe(true);
    const bytes = await rig.metric("spool_bytes");
    const seconds = await rig.metric("spool_until_full_seconds");
    // Full at 1GiB, and it has taken some seconds for what there is.
    const secondsForAll = (1024 ** 3 / bytes) * 5;
    expect(seconds).toBeGreaterThan(secondsForAll / 2);
    expect(seconds).toBeLessThan(secondsForAll * 4);
  });
});
