/** Failures that come before an upstream has read a request: of its name, its address, its handshake, and while it reads. */
import type { LookupFunction, Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { ParcelOutcome } from "../../src/deliver/outcome.ts";
import { makeParcel, numbersIn } from "./parcels.ts";
import { SenderUnderTest } from "./senderUnderTest.ts";
import type { Settings } from "./senderUnderTest.ts";
import { StubConnections, StubUpstream, answer, closedPort } from "./stubUpstream.ts";

const OK = answer(204);
const FIRST_RECORD_OF_HTTP = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
/** More than the system keeps of what nobody reads. */
const LARGE_BYTES = 16 * 1024 * 1024;
const LONG_MS = 10_000;

let test: SenderUnderTest | undefined;
const stubs: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await test?.sender.close(Date.now());
  test = undefined;
  for (const stub of stubs.splice(0)) await stub.close();
});

async function upstream(at: { host?: string; port?: number } = {}): Promise<StubUpstream> {
  const stub = await StubUpstream.start([OK], null, at);
  stubs.push(stub);
  return stub;
}

async function connections(script: readonly ((socket: Socket) => void)[]): Promise<StubConnections> {
  const stub = await StubConnections.start(script);
  stubs.push(stub);
  return stub;
}

async function deliverTo(
  url: string,
  { bytes = 100, forMs = LONG_MS, ...settings }: Settings & { bytes?: number; forMs?: number } = {},
): Promise<ParcelOutcome | undefined> {
  test ??= new SenderUnderTest(url, settings);
  return (await test.deliver([makeParcel(512, bytes)], Date.now() + forMs))[0];
}

/** Resolves names one after another, and stays with the last; null is a name that is not known. */
function resolving(
  ...addresses: readonly [string | null, ...(string | null)[]]
): LookupFunction & { asked: string[] } {
  const asked: string[] = [];
  const lookup: LookupFunction = (host, options, callback) => {
    const address = addresses[Math.min(asked.length, addresses.length - 1)];
    asked.push(host);
    if (address === null || address === undefined) {
      const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: "ENOTFOUND" });
      callback(error, []);
    } else if (options.all === true) callback(null, [{ address, family: 4 }]);
    else callback(null, address, 4);
  };
  return Object.assign(lookup, { asked });
}

describe("an upstream that refuses connections", () => {
  it("gets its parcels once it takes them", async () => {
    const port = await closedPort();
    const outcome = deliverTo(`http://127.0.0.1:${port}/`);
    await expect.poll(() => test?.attempts.length).toBeGreaterThan(2);
    const stub = await upstream({ port });
    expect(await outcome).toEqual({ kind: "delivered" });
    expect(stub.requests).toHaveLength(1);
    expect(test?.logText()).toContain("connect ECONNREFUSED");
  });
});

describe("an upstream that breaks off while it reads a request", () => {
  it.each([
    {
      name: "by a reset",
      end: (socket: Socket) => {
        socket.resetAndDestroy();
      },
    },
    {
      name: "in order",
      end: (socket: Socket) => {
        socket.end();
        socket.pause();
      },
    },
  ])("$name gets the request again, whole", async ({ end }) => {
    const behind = await upstream();
    const front = await connections([
      (socket) => {
        socket.once("data", () => {
          end(socket);
        });
      },
      (socket) => {
        behind.take(socket);
      },
    ]);
    const outcome = await deliverTo(`http://127.0.0.1:${front.port}/`, { bytes: LARGE_BYTES });
    expect(outcome).toEqual({ kind: "delivered" });
    expect(test?.attempts).toEqual(["retry", "delivered"]);
    expect(behind.requests.flatMap(({ body }) => numbersIn(body))).toEqual([512]);
    expect(behind.requests[0]?.body.length).toBeGreaterThan(LARGE_BYTES);
  });
});

describe("an upstream that reads a request", () => {
  it.each([
    { name: "not at all", bytesAtATime: 0 },
    { name: "a little at a time", bytesAtATime: 1024 },
  ])("$name has remote_timeout for it, and its connection closed then", async ({ bytesAtATime }) => {
    const accepted: Socket[] = [];
    const stub = await connections([(socket) => accepted.push(socket.pause())]);
    const reading = setInterval(() => {
      if (bytesAtATime > 0) accepted[0]?.read(bytesAtATime);
    }, 5);
    const outcome = await deliverTo(`http://127.0.0.1:${stub.port}/`, {
      bytes: LARGE_BYTES,
      forMs: 1_000,
      delivery: { remoteTimeoutMs: 300, minBackoffMs: 60_000, maxBackoffMs: 60_000 },
      random: () => 0.9,
    });
    clearInterval(reading);
    expect(outcome).toMatchObject({ kind: "undelivered", cause: "no answer within 300 ms" });
    expect(test?.attempts).toEqual(["retry"]);
    expect(test?.durationsMs[0]).toBeLessThan(3_000);
    // What the system has of it still comes, and then the end, before the whole.
    accepted[0]?.resume();
    await expect.poll(() => accepted[0]?.closed).toBe(true);
    expect(accepted[0]?.bytesRead).toBeLessThan(LARGE_BYTES);
  });
});

describe("an upstream that fails in the TLS handshake", () => {
  it.each([
    { name: "by a reset", shake: (socket: Socket) => socket.resetAndDestroy(), says: /./ },
    { name: "by its end", shake: (socket: Socket) => socket.end(), says: /disconnected before secure TLS/ },
    {
      name: "by an answer in HTTP",
      shake: (socket: Socket) => socket.end(FIRST_RECORD_OF_HTTP),
      says: /wrong version number|packet length/,
    },
  ])("$name is tried again, and the cause is told", async ({ shake, says }) => {
    const stub = await connections([
      (socket) => {
        socket.once("data", () => shake(socket));
      },
    ]);
    const outcome = await deliverTo(`https://127.0.0.1:${stub.port}/`, { forMs: 500 });
    expect(outcome).toMatchObject({ kind: "undelivered", cause: expect.stringMatching(says) as string });
    expect(test?.attempts.length).toBeGreaterThan(1);
    expect(new Set(test?.attempts)).toEqual(new Set(["retry"]));
  });
});

describe("the name of an upstream", () => {
  it("that is not known is asked for again, until it is", async () => {
    const stub = await upstream();
    const lookup = resolving(null, null, "127.0.0.1");
    const outcome = await deliverTo(`http://upstream.test:${stub.port}/`, { lookup });
    expect(outcome).toEqual({ kind: "delivered" });
    expect(test?.attempts).toEqual(["retry", "retry", "delivered"]);
    expect(lookup.asked).toEqual(Array(3).fill("upstream.test"));
    expect(test?.logText()).toContain("getaddrinfo ENOTFOUND upstream.test");
  });

  it("is asked for with every new connection, so that an upstream may move", async () => {
    const before = await upstream();
    const { port } = before;
    const after = await upstream({ host: "127.0.0.2", port });
    const url = `http://upstream.test:${port}/`;
    expect(await deliverTo(url, { lookup: resolving("127.0.0.1", "127.0.0.2") })).toEqual({
      kind: "delivered",
    });
    await before.close();
    stubs.splice(stubs.indexOf(before), 1);
    expect(await deliverTo(url)).toEqual({ kind: "delivered" });
    expect([before.requests.length, after.requests.length]).toEqual([1, 1]);
  });
});
