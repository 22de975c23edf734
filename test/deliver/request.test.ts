import { afterEach, describe, expect, it } from "vitest";
import type { UpstreamOptions } from "../../src/deliver/options.ts";
import { makeParcel, numbersIn } from "./parcels.ts";
import { SenderUnderTest } from "./senderUnderTest.ts";
import { StubUpstream, answer } from "./stubUpstream.ts";
import type { Act, ReceivedRequest } from "./stubUpstream.ts";

let stub: StubUpstream;
let test: SenderUnderTest;
afterEach(async () => {
  await test.sender.close(Date.now());
  await stub.close();
});

async function requestTo(path: string, upstream: Partial<UpstreamOptions> = {}): Promise<ReceivedRequest> {
  await start(answer(204), path, upstream);
  expect(await test.deliver([makeParcel()], Date.now() + 5_000)).toEqual([{ kind: "delivered" }]);
  const [request] = stub.requests;
  if (request === undefined) throw new Error("nothing was received");
  return request;
}

async function start(act: Act, path: string, upstream: Partial<UpstreamOptions>): Promise<void> {
  stub = await StubUpstream.start([act]);
  test = new SenderUnderTest(`http://127.0.0.1:${stub.port}${path}`, { upstream });
}

describe("a request to an upstream", () => {
  it("is remote write 1.0 with its length told", async () => {
    const { method, headers, body } = await requestTo("/api/v1/write");
    expect(method).toBe("POST");
    expect(headers).toMatchObject({
      "content-encoding": "snappy",
      "content-type": "application/x-protobuf",
      "x-prometheus-remote-write-version": "0.1.0",
      "user-agent": "stream-metrics-route/test",
      "content-length": String(body.length),
      host: `127.0.0.1:${stub.port}`,
    });
    expect(headers).not.toHaveProperty("authorization");
    expect(headers).not.toHaveProperty("transfer-encoding");
  });

  it("keeps path and query of the url, escapes included, and sends no fragment", async () => {
    const { path } = await requestTo("/insert/a%2Fb/write?extra_label=a%3Db&x#frag");
    expect(path).toBe("/insert/a%2Fb/write?extra_label=a%3Db&x");
  });

  it("asks for / where the url has no path", async () => {
    expect((await requestTo("")).path).toBe("/");
  });

  it("carries configured headers", async () => {
    const { headers } = await requestTo("/", { headers: { "X-Scope-OrgID": "team-a", "X-Empty": "" } });
    expect(headers).toMatchObject({ "x-scope-orgid": "team-a", "x-empty": "" });
  });

  it("carries basic auth, in UTF-8", async () => {
    const { headers } = await requestTo("/", { auth: { kind: "basic", username: "grüße", password: "p:w" } });
    expect(headers.authorization).toBe(`Basic ${Buffer.from("grüße:p:w").toString("base64")}`);
  });

  it("carries an authorization of any type", async () => {
    const auth = { kind: "authorization", type: "Bearer", credentials: "t0ken" } as const;
    expect((await requestTo("/", { auth })).headers.authorization).toBe("Bearer t0ken");
  });

  it("uses connections again", async () => {
    await start(answer(200, "ok"), "/", {});
    for (let call = 0; call < 20; call += 1) {
      await test.deliver([makeParcel(call)], Date.now() + 5_000);
    }
    expect(stub.requests.flatMap(({ body }) => numbersIn(body))).toEqual(
      Array.from({ length: 20 }).map((_, call) => call),
    );
    // Not one: a connection is free again a moment after its answer was there.
    expect(stub.openConnections).toBeLessThanOrEqual(2);
  });
});

