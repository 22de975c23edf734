import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { headline } from "../../src/plan/planText.ts";
import type { RouteReport, Share } from "../../src/plan/report.ts";
import { formatMoment } from "../../src/moment.ts";
import { movedShare, newestPlacement } from "../../src/route/renumbering.ts";
import { exampleRoute, type RouteChanges } from "../route/exampleRoute.ts";
import { drop, keep, rulesOf } from "../route/rules.ts";
import {
  bruteForce,
  configOf,
  NOW,
  numberedSeries,
  pairShare,
  planOf,
  routeIn,
  sampleOf,
  upstreams,
} from "./planned.ts";

const SERIES = numberedSeries(2000);
const ALL = sampleOf(SERIES);
const NONE = sampleOf([]);
const HOUR = 3_600_000;

const ONE_REPLICA = { missingKey: "one_place", replicas: 1 } as const;
const BY_SERIES = { key: { kind: "all" }, algorithm: "jump", ...ONE_REPLICA } as const;
const BY_TASK = { key: { kind: "task" }, algorithm: "jump", ...ONE_REPLICA } as const;

function tasks(count: number, algorithm: "jump" | "hashmod" = "jump"): RouteChanges {
  return { tasks: { count, label: "stream_task_id", algorithm, key: { kind: "all" } } };
}

/** The report of the change of a route over all series. */
function changeOf(before: RouteChanges, after: RouteChanges, sample = ALL): RouteReport {
  return routeIn(planOf(configOf([before]), configOf([after]), sample));
}

function exactly(share: number): Share {
  return { share, standard_error: 0 };
}

