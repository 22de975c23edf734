/**
 * What rules and senders can do at worst to others: while a request of new series is decided, health checks are answered.
 *
 * The gateway is a process of its own, and so is the server that health checks are held against: what the machine makes all
 * processes wait for is no fault of rules. How long one health check may wait is a share of the time that the whole request
 * takes. One that is answered only when the request is done waits for all of it.
 */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Client } from "undici";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { freePort } from "../peers/program.ts";
import { Rig } from "../peers/rig.ts";
import { label, oneSample, requestBody } from "../reference/build.ts";
import { WRITE_HEADERS } from "./gatewayRig.ts";

const MAIN = resolve(import.meta.dirname, "../../dist/cmd/main.js");
/** Takes what it gets and answers at once: an upstream, and what health checks are held against. */
const TRIVIAL_SERVER =
  'require("node:http").createServer((request, response) => request.resume().on("end", () => response.end()))' +
  '.listen(Number(process.argv[1]), "127.0.0.1")';
const LONGEST_SHARE = 1 / 2;
/** Of what the trivial server's slowest answer takes: the gateway has more to do. */
const NOISE_FACTOR = 20;
const FEWEST_PROBES = 5;
const TIMEOUT_MS = 120_000;

const LONG_VALUE = `${"a".repeat(64 * 1024 - 30)}!`;

const CASES = [
  {
    name: "nested repetitions on 30 characters",
    rules: (): string[] =>
      Array.from({ length: 30 }, (_, number) =>
        number % 2 === 0
          ? `{source_labels: [hostile], regex: "(a+)+${"b".repeat(number)}c", action: drop}`
          : `{source_labels: [hostile], regex: "((a|aa)+)+(!|${number})[0-9]+", target_label: found_${number}}`,
      ),
    series: 3_000,
    value: (number: number): string => `${"a".repeat(30)}!${number}`,
  },
  {
    name: "nested repetitions on values of 64 KiB, with groups",
    rules: (): string[] => [
      '{source_labels: [hostile], regex: "((a+)+)([!])[0-9]+", target_label: found, replacement: $3}',
      '{source_labels: [hostile], regex: "(.*a)+(.*)", target_label: found_too, replacement: $2}',
    ],
    series: 25,
    value: (number: number): string => LONG_VALUE + String(number),
  },
  {
    name: "1,000 rules",
    rules: (): string[] =>
      Array.from({ length: 250 }, (_, number) => [
        `{source_labels: [__name__], regex: "unwanted_${number}_.*", action: drop}`,
        `{source_labels: [job, instance], regex: "(.+);(.+):([0-9]+)", target_label: place_${number % 40}, replacement: $2-${number}}`,
        `{source_labels: [instance], regex: "host-${number}(:[0-9]+)?", target_label: known, replacement: "yes"}`,
        `{source_labels: [hostile], modulus: ${number + 1}, target_label: shard_${number % 9}, action: hashmod}`,
      ]).flat(),
    series: 300,
    value: (number: number): string => `v${number}`,
  },
] as const;

describe.each(CASES)("rules of $name", ({ name, rules, series, value }) => {
  let rig: Rig;
  let gateway: string;
  let trivial: string;

  beforeAll(async () => {
    if (!existsSync(MAIN)) throw new Error(`${MAIN} is missing: npm run build makes it`);
    rig = await Rig.create();
    await rig.prepare(async () => {
      trivial = await startTrivial("trivial");
      gateway = await startGateway(await startTrivial("upstream"));
    });
  });
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => {
      rig.showLogs();
    });
  });
  afterAll(() => rig.end());

  async function startTrivial(program: string): Promise<string> {
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    const args = ["-e", TRIVIAL_SERVER, String(port)];
    await rig.start({ name: program, command: process.execPath, args, readyUrl: origin });
    return origin;
  }

  async function startGateway(upstream: string): Promise<string> {
    const port = await freePort();
    const configFile = join(rig.folder, "gateway.yaml");
    const lines = [
      `listen: 127.0.0.1:${port}`,
      "admin_listen: off",
      "shutdown: {drain_delay: 0s}",
      "routes:",
      "  - name: hostile",
      `    upstreams: [{name: trivial, url: "${upstream}"}]`,
      "    relabel_configs:",
      ...rules().map((rule) => `      - ${rule}`),
    ];
    await writeFile(configFile, lines.join("\n"));
    const origin = `http://127.0.0.1:${port}`;
    const args = [MAIN, "serve", "--config", configFile];
    await rig.start({ name: "gateway", command: process.execPath, args, readyUrl: `${origin}/-/ready` });
    return origin;
  }

  /** Sends a request of new series; how long it took in milliseconds. */
  async function sendNew(): Promise<number> {
    const fields = Array.from({ length: series }, (_, number) =>
      oneSample(
        "requests",
        label("hostile", value(number)),
        label("instance", `host-${number}:9100`),
        label("job", "node"),
      ),
    );
    const body = new Uint8Array(requestBody(...fields));
    const startedAt = performance.now();
    const response = await fetch(`${gateway}/api/v1/write`, { method: "POST", headers: WRITE_HEADERS, body });
    expect(response.status, await response.text()).toBe(204);
    return performance.now() - startedAt;
  }

  it(
    "let health checks through while a request of new series is decided",
    async () => {
      const probes = [new Client(gateway), new Client(trivial)] as const;
      const longest = [0, 0];
      let probed = 0;
      const load = { isDone: false };
      const sent = sendNew().finally(() => (load.isDone = true));
      while (!load.isDone) {
        for (const [index, client] of probes.entries()) {
          const startedAt = performance.now();
          const { statusCode, body } = await client.request({ path: "/-/healthy", method: "GET" });
          await body.dump();
          expect(statusCode).toBe(200);
          longest[index] = Math.max(longest[index] ?? 0, performance.now() - startedAt);
        }
        probed += 1;
      }
      const took = await sent;
      await Promise.all(probes.map((client) => client.close()));
      const [ofGateway = 0, ofTrivial = 0] = longest;
      process.stderr.write(
        `${name}: ${series} new series took ${took.toFixed(0)} ms; of ${probed} health checks the slowest took ` +
          `${ofGateway.toFixed(1)} ms (${ofTrivial.toFixed(1)} ms at a server that does nothing)\n`,
      );
      expect(probed).toBeGreaterThan(FEWEST_PROBES);
      expect(ofGateway).toBeLessThan(took * LONGEST_SHARE + ofTrivial * NOISE_FACTOR);
    },
    TIMEOUT_MS,
  );
});
