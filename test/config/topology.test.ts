/** `routes[].topology`: periods, the moments from which they are in force, and upstreams that stand in several. */
import { describe, expect, it } from "vitest";
import type { RouteConfig } from "../../src/config/config.ts";
import { parseConfig } from "../../src/config/load.ts";
import { formatMoment, parseMoment } from "../../src/moment.ts";
import { formatProblem } from "../../src/config/problem.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";
import { itTellsAll } from "./badConfig.ts";
import type { BadConfig } from "./badConfig.ts";

/** A route whose topology begins in line 4, with `route` behind its name. */
function periods(lines: readonly string[], route = "r"): string {
  return ["routes:", `  - name: ${route}`, "    topology:", ...lines.map((line) => `      ${line}`)].join(
    "\n",
  );
}

const FIRST = "- upstreams: [{name: a, url: http://a/w}, {name: b, url: http://b/w}]";
const NOON = Date.UTC(2026, 11, 1, 12);

function load(yaml: string, warnings: readonly string[] = []): RouteConfig {
  const options = { legacyHash: "jump", checkRule: faultOf, checkPlacement: placementFault } as const;
  const { config, problems } = parseConfig(yaml, "f.yaml", options);
  expect(problems.map(formatProblem)).toEqual(warnings.map((warning) => `f.yaml:${warning}`));
  const [route] = config?.routes ?? [];
  if (route === undefined) throw new Error("no route");
  return route;
}

describe("a topology", () => {
  it("is read as periods, and every upstream once, as the first period says that has it live", () => {
    const { route, upstreams } = load(
      periods([
        "- upstreams:",
        "    - {name: a, url: http://a/w, basic_auth: {username: u, password: hunter2}}",
        "    - {name: b, removed: true, url: not looked at}",
        "    - {name: c, url: http://c/w, write_relabel_configs: [{action: drop, regex: x, source_labels: [y]}]}",
        "- from: 2026-12-01T12:00:00Z",
        "  upstreams: [name: a, {name: b, url: http://b/w}, {name: c, removed: true}, {name: d, url: http://d/w}]",
        "- from: '2026-12-02T00:00:00.250+01:00'",
        "  upstreams: [{name: d}, {name: a, url: 'http://a/w', basic_auth: {password: 'hunter2', username: u}}, {name: c}]",
      ]),
    );
    expect(route.topology).toEqual([
      { fromMs: null, slots: [{ name: "a" }, { name: "b", removed: true }, { name: "c" }] },
      { fromMs: NOON, slots: [{ name: "a" }, { name: "b" }, { name: "c", removed: true }, { name: "d" }] },
      { fromMs: Date.UTC(2026, 11, 1, 23, 0, 0, 250), slots: [{ name: "d" }, { name: "a" }, { name: "c" }] },
    ]);
    expect(upstreams.map(({ name, url }) => `${name} ${url.href}`)).toEqual([
      "a http://a/w",
      "c http://c/w",
      "b http://b/w",
      "d http://d/w",
    ]);
    expect(route.upstreams.map(({ name, writeRelabel }) => [name, writeRelabel.rules.length])).toEqual([
      ["a", 0],
      ["c", 1],
      ["b", 0],
      ["d", 0],
    ]);
    expect(upstreams[0]?.auth).toMatchObject({ kind: "basic" });
  });

  it("of one period is a list of upstreams", () => {
    const { route, upstreams } = load(periods([FIRST]));
    const list = load(
      "routes: [{name: r, upstreams: [{name: a, url: http://a/w}, {name: b, url: http://b/w}]}]",
    );
    expect({ route, upstreams }).toEqual({ route: list.route, upstreams: list.upstreams });
  });

  it("says how long upstreams of past periods are kept", () => {
    const yaml = periods([FIRST]);
    expect(load(`${yaml}\n    retire_after: 90m`).route.retireAfterMs).toBe(5_400_000);
    expect(load(`${yaml}\n    retire_after: 0s`).route.retireAfterMs).toBe(0);
  });

  it("has weights by period, and tells where one is left out that was there", () => {
    const { route } = load(
      periods(
        [
          "- upstreams: [{name: a, url: http://a/w, weight: 2}, {name: b, url: http://b/w, weight: 3}]",
          "- from: 2026-12-01T12:00:00Z",
          "  upstreams: [{name: a, weight: 5}, {name: b}]",
        ],
        "r\n    placement: {algorithm: ring}",
      ),
      [
        "7:43: warning: routes[0].topology[1].upstreams[1].weight: has weight 3 at line 5 and none in this period, where it counts as 1; write it here as well if it is to stay",
      ],
    );
    expect(route.topology.map(({ slots }) => slots.map(({ weight }) => weight))).toEqual([
      [2, 3],
      [5, undefined],
    ]);
  });

  it("is warned about where a period has more upstreams than there are tasks", () => {
    load(
      periods([FIRST, "- {from: 2026-12-01T12:00:00Z, upstreams: [name: a]}"], "r\n    tasks: {count: 1}"),
      [
        "5:20: warning: routes[0].topology[0].upstreams: 2 upstreams for 1 tasks: with key: task at least 1 get nothing; want more tasks, or fewer upstreams",
      ],
    );
  });
});

