import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { changeLine, type RouteChange } from "../../src/plan/changeText.ts";
import { compareWithKnown, keepKnown, pastOfKnown, readKnown } from "../../src/cli/knownTopology.ts";
import type { Config } from "../../src/config/config.ts";
import { configOf } from "../system/gatewayRig.ts";

let parent = "";
/** Not there yet. */
let folder = "";
let file = "";

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "known-"));
  folder = join(parent, "data", "spool");
  file = join(folder, "topology.json");
});

afterEach(() => {
  rmSync(parent, { recursive: true });
});

/** A route of upstreams by their names; "-b" is a tombstone. */
function routeOver(names: string, options = "placement: {algorithm: jump}", port = 1): Config {
  const list = names.split(" ").map((name) => {
    return name.startsWith("-")
      ? `{name: ${name.slice(1)}, removed: true}`
      : `{name: ${name}, url: "http://127.0.0.1:${port}/w"}`;
  });
  return configOf(`routes: [{name: r, ${options}, upstreams: [${list.join(", ")}]}]`);
}

/** Starts with each of them, one after the other. */
async function started(...configs: readonly Config[]): Promise<void> {
  for (const config of configs) expect(await keepKnown(folder, config)).toBeNull();
}

function onlyChange(config: Config): RouteChange {
  const [change, ...more] = compareWithKnown(folder, config);
  expect(more).toEqual([]);
  if (change === undefined) throw new Error("nothing was compared");
  return change;
}

describe("what a start keeps", () => {
  it("is names and placement, and neither urls nor secrets nor rules", async () => {
    const rule = "{source_labels: [job], regex: password, action: drop}";
    const config = configOf(`
routes:
  - name: r
    tasks: {count: 16, by: [job]}
    placement: {algorithm: rendezvous}
    relabel_configs: [${rule}]
    upstreams:
      - name: a
        url: "http://secret-host/w?token=secret"
        weight: 2
        basic_auth: {username: secret-user, password: secret}
        headers: {X-Token: secret}
        write_relabel_configs: [${rule}]
      - {name: b, removed: true, url: "http://secret-host/w"}
      - {name: c, url: "http://other-secret-host/w"}
`);
    await started(config);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({
      version: 1,
      routes: [
        {
          last: {
            name: "r",
            keyFormat: "pairs",
            tasks: {
              count: 16,
              label: "stream_task_id",
              algorithm: "jump",
              key: { kind: "by", names: ["job"] },
            },
            placement: {
              key: { kind: "task" },
              missingKey: "one_place",
              replicas: 1,
              algorithm: "rendezvous",
            },
            upstreams: [{ name: "a", weight: 2 }, { name: "b", removed: true }, { name: "c" }],
          },
          earlier: null,
        },
      ],
    });
  });

  it.each([
    { name: "jump by labels", options: "placement: {key: {by: [job]}, missing_key: whole_set}" },
    { name: "jump by other labels", options: "placement: {key: {without: [pod]}}" },
    { name: "a long label for tasks", options: `tasks: {label: ${"task_".repeat(100)}}` },
    { name: "hashmod, flat keys", options: "key_format: flat, placement: {algorithm: hashmod}" },
    { name: "balanced", options: "tasks: {count: 64}, placement: {algorithm: balanced}" },
    { name: "ring", options: "placement: {algorithm: ring, ring: {hash: fnv1a, points: 16}}" },
    { name: "maglev", options: "placement: {algorithm: maglev}" },
    { name: "rendezvous", options: "placement: {algorithm: rendezvous}" },
    {
      name: "multi_probe",
      options: "tasks: {algorithm: hashmod}, placement: {key: series, algorithm: multi_probe}",
    },
  ])("is read again: $name", async ({ options }) => {
    const config = routeOver("a -b c", options);
    await started(config);
    expect(onlyChange(config)).toEqual({
      kind: "same",
      text: `route r against the last start (${file}): nothing moves`,
      remedies: [],
    });
  });

  it("is one file, written anew only when something is different", async () => {
    await started(routeOver("a b"));
    const { ino } = statSync(file);
    await started(routeOver("a b", undefined, 2));
    expect(statSync(file).ino).toBe(ino);
    await started(routeOver("a b c"));
    expect(statSync(file).ino).not.toBe(ino);
    expect(readdirSync(folder)).toEqual(["topology.json"]);
  });

  it("is of no use to a route of another name", async () => {
    await started(routeOver("a b"));
    const other = configOf('routes: [{name: s, upstreams: [{name: b, url: "http://b/w"}]}]');
    expect(compareWithKnown(folder, other)).toEqual([]);
  });
});

