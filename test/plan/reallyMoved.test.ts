/** What a plan says beforehand against what real routers then do with the same series. */
import { uncompressSync } from "snappy";
import { describe, expect, it } from "vitest";
import type { PlanReport, RouteReport, Share } from "../../src/plan/report.ts";
import type { RouteOptions } from "../../src/route/options.ts";
import type { Router } from "../../src/route/router.ts";
import { exampleRoute, type RouteChanges, TASK_LABEL } from "../route/exampleRoute.ts";
import { MIB, routePlain, routerOf } from "../route/routed.ts";
import { keep, rulesOf } from "../route/rules.ts";
import { seriesMessages } from "../system/seriesMessages.ts";
import { seriesOf } from "../wire/handmade.ts";
import { configOf, NOW, numberedSeries, planOf, routeIn, upstreams } from "./planned.ts";

const HOUR = 3_600_000;
const LIMITS = { maxItems: 100_000, maxPlainBytes: 8 * MIB };
const A_REQUEST = 4000;
/** Just enough for figures that are not of made-up keys. */
const SERIES = 1_000;
/** More than a sample holds. */
const MANY_SERIES = 34_000;
/** Values of labels in the bytes of a series: behind a name, a tag and the value's length. */
const INSTANCE = /instance[^]{2}(host-\d+)/;
const TASK = new RegExp(`${TASK_LABEL}[^]{2}(\\d+)`);

type Whereabouts = ReadonlyMap<string, { readonly upstreams: readonly string[]; readonly task: string }>;

function routerFor(route: RouteOptions): Router {
  return routerOf([{ route, limits: LIMITS }], { tableSeries: 100_000, tableBytes: 64 * MIB });
}

/** All series with one timestamp, some thousand a request. */
function requestsOf(count: number, timestamp: number): Buffer[] {
  const messages = numberedSeries(count).map((labels) => seriesOf(labels, timestamp));
  const requests = Math.ceil(count / A_REQUEST);
  return Array.from({ length: requests }, (_, request) =>
    Buffer.concat(messages.slice(request * A_REQUEST, (request + 1) * A_REQUEST)),
  );
}

/** Sends requests, and tells which of their series arrived where, and in which task. */
function sendAll(router: Router, route: RouteOptions, requests: readonly Buffer[]): Whereabouts {
  const found = new Map<string, { upstreams: string[]; task: string }>();
  for (const plain of requests) {
    for (const { upstream, parcels } of routePlain(router, plain).consignments) {
      const name = route.upstreams[upstream]?.name ?? "";
      for (const message of parcels.flatMap(({ body }) => seriesMessages(uncompressSync(body) as Buffer))) {
        const text = Buffer.from(message).toString("latin1");
        const instance = INSTANCE.exec(text)?.[1] ?? "";
        const place = found.get(instance) ?? { upstreams: [], task: "" };
        place.upstreams.push(name);
        place.task = TASK.exec(text)?.[1] ?? "";
        found.set(instance, place);
      }
    }
  }
  return found;
}

interface Moved {
  readonly moved: number;
  readonly retasked: number;
  readonly changed: number;
}

/** Of the copies that there were, what has left its upstream or has another task. */
function compare(before: Whereabouts, after: Whereabouts): Moved {
  let copies = 0;
  const counts = { moved: 0, retasked: 0, changed: 0 };
  for (const [instance, was] of before) {
    const is = after.get(instance);
    for (const name of was.upstreams) {
      const leaves = is?.upstreams.includes(name) !== true;
      const retasked = is !== undefined && is.task !== was.task;
      copies += 1;
      counts.moved += leaves ? 1 : 0;
      counts.retasked += retasked ? 1 : 0;
      counts.changed += leaves || retasked ? 1 : 0;
    }
  }
  return {
    moved: counts.moved / copies,
    retasked: counts.retasked / copies,
    changed: counts.changed / copies,
  };
}

interface Trial {
  readonly plan: PlanReport;
  readonly report: RouteReport;
  readonly real: Moved;
  readonly after: Whereabouts;
}

