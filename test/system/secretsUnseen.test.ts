/** The built gateway with secrets of all kinds: whatever it is asked, and whatever goes wrong, nobody sees one. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freePort, type Program } from "../peers/program.ts";
import { MAIN } from "../peers/repository.ts";
import { Rig } from "../peers/rig.ts";
import { label, oneSample, requestBody } from "../reference/build.ts";
import { WRITE_HEADERS } from "./gatewayRig.ts";
import { Receiver } from "./receiver.ts";

/** So many series that a reload counts them, not made-up keys. */
const BODY = requestBody(
  ...Array.from({ length: 1_100 }, (_, number) => oneSample("up", label("instance", `host-${number}`))),
);

/** All secrets contain it, and nothing else does. */
const SECRET = "hunter2";
const TOKEN = `${SECRET}-token`;

let rig: Rig;
let program: Program;
let file: string;
let head: string;
let origin: string;
let adminOrigin: string;
let urls: readonly string[];
/** All that it has said. */
const said: string[] = [];

beforeEach(async () => {
  rig = await Rig.create();
  said.length = 0;
  const receivers = [new Receiver(), new Receiver(), new Receiver()];
  urls = await Promise.all(receivers.map((receiver) => receiver.start()));
  for (const receiver of receivers) rig.closeAtEnd({ close: () => receiver.stop() });
  const [listen, admin] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  [origin, adminOrigin] = [`http://${listen}`, `http://${admin}`];
  head = `listen: ${listen}\nadmin_listen: ${admin}\nadmin_token_file: token\nspool: {path: "${rig.folder}/spool"}\nreload: {watch: false}\n`;
  file = join(rig.folder, "gateway.yaml");
  writeFileSync(join(rig.folder, "token"), TOKEN);
  writeFileSync(join(rig.folder, "credentials"), `${SECRET}-in-a-file`);
});
afterEach(async ({ task }) => {
  if (task.result?.state === "fail") rig.showLogs();
  await rig.end();
});

function upstreams(password: string, slots: readonly number[] = [0, 1, 2]): string {
  const secrets = [
    `basic_auth: {username: gateway, password: "${SECRET}-${password}"}`,
    "authorization: {credentials_file: credentials}",
    `headers: {X-Api-Key: "${SECRET}-in-a-header"}`,
  ];
  return slots
    .map(
      (slot) => `{name: v${slot}, url: "${urls[slot] ?? ""}?key=${SECRET}-in-a-url", ${secrets[slot] ?? ""}}`,
    )
    .join(", ");
}

function routes(list: string): string {
  return `${head}routes: [{name: aggregation, tasks: {count: 128}, upstreams: [${list}]}]\n`;
}

async function ask(path: string, init: RequestInit = {}, at = adminOrigin): Promise<number> {
  const response = await fetch(at + path, { ...init, headers: { Authorization: `Bearer ${TOKEN}` } });
  said.push(await response.text());
  return response.status;
}

function plan(texts: Readonly<Record<string, string>>): Promise<number> {
  return ask("/api/v1/plan", { method: "POST", body: JSON.stringify(texts) });
}

function reload(text: string): Promise<number> {
  writeFileSync(file, text);
  return ask("/-/reload", { method: "POST" });
}

describe("a gateway with passwords, tokens, headers and urls that are secret", () => {
  it("shows none in answers, metrics and its log, whatever it is told", async () => {
    writeFileSync(file, routes(upstreams("first")));
    program = await rig.start({
      name: "gateway",
      command: process.execPath,
      args: ["--single-threaded-gc", MAIN, "serve", "--config", file, "--log-level", "debug"],
      readyUrl: `${origin}/-/ready`,
    });
    expect(
      (
        await fetch(`${origin}/api/v1/write`, {
          method: "POST",
          headers: WRITE_HEADERS,
          body: new Uint8Array(BODY),
        })
      ).status,
    ).toBe(204);

    expect(await reload(routes(upstreams("second")))).toBe(200);
    expect(await reload(routes(upstreams("second", [1, 2])))).toBe(409);
    expect(await plan({ to: routes(upstreams("third", [1, 2])) })).toBe(200);
    expect(await plan({ from: routes(upstreams("third")), to: routes(upstreams("fourth")) })).toBe(200);
    const bad = [
      `{name: v0, url: "${urls[0] ?? ""}", basic_auth: "${SECRET}"}`,
      `{name: v0, url: "${urls[0] ?? ""}", basic_auth: {username: u, password: ["${SECRET}"]}}`,
      `{name: v0, url: "${urls[0] ?? ""}", basic_auth: {username: u, password_file: "${SECRET}"}, colour: red}`,
      `{name: v0, url: "${urls[0] ?? ""}", headers: {X-Api-Key: ["${SECRET}"]}}`,
      `{name: v0, url: "http://user:${SECRET}@127.0.0.1/w"}`,
      `{name: v0, url: "${urls[0] ?? ""}", basic_auth: {username: u, password: "${SECRET}}}`,
    ];
    for (const list of bad) {
      expect({ list, status: await reload(routes(list)) }).toEqual({ list, status: 400 });
      expect({ list, status: await plan({ to: routes(list) }) }).toEqual({ list, status: 422 });
    }
    expect(await ask("/api/v1/explain", { method: "POST", body: '{"series":"up"}' })).toBe(200);
    for (const path of ["/api/v1/status/series", "/api/v1/status/ledger", "/metrics"])
      expect(await ask(path)).toBe(200);
    expect(await ask("/metrics", {}, origin)).toBe(200);
    await program.stop();
    said.push(program.log());

    const all = said.join("\n");
    // It has said all of this.
    expect(all).toMatch(/reload: the configuration is in force/);
    expect(all).toMatch(/reload: it moves \d\d\.\d % of route aggregation/);
    expect(all.match(/reload: the configuration is invalid/g)).toHaveLength(bad.length);
    expect(all).toMatch(/"error":"to:\d+:\d+: /);
    expect(all).toMatch(/config_info\{hash="/);
    expect(all.split("\n").filter((line) => line.includes(SECRET))).toEqual([]);
  });
});