describe("a list that is different from what the last start kept", () => {
  it("is told with its remedy where it renumbers", async () => {
    await started(routeOver("a b c"));
    const { kind, text, remedies } = onlyChange(routeOver("b c"));
    expect(kind).toBe("renumbered");
    expect(text).toMatch(
      /: taken out a; jump goes by number, and numbers change: b is 0 and was 1, c is 1 and was 2; \d\d\.\d % of its keys move$/,
    );
    expect(remedies).toEqual([
      "write at the top of the list, so that those behind it keep their numbers: - {name: a, removed: true}",
    ]);
  });

  it.each([
    {
      name: "a tombstone",
      names: "-a b c",
      text: /removed a; 3[23]\.\d % of its keys move; only keys of these/,
    },
    { name: "one more at the end", names: "a b c d", text: /added d; 2[45]\.\d % of its keys move/ },
  ])("is told without one where numbers stay: $name", async ({ names, text }) => {
    await started(routeOver("a b c"));
    expect(onlyChange(routeOver(names))).toEqual({
      kind: "changed",
      text: expect.stringMatching(text) as string,
      remedies: [],
    });
  });

  it("is one line of a log, which says of an old gateway's list that tombstones take another file", async () => {
    await started(routeOver("a b c"));
    const change = onlyChange(routeOver("b c"));
    expect(changeLine(change, false)).toMatch(/% of its keys move; write at the top of .*, removed: true\}$/);
    expect(changeLine(change, true)).toMatch(/, removed: true\}; this takes a native file: .* convert$/);
    expect(changeLine(onlyChange(routeOver("a b")), true)).not.toContain("native");
  });

  it("is nothing to be told of when only a url is another", async () => {
    await started(routeOver("a b c"));
    expect(onlyChange(routeOver("a b c", undefined, 2)).kind).toBe("same");
  });

  it("may follow the remedy after a start that renumbered, even when that has gone on", async () => {
    await started(routeOver("a b c"), routeOver("b c"), routeOver("b c"), routeOver("b c d"));
    const remedied = routeOver("-a b c d");
    expect(onlyChange(remedied)).toEqual({
      kind: "changed",
      text: expect.stringMatching(
        /: added as tombstone a; numbers are again what they were before the last change; \d\d\.\d % of its keys move$/,
      ) as string,
      remedies: [],
    });
    await started(remedied);
    expect(onlyChange(routeOver("b c d")).kind).toBe("renumbered");
  });

  it("is warned of again when it renumbers once more", async () => {
    await started(routeOver("a b c d"), routeOver("b c d"));
    expect(onlyChange(routeOver("c d"))).toMatchObject({
      kind: "renumbered",
      remedies: [expect.stringContaining("at the top of the list")],
    });
  });
});

