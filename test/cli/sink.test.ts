import { createServer } from "node:net";
import { compress } from "snappyjs";
import { afterEach, describe, expect, it } from "vitest";
import { type RunningSink, startSink } from "../../src/cli/sink.ts";
import { SinkCounts, type SinkStats } from "../../src/cli/sinkCounts.ts";
import { decodeWriteRequest, type RawWriteRequest } from "../../src/cli/referenceDecoder.ts";
import { readVectors } from "../reference/vectors.ts";
import { encodeReference, type ReferenceLabel } from "../reference/writeRequest.ts";

const LOOPBACK = { host: "127.0.0.1", port: 0 };
const NOW = Date.parse("2026-11-30T12:00:00Z");
const VECTORS = [...readVectors("rw1_requests"), ...readVectors("vm_requests")];

const running: RunningSink[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((sink) => sink.close()));
});

async function startOne(accepted?: (request: RawWriteRequest, plain: Uint8Array) => void): Promise<string> {
  const events = accepted === undefined ? {} : { events: () => ({ accepted }) };
  const sink = await startSink({ listen: [LOOPBACK], now: () => NOW, ...events });
  running.push(sink);
  return sink.receivers[0]?.url ?? "";
}

async function post(
  url: string,
  body: Uint8Array,
  headers: Record<string, string> = {},
): Promise<[number, string]> {
  const response = await fetch(url, { method: "POST", body, headers });
  return [response.status, await response.text()];
}

async function statsOf(url: string): Promise<SinkStats> {
  const response = await fetch(`${url}stats`);
  return (await response.json()) as SinkStats;
}

