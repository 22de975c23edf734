/** What operators ask of a running gateway, on the listener that is for them alone. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OfferedExplanation } from "../../src/explain/explainer.ts";
import type { SharesReport } from "../../src/plan/currentShares.ts";
import type { PlanReport } from "../../src/plan/report.ts";
import { label, oneSample, requestBody } from "../reference/build.ts";
import { GatewayRig, taskRoute } from "./gatewayRig.ts";

const SERIES = 1_100;
const ADMIN = { adminListen: "127.0.0.1:0" };

const HOST = (number: number): string => `host-${number}`;
const BODY = requestBody(
  ...Array.from({ length: SERIES }, (_, number) => oneSample("up", label("instance", HOST(number)))),
);

/** All that there is, as `METHOD PATH`: for those who know the token, and what the port of senders has too. */
const OF_OPERATORS = [
  "POST /-/reload",
  "POST /api/v1/explain",
  "POST /api/v1/plan",
  "GET /api/v1/status/ledger",
  "GET /api/v1/status/series",
];
const OF_EVERYBODY = ["/metrics", "/-/healthy", "/-/health", "/health", "/-/ready"].map(
  (path) => `GET ${path}`,
);

let rig: GatewayRig;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "admin-endpoints-"));
});
afterEach(async () => {
  await rig.stop();
  await rm(folder, { recursive: true });
});

async function start(more = ""): Promise<void> {
  rig = await GatewayRig.start(3, (urls) => more + taskRoute(urls), ADMIN);
}

async function send(through = rig): Promise<void> {
  expect(await through.send(BODY)).toMatchObject({ status: 204 });
}

interface Told<Data> {
  readonly status: number;
  readonly data?: Data;
  readonly errorType?: string;
  readonly error?: string;
}

async function ask<Data>(path: string, body?: unknown): Promise<Told<Data>> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await rig.admin(path, body === undefined ? {} : { method: "POST", body: text });
  const told = (await response.json()) as Omit<Told<Data>, "status">;
  return { ...told, status: response.status };
}

/** The instances of the series that a receiver has got. */
function instancesAt(slot: number): string[] {
  return rig
    .receiver(slot)
    .series.map(({ labels }) => labels.find(([name]) => name === "instance")?.[1] ?? "");
}

