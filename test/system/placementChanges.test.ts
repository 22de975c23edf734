/**
 * Changes of the list of upstreams under load: the real gateway, restarted with one list after the other while a sender goes
 * on, moves what explain says and nothing else.
 */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Explainer } from "../../src/explain/explainer.ts";
import type { Config } from "../../src/config/config.ts";
import { freePort, type Program } from "../peers/program.ts";
import { Rig } from "../peers/rig.ts";
import { until } from "../peers/until.ts";
import { label, requestBody, sample, series } from "../reference/build.ts";
import { Arrivals, NUMBER_LABEL } from "./arrivals.ts";
import { configOf } from "./gatewayRig.ts";
import { Resender } from "./resender.ts";

const MAIN = resolve(import.meta.dirname, "../../dist/cmd/main.js");
const SERIES = 100_000;
const EVERY_SERIES = Array.from({ length: SERIES }, (_, number) => number);
const SERIES_PER_REQUEST = 1_000;
const CONNECTIONS = 4;
const EXPLAINED_AT_ONCE = 200;
const UPSTREAMS = 10;
const TOLERANCE = 0.005;
const SCENE_TIMEOUT_MS = 240_000;
const ARRIVED_WITHIN_MS = 60_000;

/** Routes by their names: how they place series. Each has the path of its name at every receiver. */
const ROUTES = {
  series: "placement: {key: series}",
  tasks: "tasks: {}\n    placement: {key: task}",
} as const;
type Route = keyof typeof ROUTES;
const ROUTE_NAMES = ["series", "tasks"] as const satisfies readonly Route[];

/** A list of upstreams, for both routes. */
interface UpstreamList {
  readonly name: string;
  readonly removed: readonly number[];
  /** The receivers of the upstreams, by slot. */
  readonly receivers: readonly number[];
}

const FIRST = 0;
const FIFTH = 4;
/** The upstream that gets another url, and the receiver that is there. */
const REPLACED = 3;
const NEW_RECEIVER = UPSTREAMS;

const EACH_ITS_OWN = Array.from({ length: UPSTREAMS }, (_, slot) => slot);
const BASE: UpstreamList = { name: "all ten", removed: [], receivers: EACH_ITS_OWN };
const RUNS: readonly UpstreamList[] = [
  BASE,
  { ...BASE, name: "without the fifth", removed: [FIFTH] },
  { ...BASE, name: "without the first and the fifth", removed: [FIRST, FIFTH] },
  BASE,
  { ...BASE, name: "one at another url", receivers: EACH_ITS_OWN.with(REPLACED, NEW_RECEIVER) },
];

/** From one of RUNS to the next: which upstreams lose or get series, and how many of all with key: series. */
const STEPS = [
  {
    name: "the fifth upstream removed",
    run: 1,
    slots: [FIFTH],
    moves: "a tenth of all series",
    share: 1 / 10,
  },
  // A ninth, since it has got its part of what was the fifth's.
  { name: "the first removed as well", run: 2, slots: [FIRST], moves: "a ninth of all series", share: 1 / 9 },
  { name: "both restored", run: 3, slots: [FIRST, FIFTH], moves: "a fifth of all series", share: 1 / 5 },
  { name: "one at another url", run: 4, slots: [], moves: "nothing", share: 0 },
];

/** Slots by number of the series, for each route. */
type Slots = Readonly<Record<Route, Uint8Array>>;

/** The gateway with one list, until all series had arrived. */
interface Run {
  readonly list: UpstreamList;
  readonly arrived: Slots;
  /** Series that arrived at two receivers. */
  readonly strays: number;
  /** Attempts of the sender that came to nothing since the gateway before was asked to end. */
  readonly repeated: number;
}

function labelsOf(number: number): [string, string][] {
  return [
    ["__name__", `requests_${number % 20}_total`],
    ["instance", `host-${number % 700}:9100`],
    [NUMBER_LABEL, String(number)],
  ];
}