describe("a change over all series", () => {
  interface Row {
    readonly name: string;
    readonly before: RouteChanges;
    readonly after: RouteChanges;
    /** What theory says of `changed`, and how far off so many series may be. */
    readonly near: number;
  }
  const by = (
    placement: RouteChanges["placement"],
    names: string,
    others: RouteChanges = {},
  ): RouteChanges => ({
    ...(placement === undefined ? {} : { placement }),
    upstreams: upstreams(names),
    ...others,
  });

  it.each<Row>([
    { name: "3 to 4 by jump", before: by(BY_SERIES, "a b c"), after: by(BY_SERIES, "a b c d"), near: 1 / 4 },
    {
      name: "4 to 3 at the end",
      before: by(BY_SERIES, "a b c d"),
      after: by(BY_SERIES, "a b c"),
      near: 1 / 4,
    },
    {
      name: "the second of 4 a tombstone",
      before: by(BY_SERIES, "a b c d"),
      after: by(BY_SERIES, "a -b c d"),
      near: 1 / 4,
    },
    {
      name: "the second of 4 taken out",
      before: by(BY_SERIES, "a b c d"),
      after: by(BY_SERIES, "a c d"),
      near: 2 / 3,
    },
    { name: "tasks, 3 to 4", before: by(BY_TASK, "a b c"), after: by(BY_TASK, "a b c d"), near: 30 / 128 },
    {
      name: "16 to 128 tasks",
      before: by(BY_TASK, "a b c", tasks(16)),
      after: by(BY_TASK, "a b c", tasks(128)),
      near: 7 / 8,
    },
    {
      name: "hashmod to jump, of tasks",
      before: by(BY_TASK, "a b c", tasks(16, "hashmod")),
      after: by(BY_TASK, "a b c", tasks(16)),
      near: 15 / 16,
    },
    {
      name: "hashmod to jump, of upstreams",
      before: by({ ...BY_SERIES, algorithm: "hashmod" }, "a b c"),
      after: by(BY_SERIES, "a b c"),
      near: 2 / 3,
    },
    {
      name: "flat keys to pairs",
      before: by(BY_SERIES, "a b", { keyFormat: "flat", tasks: null }),
      after: by(BY_SERIES, "a b", { keyFormat: "pairs", tasks: null }),
      near: 1 / 2,
    },
    {
      name: "the second of 4 a tombstone, 2 replicas",
      before: by({ ...BY_SERIES, replicas: 2 }, "a b c d"),
      after: by({ ...BY_SERIES, replicas: 2 }, "a -b c d"),
      near: 1 / 4,
    },
    {
      name: "a key of labels",
      before: by({ ...BY_SERIES, key: { kind: "by", names: ["instance"] } }, "a b c"),
      after: by({ ...BY_SERIES, key: { kind: "by", names: ["instance"] } }, "a b c d"),
      near: 1 / 4,
    },
  ])("is what placing them one by one comes to: $name", ({ before, after, near }) => {
    const report = changeOf(before, after);
    const { moved, retasked, changed } = bruteForce(SERIES, exampleRoute(before), exampleRoute(after));
    expect(report).toMatchObject({ change: "changed", basis: "all" });
    expect(report.moved).toEqual(exactly(expect.closeTo(moved, 10) as number));
    expect(report.retasked).toEqual(exactly(expect.closeTo(retasked, 10) as number));
    expect(report.changed).toEqual(exactly(expect.closeTo(changed, 10) as number));
    expect(Math.abs(changed - near)).toBeLessThan(0.04);
    expectSums(report);
  });

  it("takes from a tombstone alone", () => {
    const report = changeOf(by(BY_SERIES, "a b c d"), by(BY_SERIES, "a -b c d"));
    const moves = report.from_to.filter(({ from, to }) => from !== to);
    expect(moves.map(({ from, to }) => `${from} ${to ?? ""}`).sort()).toEqual(["b a", "b c", "b d"]);
    expect(report.upstreams.find(({ name }) => name === "b")).toEqual({
      name: "b",
      before: exactly(report.moved.share),
      after: null,
    });
    expect(report.list).toMatchObject({ added: [], removed: ["b"], renumbered: [] });
  });

  it("tells numbers that change, and how to write the list", () => {
    const report = changeOf(by(BY_SERIES, "a b c d"), by(BY_SERIES, "a c d"));
    expect(report.list.renumbered).toEqual(["c", "d"]);
    expect(report.advice).toContainEqual(expect.stringContaining("- {name: b, removed: true}"));
  });

  it("tells that a file of the old gateway has to be a native one to be written so", () => {
    const before = configOf([by(BY_SERIES, "a b c d")]);
    const adviceOf = (names: string): readonly string[] =>
      routeIn(planOf(before, configOf([by(BY_SERIES, names)]), ALL, { isLegacy: true })).advice;
    expect(adviceOf("a c d")).toContainEqual(expect.stringMatching(/^this takes a native file: .* convert$/));
    expect(adviceOf("a b c")).not.toContainEqual(expect.stringContaining("native file"));
  });

  it("moves nothing by another url, whatever is known of the series", () => {
    for (const sample of [ALL, NONE, sampleOf(SERIES, 0.1)]) {
      const plan = planOf(configOf([{}]), configOf([{}], { port: 9 }), sample);
      expect(plan.changed).toMatchObject({ route: "aggregation", ...exactly(0) });
      expect(routeIn(plan)).toMatchObject({
        change: "same",
        moved: exactly(0),
        list: { readdressed: ["vmagent-0", "vmagent-1", "vmagent-2"] },
        windows: { kind: "none" },
        advice: [],
      });
    }
  });

  it("tells upstreams that have another name at the same url, and counts what they have as moved", () => {
    const [before, after] = [configOf([by(BY_SERIES, "a b c")]), configOf([by(BY_SERIES, "a x c")])];
    const [route] = after.routes;
    const upstreamsAfter = route?.upstreams.map(({ name, url }) => {
      return { name, url: name === "x" ? new URL("http://b:8429/w") : url };
    });
    const routes = route === undefined ? [] : [{ ...route, upstreams: upstreamsAfter ?? [] }];
    const report = routeIn(planOf(before, { ...after, routes }, ALL));
    expect(report.list).toMatchObject({ added: ["x"], removed: ["b"], renamed: [{ from: "b", to: "x" }] });
    expect(report.moved.share).toBeCloseTo(1 / 3, 1);
    expect(report.advice).toContainEqual(expect.stringContaining("at the same url: x for b;"));
  });

  it("counts tasks by number, exactly, whatever is known of the series", () => {
    for (const sample of [ALL, NONE]) {
      const report = changeOf(by(BY_TASK, "a b c"), by(BY_TASK, "a b c d"), sample);
      expect(report.tasks).toEqual({ before: 128, after: 128, moved: { tasks: 30, of: 128 } });
      expect(report.balance.after).toMatchObject({ tasks_max_over_average: 34 / 32, empty: [] });
      expect(report.retasked.share).toBe(0);
    }
  });

  it("names upstreams that stay empty", () => {
    const names = Array.from({ length: 40 }, (_, number) => `v${number}`).join(" ");
    const { balance } = changeOf(by(BY_TASK, "a b", tasks(16)), by(BY_TASK, names, tasks(4)));
    expect(balance.before?.empty).toEqual([]);
    expect(balance.after?.empty.length).toBeGreaterThanOrEqual(36);
  });

  it("counts copies that replicas add as new, and those that they take away as ceased", () => {
    const [one, two] = [by(BY_SERIES, "a b c"), by({ ...BY_SERIES, replicas: 2 }, "a b c")];
    const more = changeOf(one, two);
    expect([more.moved, more.begun]).toEqual([exactly(0), exactly(0.5)]);
    const less = changeOf(two, one);
    expect([less.moved, less.ceased, less.begun]).toEqual([exactly(0.5), exactly(0.5), exactly(0)]);
    expectSums(less);
  });
});