/** Plans with the sample of a router that has the series, then routes them as the change has it. */
function tryOut(before: RouteChanges, after: RouteChanges, count: number, timestamp = NOW): Trial {
  const [old, now] = [exampleRoute(before), exampleRoute(after)];
  const running = routerFor(old);
  const requests = requestsOf(count, timestamp);
  const was = sendAll(running, old, requests);
  const plan = planOf(configOf([old]), configOf([now]), running.sample, { atMs: timestamp });
  const is = sendAll(routerFor(now), now, requests);
  expect(was.size).toBe(count);
  return { plan, report: routeIn(plan), real: compare(was, is), after: is };
}

const LIST = (names: string): RouteChanges => ({ upstreams: upstreams(names) });
const TWICE = {
  placement: { key: { kind: "task" }, algorithm: "jump", missingKey: "one_place", replicas: 2 },
} as const;
const FEWER_TASKS = {
  tasks: { count: 16, label: TASK_LABEL, algorithm: "jump", key: { kind: "all" } },
} as const;

describe("a plan over all series of a router", () => {
  it.each([
    { name: "3 to 4", before: LIST("a b c"), after: LIST("a b c d") },
    { name: "the second of 4 a tombstone", before: LIST("a b c d"), after: LIST("a -b c d") },
    { name: "the second of 4 back again", before: LIST("a -b c d"), after: LIST("a b c d") },
    { name: "the second of 4 taken out", before: LIST("a b c d"), after: LIST("a c d") },
    { name: "16 to 128 tasks", before: FEWER_TASKS, after: {} },
    { name: "one replica less", before: TWICE, after: {} },
    { name: "a rule that keeps a part", before: {}, after: { relabel: rulesOf(keep("job", "job-[0-3]")) } },
  ])("is what then really moves, exactly: $name", ({ before, after }) => {
    const { plan, report, real } = tryOut(before, after, SERIES);
    expect(plan).toMatchObject({ basis: "all", series: SERIES });
    for (const figure of ["moved", "retasked", "changed"] as const) {
      expect(report[figure].share, figure).toBeCloseTo(real[figure], 12);
      expect(report[figure].standard_error, figure).toBe(0);
    }
  });

  it("is what moves at the border of a period, and not before", () => {
    const from = NOW + HOUR;
    const periods = [
      { fromMs: null, slots: upstreams("a b c") },
      { fromMs: from, slots: upstreams("a b c d") },
    ];
    const late = tryOut(LIST("a b c"), { periods }, SERIES, from);
    expect(late.report.moved.share).toBeGreaterThan(0.2);
    expect(late.report.moved.share).toBeCloseTo(late.real.moved, 12);
    const early = tryOut(LIST("a b c"), { periods }, SERIES, from - 1);
    expect([early.report.moved.share, early.real.moved]).toEqual([0, 0]);
    expect(early.report.eras[1]?.moved.share).toBeCloseTo(late.real.moved, 12);
  });
});

describe("a plan over a sample of a router's series", () => {
  it("is within four standard errors of what then really moves, and of where all is then", () => {
    const { plan, report, real, after } = tryOut(LIST("a b c d"), LIST("a -b c d e"), MANY_SERIES);
    expect(plan.basis).toBe("sample");
    expect(plan.series).toBeLessThan(33_000);
    expect(Math.abs(plan.known.series - MANY_SERIES)).toBeLessThanOrEqual(4 * plan.known.standard_error);
    const near = ({ share, standard_error }: Share, truth: number, what: string): void => {
      expect(standard_error, what).toBeGreaterThan(0);
      expect(Math.abs(share - truth), what).toBeLessThanOrEqual(4 * standard_error);
    };
    near(report.moved, real.moved, "moved");
    near(report.changed, real.changed, "changed");
    for (const { name, after: share } of report.upstreams) {
      const there = [...after.values()].filter(({ upstreams: names }) => names.includes(name)).length;
      if (share !== null) near(share, there / after.size, name);
    }
  });
});