function bodies(): Uint8Array<ArrayBuffer>[] {
  return Array.from({ length: SERIES / SERIES_PER_REQUEST }, (_, request) => {
    const all = Array.from({ length: SERIES_PER_REQUEST }, (_each, index) => {
      const labels = labelsOf(request * SERIES_PER_REQUEST + index);
      return series(...labels.map(([name, value]) => label(name, value)), sample(1, 1_796_006_259_632));
    });
    return new Uint8Array(requestBody(...all));
  });
}

/** All but where it listens. */
function configText(origins: readonly string[], { removed, receivers }: UpstreamList): string {
  const upstreams = (route: Route): string[] =>
    receivers.map((receiver, slot) =>
      removed.includes(slot)
        ? `      - {name: ${route}-${slot}, removed: true}\n`
        : `      - {name: ${route}-${slot}, url: "${origins[receiver]}/${route}"}\n`,
    );
  const routes = ROUTE_NAMES.map(
    (route) => `  - name: ${route}\n    ${ROUTES[route]}\n    upstreams:\n${upstreams(route).join("")}`,
  );
  // explain makes room for so many labels for each series anew.
  return `shutdown: {drain_delay: 0s}\nlimits: {max_labels: 8}\nroutes:\n${routes.join("")}`;
}

/** Where all series go, as the command explain says it; in steps, between which the load goes on. */
async function explain(config: Config): Promise<Slots> {
  const explainer = new Explainer(config);
  const slots = { series: new Uint8Array(SERIES), tasks: new Uint8Array(SERIES) };
  for (const number of EVERY_SERIES) {
    if (number % EXPLAINED_AT_ONCE === 0) await setImmediate();
    const explanation = explainer.explain(labelsOf(number));
    if ("refused" in explanation) throw new Error(`series ${number} is refused: ${explanation.refused}`);
    for (const { route, upstreams = [] } of explanation.routes) {
      slots[route as Route][number] = Number(upstreams.join().replace(`${route}-`, ""));
    }
  }
  return slots;
}

/** The numbers of the series that have another slot. */
function moved(before: Uint8Array, now: Uint8Array): number[] {
  return EVERY_SERIES.filter((number) => before[number] !== now[number]);
}

