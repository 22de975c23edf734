/** One reload after another in a gateway that serves: in the end it is as large as after the first few, and shows as much. */
import { readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { queryObjects } from "node:v8";
import { pino } from "pino";
import { compressSync } from "snappy";
import { Client } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { Gateway } from "../../src/gateway.ts";
import { collectGarbage } from "../deliver/garbage.ts";
import { until } from "../peers/until.ts";
import { Arrivals } from "./arrivals.ts";
import { configOf, WRITE_HEADERS } from "./gatewayRig.ts";
import { labelFields, timedSeries } from "./timedItems.ts";

/** Of which two in ten move series. A thousand are many seconds of a busy machine, and leave as little behind. */
const RELOADS = 200;
/** After which everything that there is has been there once. */
const FIRST_ROUNDS = 60;
const TIMEOUT_MS = 120_000;
const WITHIN_MS = 30_000;
/** Enough that a reload counts them, not made-up keys. */
const SERIES = 1_100;
const MIB = 1024 * 1024;
/** Fifty kilobytes a reload. One table of decisions that were kept would be more; V8's machine code takes one or two of them. */
const GROWTH_BYTES = 8 * MIB;
/** Less than one for each reload that moves series. */
const GROWTH_OBJECTS = 20;
/** What a resident set varies by of itself. */
const RESIDENT_GROWTH_BYTES = 64 * MIB;
const SETTLED_BYTES = MIB / 16;
const UPSTREAMS = 3;
const PATH = "/tasks";

interface Look {
  readonly lines: readonly string[];
  readonly descriptors: number;
  readonly timers: number;
  readonly objects: number;
  readonly heapBytes: number;
  readonly residentBytes: number;
}

describe("a gateway after hundreds of reloads under load: lists, addresses, credentials, rules", () => {
  let folder: string;
  let arrivals: Arrivals;
  let gateway: Gateway;
  let client: Client;
  const outcomes = new Set<string>();
  let [first, last]: (Look | null)[] = [null, null];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "many-reloads-"));
    arrivals = new Arrivals(UPSTREAMS + 1, [PATH], SERIES);
    const origins = await arrivals.start();
    const configs = variants(origins, join(folder, "spool"));
    gateway = await Gateway.open(configs[0], pino({ level: "silent" }));
    await gateway.start();
    client = new Client(`http://127.0.0.1:${gateway.port}`);
    await send();
    for (let reload = 1; reload <= RELOADS; reload += 1) {
      const { kind } = await gateway.reload(configs[reload % configs.length] ?? configs[0], false);
      outcomes.add(kind);
      await send();
      if (reload === FIRST_ROUNDS) first = await look();
    }
    last = await look();
  }, TIMEOUT_MS);
  afterAll(async () => {
    await client.close();
    await gateway.stop();
    await arrivals.close();
    await rm(folder, { recursive: true });
  });

  let timestampMs = Date.now();
  async function send(): Promise<void> {
    timestampMs += 1_000;
    const items = [{ kind: "sample", timestampMs }] as const;
    const all = Array.from({ length: SERIES }, (_, number) => timedSeries(labelFields(number), items));
    const body = compressSync(Buffer.concat(all));
    const request = { path: "/api/v1/write", method: "POST", headers: WRITE_HEADERS, body } as const;
    const response = await client.request(request);
    const text = await response.body.text();
    if (response.statusCode !== 204) throw new Error(`${response.statusCode}: ${text}`);
  }

  /** When connections are closed, and what they held is collected. */
  async function look(): Promise<Look> {
    const { statusCode, body } = await client.request({ path: "/metrics", method: "GET" });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${statusCode}: ${text}`);
    // Sometimes those to upstreams are as old as they may be while something is waited for, and sometimes they are not.
    await until("all connections but the client's to end", WITHIN_MS, () => active("TCPSocketWrap") <= 1);
    let [descriptors, objects, heapBytes] = [NaN, NaN, NaN];
    await until("descriptors and memory to settle", WITHIN_MS, () => {
      collectGarbage();
      const before = [descriptors, objects, heapBytes] as const;
      const { heapUsed, external } = process.memoryUsage();
      [descriptors, heapBytes] = [readdirSync("/proc/self/fd").length, heapUsed + external];
      objects = queryObjects(Object, { format: "count" });
      const isSettled = descriptors === before[0] && objects === before[1];
      return isSettled && Math.abs(heapBytes - before[2]) < SETTLED_BYTES;
    });
    const residentBytes = process.memoryUsage.rss();
    return {
      lines: namesIn(text),
      descriptors,
      timers: active("Timeout"),
      objects,
      heapBytes,
      residentBytes,
    };
  }

  it("has put each of them in force", () => {
    expect([...outcomes]).toEqual(["applied"]);
  });

  it("shows the metrics that it has shown before, and no more", () => {
    expect(first?.lines.length).toBeGreaterThan(100);
    expect(last?.lines).toEqual(first?.lines);
  });

  it("has no more connections, files and timers", () => {
    expect(last?.descriptors).toBeLessThanOrEqual((first?.descriptors ?? NaN) + 4);
    expect(last?.timers).toBeLessThanOrEqual((first?.timers ?? NaN) + 4);
  });

  it("keeps no object of a reload", () => {
    expect((last?.objects ?? NaN) - (first?.objects ?? NaN)).toBeLessThan(GROWTH_OBJECTS);
  });

  it("takes no more memory", () => {
    expect((last?.heapBytes ?? NaN) - (first?.heapBytes ?? NaN)).toBeLessThan(GROWTH_BYTES);
    expect((last?.residentBytes ?? NaN) - (first?.residentBytes ?? NaN)).toBeLessThan(RESIDENT_GROWTH_BYTES);
  });
});

/** How many of these keep the process from ending. */
function active(resource: string): number {
  return process.getActiveResourcesInfo().filter((name) => name === resource).length;
}

/** Nine that only differ in addresses and credentials, then one with a tombstone and another rule, which moves series. */
function variants(origins: readonly string[], spool: string): [Config, ...Config[]] {
  const of = (variant: number): Config => {
    const moves = variant === 9;
    const last = origins[variant % 2 === 0 ? 2 : 3] ?? "";
    const second = moves ? "removed: true" : `url: "${origins[1] ?? ""}${PATH}"`;
    return configOf(`
listen: 127.0.0.1:0
admin_listen: off
shutdown: {drain_delay: 0s, grace: 5s}
limits: {max_labels: 8}
memory: {decision_table_series: 20000, decision_table_bytes: 8MiB}
spool: {path: "${spool}"}
routes:
  - name: tasks
    relabel_configs: [{target_label: cluster, replacement: "${moves ? "eu" : "us"}"}]
    tasks: {count: 128, by: [instance, number]}
    upstreams:
      - {name: tasks-0, url: "${origins[0] ?? ""}${PATH}", basic_auth: {username: gateway, password: "${variant}"}}
      - {name: tasks-1, ${second}}
      - {name: tasks-2, url: "${last}${PATH}", headers: {X-Variant: "${variant}"}}
`);
  };
  return [of(0), ...Array.from({ length: 9 }, (_, variant) => of(variant + 1))];
}

/** The lines of a metrics page without their values, sorted; the hash of the configuration is another each time. */
function namesIn(page: string): string[] {
  return page
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.slice(0, line.lastIndexOf(" ")).replace(/hash="\w+"/, "hash"))
    .filter((name) => !/^nodejs_active_|^nodejs_gc_/.test(name))
    .sort();
}
