import { pino } from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { warmUpHttp } from "../../src/warmUpHttp.ts";
import { GatewayRig, taskRoute } from "./gatewayRig.ts";

const now = (): number => performance.timeOrigin + performance.now();

/** Of an address range that is for documentation: no machine has it. */
const NOBODYS_ADDRESS = "192.0.2.1";

/** What is open in this process besides its standard streams, by kind, e.g. TCPServerWrap. */
function openHandles(): string[] {
  return process
    .getActiveResourcesInfo()
    .filter((kind) => kind.startsWith("TCP"))
    .sort();
}

async function warmUpAt(host: string): Promise<{ readonly level: number; readonly msg: string }[]> {
  const lines: string[] = [];
  await warmUpHttp(host, pino({ level: "trace" }, { write: (line: string) => lines.push(line) }), now);
  return lines.map((line) => JSON.parse(line) as { level: number; msg: string });
}

describe("warming up the ways in and out", () => {
  it("succeeds in silence, soon, and leaves nothing open", async () => {
    const before = openHandles();
    const startedAt = now();
    expect(await warmUpAt("127.0.0.1")).toEqual([]);
    expect(now() - startedAt).toBeLessThan(5_000);
    await expect.poll(openHandles).toEqual(before);
  });

  it("warns when it cannot listen, throws nothing, and leaves nothing open", async () => {
    const before = openHandles();
    expect(await warmUpAt(NOBODYS_ADDRESS)).toMatchObject([
      { level: pino.levels.values["warn"], err: { code: "EADDRNOTAVAIL" } },
    ]);
    await expect.poll(openHandles).toEqual(before);
  });
});

describe("a gateway that has warmed up", () => {
  let rig: GatewayRig;
  afterEach(() => rig.stop());

  it("has counted no request and sent its upstreams nothing", async () => {
    rig = await GatewayRig.start(1, taskRoute);
    expect(await rig.metric("series_received_total")).toBe(0);
    expect(await rig.metric("request_body_bytes_total")).toBe(0);
    expect(rig.receiver(0).headers).toEqual([]);
  });
});