/** All copies are somewhere, before and after. */
function expectSums({ from_to, upstreams: each, moved, ceased, begun }: RouteReport): void {
  const sum = (shares: readonly (Share | null | undefined)[]): number =>
    shares.reduce((total, share) => total + (share?.share ?? 0), 0);
  expect(sum(from_to.map(({ share }) => share))).toBeCloseTo(1, 10);
  expect(sum(each.map(({ before }) => before))).toBeCloseTo(1, 10);
  if (ceased.share < 1) expect(sum(each.map(({ after }) => after))).toBeCloseTo(1, 10);
  expect(sum(from_to.filter(({ from, to }) => from !== to).map(({ share }) => share))).toBeCloseTo(
    moved.share,
    10,
  );
  expect(sum(from_to.filter(({ to }) => to === null).map(({ share }) => share))).toBeCloseTo(
    ceased.share,
    10,
  );
  expect(begun.share).toBeLessThanOrEqual(1);
}

describe("what series a route takes", () => {
  it("counts by its rules: what ceases, and what begins", () => {
    const some = { relabel: rulesOf(drop("job", "job-0")) };
    const ceased = changeOf({}, some);
    const jobs = SERIES.filter((labels) => labels.some(([, value]) => value === "job-0")).length;
    expect(ceased.ceased).toEqual(exactly(expect.closeTo(jobs / SERIES.length, 10) as number));
    expect(ceased.changed).toEqual(ceased.ceased);
    expect(ceased.given).toEqual({
      before: SERIES.length,
      after: SERIES.length - jobs,
      changed: jobs,
      ceased: jobs,
      begun: 0,
    });
    const begun = changeOf(some, {});
    expect(begun.changed).toEqual(exactly(0));
    expect(begun.begun).toEqual(exactly(expect.closeTo(jobs / SERIES.length, 10) as number));
  });

  it("depends on final routes before it, and on global rules", () => {
    const first = { name: "first", relabel: rulesOf(keep("job", "job-0")) };
    const before = configOf([first, { name: "second" }]);
    const final = planOf(before, configOf([{ ...first, final: true }, { name: "second" }]), ALL);
    expect(routeIn(final, "first").changed).toEqual(exactly(0));
    expect(routeIn(final, "second").ceased.share).toBeCloseTo(1 / 7, 2);
    expect(final.changed.route).toBe("second");
    const rules = { globalRules: rulesOf(drop("job", "job-1")) };
    const global = planOf(before, configOf([first, { name: "second" }], rules), ALL);
    expect(routeIn(global, "second").ceased.share).toBeCloseTo(1 / 7, 2);
    expect(routeIn(global, "first")).toMatchObject({
      change: "changed",
      basis: "synthetic",
      ceased: { share: 0 },
    });
  });

  it("depends on the tenant, by the header that says it", () => {
    const tenant = { header: "x-scope-orgid", label: "tenant", pass: false };
    const series = ["red", "blue"].flatMap((text) =>
      sampleOf(numberedSeries(1000)).series.map(({ labels }) => {
        return { labels, tenants: new Map([["x-scope-orgid", { text, header: text }]]) };
      }),
    );
    const sample = { ...ALL, series };
    const report = changeOf({ tenant }, { tenant, relabel: rulesOf(keep("tenant", "red")) }, sample);
    expect(report.ceased).toEqual(exactly(0.5));
    const other = { ...tenant, header: "x-other" };
    expect(
      changeOf({ tenant }, { tenant: other, relabel: rulesOf(keep("tenant", "red")) }, sample).ceased.share,
    ).toBe(1);
  });

  it("is all of it for a route that is gone, and nothing that was there for a new one", () => {
    const plan = planOf(configOf([{ name: "old" }]), configOf([{ name: "new" }]), ALL);
    expect(routeIn(plan, "new")).toMatchObject({ change: "new", changed: exactly(0), begun: exactly(1) });
    expect(routeIn(plan, "old")).toMatchObject({ change: "gone", changed: exactly(1), ceased: exactly(1) });
    expect(plan.routes.map(({ route }) => route)).toEqual(["new", "old"]);
    expect(plan.changed).toEqual({ route: "old", basis: "all", ...exactly(1) });
  });
});

