import { describe, expect, it } from "vitest";
import type { RouteConfig } from "../../src/config/config.ts";
import { parseConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";
import { itTellsAll } from "./badConfig.ts";
import type { BadConfig } from "./badConfig.ts";

/** A route with tasks and two upstreams, with `placement` in line 3 and what is behind the upstreams' names in lines 5 and 6. */
function withPlacement(placement: string, a = "", b = ""): string {
  return [
    "routes:",
    "  - name: r",
    `    placement: {${placement}}`,
    "    upstreams:",
    `      - {name: a, url: http://a/w${a}}`,
    `      - {name: b, url: http://b/w${b}}`,
    "    tasks: {count: 128}",
  ].join("\n");
}

function load(yaml: string, warnings: readonly string[] = []): RouteConfig {
  const options = { legacyHash: "jump", checkRule: faultOf, checkPlacement: placementFault } as const;
  const { config, problems } = parseConfig(yaml, "f.yaml", options);
  expect(problems.map(formatProblem)).toEqual(warnings.map((warning) => `f.yaml:${warning}`));
  const [route] = config?.routes ?? [];
  if (route === undefined) throw new Error("no route");
  return route;
}

describe("an algorithm of placement", () => {
  const rest = { key: { kind: "task" }, missingKey: "one_place", replicas: 1 };
  it.each([
    { name: "none", placement: "", expected: { algorithm: "jump" } },
    { name: "jump", placement: "algorithm: jump", expected: { algorithm: "jump" } },
    { name: "hashmod", placement: "algorithm: hashmod", expected: { algorithm: "hashmod" } },
    {
      name: "balanced",
      placement: "algorithm: balanced",
      expected: { algorithm: "balanced", tasks: 128 },
    },
    { name: "rendezvous", placement: "algorithm: rendezvous", expected: { algorithm: "rendezvous" } },
    {
      name: "ring",
      placement: "algorithm: ring",
      expected: { algorithm: "ring", hash: "md5", points: 160 },
    },
    {
      name: "ring with options",
      placement: "algorithm: ring, ring: {hash: fnv1a, points: 1000}",
      expected: { algorithm: "ring", hash: "fnv1a", points: 1000 },
    },
    { name: "maglev", placement: "algorithm: maglev", expected: { algorithm: "maglev", table: 65537 } },
    {
      name: "maglev with options",
      placement: "algorithm: maglev, maglev: {table: 251}",
      expected: { algorithm: "maglev", table: 251 },
    },
    {
      name: "multi_probe",
      placement: "algorithm: multi_probe",
      expected: { algorithm: "multi_probe", probes: 21 },
    },
    {
      name: "multi_probe with options",
      placement: "algorithm: multi_probe, multi_probe: {probes: 5}",
      expected: { algorithm: "multi_probe", probes: 5 },
    },
    {
      name: "options of others that are empty",
      placement: "algorithm: maglev, maglev: , ring: null",
      expected: { algorithm: "maglev", table: 65537 },
    },
  ])("is read with its options: $name", ({ placement, expected }) => {
    expect(load(withPlacement(placement)).route.placement).toEqual({ ...rest, ...expected });
  });

  it.each(["jump", "hashmod", "ring", "maglev", "rendezvous", "multi_probe"])(
    "goes with other keys than the task: %s",
    (algorithm) => {
      const { placement } = load(withPlacement(`key: {by: [job]}, algorithm: ${algorithm}`)).route;
      expect(placement).toMatchObject({ algorithm, key: { kind: "by", names: ["job"] } });
    },
  );

  it.each(["ring", "maglev", "rendezvous"])("has weights: %s", (algorithm) => {
    const { route } = load(withPlacement(`algorithm: ${algorithm}`, ", weight: 2.5"));
    expect(route.topology[0]?.slots.map(({ name, weight }) => [name, weight])).toEqual([
      ["a", 2.5],
      ["b", undefined],
    ]);
  });
});

describe("replicas", () => {
  it.each(["jump", "balanced", "hashmod", "ring", "maglev", "rendezvous", "multi_probe"])(
    "go with every algorithm, up to the number of upstreams: %s",
    (algorithm) => {
      const { placement } = load(withPlacement(`algorithm: ${algorithm}, replicas: 2`)).route;
      expect(placement).toMatchObject({ algorithm, replicas: 2 });
    },
  );

  it("count where copies of tasks are compared with upstreams", () => {
    const route = (count: number, replicas: number): string =>
      `routes: [{name: r, tasks: {count: ${count}}, placement: {replicas: ${replicas}}, upstreams: [{name: a, url: http://a/w}, {name: b, url: http://b/w}, {name: c, url: http://c/w}]}]`;
    load(route(2, 2));
    load(route(1, 2), [
      "1:76: warning: routes[0].upstreams: 3 upstreams for 2 copies of tasks: with key: task at least 1 get nothing; want more tasks, or fewer upstreams",
    ]);
  });
});

describe("a tombstone", () => {
  const rules = { dialect: "prometheus", rules: [] };

  it("is a slot without an upstream", () => {
    const yaml =
      "routes: [{name: r, upstreams: [{name: a, url: http://a/w}, {name: b, removed: true}, {name: c, url: http://c/w}]}]";
    const { route, upstreams } = load(yaml);
    expect(route.topology).toEqual([
      { fromMs: null, slots: [{ name: "a" }, { name: "b", removed: true }, { name: "c" }] },
    ]);
    expect(route.upstreams).toEqual([
      { name: "a", writeRelabel: rules },
      { name: "c", writeRelabel: rules },
    ]);
    expect(upstreams.map(({ name }) => name)).toEqual(["a", "c"]);
  });

  it("keeps its weight", () => {
    const { route } = load(withPlacement("algorithm: ring", "", ", weight: 3, removed: true"));
    expect(route.topology[0]?.slots[1]).toEqual({ name: "b", weight: 3, removed: true });
  });

  it("may keep everything that its upstream had, which is not looked at", () => {
    const kept = [
      "basic_auth: {username: u, password_file: /no/such/file}",
      "headers: {Content-Length: 1}",
      "tls_config: {ca_file: /no/such/file}",
      "write_relabel_configs: [{action: drop, regex: '('}]",
    ];
    const { upstreams } = load(withPlacement("", "", `, removed: true, ${kept.join(", ")}`));
    expect(upstreams.map(({ name }) => name)).toEqual(["a"]);
  });

  it("has no url that others could contradict", () => {
    const tombstone =
      "{name: s, upstreams: [{name: a, url: http://old/w, removed: true}, {name: c, url: http://c/w}]}";
    load(`${withPlacement("")}\n  - ${tombstone}`);
  });

  it("taken back is the upstream that it was", () => {
    expect(load(withPlacement("", "", ", removed: false"))).toEqual(load(withPlacement("")));
  });

  it("does not count where tasks are compared with upstreams", () => {
    const upstreams = "[{name: a, url: http://a/w}, {name: b, removed: true}, {name: c, removed: true}]";
    load(`routes: [{name: r, tasks: {count: 1}, upstreams: ${upstreams}}]`);
    const live = upstreams.replace("removed: true", "url: http://b/w");
    load(`routes: [{name: r, tasks: {count: 1}, upstreams: ${live}}]`, [
      "1:50: warning: routes[0].upstreams: 2 upstreams for 1 tasks: with key: task at least 1 get nothing; want more tasks, or fewer upstreams",
    ]);
  });
});

const OPTIONS: readonly BadConfig[] = [
  {
    name: "options of algorithms that are not chosen",
    yaml: withPlacement("ring: {points: 1}, maglev: {}, multi_probe: {probes: 3}"),
    problems: [
      "3:23: routes[0].placement.ring: has a meaning only with algorithm: ring, and this is jump; leave it out",
      "3:44: routes[0].placement.maglev: has a meaning only with algorithm: maglev, and this is jump; leave it out",
      "3:61: routes[0].placement.multi_probe: has a meaning only with algorithm: multi_probe, and this is jump; leave it out",
    ],
  },
  {
    name: "an algorithm that does not exist, whose options are left alone",
    yaml: withPlacement("algorithm: rings, ring: {points: 0}", ", weight: 2"),
    problems: [
      "3:28: routes[0].placement.algorithm: want jump, balanced, hashmod, ring, maglev, rendezvous or multi_probe; got rings",
    ],
  },
  {
    name: "options that no algorithm has",
    yaml: withPlacement("algorithm: ring, ring: {hash: sha1, point: 3}"),
    problems: [
      "3:47: routes[0].placement.ring.hash: want md5 or fnv1a; got sha1",
      "3:53: routes[0].placement.ring.point: unknown key; did you mean points?",
    ],
  },
  {
    name: "a ring that is no map",
    yaml: withPlacement("algorithm: ring, ring: md5"),
    problems: ["3:40: routes[0].placement.ring: want keys and values; got text"],
  },
  {
    name: "a ring without points",
    yaml: withPlacement("algorithm: ring, ring: {points: 0}"),
    problems: ["3:49: routes[0].placement.ring.points: a ring of 0 points: want 1 or more, 160 say"],
  },
  {
    name: "a ring of points that are no count",
    yaml: withPlacement("algorithm: ring, ring: {points: 1.5}"),
    problems: ["3:49: routes[0].placement.ring.points: want a whole number; got 1.5"],
  },
  {
    name: "a weight of less than a point",
    yaml: withPlacement("algorithm: ring", ", weight: 0.001"),
    problems: [
      `5:44: routes[0].upstreams[0].weight: slot "a" has no point on the ring (weight 0.001 of 160 points): raise its weight or points`,
    ],
  },
  {
    name: "a table that is not prime",
    yaml: withPlacement("algorithm: maglev, maglev: {table: 65536}"),
    problems: [
      "3:52: routes[0].placement.maglev.table: a Maglev table of 65536 entries: want a prime from 200 (100 for each of 2 slots) to 5000011, 65537 say",
    ],
  },
  {
    name: "a table that is too small",
    yaml: withPlacement("algorithm: maglev, maglev: {table: 199}"),
    problems: [
      "3:52: routes[0].placement.maglev.table: a Maglev table of 199 entries: want a prime from 200 (100 for each of 2 slots) to 5000011, 211 say",
    ],
  },
  {
    name: "no probes",
    yaml: withPlacement("algorithm: multi_probe, multi_probe: {probes: 0}"),
    problems: ["3:63: routes[0].placement.multi_probe.probes: 0 probes of each key: want 1 to 1000, 21 say"],
  },
  {
    name: "balanced without the task for its key",
    yaml: withPlacement("algorithm: balanced, key: series"),
    problems: [
      "3:28: routes[0].placement.algorithm: balanced places tasks, and their number is not known: use it with key: task, or use jump",
    ],
  },
  {
    name: "balanced with more tasks than fit into a table",
    yaml: withPlacement("algorithm: balanced").replace("128", "2000000000"),
    problems: [
      "3:28: routes[0].placement.algorithm: balanced keeps a table of its tasks, here 2000000000: want at most 1000000, or jump, which spreads so many evenly",
    ],
  },
  {
    name: "balanced by the task of no tasks",
    yaml: withPlacement("algorithm: balanced, key: task").replace("    tasks: {count: 128}", ""),
    problems: ["3:43: routes[0].placement.key: task needs tasks in this route; want tasks, or key: series"],
  },
];

const TOO_MANY = "replicas of each key want as many live slots, and there are";
const REPLICAS: readonly BadConfig[] = [
  {
    name: "no replicas",
    yaml: withPlacement("replicas: 0"),
    problems: ["3:27: routes[0].placement.replicas: want at least 1; got 0"],
  },
  {
    name: "replicas that are no count",
    yaml: withPlacement("replicas: two"),
    problems: ["3:27: routes[0].placement.replicas: want a whole number; got two"],
  },
  {
    name: "more replicas than upstreams",
    yaml: withPlacement("replicas: 3"),
    problems: [`3:27: routes[0].placement.replicas: 3 ${TOO_MANY} 2: add slots or lower replicas`],
  },
  {
    name: "more replicas than upstreams that are no tombstones",
    yaml: withPlacement("replicas: 2", "", ", removed: true"),
    problems: [`3:27: routes[0].placement.replicas: 2 ${TOO_MANY} 1: add slots or lower replicas`],
  },
  {
    name: "more replicas than upstreams, besides a weight and a table that are wrong",
    yaml: withPlacement("replicas: 3, algorithm: maglev, maglev: {table: 3}", ", weight: 0"),
    problems: [
      `3:27: routes[0].placement.replicas: 3 ${TOO_MANY} 2: add slots or lower replicas`,
      "3:65: routes[0].placement.maglev.table: a Maglev table of 3 entries: want a prime from 200 (100 for each of 2 slots) to 5000011, 211 say",
      `5:44: routes[0].upstreams[0].weight: slot "a" has weight 0: want a number above 0; a slot that gets nothing is written removed: true`,
    ],
  },
  {
    name: "replicas of nothing but tombstones",
    yaml: withPlacement("replicas: 2", ", removed: true", ", removed: true"),
    problems: ["5:7: routes[0].upstreams: all 2 slots are removed: leave at least one of them live"],
  },
];

const UNWEIGHTED = ["jump", "hashmod", "balanced", "multi_probe"].map((algorithm): BadConfig => ({
  name: `weights under ${algorithm}`,
  yaml: withPlacement(`algorithm: ${algorithm}`, ", weight: 1", ", weight: 2"),
  problems: ["5:44: routes[0].upstreams[0]", "6:44: routes[0].upstreams[1]"].map(
    (place, index) =>
      `${place}.weight: slot "${index === 0 ? "a" : "b"}" has a weight, and ${algorithm} knows none: leave it out, or place by rendezvous, maglev or ring`,
  ),
}));

const SLOTS: readonly BadConfig[] = [
  {
    name: "weights that are not above 0",
    yaml: withPlacement("algorithm: rendezvous", ", weight: 0", ", weight: -1.5"),
    problems: [
      `5:44: routes[0].upstreams[0].weight: slot "a" has weight 0: want a number above 0; a slot that gets nothing is written removed: true`,
      `6:44: routes[0].upstreams[1].weight: slot "b" has weight -1.5: want a number above 0; a slot that gets nothing is written removed: true`,
    ],
  },
  {
    name: "a weight of 0 on a tombstone, which gets nothing anyway",
    yaml: withPlacement("algorithm: rendezvous", ", removed: true, weight: 0"),
    problems: [
      `5:59: routes[0].upstreams[0].weight: slot "a" has weight 0: want a number above 0, or none, since a slot with removed: true gets nothing whatever its weight`,
    ],
  },
  {
    name: "weights that are no numbers",
    yaml: withPlacement("algorithm: rendezvous", ", weight: heavy", ", weight: '1'"),
    problems: [
      "5:44: routes[0].upstreams[0].weight: want a number; got heavy",
      `6:44: routes[0].upstreams[1].weight: want a number; got "1"`,
    ],
  },
  {
    name: "a weight beyond all numbers",
    yaml: withPlacement("algorithm: maglev", ", weight: 1e999"),
    problems: [
      `5:44: routes[0].upstreams[0].weight: slot "a" has weight Infinity: want a number above 0; a slot that gets nothing is written removed: true`,
    ],
  },
  {
    name: "all upstreams removed",
    yaml: withPlacement("", ", removed: true", ", removed: true"),
    problems: ["5:7: routes[0].upstreams: all 2 slots are removed: leave at least one of them live"],
  },
  {
    name: "a tombstone beside a live upstream of its name",
    yaml: withPlacement("", "", "}\n      - {name: a, removed: true"),
    problems: [
      "7:16: routes[0].upstreams[2].name: want another name; the upstream of this route at line 5 has this one",
    ],
  },
  {
    name: "a tombstone without a name",
    yaml: withPlacement("", "", "}\n      - {removed: true"),
    problems: ["7:9: routes[0].upstreams[2].name: missing; want a name for the upstream"],
  },
  {
    name: "a tombstone with a key that no upstream has",
    yaml: withPlacement("", "", ", removed: true, since: yesterday"),
    problems: [
      "6:51: routes[0].upstreams[1].since: unknown key; want one of: name, removed, weight, url, basic_auth, authorization, headers, tls_config, write_relabel_configs",
    ],
  },
  {
    name: "removed that is neither true nor false",
    yaml: withPlacement("", "", ", removed: yes"),
    problems: ["6:45: routes[0].upstreams[1].removed: want true or false; got yes"],
  },
];

describe("a configuration with errors in placement", () => {
  itTellsAll([OPTIONS, REPLICAS, UNWEIGHTED, SLOTS].flat());
});
