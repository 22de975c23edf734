import { execFile } from "node:child_process";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VERSION } from "../../src/version.ts";
import { freePort } from "../peers/program.ts";
import { Rig } from "../peers/rig.ts";
import { execForm, lastOf, readStages, REPOSITORY } from "./dockerfile.ts";
import { makeImageFolder } from "./imageFolder.ts";

/** The compiler runs, beside everything else. */
const BUILD_WITHIN_MS = 180_000;

const final = readStages().at(-1);
if (final === undefined) throw new Error("the Dockerfile has no stage");
/** Without `node`, which is the Node of this test. */
const entrypoint = execForm(lastOf(final, "ENTRYPOINT")).slice(1);

describe("folder of the image, with nothing but what the Dockerfile puts there", () => {
  let rig: Rig;
  let image: string;

  beforeAll(async () => {
    rig = await Rig.create();
    image = await rig.subfolder("image");
    await makeImageFolder(await rig.subfolder("build"), image);
  }, BUILD_WITHIN_MS);

  afterAll(async () => {
    await rig.end();
  });

  /** Runs a command in the image and returns what it prints. */
  async function run(...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(process.execPath, [...entrypoint, ...args], { cwd: image });
    return stdout;
  }

  it("holds the program, its schemas, its packages and the example configurations, and no sources", async () => {
    expect((await readdir(image)).toSorted()).toEqual([
      "LICENSE",
      "config",
      "data",
      "dist",
      "node_modules",
      "package.json",
    ]);
    expect((await readdir(join(image, "dist"))).toSorted()).toEqual(["cmd", "proto", "src"]);
    expect(await readdir(join(image, "node_modules"))).not.toContain("typescript");
  });

  it("prints its version", async () => {
    expect(await run("--version")).toBe(`${VERSION}\n`);
  });

  it("finds its schemas: inspects a captured request", async () => {
    const request = join(REPOSITORY, "test/fixtures/rw1_requests/self-small.bin");
    expect(await run("inspect", request)).toContain("7 series with 7 samples");
  });

  it("finds its example configurations", async () => {
    expect(await run("check", "--config", "config/default.yaml")).toContain("route aggregation");
  });

  /** All that is in the image but the packages. */
  async function filesOfImage(): Promise<string[]> {
    const files = await readdir(image, { recursive: true });
    return files.filter((file) => !file.startsWith("node_modules/")).toSorted();
  }

  it("serves without a volume, writes nowhere but in its spool, and ends with 0 when it is asked to", async () => {
    const before = await filesOfImage();
    const port = await freePort();
    const configFile = join(rig.folder, "config.yaml");
    await writeFile(
      configFile,
      `listen: 127.0.0.1:${port}
admin_listen: off
shutdown: {drain_delay: 0s}
routes:
  - name: aggregation
    upstreams:
      - {name: vmagent-0, url: "http://vmagent-0.invalid:8429/api/v1/write"}
`,
    );
    const program = await rig.start({
      // The name of its folder: this one runs in the image's.
      name: "image",
      command: process.execPath,
      args: [...entrypoint, "serve", "--config", configFile],
      readyUrl: `http://127.0.0.1:${port}/-/ready`,
    });
    const metrics = await fetch(`http://127.0.0.1:${port}/metrics`);
    expect(await metrics.text()).toContain("stream_metrics_route_");
    expect(await program.stop()).toEqual({ code: 0, signal: null });
    const written = (await filesOfImage()).filter((file) => !before.includes(file));
    expect(written).toEqual(["data/spool/0", "data/spool/topology.json"]);
  });
});
