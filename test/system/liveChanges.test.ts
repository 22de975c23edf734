/**
 * Changes of the list of upstreams while two gateways run: every item, whichever of them it comes through and whenever it
 * arrives, is where explain has it, and as much moves as the plan said before.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { PlanReport } from "../../src/plan/report.ts";
import type { LedgerReport } from "../../src/telemetry/ledgerReport.ts";
import { Rig } from "../peers/rig.ts";
import { until } from "../peers/until.ts";
import { ItemReceivers } from "./itemReceivers.ts";
import { Clock, ItemSender, type SentRequest } from "./itemSender.ts";
import {
  LIVE_ROUTES,
  type LiveList,
  type LiveLists,
  type LiveRoute,
  LiveSetup,
  nameOf,
} from "./liveLists.ts";
import { type ReloadAnswer, ReloadedGateway } from "./reloadedGateway.ts";
import { ITEM_KINDS, type TimedItem } from "./timedItems.ts";

const SCENE_TIMEOUT_MS = 240_000;
const WITHIN_MS = 30_000;
/** All of them fit into a gateway's sample, and are enough for it to count them. */
const SERIES = 2_000;
const RECEIVERS = 5;
const GATEWAYS = ["gateway-a", "gateway-b"];
/**
 * Requests of each sender while nothing changes. Two bring every series. The first may be under way when a configuration comes
 * into force.
 */
const REQUESTS_BETWEEN = 5;
/** A period begins after so many times what a plan of it takes: it is planned and loaded before. */
const PLANS_AHEAD = 3;
const LEAST_AHEAD_MS = 2_000;

/** How far from the ideal share what moves may be: 128 tasks are few. */
const LUMPINESS = 0.06;
const FOUR = [0, 1, 2, 3];
const THREE: LiveList = { upstreams: [0, 1, 2] };
const READDRESSED = new Map([[2, 4]]);
const STEPS = {
  period: "a fourth upstream from a moment on",
  tombstone: "the second a tombstone",
  restored: "the second restored",
  readdressed: "the third at another url",
  refused: "the first taken out",
  forced: "the first taken out, forced",
  back: "the first back, forced",
} as const;

type Gateway = ReloadedGateway<LiveSetup>;
type Sender = ItemSender<LiveSetup>;

/** A change in one gateway. */
interface Step {
  readonly name: string;
  readonly gateway: string;
  /** By index into the gateway's history. */
  readonly before: number;
  readonly after: number;
  readonly plan: PlanReport;
  readonly answer: ReloadAnswer;
}

interface Scene {
  readonly fromMs: number;
  /** When both gateways had the period. */
  readonly periodLoadedMs: number;
  readonly senders: readonly Sender[];
  readonly receivers: ItemReceivers;
  readonly steps: readonly Step[];
  /** Connections to receivers that have been closed by the end of each step. */
  readonly closed: readonly { readonly name: string; readonly connections: readonly number[] }[];
  readonly ledgers: readonly LedgerReport[];
}

