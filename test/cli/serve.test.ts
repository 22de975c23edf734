import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { oneSample, requestBody } from "../reference/build.ts";
import { configOf, taskRoute } from "../system/gatewayRig.ts";
import { Receiver } from "../system/receiver.ts";
import { keepKnown } from "../../src/cli/knownTopology.ts";
import { run } from "../../src/cli/program.ts";
import { VERSION } from "../../src/version.ts";

const MAIN = new URL("../../dist/cmd/main.js", import.meta.url).pathname;
const DEFAULT_CONFIG = new URL("../../config/default.yaml", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "serve-"));
const children: ChildProcess[] = [];

beforeEach(() => {
  rmSync(join(folder, "data"), { recursive: true, force: true });
});
afterEach(() => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill("SIGKILL");
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** The built command line, as a user runs it. */
class Command {
  readonly child: ChildProcess;
  out = "";
  error = "";

  constructor(...args: string[]) {
    // What it keeps, it keeps below the folder that it runs in.
    this.child = spawn(process.execPath, [MAIN, ...args], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
    children.push(this.child);
    this.child.stdout?.on("data", (chunk: Buffer) => (this.out += chunk.toString()));
    this.child.stderr?.on("data", (chunk: Buffer) => (this.error += chunk.toString()));
  }

  /** Messages of its log of one level. */
  logged(level: string): string[] {
    const entries = this.error
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { level: string; msg: string });
    return entries.filter((entry) => entry.level === level).map(({ msg }) => msg);
  }

  /** Resolves with the exit code once all output is there. */
  async exit(): Promise<number | null> {
    if (this.child.exitCode === null) await once(this.child, "close");
    return this.child.exitCode;
  }
}

interface Serving {
  readonly command: Command;
  readonly url: string;
  /** Its configuration. */
  readonly file: string;
}

async function serving(configText: string): Promise<Serving> {
  const file = join(folder, "config.yaml");
  writeFileSync(file, `listen: 127.0.0.1:0\nadmin_listen: off\n${configText}`);
  const command = new Command("serve", "--config", file);
  await expect.poll(() => command.error).toContain('"listening"');
  const line = command.error.split("\n").find((text) => text.includes('"listening"')) ?? "{}";
  const { port } = JSON.parse(line) as { port: number };
  return { command, url: `http://127.0.0.1:${port}`, file };
}

function write(url: string): Promise<Response> {
  return fetch(`${url}/api/v1/write`, { method: "POST", body: new Uint8Array(requestBody(oneSample("up"))) });
}

describe("a configuration that changes", () => {
  /** Serves, and has upstream a at one receiver first and at another when told. */
  async function servingFile(
    more = "",
  ): Promise<{ served: Serving; receivers: readonly Receiver[]; move: (text?: string) => void }> {
    const options = `shutdown: {drain_delay: 0s}\n${more}`;
    const receivers = [new Receiver(), new Receiver()];
    const [first = "", second = ""] = await Promise.all(receivers.map((receiver) => receiver.start()));
    const served = await serving(`${options}${taskRoute([first])}`);
    const move = (text = `${options}${taskRoute([second])}`): void => {
      writeFileSync(`${served.file}.new`, `listen: 127.0.0.1:0\nadmin_listen: off\n${text}`);
      renameSync(`${served.file}.new`, served.file);
    };
    return { served, receivers, move };
  }

  async function end({ command }: Serving): Promise<void> {
    command.child.kill("SIGTERM");
    expect(await command.exit()).toBe(0);
  }

  it("is in force soon after the file has changed", async () => {
    const { served, receivers, move } = await servingFile();
    move();
    await expect
      .poll(() => served.command.error, { timeout: 5_000 })
      .toContain("the configuration is in force");
    expect((await write(served.url)).status).toBe(204);
    expect(receivers.map(({ requests }) => requests.length)).toEqual([0, 1]);
    await end(served);
  });

  it("is read at SIGHUP where files are not watched: a wrong one changes nothing and is told, a right one is in force", async () => {
    const { served, receivers, move } = await servingFile("reload: {watch: false}\n");
    const arrived = (): number[] => receivers.map(({ requests }) => requests.length);
    move("routes: 1");
    served.command.child.kill("SIGHUP");
    await expect.poll(() => served.command.error).toContain("the one before stays in force");
    expect(served.command.error).toContain(":3:9: routes: want a list of routes; got text");
    expect((await write(served.url)).status).toBe(204);
    expect(arrived()).toEqual([1, 0]);
    const metrics = await (await fetch(`${served.url}/metrics`)).text();
    expect(metrics).toContain("stream_metrics_route_config_last_reload_successful 0\n");
    expect(metrics).toContain('stream_metrics_route_reloads_total{result="invalid"} 1\n');

    move();
    served.command.child.kill("SIGHUP");
    await expect.poll(() => served.command.error).toContain("the configuration is in force");
    expect((await write(served.url)).status).toBe(204);
    expect(arrived()).toEqual([1, 1]);
    await end(served);
  });
});

describe("SIGTERM", () => {
  it("turns readiness off, finishes the request under way, and ends with 0", async () => {
    const receiver = new Receiver();
    let finish = (): void => undefined;
    receiver.answer = (response) => {
      finish = () => response.writeHead(204).end();
    };
    const { command, url } = await serving(
      `shutdown: {drain_delay: 1s}\n${taskRoute([await receiver.start()])}`,
    );
    expect((await fetch(`${url}/-/ready`)).status).toBe(200);
    const answer = write(url);
    await expect.poll(() => receiver.requests.length).toBe(1);
    command.child.kill("SIGTERM");
    await expect.poll(async () => (await fetch(`${url}/-/ready`)).status).toBe(503);
    expect((await fetch(`${url}/-/healthy`)).status).toBe(200);
    // No longer accepting, and still waiting for the request.
    await expect
      .poll(
        () =>
          fetch(`${url}/-/healthy`).then(
            () => "served",
            () => "closed",
          ),
        { timeout: 5000 },
      )
      .toBe("closed");
    expect(command.child.exitCode).toBeNull();
    finish();
    expect((await answer).status).toBe(204);
    expect(await command.exit()).toBe(0);
    await receiver.stop();
  });

  it("gives back within the grace period what an upstream never answers", async () => {
    const receiver = new Receiver();
    receiver.answer = () => undefined;
    const { command, url } = await serving(
      `shutdown: {drain_delay: 0s, grace: 1s}\n${taskRoute([await receiver.start()], "{on_outage: refuse}")}`,
    );
    const answer = write(url).then(
      ({ status }) => status,
      () => "closed",
    );
    await expect.poll(() => receiver.requests.length).toBe(1);
    command.child.kill("SIGTERM");
    expect(await command.exit()).toBe(0);
    expect(await answer).toBe(503);
    await receiver.stop();
  });

  it("does not wait for connections that have sent nothing, or half a request", async () => {
    const { command, url } = await serving(
      `shutdown: {drain_delay: 0s, grace: 5m}\n${taskRoute(["http://127.0.0.1:1/"])}`,
    );
    const { port } = new URL(url);
    for (const text of ["", "POST /api/v1/write HTTP/1.1\r\nHo"]) {
      const socket = connect(Number(port), "127.0.0.1");
      socket.on("error", () => undefined);
      await once(socket, "connect");
      if (text !== "") await new Promise((resolve) => socket.write(text, resolve));
    }
    command.child.kill("SIGTERM");
    expect(await command.exit()).toBe(0);
  });
});

describe("SIGTERM while an upstream fails", () => {
  const GRACE_MS = 2_000;
  const fail = (response: ServerResponse): void => {
    response.writeHead(500).end();
  };
  const hang = (): void => undefined;
  const rows = [
    {
      name: "and its batch waits for the next attempt",
      delivery: "{spool_after: 10s, queue_config: {min_backoff: 20s, max_backoff: 20s}}",
      answers: [fail],
      isThere: (receiver: Receiver, log: string) =>
        receiver.requests.length === 1 && log.includes("next attempt"),
    },
    {
      name: "and does not answer the one batch of the half-open breaker",
      delivery: "{breaker: {consecutive_failures: 1, reset_after: 100ms}}",
      answers: [fail, hang],
      isThere: (receiver: Receiver) => receiver.requests.length === 2,
    },
    {
      name: "and is behind, with nothing sent to it",
      delivery: "{breaker: {consecutive_failures: 1, reset_after: 1h}}",
      answers: [fail],
      isThere: (_receiver: Receiver, log: string) =>
        log.includes("behind, what comes for it goes to the spool"),
    },
  ];

  it.each(rows)("$name ends with 0 within the grace period, and the next process delivers", async (row) => {
    const receiver = new Receiver();
    const answers: ((response: ServerResponse) => void)[] = [...row.answers];
    receiver.answer = (response) => {
      ((answers.length > 1 ? answers.shift() : answers[0]) ?? hang)(response);
    };
    const config = `shutdown: {drain_delay: 0s, grace: ${GRACE_MS / 1000}s}\n${taskRoute([await receiver.start()], row.delivery)}`;
    const { command, url } = await serving(config);
    const answer = write(url);
    await expect.poll(() => row.isThere(receiver, command.error)).toBe(true);
    const began = Date.now();
    command.child.kill("SIGTERM");
    expect(await command.exit()).toBe(0);
    expect(Date.now() - began).toBeLessThan(GRACE_MS + 1_000);
    expect((await answer).status).toBe(204);

    receiver.requests.length = 0;
    receiver.answer = (response) => response.writeHead(204).end();
    await serving(config);
    await expect.poll(() => receiver.series.length).toBe(1);
    await receiver.stop();
  });
});

describe("SIGTERM that comes again", () => {
  /** Signals within half a second are taken for one. */
  const LATER_MS = 600;

  async function askAgain(command: Command): Promise<void> {
    command.child.kill("SIGTERM");
    await expect.poll(() => command.error).toContain("stopping");
    const heardAt = Date.now();
    await expect.poll(() => Date.now() - heardAt).toBeGreaterThan(LATER_MS);
    command.child.kill("SIGTERM");
    await expect.poll(() => command.error).toContain("asked again");
  }

  it.each([
    { name: "refuses", onOutage: "refuse", status: 503, later: 0 },
    { name: "spools", onOutage: "spool", status: 204, later: 1 },
  ])("ends the drain delay, and $name at once what is not delivered", async ({ onOutage, status, later }) => {
    const receiver = new Receiver();
    receiver.answer = () => undefined;
    const delivery = `{on_outage: ${onOutage}, spool_after: 10s}`;
    const config = `shutdown: {drain_delay: 20s, grace: 25s}\n${taskRoute([await receiver.start()], delivery)}`;
    const { command, url } = await serving(config);
    const answer = write(url);
    await expect.poll(() => receiver.requests.length).toBe(1);
    await askAgain(command);
    const began = Date.now();
    expect(await command.exit()).toBe(0);
    expect(Date.now() - began).toBeLessThan(3_000);
    expect((await answer).status).toBe(status);

    receiver.requests.length = 0;
    receiver.answer = (response) => response.writeHead(204).end();
    const next = await serving(config);
    if (later > 0) await expect.poll(() => receiver.series.length).toBe(later);
    next.command.child.kill("SIGTERM");
    expect(receiver.series).toHaveLength(later);
    await receiver.stop();
  });

  it("does not wait for a request that does not come to its end, and a third one changes nothing", async () => {
    const { command, url } = await serving(
      `shutdown: {drain_delay: 0s, grace: 5m}\nlimits: {body_timeout: 5m}\n${taskRoute(["http://127.0.0.1:1/"])}`,
    );
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(
      "POST /api/v1/write HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
    );
    await once(socket, "data"); // the listener has the head
    await askAgain(command);
    command.child.kill("SIGTERM");
    expect(await command.exit()).toBe(0);
    expect(command.error.split("asked again")).toHaveLength(2);
  });
});

describe("serve, started again with another list of upstreams", () => {
  const STATE_FILE = join("data", "spool", "topology.json");

  function routeOver(upstreams: string, options = ""): string {
    return `shutdown: {drain_delay: 0s}\nroutes: [{name: r, tasks: {}, ${options}upstreams: [${upstreams}]}]`;
  }

  function at(name: string, port = 1): string {
    return `{name: ${name}, url: "http://127.0.0.1:${port}/w"}`;
  }

  /** Serves it for a moment; what was logged. */
  async function start(
    upstreams: string,
    options?: string,
  ): Promise<{ warnings: string[]; infos: string[] }> {
    const { command } = await serving(routeOver(upstreams, options));
    command.child.kill("SIGTERM");
    expect(await command.exit()).toBe(0);
    return { warnings: command.logged("warn"), infos: command.logged("info") };
  }

  it("warns of slots that are renumbered, with the tombstone to write, and not of that, nor of another url", async () => {
    const tombstone = "{name: a, removed: true}";
    expect((await start([at("a"), at("b"), at("c")].join())).warnings).toEqual([]);
    expect((await start([at("b"), at("c")].join())).warnings).toEqual([
      expect.stringMatching(
        /^route r against the last start \(data\/spool\/topology.json\): taken out a; jump goes by number, and numbers change: b is 0 and was 1, c is 1 and was 2; \d\d\.\d % of its tasks move; write at the top of the list, so that those behind it keep their numbers: - \{name: a, removed: true\}$/,
      ),
    ]);
    const remedied = await start([tombstone, at("b"), at("c")].join());
    expect(remedied.warnings).toEqual([]);
    expect(remedied.infos[0]).toMatch(/numbers are again what they were before the last change; \d\d\.\d %/);
    const url = await start([tombstone, at("b", 2), at("c")].join());
    expect(url.warnings).toEqual([]);
    expect(url.infos[0]).toBe("listening");
  });

  it("warns of a damaged file, and replaces it", async () => {
    const [list, file] = [at("a"), join(folder, STATE_FILE)];
    // As a start keeps it.
    await keepKnown(dirname(file), configOf(routeOver(list)));
    const kept = readFileSync(file, "utf8");
    writeFileSync(file, kept.slice(1));
    expect((await start(list)).warnings).toEqual([
      `${STATE_FILE} cannot be used: it is no JSON; replaced, and nothing was compared with it`,
    ]);
    expect(readFileSync(file, "utf8")).toBe(kept);
  });

  it("warns once where nothing can be kept, and serves", async () => {
    writeFileSync(join(folder, "data"), "");
    expect((await start(at("a"), "delivery: {on_outage: refuse}, ")).warnings).toEqual([
      expect.stringMatching(/^cannot keep the list of upstreams in \.\/data\/spool: ENOTDIR: /),
    ]);
  });

  it("keeps nothing of a start that fails", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const file = join(folder, "taken.yaml");
    writeFileSync(file, `listen: 127.0.0.1:${port}\nadmin_listen: off\n${routeOver(at("a"))}`);
    expect(await new Command("serve", "--config", file).exit()).toBe(1);
    expect(existsSync(join(folder, STATE_FILE))).toBe(false);
    taken.close();
  });
});