describe("a file that is damaged, or of another program", () => {
  /** The right one, changed in one place. */
  const changed = (from: string | RegExp, to: string): ((text: string) => string) => {
    return (text) => {
      const other = text.replace(from, to);
      expect(other).not.toBe(text);
      return other;
    };
  };

  it.each([
    { name: "empty", damage: () => "", reason: "it is no JSON" },
    { name: "torn", damage: (text: string) => text.slice(0, -20), reason: "it is no JSON" },
    { name: "a list", damage: () => "[]", reason: "it is not of this gateway" },
    { name: "null", damage: () => "null", reason: "it is not of this gateway" },
    { name: "another program's", damage: () => '{"upstreams": []}', reason: "it is not of this gateway" },
    {
      name: "a later version's",
      damage: changed('"version": 1', '"version": 2'),
      reason: "its format is not 1, the one of this version",
    },
    { name: "without routes", damage: () => '{"version": 1}', reason: "what it holds makes no sense" },
    ...[
      { name: "an unknown algorithm", from: /"balanced"/, to: '"magic"' },
      { name: "an unknown key", from: '"kind": "task"', to: '"kind": "tusk"' },
      { name: "labels that are none", from: '"kind": "task"', to: '"kind": "by", "names": [1]' },
      { name: "a table of other tasks", from: '"tasks": 64', to: '"tasks": 63' },
      { name: "a table for what is no task", from: '"kind": "task"', to: '"kind": "all"' },
      { name: "half a task", from: '"count": 64', to: '"count": 64.5' },
      { name: "a name twice", from: '"name": "b"', to: '"name": "a"' },
      { name: "no upstreams", from: /"upstreams": \[[^\]]*\]/, to: '"upstreams": []' },
      { name: "a name that moves a cursor", from: '"name": "b"', to: '"name": "\\u001b[2J"' },
      { name: "a weight where none has a meaning", from: '"name": "b"', to: '"name": "b", "weight": 2' },
      { name: "no earlier list", from: '"earlier": null', to: '"earlier": 1' },
    ].map(({ name, from, to }) => ({
      name: `with ${name}`,
      damage: changed(from, to),
      reason: "what it holds makes no sense",
    })),
  ])("is compared with nothing, told, and replaced: $name", async ({ damage, reason }) => {
    const config = routeOver("a b", "tasks: {count: 64}, placement: {algorithm: balanced}");
    await started(config);
    writeFileSync(file, damage(readFileSync(file, "utf8")));
    expect(compareWithKnown(folder, config)).toEqual([]);
    expect(await keepKnown(folder, config)).toBe(
      `${file} cannot be used: ${reason}; replaced, and nothing was compared with it`,
    );
    expect(readKnown(folder).kind).toBe("known");
  });
});

describe("a folder that nothing can be kept in", () => {
  it("is told once, with the reason, when it is a file", async () => {
    mkdirSync(join(parent, "data"));
    writeFileSync(folder, "");
    expect(compareWithKnown(folder, routeOver("a"))).toEqual([]);
    expect(await keepKnown(folder, routeOver("a"))).toMatch(
      /^cannot keep the list of upstreams in \S+: EEXIST: .*; the next start does not tell what a change of it moves$/,
    );
  });

  it("is told once when something else is in the file's place", async () => {
    mkdirSync(join(file, "full"), { recursive: true });
    expect(await keepKnown(folder, routeOver("a"))).toMatch(
      /topology\.json cannot be used: it is not a regular file; cannot keep the list of upstreams in /,
    );
  });

  it("is not made by looking at it", () => {
    expect(readKnown(folder)).toEqual({ kind: "none" });
    expect(existsSync(join(parent, "data"))).toBe(false);
  });
});