const MOMENT = "want a time as 2026-12-01T00:00:00Z or 2026-12-01T01:00:00.500+01:00";
const BAD: readonly BadConfig[] = [
  {
    name: "upstreams beside it",
    yaml: `${periods([FIRST])}\n    upstreams: [{name: z, url: http://z/w}]`,
    problems: ["4:7: routes[0].topology: want either upstreams or topology; got both"],
  },
  {
    name: "neither",
    yaml: "routes: [{name: r}]",
    problems: ["1:10: routes[0].upstreams: missing; want a list of upstreams"],
  },
  {
    name: "no periods",
    yaml: "routes: [{name: r, topology: []}]",
    problems: ["1:30: routes[0].topology: want at least one of the periods; got an empty list"],
  },
  {
    name: "a map",
    yaml: "routes: [{name: r, topology: {upstreams: []}}]",
    problems: ["1:30: routes[0].topology: want a list of periods; got a map"],
  },
  {
    name: "a moment for the first period",
    yaml: periods(["- from: 2026-12-01T00:00:00Z", "  upstreams: [{name: a, url: http://a/w}]"]),
    problems: [
      "4:15: routes[0].topology[0].from: the first period has none: it is in force for all that is older than the second; leave it out",
    ],
  },
  {
    name: "no moment for the second, which has no upstreams either",
    yaml: periods([FIRST, "- {upstreams: []}"]),
    problems: [
      "5:9: routes[0].topology[1].from: missing; want the time from which on these upstreams are in force, as 2026-12-01T00:00:00Z",
      "5:21: routes[0].topology[1].upstreams: want at least one of the upstreams; got an empty list",
    ],
  },
  {
    name: "moments that are equal, or go back",
    yaml: periods([
      FIRST,
      "- {from: 2026-12-01T12:00:00Z, upstreams: [name: a]}",
      "- {from: 2026-12-01T13:00:00+01:00, upstreams: [name: a]}",
      "- {from: 2026-11-30T12:00:00.5Z, upstreams: [name: a]}",
    ]),
    problems: [
      "6:16: routes[0].topology[2].from: want a time behind 2026-12-01T12:00:00Z, that of the period at line 5; got 2026-12-01T12:00:00Z",
      "7:16: routes[0].topology[3].from: want a time behind 2026-12-01T12:00:00Z, that of the period at line 5; got 2026-11-30T12:00:00.500Z",
    ],
  },
  {
    name: "no moments",
    yaml: periods([
      FIRST,
      ...[
        "2026-02-30T00:00:00Z",
        "2026-12-01",
        "1764590400",
        '"2026-12-01 00:00:00Z"',
        "[]",
        "1969-12-31T23:59:59Z",
      ].map((from) => `- {from: ${from}, upstreams: [name: a]}`),
    ]),
    problems: [
      `5:16: routes[0].topology[1].from: ${MOMENT}; got 2026-02-30T00:00:00Z`,
      `6:16: routes[0].topology[2].from: ${MOMENT}; got 2026-12-01`,
      `7:16: routes[0].topology[3].from: ${MOMENT}; got 1764590400`,
      `8:16: routes[0].topology[4].from: ${MOMENT}; got "2026-12-01 00:00:00Z"`,
      `9:16: routes[0].topology[5].from: ${MOMENT}; got a list`,
      "10:16: routes[0].topology[6].from: want a time from 1970 on; got 1969-12-31T23:59:59Z",
    ],
  },
  {
    name: "more periods than are placed for each series",
    yaml: periods([
      FIRST,
      ...Array.from({ length: 32 }, (_, n) => `- {from: ${2030 + n}-01-01T00:00:00Z, upstreams: [name: a]}`),
    ]),
    problems: [
      "4:7: routes[0].topology: want at most 32 periods, since every series is placed in each of them; got 33",
    ],
  },
  {
    name: "an upstream that is not described, and one that is only from a later period on",
    yaml: periods([
      "- upstreams: [{name: a}, {name: b, removed: true, url: http://b/w}]",
      "- {from: 2026-12-01T12:00:00Z, upstreams: [name: a, name: b]}",
    ]),
    problems: [
      "4:21: routes[0].topology[0].upstreams[0].url: missing; want a url as http://vmagent-0:8429/api/v1/write, or removed: true for one that is gone",
      "5:59: routes[0].topology[1].upstreams[1].url: missing; want a url as http://vmagent-0:8429/api/v1/write, or removed: true for one that is gone",
    ],
  },
  {
    name: "an upstream that is described again, otherwise",
    yaml: periods([
      "- upstreams: [{name: a, url: http://a/w, headers: {X-Token: hunter2}}]",
      "- from: 2026-12-01T12:00:00Z",
      "  upstreams:",
      "    - name: a",
      "      url: http://a/v",
      "      headers: {X-Token: hunter3}",
      "      basic_auth: {username: u, password: hunter4}",
    ]),
    problems: [
      "8:18: routes[0].topology[1].upstreams[0].url: want one url for a in the whole file; it has another at line 4",
      "9:22: routes[0].topology[1].upstreams[0].headers: want what the period before says at line 4, or no such key, since one sender serves all periods; got another value",
      "10:25: routes[0].topology[1].upstreams[0].basic_auth: want what the period before says at line 4, or no such key, since one sender serves all periods; got another value",
    ],
  },
  {
    name: "two urls for a name in periods of two routes",
    yaml: `${periods([FIRST])}\n  - {name: s, topology: [{upstreams: [{name: c, url: http://c/w}]}, {from: 2026-12-01T00:00:00Z, upstreams: [{name: a, url: http://a/x}]}]}`,
    problems: [
      "5:125: routes[1].topology[1].upstreams[0].url: want one url for a in the whole file; it has another at line 4",
    ],
  },
  {
    name: "an unknown key, and a name that stands twice in one period",
    yaml: periods([
      FIRST,
      "- {from: 2026-12-01T12:00:00Z, until: x, upstreams: [{name: a, url: http://a/w}, {name: a, url: http://a/w}]}",
    ]),
    problems: [
      "5:38: routes[0].topology[1].until: unknown key; want one of: from, upstreams",
      "5:95: routes[0].topology[1].upstreams[1].name: want another name; the upstream of this route at line 5 has this one",
    ],
  },
  {
    name: "more replicas than a later period has upstreams, and one that has only tombstones",
    yaml: periods(
      [
        FIRST,
        "- {from: 2026-12-01T12:00:00Z, upstreams: [name: a, {name: b, removed: true}]}",
        "- {from: 2026-12-01T13:00:00Z, upstreams: [{name: a, removed: true}]}",
      ],
      "r\n    placement: {replicas: 2}",
    ),
    problems: [
      "6:49: routes[0].topology[1].upstreams: 2 replicas of each key want as many live slots, and there are 1: add slots or lower replicas",
      "7:49: routes[0].topology[2].upstreams: all 1 slots are removed: leave at least one of them live",
    ],
  },
  {
    name: "a weight in one period, where the algorithm has none",
    yaml: periods([FIRST, "- {from: 2026-12-01T12:00:00Z, upstreams: [name: b, {name: a, weight: 2}]}"]),
    problems: [
      `5:77: routes[0].topology[1].upstreams[1].weight: slot "a" has a weight, and jump knows none: leave it out, or place by rendezvous, maglev or ring`,
    ],
  },
  {
    name: "a time to keep upstreams that is none",
    yaml: `${periods([FIRST])}\n    retire_after: -1s`,
    problems: ["5:19: routes[0].retire_after: want a duration as 1h30m, 15s or 20ms; got -1s"],
  },
];