describe("POST /api/v1/plan", () => {
  const other = (): string => rig.head + taskRoute(rig.urls.slice(0, 2));

  it("compares a text with what runs, over the series that came in", async () => {
    await start();
    await send();
    const { status, data } = await ask<PlanReport>("/api/v1/plan", { to: other() });
    expect(status).toBe(200);
    expect(data).toMatchObject({ basis: "all", series: SERIES });
    expect(data?.changed.share).toBe(instancesAt(2).length / SERIES);
  });

  it("compares two texts, whatever runs", async () => {
    await start();
    await send();
    const three = rig.head + taskRoute(rig.urls);
    const there = await ask<PlanReport>("/api/v1/plan", { from: three, to: other() });
    const back = await ask<PlanReport>("/api/v1/plan", { from: other(), to: three });
    expect([there.status, back.status]).toEqual([200, 200]);
    expect(there.data?.changed).toEqual(back.data?.changed);
    expect(there.data?.routes[0]?.list.removed).toEqual(["vmagent-2"]);
    expect(back.data?.routes[0]?.list.added).toEqual(["vmagent-2"]);
  });

  it("changes nothing", async () => {
    await start();
    await send();
    const before = instancesAt(2);
    expect((await ask("/api/v1/plan", { to: other() })).status).toBe(200);
    await send();
    expect(instancesAt(2)).toEqual([...before, ...before]);
    expect(await rig.metric("reloads_total")).toBe(0);
  });

  it("answers 422 with the place of what is wrong in either text", async () => {
    await start();
    expect(await ask("/api/v1/plan", { from: "routes: []", to: `${other()}nonsense: 1\n` })).toEqual({
      status: 422,
      errorType: "invalid_configuration",
      error: expect.stringMatching(/^from:1:9: routes: .+\nto:\d+:1: nonsense: unknown key; /) as string,
    });
  });

  it("reads no text that is longer than a file may be", async () => {
    await start();
    const to = `${other()}# ${"x".repeat(2 ** 20)}`;
    expect(await ask("/api/v1/plan", { to })).toEqual({
      status: 422,
      errorType: "invalid_configuration",
      error: `to:1:1: cannot read the file: it has ${to.length} bytes; want at most 1048576`,
    });
  });

  it("tells the first thousand of many problems, and how many more there are", async () => {
    await start();
    const { status, error = "" } = await ask("/api/v1/plan", { to: "a: 1\n".repeat(3_000) });
    expect(status).toBe(422);
    const lines = error.split("\n");
    expect(lines).toHaveLength(1_001);
    expect(lines.at(-1)).toMatch(/: and \d{4} more problems that are not told, here or elsewhere$/);
  });

  it("makes plans that are asked for at once one after the other, each its own", async () => {
    await start();
    await send();
    const asked = [1, 2, 3].map((count) =>
      ask<PlanReport>("/api/v1/plan", { to: rig.head + taskRoute(rig.urls.slice(0, count)) }),
    );
    const removed = (await Promise.all(asked)).map(({ data }) => data?.routes[0]?.list.removed.length);
    expect(removed).toEqual([2, 1, 0]);
  });

  it("answers the same whether or not there are the files that a text names", async () => {
    await start();
    await send();
    await writeFile(join(folder, "there"), "secret");
    const naming = (name: string): Promise<unknown> =>
      ask("/api/v1/plan", { to: `admin_token_file: "${join(folder, name)}"\n${other()}` });
    const answers = [await naming("there"), await naming("missing")];
    expect(answers[0]).toMatchObject({ status: 200 });
    expect(answers[1]).toEqual(answers[0]);
  });

  it.each([
    { name: "no JSON", body: "routes: []", error: /^want \{"to"/ },
    { name: "no text to compare", body: "{}", error: /in `to`$/ },
    { name: "another key", body: '{"to":"","form":""}', error: /^unknown key form; want \{"to"/ },
  ])("answers 400 to $name", async ({ body, error }) => {
    await start();
    expect(await ask("/api/v1/plan", body)).toEqual({
      status: 400,
      errorType: "bad_data",
      error: expect.stringMatching(error) as string,
    });
  });
});

describe("GET /api/v1/status", () => {
  it("/series tells how many there are, and what each upstream has of them", async () => {
    await start();
    await send();
    const { status, data } = await ask<SharesReport>("/api/v1/status/series");
    expect(status).toBe(200);
    expect(data).toMatchObject({ exact: true, series: { count: SERIES, standard_error: 0 } });
    expect(data?.routes[0]?.upstreams.map(({ name, share }) => [name, Math.round(share * SERIES)])).toEqual(
      rig.receivers.map((_, slot) => [`vmagent-${slot}`, instancesAt(slot).length]),
    );
  });

  it("/ledger tells what came and what became of it", async () => {
    await start();
    await send();
    const ledger = await rig.ledger();
    expect(ledger.adds_up).toBe(true);
    expect(ledger.routes.map(({ route, received }) => [route, received.samples])).toEqual([
      ["aggregation", SERIES],
    ]);
  });
});

describe("POST /api/v1/explain", () => {
  it("tells where a series goes, whichever way it is written", async () => {
    await start();
    await send();
    for (const number of [0, 1, 2, 3, 4]) {
      const written = { series: `up{instance="${HOST(number)}"}` };
      const labels = { labels: Object.entries({ __name__: "up", instance: HOST(number) }) };
      const [told, again] = [
        await ask<OfferedExplanation>("/api/v1/explain", written),
        await ask("/api/v1/explain", labels),
      ];
      expect(told.status).toBe(200);
      expect(again).toEqual(told);
      const slot = rig.receivers.findIndex((_, index) => instancesAt(index).includes(HOST(number)));
      expect(JSON.stringify(told.data?.routes)).toContain(`"vmagent-${slot}"`);
    }
  });

  it.each([
    { name: "no series", body: { series: "up{" }, error: /^series: / },
    { name: "another key", body: { series: "up", tenat: "t" }, error: /^unknown key tenat; want \{"series"/ },
  ])("answers 400 to $name", async ({ body, error }) => {
    await start();
    expect(await ask("/api/v1/explain", body)).toEqual({
      status: 400,
      errorType: "bad_data",
      error: expect.stringMatching(error) as string,
    });
  });
});

describe("POST /-/reload", () => {
  it.each([
    { query: "?force=1", text: "want force=true or force=false, once; got force=1" },
    { query: "?force", text: "want force=true or force=false, once; got force=" },
    {
      query: "?force=true&force=false",
      text: "want force=true or force=false, once; got force=true, force=false",
    },
    { query: "?Force=true", text: "unknown parameter Force; want force=true, or none" },
  ])("is refused, and reads nothing, with $query", async ({ query, text }) => {
    await start();
    expect(await rig.reload(taskRoute(rig.urls), query)).toEqual({
      status: 400,
      text: `${text}\nthe configuration was not read\n`,
    });
    expect(await rig.metric("reloads_total")).toBe(0);
  });

  it.each(["", "?force=false", "?force=true"])("reads the file with '%s'", async (query) => {
    await start();
    expect(await rig.reload(taskRoute(rig.urls), query)).toMatchObject({ status: 200 });
    expect(await rig.metric("reloads_total")).toBe(1);
  });
});

/** Asks for each of them, and puts the statuses beside their names. */
async function statusesOf(
  endpoints: readonly string[],
  askFor: (method: string, path: string) => Promise<Response>,
): Promise<Record<string, number>> {
  const statuses = endpoints.map(async (endpoint) => {
    const [method = "", path = ""] = endpoint.split(" ");
    return [endpoint, (await askFor(method, path)).status] as const;
  });
  return Object.fromEntries(await Promise.all(statuses));
}

/** The same for each. */
function all(endpoints: readonly string[], status: number): Record<string, number> {
  return Object.fromEntries(endpoints.map((endpoint) => [endpoint, status]));
}

describe("the admin listener", () => {
  it("answers 404 to a path that there is not, with those that there are", async () => {
    await start();
    const { status, error } = await ask("/api/v1/statuses");
    expect(status).toBe(404);
    const told = error?.match(/(GET|POST) [^,]+/g) ?? [];
    expect([...told].sort()).toEqual([...OF_OPERATORS, ...OF_EVERYBODY].sort());
  });

  it("answers 405 to another method than a path has", async () => {
    await start();
    const endpoints = [...OF_OPERATORS, ...OF_EVERYBODY];
    const swapped = await statusesOf(endpoints, (method, path) =>
      rig.admin(path, { method: method === "GET" ? "POST" : "GET" }),
    );
    expect(swapped).toEqual(all(endpoints, 405));
    expect((await rig.admin("/-/reload")).headers.get("allow")).toBe("POST");
  });

  it("has nothing that is for operators on the port of senders, and no write path on its own", async () => {
    await start();
    const atIngest = (method: string, path: string): Promise<Response> =>
      fetch(rig.origin + path, { method });
    expect(await statusesOf(OF_OPERATORS, atIngest)).toEqual(all(OF_OPERATORS, 404));
    expect(await statusesOf(OF_EVERYBODY, atIngest)).toEqual(all(OF_EVERYBODY, 200));
    const write = await rig.admin("/api/v1/write", { method: "POST", body: new Uint8Array(BODY) });
    expect(write.status).toBe(404);
  });
});

describe("an admin_token_file", () => {
  const bearer = (token: string): RequestInit => ({ headers: { Authorization: `Bearer ${token}` } });

  async function startWith(token: string): Promise<string> {
    const file = join(folder, "token");
    await writeFile(file, token);
    const option = `admin_token_file: "${file}"\n`;
    await start(option);
    return option;
  }

  it("keeps out who does not know the token, but from what senders have too", async () => {
    await startWith("s3cret");
    for (const init of [{}, bearer("guess")]) {
      const asked = (method: string, path: string): Promise<Response> => rig.admin(path, { method, ...init });
      expect(await statusesOf(OF_OPERATORS, asked)).toEqual(all(OF_OPERATORS, 401));
      expect(await statusesOf(OF_EVERYBODY, asked)).toEqual(all(OF_EVERYBODY, 200));
    }
    const known = await statusesOf(OF_OPERATORS, (method, path) =>
      rig.admin(path, { method, ...bearer("s3cret") }),
    );
    expect(Object.values(known)).not.toContain(401);
  });

  it("is another one from the reload on that reads it", async () => {
    const option = await startWith("old");
    await rig.write(option + taskRoute(rig.urls));
    await writeFile(join(folder, "token"), "new");
    const statusOf = async (token: string): Promise<number> =>
      (await rig.admin("/api/v1/status/ledger", bearer(token))).status;
    expect([await statusOf("old"), await statusOf("new")]).toEqual([200, 401]);
    const reloaded = await rig.admin("/-/reload", { method: "POST", ...bearer("old") });
    expect([reloaded.status, await reloaded.text()]).toEqual([
      200,
      "the configuration is in force\nno series goes elsewhere\n",
    ]);
    expect([await statusOf("old"), await statusOf("new")]).toEqual([401, 200]);
    await rig.write(taskRoute(rig.urls));
    expect((await rig.admin("/-/reload", { method: "POST", ...bearer("new") })).status).toBe(200);
    expect((await rig.admin("/api/v1/status/ledger")).status).toBe(200);
  });
});

describe("the hash of the configuration", () => {
  const hashOf = async (of: GatewayRig): Promise<string | undefined> => {
    const page = await (await fetch(`${of.origin}/metrics`)).text();
    return /config_info\{hash="(\w+)"\} 1/.exec(page)?.[1];
  };
  const routes = (of: GatewayRig, count: number, password: string): string => `
routes:
  - name: aggregation
    tasks: {count: ${count}}
    upstreams: [{name: a, url: "${of.urls[0]}", basic_auth: {username: u, password: ${password}}}]
`;

  it("is equal in gateways of one file, whatever their secrets, until one of them routes otherwise", async () => {
    await start();
    const other = await GatewayRig.start(1, (urls) => taskRoute(urls), ADMIN);
    try {
      await Promise.all([send(), send(other)]);
      const put = async (of: GatewayRig, count: number, password: string): Promise<string | undefined> => {
        expect(await of.reload(routes(of, count, password), "?force=true")).toMatchObject({ status: 200 });
        return hashOf(of);
      };
      const both = [await put(rig, 64, "one"), await put(other, 64, "one")];
      expect(both[0]).toMatch(/^[0-9a-f]{16}$/);
      expect(both[1]).toBe(both[0]);
      expect(await put(other, 64, "another")).toBe(both[0]);
      expect(await put(other, 65, "another")).not.toBe(both[0]);
      expect(await put(rig, 65, "one")).toBe(await hashOf(other));
    } finally {
      await other.stop();
    }
  });
});