describe("fewer than 1,000 series", () => {
  const few = sampleOf(numberedSeries(999));

  it.each([
    { name: "none", sample: NONE },
    { name: "999", sample: few },
  ])("make way for a million keys, which tell a list that is renumbered: $name", ({ sample }) => {
    const [before, after] = [{ upstreams: upstreams("a b c d") }, { upstreams: upstreams("a c d") }].map(
      (lists) => ({
        ...lists,
        placement: BY_SERIES,
      }),
    );
    const plan = planOf(configOf([before ?? {}]), configOf([after ?? {}]), sample);
    const report = routeIn(plan);
    const [old, now] = [before, after].map((changes) => newestPlacement(exampleRoute(changes)));
    const truth = old === undefined || now === undefined ? null : movedShare(old, now);
    expect(plan).toMatchObject({ basis: "synthetic", series: sample.series.length });
    expect(report.basis).toBe("synthetic");
    expect(Math.abs(report.changed.share - (truth ?? 0))).toBeLessThan(0.005);
    expect(report.changed.standard_error).toBeLessThan(0.001);
    expect(report.advice[0]).toContain("too few series are known");
    expectSums(report);
  });

  describe("leave what placement does to series of any kind", () => {
    const rows: readonly {
      readonly name: string;
      readonly before: RouteChanges;
      readonly after: RouteChanges;
      readonly near: number;
    }[] = [
      { name: "hashmod to jump", before: tasks(16, "hashmod"), after: tasks(16), near: 15 / 16 },
      { name: "16 to 128 tasks", before: tasks(16), after: tasks(128), near: 7 / 8 },
      {
        name: "1 replica to 2 by task",
        before: {},
        after: { placement: { ...BY_TASK, replicas: 2 } },
        near: 0,
      },
      { name: "other keys", before: {}, after: { keyFormat: "flat" }, near: 127 / 128 },
    ];
    const routesOf = (side: "before" | "after"): RouteChanges[] =>
      rows.map((row) => ({ ...row[side], name: row.name }));
    // The keys are shared among the routes.
    const plan = planOf(configOf(routesOf("before")), configOf(routesOf("after")), NONE);

    it.each(rows)("$name", ({ name, near }) => {
      const { changed, basis } = routeIn(plan, name);
      expect(basis).toBe("synthetic");
      expect(Math.abs(changed.share - near)).toBeLessThanOrEqual(4 * changed.standard_error);
    });
  });

  it("in a route, are not enough for that route, however many others there are", () => {
    const small = { name: "small", relabel: rulesOf(keep("instance", "host-[0-9]")), placement: BY_SERIES };
    const changed = { ...small, upstreams: upstreams("vmagent-1 vmagent-2") };
    const plan = planOf(configOf([small, {}]), configOf([changed, {}]), ALL);
    expect(routeIn(plan, "small")).toMatchObject({ basis: "synthetic", given: { before: 10 } });
    expect(routeIn(plan, "small").changed.share).toBeGreaterThan(0.6);
    expect(routeIn(plan).basis).toBe("all");
    expect([plan.basis, plan.changed]).toMatchObject(["all", { route: "small", basis: "synthetic" }]);
    expect(headline(plan)).toContain("of route small (by made-up keys, as too few series are known)");
  });
});