describe("serve that cannot start", () => {
  it("says that its spool cannot be used, and ends with 1", async () => {
    writeFileSync(join(folder, "data"), "");
    const file = join(folder, "config.yaml");
    writeFileSync(file, `listen: 127.0.0.1:0\nadmin_listen: off\n${taskRoute(["http://127.0.0.1:1/"])}`);
    const command = new Command("serve", "--config", file);
    expect(await command.exit()).toBe(1);
    expect(command.logged("error")).toEqual([
      expect.stringMatching(
        /^spool\.path \.\/data\/spool: ENOTDIR: .*; want a folder that .*the gateway does not start$/,
      ),
    ]);
  });

  it("says that another gateway has its spool, and ends with 1", async () => {
    await serving(taskRoute(["http://127.0.0.1:1/"]));
    const command = new Command("serve", "--config", join(folder, "config.yaml"));
    expect(await command.exit()).toBe(1);
    expect(command.logged("error")).toEqual([
      expect.stringMatching(
        /^spool folder data\/spool\/0 is in use by process \d+, which is alive .*; each gateway needs a spool.path of its own; the gateway does not start$/,
      ),
    ]);
  });

  it("says every problem of its configuration and ends with 1", async () => {
    const file = join(folder, "bad.yaml");
    writeFileSync(file, "listen: nowhere\nroutes: []\n");
    const command = new Command("serve", "--config", file);
    expect(await command.exit()).toBe(1);
    expect(command.error).toContain("bad.yaml:1:");
    expect(command.error).toContain("bad.yaml:2:");
  });

  it("names the address that is taken and ends with 1", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const file = join(folder, "taken.yaml");
    writeFileSync(
      file,
      `listen: 127.0.0.1:${port}\nadmin_listen: off\n${taskRoute(["http://127.0.0.1:1/"])}`,
    );
    const command = new Command("serve", "--config", file);
    expect(await command.exit()).toBe(1);
    expect(command.error).toContain(`cannot listen on 127.0.0.1:${port}`);
    taken.close();
  });
});

