import { readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { describe, expect, it } from "vitest";
import { parseConfig } from "../../src/config/load.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";
import { copiesOf, execForm, lastOf, readStages, REPOSITORY, textsOf } from "./dockerfile.ts";

const stages = readStages();
const [build, final] = stages;
if (build === undefined || final === undefined) throw new Error("want a build stage and a final stage");

const manifest = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")) as {
  readonly engines: { readonly node: string };
  readonly bin: Readonly<Record<string, string>>;
};

/** Relative to the folder that the gateway runs in. */
function defaultSpoolPath(): string {
  const { config } = parseConfig(
    "routes: [{name: r, upstreams: [{name: u, url: http://u/}]}]",
    "least.yaml",
    { legacyHash: "jump", checkRule: faultOf, checkPlacement: placementFault },
  );
  return normalize(config?.spool.path ?? "");
}

describe("Dockerfile", () => {
  it("builds in one stage and ships another, both on the slim image of our Node version", () => {
    const major = /^>=(\d+)\./.exec(manifest.engines.node)?.[1] ?? "none";
    expect(stages.map(({ base }) => base)).toEqual(Array(2).fill(`node:${major}-bookworm-slim`));
    expect(build.name).toBe("build");
  });

  it("installs by the lock file, builds, and takes the development packages away, in this order", () => {
    const commands = textsOf(build, "RUN").flatMap((text) => text.split(" && "));
    expect(commands.map((command) => command.split(" ").slice(0, 3).join(" "))).toEqual([
      "npm ci --ignore-scripts",
      "npm run build",
      "npm prune --omit=dev",
    ]);
  });

  it("makes the folder of the spool for the user that it runs as, and gives it nothing else", () => {
    const user = lastOf(final, "USER").split(":");
    expect(textsOf(final, "RUN")).toEqual([
      `install -d -m 700 -o ${user[0] ?? ""} -g ${user[1] ?? ""} ${defaultSpoolPath()}`,
    ]);
  });

  it("runs by the number of a user who is not root", () => {
    expect(textsOf(final, "USER")).toEqual([expect.stringMatching(/^[1-9]\d*:[1-9]\d*$/)]);
    // Files are copied before, so they belong to root and the gateway cannot change them.
    expect(final.instructions.findLastIndex(({ name }) => name === "COPY")).toBeLessThan(
      final.instructions.findIndex(({ name }) => name === "USER"),
    );
  });

  it("starts the program of the package in production, and serves by default", () => {
    expect(execForm(lastOf(final, "ENTRYPOINT"))).toEqual([
      "node",
      "--single-threaded-gc",
      manifest.bin["stream-metrics-route"],
    ]);
    expect(execForm(lastOf(final, "CMD"))[0]).toBe("serve");
    expect(textsOf(final, "ENV")).toContain("NODE_ENV=production");
  });
});

describe(".dockerignore", () => {
  it("lets through exactly what the Dockerfile copies", () => {
    const rules = readFileSync(join(REPOSITORY, ".dockerignore"), "utf8")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    const copied = stages
      .flatMap(copiesOf)
      .filter(({ from }) => from === undefined)
      .flatMap(({ sources }) => sources);
    expect(rules[0]).toBe("*");
    expect(rules.slice(1).toSorted()).toEqual([...new Set(copied.map((source) => `!${source}`))].toSorted());
  });
});
