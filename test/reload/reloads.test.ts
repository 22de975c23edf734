import { describe, expect, it } from "vitest";
import type { Config } from "../../src/config/config.ts";
import type { LoadedConfig } from "../../src/config/load.ts";
import type { ReloadOutcome, ReloadTrigger } from "../../src/reload/outcome.ts";
import { Reloads } from "../../src/reload/reloads.ts";
import { configOf } from "../system/gatewayRig.ts";

const CONFIG = configOf(`routes: [{name: r, upstreams: [{name: a, url: "http://a/w"}]}]`);
const APPLIED: ReloadOutcome = { kind: "applied", lines: [], warnings: [] };

/** Reloads whose file and whose gateway do as they are told. */
class Rig {
  config: Config | null = CONFIG;
  loads = 0;
  readonly forced: boolean[] = [];
  readonly ended: [ReloadOutcome["kind"], ReloadTrigger][] = [];
  apply: () => Promise<ReloadOutcome> = () => Promise.resolve(APPLIED);
  readonly reloads = new Reloads({
    load: () => this.#load(),
    apply: (_config, force) => {
      this.forced.push(force);
      return this.apply();
    },
    ended: ({ kind }, trigger) => this.ended.push([kind, trigger]),
  });

  #load(): LoadedConfig {
    this.loads += 1;
    const { config } = this;
    const problem = {
      severity: "error",
      file: "f.yaml",
      line: 3,
      column: 4,
      path: "routes",
      message: "bad",
    } as const;
    return { origin: "native", config, problems: config === null ? [problem] : [], secretFiles: [] };
  }
}

describe("a reload", () => {
  it("hands on what the file says now, with whether it is forced", async () => {
    const rig = new Rig();
    expect(await rig.reloads.reload("request", true)).toBe(APPLIED);
    expect(rig.forced).toEqual([true]);
    expect(rig.ended).toEqual([["applied", "request"]]);
  });

  it("changes nothing when the file is wrong, and tells its errors", async () => {
    const rig = new Rig();
    rig.config = null;
    expect(await rig.reloads.reload("signal", false)).toEqual({
      kind: "invalid",
      lines: ["f.yaml:3:4: routes: bad"],
    });
    expect(rig.forced).toEqual([]);
    expect(rig.ended).toEqual([["invalid", "signal"]]);
  });

  it("waits for the one before it, and reads the file only then", async () => {
    const rig = new Rig();
    let resolve: (outcome: ReloadOutcome) => void = () => undefined;
    const promise = new Promise<ReloadOutcome>((done) => (resolve = done));
    rig.apply = () => promise;
    const first = rig.reloads.reload("watch", false);
    const second = rig.reloads.reload("signal", false);
    await Promise.resolve();
    expect(rig.loads).toBe(1);
    resolve(APPLIED);
    await Promise.all([first, second]);
    expect(rig.loads).toBe(2);
  });

  it("serves all who ask before it begins, unless one of them forces it", async () => {
    const rig = new Rig();
    let resolve: (outcome: ReloadOutcome) => void = () => undefined;
    const promise = new Promise<ReloadOutcome>((done) => (resolve = done));
    rig.apply = () => promise;
    const first = rig.reloads.reload("request", false);
    await Promise.resolve(); // it begins
    const others = ["request", "request"].map(() => rig.reloads.reload("request", false));
    const forced = rig.reloads.reload("request", true);
    resolve(APPLIED);
    await Promise.all([first, ...others, forced]);
    expect(rig.forced).toEqual([false, false, true]);
  });

  it("goes on after one that failed by a bug", async () => {
    const rig = new Rig();
    rig.apply = () => Promise.reject(new Error("broken"));
    await expect(rig.reloads.reload("request", false)).rejects.toThrow("broken");
    rig.apply = () => Promise.resolve(APPLIED);
    expect(await rig.reloads.reload("request", false)).toBe(APPLIED);
  });
});