describe("the tenant of a request to an upstream", () => {
  const LATIN1 = Buffer.from(Array.from({ length: 0x80 }, (_, index) => index + 0x80)).toString("latin1");
  const PRINTABLE = "!\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|} ~";

  async function startWith(tenantHeader: string | null, headers: Record<string, string> = {}): Promise<void> {
    stub = await StubUpstream.start([answer(204)]);
    test = new SenderUnderTest(`http://127.0.0.1:${stub.port}/`, {
      upstream: { headers },
      delivery: { tenantHeader },
    });
  }

  function deliverOf(tenant: string | null): Promise<unknown> {
    return test.deliver([makeParcel()], Date.now() + 5_000, 0, tenant);
  }

  /** The values of the header in each request, as the bytes came. */
  function tenants(): (string | string[] | undefined)[] {
    return stub.requests.map(({ headers }) => headers["x-scope-orgid"]);
  }

  const rows = [
    { name: "plain", tenant: "team-a" },
    { name: "every visible character", tenant: PRINTABLE },
    { name: "bytes that are no UTF-8", tenant: LATIN1 },
    { name: "UTF-8", tenant: Buffer.from("grüße-日本").toString("latin1") },
    { name: "nothing", tenant: "" },
    { name: "what looks like several", tenant: "a, b|c" },
  ];
  it.each(rows)("arrives byte for byte: $name", async ({ tenant }) => {
    await startWith("X-Scope-OrgID");
    await deliverOf(tenant);
    expect(tenants()).toEqual([tenant]);
    expect(stub.requests[0]?.headers).toMatchObject({ "content-encoding": "snappy" });
  });

  it("is not sent where there is none, or no header for it", async () => {
    await startWith("X-Scope-OrgID");
    await deliverOf(null);
    expect(tenants()).toEqual([undefined]);
    await test.sender.close(Date.now());
    await stub.close();
    await startWith(null);
    await deliverOf("team-a");
    expect(JSON.stringify(stub.requests[0]?.headers)).not.toContain("team-a");
  });

  it("replaces what is configured for the upstream under this name, which stands for requests without one", async () => {
    await startWith("x-scope-orgid", { "X-Scope-OrgID": "anonymous", "X-Other": "o" });
    await deliverOf("team-a");
    await deliverOf(null);
    expect(tenants()).toEqual(["team-a", "anonymous"]);
    expect(stub.requests.map(({ headers }) => headers["x-other"])).toEqual(["o", "o"]);
  });

  it("goes with metadata too", async () => {
    await startWith("X-Scope-OrgID");
    await test.sender.deliverMetadata(new Uint8Array([1]), LATIN1);
    await test.sender.deliverMetadata(new Uint8Array([2]), null);
    expect(tenants()).toEqual([LATIN1, undefined]);
  });

  it("keeps apart what gathers for the upstream, though no header is sent", async () => {
    stub = await StubUpstream.start([answer(204)]);
    test = new SenderUnderTest(`http://127.0.0.1:${stub.port}/`, {
      delivery: { batchSendDeadlineMs: 60_000 },
    });
    const deadline = Date.now() + 5_000;
    const calls = ["a", "b", "a", null, "b"].map((tenant) =>
      test.deliver([makeParcel(1)], deadline, 0, tenant),
    );
    test.sender.flush();
    await Promise.all(calls);
    expect(stub.requests.map(({ body }) => numbersIn(body).length).sort()).toEqual([1, 2, 2]);
  });
});

describe("secrets, when the upstream repeats them", () => {
  const rows = [
    { name: "a password", auth: { kind: "basic", username: "bob", password: "s3cret-pw" } },
    { name: "a token", auth: { kind: "authorization", type: "Bearer", credentials: "s3cret-token" } },
  ] as const;
  it.each(rows)("shows $name neither in the log nor in what the sender is told", async ({ auth }) => {
    const authorization =
      auth.kind === "basic"
        ? `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString("base64")}`
        : `${auth.type} ${auth.credentials}`;
    const secret = auth.kind === "basic" ? auth.password : auth.credentials;
    for (const act of [
      answer(401, `not allowed: ${authorization} ${secret}`),
      answer(503, `not now: ${authorization} ${secret}`, { "Retry-After": "60" }),
      answer(302, "", { Location: `/login/${secret}`, "Retry-After": "60" }),
    ]) {
      await start(act, "/", { auth });
      const outcomes = await test.deliver([makeParcel()], Date.now() + 5_000);
      const shown = test.logText() + JSON.stringify(outcomes);
      expect(shown).toContain("<secret>");
      expect(shown).not.toContain(secret);
      expect(shown).not.toContain(authorization.split(" ")[1]);
      await test.sender.close(Date.now());
      await stub.close();
    }
    await start(answer(204), "/", {});
  });

  it("shows neither values of configured headers nor of the url's arguments", async () => {
    await start(answer(400, "got key-1234 and token-5678"), "/write?token=token-5678", {
      headers: { "X-Api-Key": "key-1234" },
    });
    const outcomes = await test.deliver([makeParcel()], Date.now() + 5_000);
    expect(outcomes).toMatchObject([{ kind: "refused", reply: "got <secret> and <secret>" }]);
    expect(test.logText()).not.toMatch(/1234|5678/);
  });

  it("leaves words that are like a header which is too short for a secret", async () => {
    await start(answer(400, "10.0.0.1 has no tenant 0"), "/write?retries=10", {
      headers: { AccountID: "0" },
    });
    const outcomes = await test.deliver([makeParcel()], Date.now() + 5_000);
    expect(outcomes).toMatchObject([{ kind: "refused", reply: "10.0.0.1 has no tenant 0" }]);
  });
});