describe("a sample of the series", () => {
  it("tells all shares within four standard errors", () => {
    const all = numberedSeries(30_000);
    // Each with the same chance, whatever it is.
    const sample = sampleOf(
      all.filter((_, number) => (Math.imul(number, 0x9e3779b9) >>> 0) / 2 ** 32 < 0.1),
      0.1,
    );
    const [before, after] = [
      { ...tasks(64), upstreams: upstreams("a b c") },
      { ...tasks(64), upstreams: upstreams("a -b c d e") },
    ];
    const truth = changeOf(before, after, sampleOf(all));
    const told = changeOf(before, after, sample);
    expect(told.basis).toBe("sample");
    const pairs: [string, Share, number][] = [
      ["moved", told.moved, truth.moved.share],
      ["changed", told.changed, truth.changed.share],
      ...truth.from_to.map(({ from, to, share }): [string, Share, number] => {
        const found = told.from_to.find((pair) => pair.from === from && pair.to === to);
        return [`${from} ${to ?? ""}`, found?.share ?? exactly(0), share.share];
      }),
      ...truth.upstreams.map(({ name, after: share }, index): [string, Share, number] => {
        return [name, told.upstreams[index]?.after ?? exactly(0), share?.share ?? 0];
      }),
    ];
    for (const [name, { share, standard_error }, exact] of pairs) {
      expect(Math.abs(share - exact), name).toBeLessThanOrEqual(4 * standard_error);
    }
    expect(told.moved.standard_error).toBeGreaterThan(0);
    expect(told.moved.standard_error).toBeLessThan(0.02);
  });
});