function vector(name: string): (typeof VECTORS)[number] {
  const found = VECTORS.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no vector ${name}`);
  return found;
}

function plainSeries(...labelSets: ReferenceLabel[][]): Uint8Array {
  return encodeReference({
    series: labelSets.map((labels) => ({
      labels,
      samples: [{ valueBits: "7ff0000000000002", timestamp: "1796006259632" }],
      exemplars: [],
      histograms: [],
    })),
    metadata: [],
  });
}

describe("sink, recorded requests", () => {
  it("takes them at any path and counts every item", async () => {
    const url = await startOne();
    const { body, headers } = vector("rw1_requests/exemplars-native");
    expect(await post(`${url}any/path?at=all`, body, { "User-Agent": headers["User-Agent"] ?? "" })).toEqual([
      204,
      "",
    ]);
    expect(await post(url, vector("rw1_requests/metadata-290").body)).toEqual([204, ""]);
    const stats = await statsOf(url);
    expect(stats).toMatchObject({
      listen: new URL(url).host,
      requests: 2,
      refused: 0,
      samples: 49,
      histograms: 3,
      exemplars: 8,
      metadata: 290,
      body_bytes: 1884 + 16061,
      series: 52,
      series_exact: true,
      last_request: "2026-11-30T12:00:00.000Z",
      tasks: [],
    });
  });

  it("hands on what it decoded, bit for bit", async () => {
    const plains: Uint8Array[] = [];
    const url = await startOne((request, plain) => {
      expect(request.timeseries).toHaveLength(1);
      plains.push(Uint8Array.from(plain));
    });
    const plain = plainSeries([["__name__", "up"]]);
    await post(url, compress(plain));
    expect(plains).toEqual([Uint8Array.from(plain)]);
  });

  it("takes a snappy block of nothing", async () => {
    expect(await post(await startOne(), Uint8Array.of(0))).toEqual([204, ""]);
  });
});

describe("sink, requests it cannot take", () => {
  const good = vector("rw1_requests/self-small").body;
  const rows = [
    {
      name: "zstd",
      body: vector("vm_requests/small").body,
      headers: { "Content-Encoding": "zstd" },
      status: 415,
      reply: /zstd/,
    },
    {
      name: "a 2.0 message by its Content-Type",
      body: good,
      headers: { "Content-Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request" },
      status: 415,
      reply: /io\.prometheus\.write\.v2\.Request/,
    },
    {
      name: "a 2.0 message without headers",
      body: compress(Uint8Array.of(0x22, 0)),
      headers: {},
      status: 415,
      reply: /2\.0/,
    },
    { name: "an empty body", body: new Uint8Array(0), headers: {}, status: 400, reply: /empty/ },
    { name: "a truncated block", body: good.subarray(0, 100), headers: {}, status: 400, reply: /byte 100/ },
    {
      name: "a broken message",
      body: compress(Uint8Array.of(0x0a, 5, 0x0a)),
      headers: {},
      status: 400,
      reply: /byte \d/,
    },
    {
      name: "a block that declares more than 64 MiB",
      body: Uint8Array.of(0x81, 0x80, 0x80, 0x20, 0),
      headers: {},
      status: 400,
      reply: /67108865 plain bytes, the limit is 67108864/,
    },
  ];
  it.each(rows)(
    "answers $status with the reason for $name and counts none of it",
    async ({ body, headers, status, reply }) => {
      const url = await startOne();
      const [answered, text] = await post(url, body, headers);
      expect(answered).toBe(status);
      expect(text).toMatch(reply);
      const stats = await statsOf(url);
      expect(stats).toMatchObject({ requests: 0, refused: 1, samples: 0, series: 0, body_bytes: 0 });
      expect(stats.last_refusal).toBe(`${status}: ${text.trimEnd()}`);
    },
  );

  it("answers 404 to other pages and 405 to other methods", async () => {
    const url = await startOne();
    const page = await fetch(`${url}api/v1/write`);
    const put = await fetch(url, { method: "PUT", body: good });
    expect([page.status, put.status, put.headers.get("Allow")]).toEqual([404, 405, "GET, HEAD, POST"]);
  });
});

describe("sink, its page", () => {
  it("shows counts, the busiest metrics, tasks and the last series with their values", async () => {
    const url = await startOne();
    const busy = (job: string, task: string): ReferenceLabel[] => [
      ["__name__", "busy_total"],
      ["job", job],
      ["stream_task_id", task],
    ];
    await post(url, compress(plainSeries([["__name__", "up"]], busy("a", "94"), busy("b", "7"))));
    const page = await (await fetch(url)).text();
    const lines = page.split("\n");
    expect(lines).toContain("series        3 different");
    expect(lines).toContain("tasks         2 seen: 7 94");
    expect(lines.indexOf("           2  busy_total")).toBeLessThan(lines.indexOf("           1  up"));
    const series = lines.indexOf('busy_total{job="b",stream_task_id="7"}');
    expect(lines[series + 1]).toBe("  StaleNaN @ 2026-11-30T02:37:39.632Z (1796006259632 ms)");
  });

  it("shows no control character of what was sent", async () => {
    const url = await startOne();
    const hostile = "\x1b[2J";
    await post(
      url,
      compress(
        plainSeries([
          ["__name__", hostile],
          ["stream_task_id", hostile],
        ]),
      ),
    );
    const page = await (await fetch(url)).text();
    expect(page).toContain("\\u001b[2J");
    expect(page).not.toContain("\u001b");
  });
});

describe("sink, several receivers", () => {
  it("counts at each what came there", async () => {
    const sink = await startSink({ listen: [LOOPBACK, LOOPBACK], now: () => NOW });
    running.push(sink);
    const [first, second] = sink.receivers;
    await post(first?.url ?? "", vector("rw1_requests/self-small").body);
    expect([first?.stats().requests, second?.stats().requests]).toEqual([1, 0]);
    expect(first?.address.port).not.toBe(second?.address.port);
  });

  it("listens nowhere when one of its ports is taken", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => {
      other.listen(0, "127.0.0.1", resolve);
    });
    const { port: taken } = other.address() as { port: number };
    const probe = await startSink({ listen: [LOOPBACK], now: () => NOW });
    const free = probe.receivers[0]?.address ?? LOOPBACK;
    await probe.close();
    const failed = startSink({ listen: [free, { host: "127.0.0.1", port: taken }], now: () => NOW });
    await expect(failed).rejects.toThrow(`EADDRINUSE: address already in use 127.0.0.1:${taken}`);
    const again = await startSink({ listen: [free], now: () => NOW });
    await again.close();
    other.close();
  });
});

describe("sink, bounds of its memory", () => {
  const request = (...labelSets: ReferenceLabel[][]): RawWriteRequest =>
    decodeWriteRequest(plainSeries(...labelSets));
  const named = (name: string, task = "0"): ReferenceLabel[] => [
    ["__name__", name],
    ["stream_task_id", task],
  ];

  it("counts one series once, whatever the order of its labels", () => {
    const counts = new SinkCounts("test");
    const labels = named("a");
    counts.accept(request(labels, labels.toReversed(), named("b")), 1, 1);
    expect(counts.stats()).toMatchObject({ series: 2, samples: 3 });
  });

  it("says so when there are more series than it keeps apart", () => {
    const counts = new SinkCounts("test", { maxSeries: 2, maxNames: 10 });
    counts.accept(request(named("a"), named("b"), named("a")), 1, 1);
    expect(counts.stats()).toMatchObject({ series: 2, series_exact: true });
    counts.accept(request(named("c")), 1, 1);
    expect(counts.stats()).toMatchObject({ series: 2, series_exact: false });
  });

  it("keeps no more metric names and tasks than its limit", () => {
    const counts = new SinkCounts("test", { maxSeries: 10, maxNames: 2 });
    counts.accept(request(named("a", "1"), named("b", "10"), named("c", "2")), 1, 1);
    const { tasks, busiest } = counts.stats();
    expect([tasks, busiest.map(({ name }) => name)]).toEqual([
      ["1", "10"],
      ["a", "b"],
    ]);
  });

  it("keeps the last five series, cut to a few lines of a few hundred characters", () => {
    const counts = new SinkCounts("test");
    counts.accept(
      request(...["a", "b", "c", "d", "e", "f", "x".repeat(2000)].map((name) => named(name))),
      1,
      1,
    );
    const { recent } = counts.stats();
    expect(recent.map(([name = ""]) => name.slice(0, 2))).toEqual(["c{", "d{", "e{", "f{", "xx"]);
    expect(Math.max(...recent.flat().map((line) => line.length))).toBe(500);
  });
});