describe("topology periods", () => {
  const NOON = Date.UTC(2026, 11, 1, 12);

  /** A route whose first period has upstreams by their names, and whose others have theirs from a moment on. */
  function periodsOf(first: string, ...later: readonly (readonly [string, string])[]): Config {
    const listOf = (names: string, url: string): string =>
      names
        .split(" ")
        .map((name) =>
          name.startsWith("-") ? `{name: ${name.slice(1)}, removed: true}` : `{name: ${name}${url}}`,
        )
        .join(", ");
    const url = ', url: "http://127.0.0.1:1/w"';
    const periods = later.map(([from, names]) => `{from: ${from}, upstreams: [${listOf(names, url)}]}`);
    return configOf(
      `routes: [{name: r, topology: [${[`{upstreams: [${listOf(first, url)}]}`, ...periods].join(", ")}]}]`,
    );
  }

  const GROWN = periodsOf("a b", ["2026-12-01T12:00:00Z", "a b c"], ["2026-12-01T13:00:00Z", "a -b c d"]);

  it("are kept, and read again", async () => {
    await started(GROWN);
    const known = readKnown(folder);
    expect(known.kind === "known" ? known.routes[0]?.last.topology : null).toEqual(
      GROWN.routes[0]?.route.topology,
    );
    expect(onlyChange(GROWN)).toMatchObject({
      kind: "same",
      text: `route r against the last start (${file}), from 2026-12-01T13:00:00Z on: nothing moves`,
    });
  });

  it("leave the newest where a version looks that knows no periods, and are none in what such a version wrote", async () => {
    await started(GROWN);
    const kept = JSON.parse(readFileSync(file, "utf8")) as { version: number; routes: { last: object }[] };
    expect(kept).toMatchObject({
      version: 1,
      routes: [
        { last: { upstreams: [{ name: "a" }, { name: "b", removed: true }, { name: "c" }, { name: "d" }] } },
      ],
    });
    const single = { ...kept.routes[0]?.last, fromMs: undefined, past: undefined };
    writeFileSync(file, JSON.stringify({ ...kept, routes: [{ last: single, earlier: null }] }));
    const known = readKnown(folder);
    expect(known.kind === "known" ? known.routes[0]?.last.topology.length : 0).toBe(1);
    expect(onlyChange(GROWN).kind).toBe("same");
  });

  it.each([
    { name: "a first period that is not first", damage: { fromMs: NOON, past: [] } },
    {
      name: "moments that go back",
      damage: {
        fromMs: 5,
        past: [
          { fromMs: null, upstreams: [{ name: "a" }] },
          { fromMs: 9, upstreams: [{ name: "a" }] },
        ],
      },
    },
    {
      name: "a moment that is none",
      damage: { fromMs: "soon", past: [{ fromMs: null, upstreams: [{ name: "a" }] }] },
    },
    { name: "a past without upstreams", damage: { fromMs: 5, past: [{ fromMs: null, upstreams: [] }] } },
    {
      name: "a moment beyond dates",
      damage: { fromMs: 2 ** 53 - 1, past: [{ fromMs: null, upstreams: [{ name: "a" }] }] },
    },
  ])("are not believed when they make no sense: $name", async ({ damage }) => {
    await started(routeOver("a b"));
    const kept = JSON.parse(readFileSync(file, "utf8")) as { routes: { last: object }[] };
    const [route] = kept.routes;
    writeFileSync(
      file,
      JSON.stringify({ ...kept, routes: [{ ...route, last: { ...route?.last, ...damage } }] }),
    );
    expect(readKnown(folder)).toMatchObject({ kind: "unusable", reason: "what it holds makes no sense" });
  });

  it("are compared by their newest, with its moment", async () => {
    await started(routeOver("a b"));
    const { kind, text } = onlyChange(periodsOf("a b", ["2026-12-01T12:00:00Z", "a b c"]));
    expect(kind).toBe("changed");
    expect(text).toMatch(/, from 2026-12-01T12:00:00Z on: added c; \d\d\.\d % of its keys move; only keys/);
  });

  it.each([
    { name: "one to come", before: routeOver("a b"), now: GROWN, at: NOON - 1, past: [] },
    { name: "one that begins now", before: routeOver("a b"), now: GROWN, at: NOON, past: ["12:00:00Z"] },
    {
      name: "two in the past",
      before: routeOver("a b"),
      now: GROWN,
      at: NOON + 9e6,
      past: ["12:00:00Z", "13:00:00Z"],
    },
    { name: "those that were there", before: GROWN, now: GROWN, at: NOON + 9e6, past: [] },
    {
      name: "an old one deleted",
      before: GROWN,
      now: periodsOf("a b c", ["2026-12-01T13:00:00Z", "a -b c d"]),
      at: NOON + 9e6,
      past: [],
    },
    {
      name: "one that came in by restarts",
      before: routeOver("a b c"),
      now: periodsOf("a b", ["2026-12-01T12:00:00Z", "a b c"]),
      at: NOON + 9e6,
      past: [],
    },
    {
      name: "another list under a moment of before",
      before: GROWN,
      now: periodsOf("a b", ["2026-12-01T12:00:00Z", "a b e"], ["2026-12-01T13:00:00Z", "a -b c d"]),
      at: NOON + 9e6,
      past: ["12:00:00Z"],
    },
  ])(
    "are warned about where they are new and begin in the past: $name",
    async ({ before, now, at, past }) => {
      await started(before);
      expect(pastOfKnown(folder, now, at)).toEqual(
        past.map(
          (time) =>
            `route r: the period from 2026-12-01T${time} is new and begins in the past: what was sent since then stays where it is, so aggregation windows between then and now are split; want a time to come`,
        ),
      );
    },
  );

  it("are not warned about at a first start", () => {
    expect(pastOfKnown(folder, GROWN, NOON + 9e6)).toEqual([]);
  });
});