describe("a gateway restarted with other lists of ten upstreams, under load of 100,000 series", () => {
  let rig: Rig;
  let sender: Resender;
  let gateway: Program;
  /** By the lists of RUNS. */
  const runs: Run[] = [];
  const explained = new Map<UpstreamList, Slots>();

  beforeAll(async () => {
    if (!existsSync(MAIN)) throw new Error(`${MAIN} is missing: npm run build makes it`);
    rig = await Rig.create();
    await rig.prepare(async () => {
      const paths = ROUTE_NAMES.map((route) => `/${route}`);
      const receivers = new Arrivals(UPSTREAMS + 1, paths, SERIES);
      rig.closeAtEnd(receivers);
      const origins = await receivers.start();
      const address = `127.0.0.1:${await freePort()}`;
      await Promise.all([runAll(receivers, origins, address), explainAll(origins)]);
    });
  }, SCENE_TIMEOUT_MS);
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => {
      rig.showLogs();
    });
  });
  afterAll(async () => {
    await rig.end();
  }, SCENE_TIMEOUT_MS);

  async function runAll(receivers: Arrivals, origins: readonly string[], address: string): Promise<void> {
    const configFile = join(rig.folder, "gateway.yaml");
    const start = async (list: UpstreamList): Promise<void> => {
      await writeFile(configFile, `listen: ${address}\nadmin_listen: off\n${configText(origins, list)}`);
      gateway = await rig.start({
        name: "gateway",
        command: process.execPath,
        args: ["--single-threaded-gc", MAIN, "serve", "--config", configFile],
        readyUrl: `http://${address}/-/ready`,
      });
    };
    const finish = async (list: UpstreamList, repeatedBefore: number): Promise<void> => {
      await until("all series to arrive", ARRIVED_WITHIN_MS, () => receivers.missing === 0);
      const slotsAt = (route: Route): Uint8Array =>
        receivers.at(`/${route}`).map((receiver) => list.receivers.indexOf(receiver));
      runs.push({
        list,
        arrived: { series: slotsAt("series"), tasks: slotsAt("tasks") },
        strays: receivers.strays,
        repeated: sender.repeated - repeatedBefore,
      });
    };
    await start(BASE);
    sender = new Resender(`http://${address}/api/v1/write`, bodies(), CONNECTIONS);
    rig.closeAtEnd(sender);
    await finish(BASE, 0);
    for (const list of RUNS.slice(1)) {
      const { repeated } = sender;
      expect(await gateway.stop()).toEqual({ code: 0, signal: null });
      receivers.forget();
      await start(list);
      await finish(list, repeated);
    }
    await sender.close();
  }

  async function explainAll(origins: readonly string[]): Promise<void> {
    for (const list of new Set(RUNS)) explained.set(list, await explain(configOf(configText(origins, list))));
  }

  /** Where series of a run go by what explain says, and where they went. */
  function runOf(number: number): { readonly explained: Slots; readonly arrived: Slots } {
    const run = runs[number];
    const slots = run === undefined ? undefined : explained.get(run.list);
    if (run === undefined || slots === undefined) throw new Error(`there is no run ${number}`);
    return { explained: slots, arrived: run.arrived };
  }

  function countAt(slot: number, slots: Uint8Array): number {
    return slots.reduce((count, each) => count + (each === slot ? 1 : 0), 0);
  }

  it("brings every series to the one upstream that explain names, after every restart", () => {
    const wrong = runs.map(({ list, strays }, number) => {
      const { explained: said, arrived } = runOf(number);
      const [bySeries, byTask] = [moved(said.series, arrived.series), moved(said.tasks, arrived.tasks)];
      return { list: list.name, strays, series: bySeries.length, tasks: byTask.length };
    });
    expect(wrong).toEqual(RUNS.map(({ name }) => ({ list: name, strays: 0, series: 0, tasks: 0 })));
  });

  it.each(STEPS)("moves $moves with key: series, $name", ({ run, share }) => {
    const [before, now] = [runOf(run - 1).arrived.series, runOf(run).arrived.series];
    expect(Math.abs(moved(before, now).length / SERIES - share)).toBeLessThanOrEqual(TOLERANCE);
  });

  it.each(STEPS)(
    "moves with both keys what explain names, and nothing of others, $name",
    ({ run, slots }) => {
      for (const route of ROUTE_NAMES) {
        const [before, now] = [runOf(run - 1), runOf(run)];
        const those = moved(before.arrived[route], now.arrived[route]);
        expect(those).toEqual(moved(before.explained[route], now.explained[route]));
        const ofThese = ({ arrived }: { arrived: Slots }): number =>
          slots.reduce((sum, slot) => sum + countAt(slot, arrived[route]), 0);
        // They left these upstreams, or came to them, all of them.
        expect(those).toHaveLength(Math.abs(ofThese(before) - ofThese(now)));
      }
    },
  );

  it("has moved, with two upstreams removed, a tenth of all series for each with key: series", () => {
    const [base, both] = [runOf(0).arrived.series, runOf(2).arrived.series];
    for (const slot of [FIRST, FIFTH]) {
      expect(Math.abs(countAt(slot, base) / SERIES - 0.1)).toBeLessThanOrEqual(TOLERANCE);
      expect(countAt(slot, both)).toBe(0);
    }
    expect(moved(base, both)).toHaveLength(countAt(FIRST, base) + countAt(FIFTH, base));
  });

  it("has every series where it was at first when both are back", () => {
    expect(moved(runOf(0).arrived.series, runOf(3).arrived.series)).toEqual([]);
    expect(moved(runOf(0).arrived.tasks, runOf(3).arrived.tasks)).toEqual([]);
  });

  it("goes on being sent to through every restart, and refuses nothing", () => {
    expect(sender.refused).toEqual([]);
    for (const { repeated } of runs.slice(1)) expect(repeated).toBeGreaterThan(0);
  });

  it("warns at no start of slots that are renumbered", () => {
    const log = gateway.log();
    expect(log).toContain("removed series-4");
    expect(log).not.toContain("numbers change");
  });
});
