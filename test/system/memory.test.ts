/** A gateway with little memory, many senders, and an upstream that takes everything and answers nothing. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answer, blackHole, StubUpstream } from "../deliver/stubUpstream.ts";
import { Metrics } from "../peers/metrics.ts";
import { freePort } from "../peers/program.ts";
import { Rig } from "../peers/rig.ts";
import { label, oneSample, requestBody } from "../reference/build.ts";
import { WRITE_HEADERS } from "./gatewayRig.ts";
import { ledgerGaps } from "./ledger.ts";

const MAIN = resolve(import.meta.dirname, "../../dist/cmd/main.js");
const MIB = 1024 * 1024;
const IN_FLIGHT_MIB = 32;
const SENDERS = 300;
/** Of one request; all of them together are five times what the gateway may hold. */
const BODY_BYTES = 512 * 1024;
const VALUE_BYTES = 32 * 1024;
/** What the process may grow by besides: buffers of sockets, garbage, the heap of a busy process. */
const OTHER_MIB = 100;

let rig: Rig;
let slow: StubUpstream;
let quick: StubUpstream;
let origin: string;

beforeAll(async () => {
  rig = await Rig.create();
  slow = await StubUpstream.start([blackHole]);
  quick = await StubUpstream.start([answer(204)]);
  rig.closeAtEnd(slow);
  rig.closeAtEnd(quick);
  const listen = `127.0.0.1:${await freePort()}`;
  origin = `http://${listen}`;
  const configFile = join(rig.folder, "gateway.yaml");
  await writeFile(configFile, configText(listen));
  await rig.prepare(() =>
    rig.start({
      name: "gateway",
      command: process.execPath,
      args: [MAIN, "serve", "--config", configFile],
      readyUrl: `${origin}/-/ready`,
    }),
  );
});
afterAll(() => rig.end());

function configText(listen: string): string {
  const route = (name: string, upstream: StubUpstream): string => `
  - name: ${name}
    relabel_configs: [{source_labels: [to], regex: ".*${name}.*", action: keep}]
    upstreams: [{name: ${name}, url: "http://127.0.0.1:${upstream.port}/w"}]
    delivery: {on_outage: refuse, delivery_deadline: 8s, spool_after: 8s, remote_timeout: 8s}`;
  return `listen: ${listen}
admin_listen: off
shutdown: {drain_delay: 0s, grace: 2s}
memory: {in_flight_bytes: ${IN_FLIGHT_MIB}MiB}
routes:${route("slow", slow)}${route("quick", quick)}
`;
}

/** A request for one upstream or for both, of series that cannot be compressed. */
function bodyFor(to: string, bytes: number): Uint8Array<ArrayBuffer> {
  const count = Math.ceil(bytes / VALUE_BYTES);
  const text = (): string =>
    randomBytes(VALUE_BYTES).toString("base64").slice(0, Math.min(bytes, VALUE_BYTES));
  const series = Array.from({ length: count }, (_, index) =>
    oneSample(`s${index}`, label("text", text()), label("to", to)),
  );
  return new Uint8Array(requestBody(...series));
}

async function send(body: Uint8Array<ArrayBuffer>): Promise<{ status: number; retryAfter: string | null }> {
  const response = await fetch(`${origin}/api/v1/write`, { method: "POST", headers: WRITE_HEADERS, body });
  await response.arrayBuffer();
  return { status: response.status, retryAfter: response.headers.get("retry-after") };
}

async function metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
  return (await Metrics.fetch(`${origin}/metrics`)).sum(name, labels);
}

/** Says that a body comes, which does not. */
function announceBody(bytes: number): Socket {
  const headers = Object.entries({ ...WRITE_HEADERS, Host: "gateway", "Content-Length": bytes });
  const socket = connect(Number(new URL(origin).port), "127.0.0.1");
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST /api/v1/write HTTP/1.1\r\n${lines.join("")}\r\n`);
  return socket;
}

describe("large bodies on their way, as many as there is memory for", () => {
  it("keep other large ones out, and no small ones", async () => {
    const most = Math.ceil((IN_FLIGHT_MIB * MIB) / BODY_BYTES);
    const sockets = Array.from({ length: most }, () => announceBody(BODY_BYTES));
    try {
      await expect
        .poll(() => metric("stream_metrics_route_requests_refused_for_memory_total"))
        .toBeGreaterThan(0);
      expect((await send(bodyFor("quick", BODY_BYTES))).status).toBe(503);
      expect((await send(bodyFor("quick", 100))).status).toBe(204);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
    await expect.poll(() => metric("stream_metrics_route_in_flight_bytes")).toBe(0);
  });
});

describe("an upstream that does not answer, behind a gateway of little memory", () => {
  it("costs no more than its part of it: others are served, and all is free again at the end", async () => {
    const rssBefore = await metric("process_resident_memory_bytes");
    const large = bodyFor("slow", BODY_BYTES);
    const small = bodyFor("quick", 100);
    let answered = 0;
    const answers = Array.from({ length: SENDERS }, async () => {
      const answer = await send(large);
      answered += 1;
      return answer;
    });

    // Also while all of them come at once, and none of them finds memory any more.
    for (let sent = 0; sent < 20; sent++) {
      expect(await send(small)).toEqual({ status: 204, retryAfter: null });
      expect((await fetch(`${origin}/-/healthy`)).status).toBe(200);
    }
    await expect
      .poll(() => metric("stream_metrics_route_upstream_in_flight_bytes", { upstream: "slow" }))
      .toBeGreaterThan(0.3 * IN_FLIGHT_MIB * MIB);
    // All but those whose parcels it holds are refused at once.
    await expect.poll(() => answered).toBeGreaterThanOrEqual(SENDERS - (IN_FLIGHT_MIB * MIB) / BODY_BYTES);

    // As slow as ever, but the door is open: a request for both upstreams is refused for one of them.
    await expect.poll(async () => (await send(bodyFor("slow", BODY_BYTES))).status).toBe(503);
    for (let sent = 0; sent < 20; sent++) expect((await send(small)).status).toBe(204);
    const both = await send(bodyFor("slow and quick", BODY_BYTES));
    expect(both.status).toBe(503);
    expect(Number(both.retryAfter)).toBeGreaterThan(0);
    expect(
      await metric("stream_metrics_route_upstream_refused_for_memory_total", { upstream: "slow" }),
    ).toBeGreaterThan(0);
    expect(
      await metric("stream_metrics_route_upstream_in_flight_bytes", { upstream: "slow" }),
    ).toBeLessThanOrEqual(0.5 * IN_FLIGHT_MIB * MIB + 8 * MIB);
    const rssThen = await metric("process_resident_memory_bytes");
    expect(rssThen - rssBefore).toBeLessThan((IN_FLIGHT_MIB + OTHER_MIB) * MIB);

    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(statuses).toEqual(Array<number>(SENDERS).fill(503));
    await expect.poll(() => metric("stream_metrics_route_in_flight_bytes"), { timeout: 20_000 }).toBe(0);
    expect(ledgerGaps(await Metrics.fetch(`${origin}/metrics`), ["slow", "quick"])).toEqual([]);
  });
});