describe("periods", () => {
  const before = { upstreams: upstreams("a b c"), placement: BY_SERIES };
  const step = (fromMs: number, first: string, then: string): RouteChanges => ({
    placement: BY_SERIES,
    periods: [
      { fromMs: null, slots: upstreams(first) },
      { fromMs, slots: upstreams(then) },
    ],
  });

  it("that are to come move nothing now, and what they say from their moment on", () => {
    const report = changeOf(before, step(NOW + HOUR, "a b c", "a b c d"));
    const { moved } = bruteForce(
      SERIES,
      exampleRoute(before),
      exampleRoute({ ...before, upstreams: upstreams("a b c d") }),
    );
    const from = formatMoment(NOW + HOUR);
    expect(report.eras).toEqual([
      { from: null, moved: exactly(0), retasked: exactly(0), changed: exactly(0) },
      { from, moved: report.moved, retasked: report.retasked, changed: report.moved },
    ]);
    expect(report.moved.share).toBeCloseTo(moved, 10);
    expect(report.windows).toMatchObject({ kind: "at_border", from });
    expect(report.advice).toContainEqual(expect.stringContaining("enable_windows"));
  });

  it("are compared at the time that is asked for", () => {
    const [old, now] = [configOf([before]), configOf([step(NOW + HOUR, "a b c", "a b c d")])];
    expect(planOf(old, now, ALL, { atMs: NOW }).changed.share).toBe(0);
    expect(planOf(old, now, ALL, { atMs: NOW + HOUR }).changed.share).toBeGreaterThan(0.2);
  });

  it("of the past that change move what is late", () => {
    const [then, later] = [step(NOW - HOUR, "a b", "a b c"), step(NOW - HOUR, "b a", "a b c")];
    const report = changeOf(then, later);
    expect(report.moved).toEqual(exactly(0));
    expect(report.eras[0]?.moved).toEqual(exactly(1));
    expect(report.windows.kind).toBe("in_the_past");
  });

  it("differ from a change that takes effect at the reload", () => {
    expect(changeOf(before, { ...before, upstreams: upstreams("a b c d") }).windows).toMatchObject({
      kind: "at_reload",
      split: { share: expect.closeTo(0.25, 1) as number },
    });
    expect(
      changeOf(step(NOW + HOUR, "a b", "a b c"), step(NOW + 2 * HOUR, "a b", "a b c")).windows,
    ).toMatchObject({
      kind: "at_border",
      from: formatMoment(NOW + HOUR),
    });
  });
});

describe("a plan in steps", () => {
  it("is the same, with a pause whenever one is due", () => {
    const [before, after] = [configOf([{}]), configOf([{ ...tasks(16) }])];
    let asked = 0;
    const inSteps = planOf(before, after, ALL, { isDue: () => (asked += 1) > 0 });
    expect(inSteps).toEqual(planOf(before, after, ALL));
    expect(asked).toBeGreaterThan(100);
  });
});

describe("any change of any list", () => {
  const names = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d", "e", "f"), { minLength: 1, maxLength: 6 });
  const route = fc.record({
    list: names,
    tasks: fc.constantFrom(1, 5, 16, 128),
    byTask: fc.boolean(),
    algorithm: fc.constantFrom("jump", "hashmod", "rendezvous"),
    replicas: fc.integer({ min: 1, max: 2 }),
  });
  const changesOf = ({
    list,
    tasks: count,
    byTask,
    algorithm,
    replicas,
  }: {
    list: readonly string[];
    tasks: number;
    byTask: boolean;
    algorithm: "jump" | "hashmod" | "rendezvous";
    replicas: number;
  }): RouteChanges => ({
    ...tasks(count),
    upstreams: upstreams(list.join(" ")),
    placement: {
      key: byTask ? { kind: "task" } : { kind: "all" },
      algorithm,
      missingKey: "one_place",
      replicas: Math.min(replicas, list.length),
    },
  });

  it("has shares that add up, and is what placing series one by one comes to", () => {
    const series = numberedSeries(1000);
    const sample = sampleOf(series);
    fc.assert(
      fc.property(route, route, (from, to) => {
        const [before, after] = [changesOf(from), changesOf(to)];
        const report = changeOf(before, after, sample);
        const truth = bruteForce(series, exampleRoute(before), exampleRoute(after));
        expectSums(report);
        expect(report.moved.share).toBeCloseTo(truth.moved, 10);
        expect(report.changed.share).toBeCloseTo(truth.changed, 10);
        for (const { from: name, to: other, share } of report.from_to) {
          expect(pairShare(report, name, other)).toBe(share.share);
        }
      }),
      { numRuns: 40 },
    );
  });
});