describe("the command line", () => {
  it("knows its version, the one of package.json", async () => {
    const file = new URL("../../package.json", import.meta.url);
    expect((JSON.parse(readFileSync(file, "utf8")) as { version: string }).version).toBe(VERSION);
    const command = new Command("--version");
    expect(await command.exit()).toBe(0);
    expect(command.out).toBe(`${VERSION}\n`);
  });

  it.each([
    { name: "an unknown command", args: ["fly"] },
    { name: "no configuration", args: ["serve"] },
    { name: "neither series nor file to explain", args: ["explain", "--config", DEFAULT_CONFIG] },
    { name: "an unknown hash", args: ["check", "--config", DEFAULT_CONFIG, "--legacy-hash", "md5"] },
  ])("answers $name with 2 and its usage", async ({ args }) => {
    let usage = "";
    const written = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      usage += String(text);
      return true;
    });
    try {
      expect(await run(args)).toBe(2);
    } finally {
      written.mockRestore();
    }
    expect(usage).not.toBe("");
  });

  it("says that a file is not there, and ends with 1", async () => {
    const command = new Command(
      "explain",
      "--config",
      DEFAULT_CONFIG,
      "--json",
      "--input",
      join(folder, "none"),
    );
    expect(await command.exit()).toBe(1);
    expect(command.error).toContain("none");
    expect(command.error).not.toContain("at ");
  });
});
