import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { DemoEncoder, demoSeries } from "../../src/cli/demoLoad.ts";
import { Screen } from "../../src/cli/screen.ts";
import type { SinkStats } from "../../src/cli/sinkCounts.ts";
import { start } from "../../src/cli/start.ts";

const MAIN = new URL("../../dist/cmd/main.js", import.meta.url);
const folder = mkdtempSync(join(tmpdir(), "start-"));
/** The command line, but every command leaves its process id in a file first, and what it keeps beside it. */
const mainWithPid = join(folder, "main.mjs");
const servers: Server[] = [];

beforeAll(() => {
  if (!existsSync(MAIN)) throw new Error("dist/ is missing: npm run build");
  writeFileSync(
    mainWithPid,
    [
      'import { writeFileSync } from "node:fs";',
      `writeFileSync(\`${folder}/\${process.argv[2]}.pid\`, String(process.pid));`,
      `process.chdir(${JSON.stringify(folder)});`,
      `await import(${JSON.stringify(MAIN.href)});`,
    ].join("\n"),
  );
  return () => {
    rmSync(folder, { recursive: true });
  };
});
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function hold(port: number): Promise<{ server: Server; port: number }> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(port, "127.0.0.1", resolve);
  });
  return { server, port: (server.address() as { port: number }).port };
}

/** Ports that were free a moment ago: the gateway's, and two upstreams'. */
async function freePorts(): Promise<[number, number, number]> {
  const held = [await hold(0), await hold(0), await hold(0)] as const;
  for (const { server } of held) server.close();
  return [held[0].port, held[1].port, held[2].port];
}

/** start() under way, with what it has written. */
class Run {
  readonly lines: string[] = [];
  readonly complaints: string[] = [];
  readonly code: Promise<number>;
  readonly #asked: (() => void)[] = [];

  constructor([gateway, first, second]: readonly [number, number, number], demo = false) {
    const configFile = join(folder, "config.yaml");
    writeFileSync(
      configFile,
      [
        `listen: 127.0.0.1:${gateway}`,
        "admin_listen: off",
        "shutdown: {drain_delay: 0s, grace: 5s}",
        "routes:",
        "  - name: aggregation",
        "    tasks: {count: 128}",
        "    placement: {key: task}",
        "    upstreams:",
        `      - {name: one, url: "http://127.0.0.1:${first}/api/v1/write"}`,
        `      - {name: two, url: "http://127.0.0.1:${second}/api/v1/write"}`,
      ].join("\n"),
    );
    this.code = start({
      configFile,
      mainFile: mainWithPid,
      demo,
      screen: new Screen({
        write: (text) => {
          this.lines.push(...text.split("\n"));
        },
      }),
      complain: (line) => {
        this.complaints.push(line);
      },
      nextSignal: () =>
        new Promise<void>((resolve) => {
          this.#asked.push(resolve);
        }),
    });
  }

  /** As Ctrl-C does. */
  ask(): void {
    for (const resolve of this.#asked.splice(0)) resolve();
  }

  async hasPrinted(pattern: RegExp): Promise<void> {
    await expect.poll(() => this.lines.join("\n"), { timeout: 15_000 }).toMatch(pattern);
  }
}

async function canListen(ports: readonly number[]): Promise<boolean> {
  const held = await Promise.all(ports.map(hold));
  for (const { server } of held) server.close();
  return true;
}

async function seriesAt(port: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/stats`);
  return ((await response.json()) as SinkStats).series;
}

describe("start, ports free", () => {
  it("starts a gateway that reaches its receivers, and ends all of it when asked", async () => {
    const ports = await freePorts();
    const run = new Run(ports);
    await run.hasPrinted(/Ctrl-C ends/);
    expect(run.lines).toContain(`    - url: http://127.0.0.1:${ports[0]}/api/v1/write`);
    const response = await fetch(`http://127.0.0.1:${ports[0]}/api/v1/write`, {
      method: "POST",
      body: new DemoEncoder().encode(demoSeries(100, 1), 1, 1_796_006_259_632),
    });
    expect(response.status).toBe(204);
    const [first, second] = [await seriesAt(ports[1]), await seriesAt(ports[2])];
    expect(first + second).toBe(100);
    expect(Math.min(first, second)).toBeGreaterThan(0);
    await run.hasPrinted(/127\.0\.0\.1:\d+: \+1 requests with \d+ samples from stream-metrics-route/);
    run.ask();
    expect(await run.code).toBe(0);
    expect(run.complaints).toEqual([]);
    expect(await canListen(ports)).toBe(true);
  });

  it("feeds a load and shows series and share of every upstream with --demo", async () => {
    const ports = await freePorts();
    const run = new Run(ports, true);
    await run.hasPrinted(
      /demo: \d+ s; one [1-9]\d* series \([1-9][\d.]+ %\), two [1-9]\d* series .*requests [1-9]\d* ok, 0 failed/,
    );
    run.ask();
    expect(await run.code).toBe(0);
    expect(await canListen(ports)).toBe(true);
  });
});

describe("start, a port taken", () => {
  it("names the port and what to do, and leaves nothing running", async () => {
    const ports = await freePorts();
    servers.push((await hold(ports[2])).server);
    const run = new Run(ports);
    expect(await run.code).toBe(1);
    expect(run.complaints).toEqual([
      `port ${ports[2]} on 127.0.0.1 for upstream two is in use by another program: end what uses it, or choose another port in ${join(folder, "config.yaml")}`,
    ]);
    expect(await canListen(ports.slice(0, 2))).toBe(true);
  });
});

describe("start, a part ends on its own", () => {
  it.each([
    { name: "gateway", command: "serve" },
    { name: "sink", command: "sink" },
  ])("says that it was the $name, ends the rest and fails", async ({ name, command }) => {
    const ports = await freePorts();
    const run = new Run(ports);
    await run.hasPrinted(/Ctrl-C ends/);
    process.kill(Number(readFileSync(join(folder, `${command}.pid`), "utf8")), "SIGKILL");
    expect(await run.code).toBe(1);
    expect(run.complaints).toEqual([`${name} was ended by SIGKILL; everything else is ended, too`]);
    expect(await canListen(ports)).toBe(true);
  });
});

describe("start, an invalid configuration", () => {
  it("says what is wrong with it and starts nothing", async () => {
    const run = new Run([-1, 1, 2]);
    expect(await run.code).toBe(1);
    expect(run.complaints[0]).toMatch(/config\.yaml:1:9: listen: /);
  });
});