describe("a topology with errors", () => {
  itTellsAll(BAD);
});

describe("a moment", () => {
  it.each([
    ["2026-12-01T12:00:00Z", NOON],
    ["2026-12-01t12:00:00z", NOON],
    ["2026-12-01T13:30:00+01:30", NOON],
    ["2026-12-01T00:00:00-12:00", NOON],
    ["2026-12-01T12:00:00.5Z", NOON + 500],
    ["2026-12-01T12:00:00.250Z", NOON + 250],
    ["2024-02-29T00:00:00Z", Date.UTC(2024, 1, 29)],
    ["1970-01-01T00:00:00Z", 0],
  ])("is read: %s", (written, milliseconds) => {
    expect(parseMoment(written)).toBe(milliseconds);
    expect(parseMoment(formatMoment(milliseconds))).toBe(milliseconds);
  });

  it.each([
    "2026-12-01T12:00:00",
    "2026-12-01T12:00Z",
    "2026-12-01T24:00:00Z",
    "2026-12-01T12:60:00Z",
    "2026-12-01T12:00:60Z",
    "2026-12-01T12:00:00.0001Z",
    "2026-12-01T12:00:00.Z",
    "2026-12-01T12:00:00+0100",
    "2026-12-01T12:00:00+24:00",
    "2026-02-29T00:00:00Z",
    "2026-04-31T00:00:00+01:00",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-01-00T00:00:00Z",
    " 2026-12-01T12:00:00Z",
    "+002026-12-01T12:00:00Z",
    "",
  ])("is none: %s", (written) => {
    expect(parseMoment(written)).toBeNull();
  });
});