describe("two gateways under load while their lists of upstreams change", () => {
  let rig: Rig;
  let scene: Scene;

  beforeAll(async () => {
    rig = await Rig.create();
    scene = await rig.prepare(play);
  }, SCENE_TIMEOUT_MS);
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => {
      rig.showLogs();
    });
  });
  afterAll(async () => {
    await rig.end();
  });

  async function play(): Promise<Scene> {
    const receivers = new ItemReceivers(
      RECEIVERS,
      LIVE_ROUTES.map((route) => `/${route}`),
    );
    rig.closeAtEnd(receivers);
    const origins = await receivers.start();
    const setupOf = (lists: LiveLists): LiveSetup => new LiveSetup(lists, origins, SERIES);
    const three = setupOf({ first: THREE });
    const gateways = await Promise.all(GATEWAYS.map((name) => ReloadedGateway.start(rig, name, three)));
    const clock = new Clock();
    const senders = gateways.map((gateway) => new ItemSender(gateway, SERIES, clock));
    for (const sender of senders) rig.closeAtEnd(sender);
    const steps: Step[] = [];
    const closed: { name: string; connections: number[] }[] = [];
    const settle = async (name: string): Promise<void> => {
      const wanted = senders.map(({ sent }) => sent.length + REQUESTS_BETWEEN);
      await until("senders to go on", WITHIN_MS, () =>
        senders.every(({ sent }, index) => sent.length >= (wanted[index] ?? 0)),
      );
      closed.push({ name, connections: [...receivers.closed] });
    };
    const change = async (
      name: string,
      setup: LiveSetup,
      { which = gateways, force = false }: { which?: readonly Gateway[]; force?: boolean } = {},
    ): Promise<void> => {
      const plans = await Promise.all(which.map((gateway) => gateway.plan(setup)));
      const done = plans.map(async (plan, index): Promise<Step> => {
        const gateway = which[index];
        if (gateway === undefined) throw new Error("a plan of no gateway");
        const before = gateway.ended;
        const answer = await gateway.reload(setup, force);
        return { name, gateway: gateway.name, before, after: gateway.ended, plan, answer };
      });
      steps.push(...(await Promise.all(done)));
    };

    await settle("at first");
    const fromMs = await soon(gateways, (atMs) => {
      return setupOf({ first: THREE, second: { fromMs: atMs, upstreams: FOUR } });
    });
    const four = (second: LiveList, readdressed?: LiveLists["readdressed"]): LiveSetup => {
      const lists: LiveLists = { first: THREE, second: { fromMs, ...second } };
      return setupOf(readdressed === undefined ? lists : { ...lists, readdressed });
    };
    const [all, moved] = [four({ upstreams: FOUR }), four({ upstreams: FOUR }, READDRESSED)];
    await change(STEPS.period, all);
    const periodLoadedMs = Date.now();
    await Promise.all(senders.map((sender, index) => sender.sendAround(fromMs, index)));
    await until("the moment to pass", WITHIN_MS, () => Date.now() >= fromMs);
    await Promise.all(senders.map((sender, index) => sender.sendAround(fromMs, index + senders.length)));
    await settle(STEPS.period);
    await change(STEPS.tombstone, four({ upstreams: FOUR, removed: [1] }));
    await settle(STEPS.tombstone);
    await change(STEPS.restored, all);
    await settle(STEPS.restored);
    await change(STEPS.readdressed, moved);
    await settle(STEPS.readdressed);
    const renumbered = four({ upstreams: FOUR.slice(1) }, READDRESSED);
    await change(STEPS.refused, renumbered);
    await settle(STEPS.refused);
    const which = gateways.slice(0, 1);
    await change(STEPS.forced, renumbered, { which, force: true });
    await settle(STEPS.forced);
    await change(STEPS.back, moved, { which, force: true });
    await settle(STEPS.back);

    await Promise.all(senders.map((sender) => sender.close()));
    const ledgers = await until("nothing to be under way", WITHIN_MS, async () => {
      const all = await Promise.all(gateways.map((gateway) => gateway.ledger()));
      const held = all
        .flatMap(({ copies }) => copies)
        .map(({ in_flight: inFlight, spooled }) => inFlight.samples + spooled.samples);
      return held.every((samples) => samples === 0) && all;
    });
    return { fromMs, periodLoadedMs, senders, receivers, steps, closed, ledgers };
  }

  /** What of all that was sent has arrived nowhere, or where no configuration that was in force then has it. */
  function astray(wanted: (item: TimedItem, request: SentRequest) => boolean = () => true): {
    readonly items: number;
    readonly wrong: readonly string[];
  } {
    let items = 0;
    const wrong: string[] = [];
    for (const { sent, gateway } of scene.senders) {
      for (const request of sent) {
        const setups = new Set(gateway.history.slice(request.earliest, request.latest + 1));
        for (const { number, items: all } of request.series) {
          for (const item of all) {
            if (!wanted(item, request)) continue;
            items += 1;
            for (const route of LIVE_ROUTES) {
              const arrived = scene.receivers.at(`/${route}`, number, item);
              const right = [...setups].map((setup) => setup.receiverOf(route, number, item.timestampMs));
              if (arrived !== undefined && right.includes(arrived)) continue;
              wrong.push(
                `${item.kind} ${item.timestampMs} of series ${number} through ${gateway.name} at ${String(arrived)} of ${route}, want ${right.join(" or ")}`,
              );
            }
          }
        }
      }
    }
    return { items, wrong: wrong.slice(0, 20) };
  }

  function stepsOf(name: string): readonly Step[] {
    const found = scene.steps.filter((step) => step.name === name);
    if (found.length === 0) throw new Error(`no step ${name}`);
    return found;
  }

  /**
   * How many series were at which upstream before and after a change, by what arrived while one configuration was in force for
   * certain: samples that were not late.
   */
  function reallyMoved({ gateway: name, before, after }: Step, route: LiveRoute): Map<string, number> {
    const sender = scene.senders.find(({ gateway }) => gateway.name === name);
    if (sender === undefined) throw new Error(`no sender to ${name}`);
    const { history } = sender.gateway;
    // The period moves nothing when it is loaded, but at its moment.
    const isPeriod = before === 0;
    const places = (setup: number, isWanted: (timestampMs: number) => boolean): Map<number, number> => {
      const found = new Map<number, number>();
      for (const { series, earliest, latest, timestampMs } of sender.sent) {
        if (earliest !== setup || latest !== setup || timestampMs === null || !isWanted(timestampMs))
          continue;
        for (const { number } of series) {
          const receiver = scene.receivers.at(`/${route}`, number, { kind: "sample", timestampMs }) ?? NaN;
          found.set(number, history[setup]?.upstreamAt(receiver) ?? NaN);
        }
      }
      return found;
    };
    const was = places(before, () => true);
    const is = places(after, (timestampMs) => !isPeriod || timestampMs >= scene.fromMs);
    expect([was.size, is.size]).toEqual([SERIES, SERIES]);
    const counts = new Map<string, number>();
    for (const [number, from] of was) {
      const pair = `${nameOf(route, from)} to ${nameOf(route, is.get(number) ?? NaN)}`;
      counts.set(pair, (counts.get(pair) ?? 0) + 1);
    }
    return counts;
  }

  function plannedMoves({ plan }: Step, route: LiveRoute): Map<string, number> {
    const report = plan.routes.find((each) => each.route === route);
    expect([plan.basis, plan.series, report?.basis]).toEqual(["all", SERIES, "all"]);
    return new Map(
      report?.from_to.map(({ from, to, share }) => {
        expect(share.standard_error).toBe(0);
        const series = share.share * SERIES;
        expect(series).toBeCloseTo(Math.round(series), 6);
        return [`${from} to ${String(to)}`, Math.round(series)];
      }),
    );
  }

  it("loads a period into both before it begins", () => {
    expect(scene.periodLoadedMs).toBeLessThan(scene.fromMs);
  });

  it("accepts everything, and has every item once where the configuration in force has it", () => {
    expect(scene.senders.flatMap(({ refused }) => refused)).toEqual([]);
    const { items, wrong } = astray();
    expect(wrong).toEqual([]);
    expect(scene.receivers.doubled).toEqual([]);
    for (const route of LIVE_ROUTES) expect(scene.receivers.count(`/${route}`)).toBe(items);
  });

  it.each([
    { name: "samples", kind: "sample" },
    { name: "exemplars", kind: "exemplar" },
    { name: "histograms", kind: "histogram" },
  ] as const)(
    "has $name of both sides of a period's begin in one message by their timestamps",
    ({ kind }) => {
      const around = [scene.fromMs - 1, scene.fromMs];
      const { items, wrong } = astray((item) => item.kind === kind && around.includes(item.timestampMs));
      // A quarter of the series through each gateway before the moment, and a quarter after it.
      expect(items).toBe(2 * SERIES);
      expect(wrong).toEqual([]);
    },
  );

  it("has what comes late by a minute and an hour, after a period has begun, where the period before has it", () => {
    const { items, wrong } = astray(
      ({ timestampMs }, request) =>
        (request.timestampMs ?? 0) >= scene.fromMs && timestampMs < scene.fromMs - 30_000,
    );
    expect(items).toBeGreaterThan(SERIES);
    expect(wrong).toEqual([]);
  });

  it.each([
    { name: STEPS.period, moves: 0.25 },
    { name: STEPS.tombstone, moves: 0.25 },
    { name: STEPS.restored, moves: 0.25 },
    { name: STEPS.readdressed, moves: 0 },
  ])("moves exactly what the plan said: $name", ({ name, moves }) => {
    const steps = stepsOf(name);
    expect(steps.map(({ gateway, answer }) => [gateway, answer.status])).toEqual(
      GATEWAYS.map((gateway) => [gateway, 200]),
    );
    for (const step of steps) {
      for (const route of LIVE_ROUTES) {
        const planned = plannedMoves(step, route);
        expect(reallyMoved(step, route)).toEqual(planned);
        expect(Math.abs(moving(planned) / SERIES - moves)).toBeLessThan(LUMPINESS);
      }
    }
  });

  it("refuses a list that a removal renumbers, says how to write a tombstone, and moves nothing", () => {
    const steps = stepsOf(STEPS.refused);
    expect(steps.map(({ gateway, answer }) => [gateway, answer.status])).toEqual(
      GATEWAYS.map((gateway) => [gateway, 409]),
    );
    for (const step of steps) {
      expect(step.answer.text).toContain("changes nothing");
      for (const route of LIVE_ROUTES) {
        expect(step.answer.text).toContain(`{name: ${nameOf(route, 0)}, removed: true}`);
        expect(moving(plannedMoves(step, route))).toBeGreaterThan(SERIES / 2);
        expect(moving(reallyMoved(step, route))).toBe(0);
      }
    }
  });

  it.each([{ name: STEPS.forced }, { name: STEPS.back }])(
    "moves exactly what the plan said, in one gateway alone: $name",
    ({ name }) => {
      const steps = stepsOf(name);
      expect(steps.map(({ gateway, answer }) => [gateway, answer.status])).toEqual([[GATEWAYS[0], 200]]);
      for (const step of steps) {
        for (const route of LIVE_ROUTES) {
          const planned = plannedMoves(step, route);
          expect(reallyMoved(step, route)).toEqual(planned);
          expect(moving(planned)).toBeGreaterThan(SERIES / 2);
        }
      }
    },
  );

  it("closes no connection but those to an address that is another one now", () => {
    const moved = [STEPS.readdressed, STEPS.refused, STEPS.forced, STEPS.back] as readonly string[];
    for (const { name, connections } of scene.closed) {
      const left = moved.includes(name) ? Math.max(1, connections[2] ?? 0) : 0;
      expect([name, ...connections]).toEqual([name, 0, 0, left, 0, 0]);
    }
  });

  it("has ledgers that add up to what was sent", () => {
    for (const [index, ledger] of scene.ledgers.entries()) {
      expect(ledger.adds_up).toBe(true);
      const sent =
        scene.senders[index]?.sent.flatMap(({ series }) => series.flatMap(({ items }) => items)) ?? [];
      for (const kind of ITEM_KINDS) {
        const count = sent.filter((item) => item.kind === kind).length;
        for (const route of LIVE_ROUTES) {
          const delivered = ledger.copies
            .filter((copy) => copy.route === route)
            .reduce((sum, copy) => sum + copy.delivered[`${kind}s`], 0);
          expect(delivered).toBe(count);
        }
      }
    }
  });
});

/** A whole second before which gateways can plan and load a configuration. */
async function soon(gateways: readonly Gateway[], setupFrom: (atMs: number) => LiveSetup): Promise<number> {
  const setup = setupFrom(Math.ceil(Date.now() / 1_000) * 1_000);
  const began = performance.now();
  await Promise.all(gateways.map((gateway) => gateway.plan(setup)));
  const aheadMs = Math.max(LEAST_AHEAD_MS, PLANS_AHEAD * (performance.now() - began));
  return Math.ceil((Date.now() + aheadMs) / 1_000) * 1_000;
}

/** The series of pairs, "a to b", that are not of one upstream. */
function moving(pairs: ReadonlyMap<string, number>): number {
  const moves = [...pairs].filter(([pair]) => {
    const [from, to] = pair.split(" to ");
    return from !== to;
  });
  return moves.reduce((sum, [, count]) => sum + count, 0);
}
