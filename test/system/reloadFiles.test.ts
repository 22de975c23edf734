/** The built gateway and its configuration file: bad files, half files, signals, and reloads at the end. */
import { once } from "node:events";
import { existsSync, mkdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { answer, blackHole, StubUpstream } from "../deliver/stubUpstream.ts";
import { Metrics } from "../peers/metrics.ts";
import { freePort, type Program } from "../peers/program.ts";
import { MAIN } from "../peers/repository.ts";
import { Rig } from "../peers/rig.ts";
import { until } from "../peers/until.ts";
import { oneSample, requestBody } from "../reference/build.ts";
import { WRITE_HEADERS } from "./gatewayRig.ts";
import { NumberedReceiver } from "./numberedReceiver.ts";
import { NumberedSender } from "./numberedSender.ts";
import { numberedSeries } from "./numberedSeries.ts";

const WITHIN_MS = 20_000;
const PREFIX = "stream_metrics_route_";
const TOKEN = "t0p-secret";
const NO_WATCH = "reload: {watch: false, max_moved_ratio: 1}\n";

let rig: Rig;
let origin: string;
let adminOrigin: string;
let file: string;
let head: string;
/** By default it ends as soon as it is asked to. */
let shutdown: string;
let program: Program;

beforeEach(async () => {
  rig = await Rig.create();
  const [listen, admin] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  [origin, adminOrigin] = [`http://${listen}`, `http://${admin}`];
  file = join(rig.folder, "gateway.yaml");
  writeFileSync(join(rig.folder, "token"), TOKEN);
  head = `listen: ${listen}\nadmin_listen: ${admin}\nadmin_token_file: token\nspool: {path: "${rig.folder}/spool"}\n`;
  shutdown = "{drain_delay: 0s}";
});
afterEach(async ({ task }) => {
  if (task.result?.state === "fail") rig.showLogs();
  await rig.end();
});

/** A file with this text below what all of them have. */
function whole(text: string): string {
  return `${head}shutdown: ${shutdown}\n${text}`;
}

/** Replaces the file at once. */
function put(text: string): void {
  writeFileSync(`${file}.new`, whole(text));
  renameSync(`${file}.new`, file);
}

async function launch(text: string): Promise<void> {
  put(text);
  program = await rig.launch({
    name: "gateway",
    command: process.execPath,
    args: ["--single-threaded-gc", MAIN, "serve", "--config", file],
    readyUrl: `${origin}/-/ready`,
  });
}

async function serve(text: string): Promise<void> {
  await launch(text);
  await program.ready();
}

function ask(path: string, init: RequestInit = {}, token = TOKEN): Promise<Response> {
  return fetch(adminOrigin + path, { ...init, headers: { Authorization: `Bearer ${token}` } });
}

async function reload(): Promise<{ status: number; text: string }> {
  const response = await ask("/-/reload", { method: "POST" });
  return { status: response.status, text: await response.text() };
}

function metrics(): Promise<Metrics> {
  return Metrics.fetch(`${origin}/metrics`);
}

async function reloads(result: string): Promise<number> {
  return (await metrics()).sum(`${PREFIX}reloads_total`, { result });
}

async function stub(...script: Parameters<typeof StubUpstream.start>[0]): Promise<StubUpstream> {
  const upstream = await StubUpstream.start(script);
  rig.closeAtEnd(upstream);
  return upstream;
}

function route(url: string, more = ""): string {
  return `routes: [{name: r, upstreams: [{name: a, url: "${url}"}]${more}}]\n`;
}

function logged(text: string): Promise<unknown> {
  return until(`the log to say ${text}`, WITHIN_MS, () => program.log().includes(text));
}

describe("files that are wrong, one after another, under load", () => {
  it("change nothing, are told and counted, and the good one after them is in force", async () => {
    const receiver = new NumberedReceiver(0);
    rig.closeAtEnd(receiver);
    const url = await receiver.start();
    await serve(NO_WATCH + route(url));
    const sender = new NumberedSender(origin, numberedSeries(0, 20), 5);
    rig.closeAtEnd(sender);
    const tls = (options: string): string =>
      `routes: [{name: r, upstreams: [{name: a, url: "${url}", tls_config: {${options}}}]}]`;
    writeFileSync(join(rig.folder, "garbage.pem"), "no certificate");
    const periods = (from: string): string =>
      `routes: [{name: r, topology: [{upstreams: [{name: a, url: "${url}"}]}, {from: 2030-01-02T00:00:00Z, upstreams: [{name: a}]}, {from: ${from}, upstreams: [{name: a}]}]}]`;
    const bad: readonly (readonly [text: string, says: RegExp])[] = [
      ["routes: [{", /gateway.yaml:\d+:\d+: /],
      [`${route(url)}nonsense: 1`, /nonsense/],
      [route(url, `, relabel_configs: [{source_labels: [a], regex: "(", action: keep}]`), /regex/],
      [route("not a url"), /url/],
      [tls("ca_file: none.pem"), /cannot use the file/],
      [tls("ca_file: garbage.pem"), /want certificates in PEM/],
      [`routes: [{name: r, upstreams: [{name: a, url: "${url}"}, {name: a, url: "${url}"}]}]`, /a/],
      [periods("2030-01-01T00:00:00Z"), /from/],
      [periods("2030-01-02T00:00:00Z"), /from/],
      ["", /routes/],
    ];
    const hash = await ask("/metrics").then((response) => response.text());
    const config = /config_info\{hash="(\w+)"\}/.exec(hash)?.[1] ?? "";
    expect(config).not.toBe("");
    for (const [text, says] of bad) {
      put(NO_WATCH + text);
      expect({ of: text, ...(await reload()) }).toMatchObject({
        status: 400,
        text: expect.stringMatching(says) as string,
      });
    }
    rmSync(file);
    expect(await reload()).toMatchObject({
      status: 400,
      text: expect.stringContaining("no such file") as string,
    });
    mkdirSync(file);
    expect((await reload()).status).toBe(400);
    rmdirSync(file);
    const during = await metrics();
    expect(during.sum(`${PREFIX}reloads_total`, { result: "invalid" })).toBe(bad.length + 2);
    expect(during.sum(`${PREFIX}config_last_reload_successful`)).toBe(0);
    expect(during.sum(`${PREFIX}config_info`, { hash: config })).toBe(1);

    put(NO_WATCH + route(url, ", delivery: {remote_timeout: 7s}"));
    expect((await reload()).status).toBe(200);
    const after = await metrics();
    expect(after.sum(`${PREFIX}config_last_reload_successful`)).toBe(1);
    expect(after.sum(`${PREFIX}reloads_total`, { result: "applied" })).toBe(1);
    expect(after.sumOrZero(`${PREFIX}config_info`, { hash: config })).toBe(0);
    await sender.finish();
    expect([sender.pushedBack, sender.unanswered, sender.refused]).toEqual([0, 0, []]);
    expect(sender.acknowledged).toBeGreaterThan(0);
    expect([receiver.problems, receiver.repeated]).toEqual([[], 0]);
    expect(receiver.arrived(7)).toBe(sender.acknowledged);
  }, 60_000);
});

describe("a file that is written in pieces, each of which is valid", () => {
  it("is not in force before it is whole", async () => {
    const upstream = await stub(answer(204));
    const url = `http://127.0.0.1:${upstream.port}/w`;
    const list = ["a", "b", "c"].map((name) => `      - {name: ${name}, url: "${url}"}\n`);
    const text = `reload: {max_moved_ratio: 1}\nroutes:\n  - name: r\n    upstreams:\n`;
    await serve(text + list.join(""));
    await logged('"listening"');
    const written = whole(text + list.join("") + `      - {name: d, url: "${url}"}\n`);
    let length = whole(text + (list[0] ?? "")).length;
    // Longer than the watch takes for a change that has come to its end.
    await until("it to be whole", WITHIN_MS, () => {
      length = Math.min(length + 4, written.length);
      writeFileSync(file, written.slice(0, length));
      return length === written.length;
    });
    await until("the whole to be in force", WITHIN_MS, async () => (await reloads("applied")) > 0);
    const found = await metrics();
    expect(found.sum(`${PREFIX}reloads_total`)).toBe(1);
    expect(found.sum(`${PREFIX}samples_routed_total`, { upstream: "d" })).toBe(0);
  }, 60_000);
});

describe("reloads that are asked for at the same time", () => {
  it("are all answered, one after another, with signals among them", async () => {
    const upstream = await stub(answer(204));
    await serve(NO_WATCH + route(`http://127.0.0.1:${upstream.port}/w`));
    put(NO_WATCH + route(`http://127.0.0.1:${upstream.port}/other`));
    const asked = Array.from({ length: 30 }, () => reload());
    for (let signal = 0; signal < 10; signal += 1) program.signal("SIGHUP");
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(asked.map(() => 200));
    expect((await metrics()).sum(`${PREFIX}config_last_reload_successful`)).toBe(1);
    expect((await fetch(`${origin}/-/healthy`)).status).toBe(200);
  });
});

describe("SIGHUP while the gateway starts", () => {
  it("has the file read again that has changed since", async () => {
    const url = "http://127.0.0.1:1/w";
    await launch(NO_WATCH + route(url));
    // The spool's folder is there when the signal is heard and the file has been read.
    await until("the spool to be opened", WITHIN_MS, () => existsSync(join(rig.folder, "spool")));
    put(NO_WATCH + route(url, ", delivery: {remote_timeout: 7s}"));
    program.signal("SIGHUP");
    await logged("the configuration is in force");
  });
});

describe("a reload of a gateway that stops", () => {
  async function stopping(ending: string, more = ""): Promise<{ url: string; write: Promise<number> }> {
    const upstream = await stub(blackHole);
    const url = `http://127.0.0.1:${upstream.port}/w`;
    shutdown = ending;
    await serve(NO_WATCH + route(url, more));
    const write = fetch(`${origin}/api/v1/write`, {
      method: "POST",
      headers: WRITE_HEADERS,
      body: new Uint8Array(requestBody(oneSample("up"))),
    }).then(({ status }) => status);
    await until("the upstream to be asked", WITHIN_MS, () => upstream.requests.length > 0);
    program.signal("SIGTERM");
    await logged("stopping");
    return { url, write };
  }

  it("is answered 503 while it drains, changes nothing, and the end is as ever", async () => {
    const { url, write } = await stopping("{drain_delay: 1s, grace: 3s}");
    put(NO_WATCH + route(url, ", delivery: {remote_timeout: 7s}"));
    expect(await reload()).toEqual({
      status: 503,
      text: "the configuration cannot be put in force and changes nothing\nthe gateway is about to end\n",
    });
    expect(await write).toBe(204);
    expect(await program.stop()).toEqual({ code: 0, signal: null });
  });

  it("by SIGHUP, when its senders have ended already, does not end it in the middle of its end", async () => {
    const { url, write } = await stopping("{drain_delay: 1s, grace: 4s}", ", delivery: {on_outage: refuse}");
    // A request whose body does not come keeps it from its end when it has given back what was under way.
    const socket = connect(Number(new URL(origin).port), "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(
      "POST /api/v1/write HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
    );
    await once(socket, "data");
    expect(await write).toBe(503);
    put(NO_WATCH + route(url, ", delivery: {remote_timeout: 7s}"));
    program.signal("SIGHUP");
    await logged("the gateway is about to end");
    expect(await program.stop()).toEqual({ code: 0, signal: null });
    socket.destroy();
  });
});

describe("the file of the admin token", () => {
  it("is watched: another token counts soon after it was written", async () => {
    const upstream = await stub(answer(204));
    await serve(route(`http://127.0.0.1:${upstream.port}/w`));
    expect((await ask("/api/v1/status/ledger")).status).toBe(200);
    writeFileSync(join(rig.folder, "token"), "another");
    await until("the new token to count", WITHIN_MS, async () => {
      return (await ask("/api/v1/status/ledger", {}, "another")).status === 200;
    });
    expect((await ask("/api/v1/status/ledger")).status).toBe(401);
  });
});
