import { request as httpRequest } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import type { AdminRequest, Endpoint } from "../../src/admin/endpoint.ts";
import { AdminServer } from "../../src/admin/server.ts";

const TOKEN = "s3cret-ünïcode";
/** As it is sent: UTF-8, a character a byte. */
const SENT_TOKEN = Buffer.from(TOKEN).toString("latin1");

/** An admin listener with a few endpoints that record what they were asked. */
class Rig {
  readonly asked: AdminRequest[] = [];
  readonly failures: unknown[] = [];
  readonly server: AdminServer;
  port = 0;

  constructor(token: string | null) {
    const asks = (request: AdminRequest): void => {
      this.asked.push(request);
    };
    const endpoints: readonly Endpoint[] = [
      {
        method: "GET",
        path: "/api/v1/status/thing",
        answer: (request) => {
          asks(request);
          return { kind: "data", data: { thing: 1 } };
        },
      },
      {
        method: "POST",
        path: "/api/v1/do",
        answer: (request) => {
          asks(request);
          return { kind: "error", status: 409, errorType: "conflict", error: "not now" };
        },
      },
      {
        method: "GET",
        path: "/metrics",
        isPublic: true,
        answer: () => ({
          kind: "text",
          status: 200,
          text: "a 1\n",
          contentType: "text/plain; version=0.0.4",
        }),
      },
      {
        method: "GET",
        path: "/fails",
        answer: () => {
          throw new Error("broken");
        },
      },
    ];
    this.server = new AdminServer(endpoints, token, (error) => this.failures.push(error));
  }

  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.port}${path}`, init);
  }
}

describe("the admin listener", () => {
  const rigs: Rig[] = [];
  afterEach(async () => {
    for (const rig of rigs.splice(0)) await rig.server.close();
  });

  async function start(token: string | null = null): Promise<Rig> {
    const rig = new Rig(token);
    rigs.push(rig);
    rig.port = await rig.server.listen({ host: "127.0.0.1", port: 0 });
    return rig;
  }

  it("answers with data as Prometheus' API does", async () => {
    const rig = await start();
    const response = await rig.fetch("/api/v1/status/thing?a=b");
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await response.json()).toEqual({ status: "success", data: { thing: 1 } });
    expect(rig.asked[0]?.query.get("a")).toBe("b");
  });

  it("gives an endpoint the body, and its error with its status", async () => {
    const rig = await start();
    const response = await rig.fetch("/api/v1/do", { method: "POST", body: "wörds" });
    expect(response.status).toBe(409);
    expect(await response.json()).toEqual({ status: "error", errorType: "conflict", error: "not now" });
    expect(rig.asked[0]?.body).toBe("wörds");
  });

  it("answers in plain text where an endpoint does", async () => {
    const response = await (await start()).fetch("/metrics");
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4");
    expect(await response.text()).toBe("a 1\n");
  });

  it("says what there is when a path is unknown, and what a path takes when the method is wrong", async () => {
    const rig = await start();
    const unknown = await rig.fetch("/api/v1/write", { method: "POST", body: "x" });
    expect(unknown.status).toBe(404);
    expect(await unknown.text()).toContain("GET /api/v1/status/thing, POST /api/v1/do");
    const wrong = await rig.fetch("/api/v1/do");
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get("allow")).toBe("POST");
  });

  it("answers HEAD as GET, without a body", async () => {
    const response = await (await start()).fetch("/metrics", { method: "HEAD" });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe("");
  });

  it("answers 500 when an endpoint throws, says no more, and goes on", async () => {
    const rig = await start();
    const response = await rig.fetch("/fails");
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("broken");
    expect(rig.failures).toHaveLength(1);
    expect((await rig.fetch("/metrics")).status).toBe(200);
  });

  it("refuses a body that is no UTF-8, and does nothing", async () => {
    const rig = await start();
    const response = await rig.fetch("/api/v1/do", { method: "POST", body: new Uint8Array([0xff]) });
    expect(response.status).toBe(400);
    expect(rig.asked).toEqual([]);
  });

  it.each([
    { name: "no token", headers: {}, status: 401 },
    { name: "another token", headers: { Authorization: "Bearer guess" }, status: 401 },
    { name: "the token as another kind", headers: { Authorization: `Basic ${SENT_TOKEN}` }, status: 401 },
    { name: "the token", headers: { Authorization: `Bearer ${SENT_TOKEN}` }, status: 200 },
    {
      name: "the token, its kind in small letters",
      headers: { Authorization: `bearer ${SENT_TOKEN}` },
      status: 200,
    },
  ])("with a token wanted, answers $status to $name", async ({ headers, status }) => {
    const rig = await start(TOKEN);
    expect((await rig.fetch("/api/v1/status/thing", { headers })).status).toBe(status);
    expect(rig.asked).toHaveLength(status === 200 ? 1 : 0);
    expect((await rig.fetch("/metrics")).status).toBe(200);
  });

  it("takes another token from one request to the next", async () => {
    const rig = await start("old");
    rig.server.setToken("new");
    const status = async (token: string): Promise<number> =>
      (await rig.fetch("/api/v1/status/thing", { headers: { Authorization: `Bearer ${token}` } })).status;
    expect([await status("old"), await status("new")]).toEqual([401, 200]);
  });

  /** Asks with headers that fetch() keeps for itself. */
  function ask(
    { port }: Rig,
    method: string,
    path: string,
    headers: Record<string, string>,
  ): Promise<{ readonly status: number | undefined; readonly text: string }> {
    return new Promise((resolve, reject) => {
      httpRequest({ port, method, path, headers })
        .on("error", reject)
        .on("response", (response) => {
          text(response).then((body) => {
            resolve({ status: response.statusCode, text: body });
          }, reject);
        })
        .end();
    });
  }

  it.each([
    { name: "a page of another origin", headers: { Origin: "http://example.org" }, status: 403 },
    { name: "a page whose name leads here now", headers: { Host: "example.org" }, status: 403 },
    { name: "a Service", headers: { Host: "gateway-admin.monitoring.svc:9091" }, status: 409 },
  ])("without a token, answers $status to who comes by the name of $name", async ({ headers, status }) => {
    const rig = await start();
    expect((await ask(rig, "POST", "/api/v1/do", headers)).status).toBe(status);
    expect(rig.asked).toHaveLength(status === 403 ? 0 : 1);
  });

  it("tells who is refused what is wanted", async () => {
    const { text: told } = await ask(await start(), "GET", "/api/v1/status/thing", { Host: "example.org" });
    expect(JSON.parse(told)).toEqual({
      status: "error",
      errorType: "forbidden",
      error: expect.stringContaining("want as Host an address") as string,
    });
  });

  it("gives everybody what the ingest port gives, by whatever name", async () => {
    expect((await ask(await start(), "GET", "/metrics", { Host: "example.org" })).status).toBe(200);
  });

  it.each([
    { name: "nothing else", authorization: {}, status: 401 },
    { name: "the token", authorization: { Authorization: `Bearer ${SENT_TOKEN}` }, status: 409 },
  ])("with a token wanted, looks at that alone: $status to a page with $name", async (row) => {
    const headers = { Host: "example.org", Origin: "http://example.com", ...row.authorization };
    const rig = await start(TOKEN);
    expect((await ask(rig, "POST", "/api/v1/do", headers)).status).toBe(row.status);
  });
});
