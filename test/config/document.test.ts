import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseConfig } from "../../src/config/load.ts";
import type { LoadedConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";

function parse(yaml: string): LoadedConfig {
  return parseConfig(yaml, "f.yaml", {
    legacyHash: "jump",
    checkRule: faultOf,
    checkPlacement: placementFault,
  });
}

function problemsOf(yaml: string): string[] {
  return parse(yaml).problems.map(formatProblem);
}

describe("YAML that is none", () => {
  it.each([
    {
      name: "a quote that is not closed",
      yaml: "listen: 'hunter2",
      problem:
        "1:17: YAML: something is missing here: a closing quote or bracket, a comma, a colon, or a blank",
    },
    {
      name: "a tab as indentation",
      yaml: "limits:\n\tmax_labels: 1",
      problem: "2:1: YAML: a tab in the indentation; YAML wants blanks",
    },
    {
      name: "two keys on a line",
      yaml: "listen: hunter: 2",
      problem:
        "1:9: YAML: two keys on one line; if the second colon belongs to the value, put the value in quotes",
    },
    {
      name: "text that begins with a reserved character",
      yaml: "listen: @hunter2",
      problem: "1:9: YAML: text cannot begin with this character; put it in quotes",
    },
    {
      name: "a block header with text in it",
      yaml: "listen: |hunter2\n  x",
      problem: "1:10: YAML: something that does not belong here",
    },
    { name: "a tag", yaml: "listen: !hunter2 x", problem: "1:9: YAML: a YAML tag (!...); want plain values" },
    {
      name: "an escape that is none",
      yaml: 'listen: "\\hunter2"',
      problem:
        "1:10: YAML: an escape that double quotes do not know; single quotes keep a backslash as it is",
    },
    {
      name: "a second document",
      yaml: "listen: a\n---\nhunter2",
      problem: "2:1: YAML: a second YAML document; want one",
    },
    {
      name: "a bracket too many",
      yaml: "listen: [a]]",
      problem: "1:12: YAML: something that does not belong here",
    },
  ])("is told with its place and without its text: $name", ({ yaml, problem }) => {
    expect(problemsOf(yaml)).toEqual([`f.yaml:${problem}`]);
  });
});

describe("keys", () => {
  it("that stand twice are told with the first line", () => {
    expect(problemsOf("routes: [{name: a,\n  name: b, upstreams: [{name: a, url: http://a/w}]}]")).toEqual([
      "f.yaml:2:3: routes[0].name: the same key stands at line 1 already",
    ]);
  });

  it("that are no text are told", () => {
    expect(problemsOf("? [a]\n: b\nroutes: [{name: a, upstreams: [{name: a, url: http://a/w}]}]")).toEqual([
      "f.yaml:1:3: want a plain key; got a list, a map or an alias",
    ]);
  });

  it("of objects in JavaScript are keys like others", () => {
    expect(
      problemsOf(
        "routes: [{name: a, upstreams: [{name: a, url: http://a/w}]}]\nconstructor: 1\n__proto__: 1",
      ),
    ).toEqual([
      "f.yaml:2:1: constructor: unknown key; want one of: listen, admin_listen, admin_token_file, reload, limits, memory, shutdown, max_connection_age, spool, relabel_configs, routes",
      "f.yaml:3:1: __proto__: unknown key; want one of: listen, admin_listen, admin_token_file, reload, limits, memory, shutdown, max_connection_age, spool, relabel_configs, routes",
    ]);
  });
});

describe("flow style, Windows line ends, a byte order mark", () => {
  it("are taken", () => {
    const yaml =
      "\ufeffroutes: [{\r\n  name: a,\r\n  upstreams: [\r\n    {name: a, url: http://a/w},\r\n  ]\r\n  }]\r\n";
    expect(problemsOf(yaml)).toEqual([]);
  });

  it("are taken with closing brackets as far left as their key", () => {
    expect(
      problemsOf("routes:\n  - name: a\n    upstreams: [\n      {name: a, url: http://a/w}\n    ]\n"),
    ).toEqual([]);
  });
});

describe("anchors and aliases", () => {
  it("share sections and single values", () => {
    const { config, problems } = parse(
      [
        "routes:",
        "  - {name: &n r, delivery: &d {remote_timeout: 5s}, upstreams: &u [{name: *n, url: http://a/w}]}",
        "  - {name: s, delivery: *d, upstreams: *u}",
      ].join("\n"),
    );
    expect(problems).toEqual([]);
    expect(
      config?.routes.map(({ delivery, upstreams }) => [
        delivery.remoteTimeoutMs,
        upstreams.map(({ name }) => name),
      ]),
    ).toEqual([
      [5000, ["r"]],
      [5000, ["r"]],
    ]);
  });

  it("mean the last anchor before them", () => {
    const { config } = parse(
      "routes: [{name: &a one, upstreams: [{name: &a two, url: http://a/w}, {name: *a, url: http://b/w}]}]",
    );
    expect(config).toBeNull();
    expect(
      parse(
        "routes: [{name: &a one, upstreams: [{name: *a, url: http://a/w}, {name: &a two, url: http://b/w}]}]",
      ).config?.routes[0]?.upstreams.map(({ name }) => name),
    ).toEqual(["one", "two"]);
  });

  it("merge keys, of which the map's own win, then the first source", () => {
    const { config, problems } = parse(
      [
        "routes:",
        "  - &first",
        "    name: r",
        "    tasks: {count: 7}",
        "    upstreams: [{name: a, url: http://a/w}]",
        "  - {<<: [*first, {tasks: {count: 9}, key_format: flat}], name: s}",
      ].join("\n"),
    );
    expect(problems).toEqual([]);
    const { name, tasks, keyFormat } = config?.routes[1]?.route ?? {};
    expect([name, tasks?.count, keyFormat]).toEqual(["s", 7, "flat"]);
  });

  it("are told with the path of their use and the line of their text", () => {
    const yaml = [
      "routes:",
      "  - {name: r, tasks: &t {count: none}, upstreams: [{name: a, url: http://a/w}]}",
      "  - {name: s, tasks: *t, upstreams: [{name: a, url: http://a/w}]}",
    ].join("\n");
    expect(problemsOf(yaml)).toEqual([
      "f.yaml:2:33: routes[0].tasks.count: want a whole number; got none",
      "f.yaml:2:33: routes[1].tasks.count: want a whole number; got none",
    ]);
  });

  it.each([
    {
      name: "without anchor",
      yaml: "listen: *hunter2",
      problem: "1:9: listen: an alias without an anchor of its name before it",
    },
    {
      name: "inside itself",
      yaml: "listen: &a [*a]",
      problem: "1:13: listen[0][0]: an alias inside the value that it stands for",
    },
    {
      name: "of text, merged",
      yaml: "limits: {<<: text}",
      problem: "1:14: limits: want an alias of a map, or a list of such, after <<",
    },
  ])("are told: $name", ({ yaml, problem }) => {
    expect(problemsOf(yaml)).toContain(`f.yaml:${problem}`);
  });
});

describe("a file made to exhaust the reader", () => {
  const letters = "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z".split(",");
  const laughs = letters.slice(1).map(
    (letter, i) =>
      `${letter}: &${letter} [${Array(9)
        .fill(`*${letters[i] ?? ""}`)
        .join(", ")}]`,
  );
  it.each([
    {
      name: "aliases of aliases, nine each",
      yaml: ["a: &a [x]", ...laughs].join("\n"),
      problem: /an alias of an alias too many times over|more than 100000 values/,
    },
    {
      name: "many aliases of a long list",
      yaml: `u: &u [${"x,".repeat(2000)}]\nroutes: [${"*u,".repeat(2000)}]`,
      problem: /aliases stand for more than 100000 values/,
    },
    {
      name: "many merges of a large map",
      yaml: `u: &u {${Array.from({ length: 1000 }, (_, i) => `k${i}: 1`).join(", ")}}\n${Array.from({ length: 1000 }, (_, i) => `m${i}: {<<: *u}`).join("\n")}`,
      problem: /aliases stand for more than 100000 values/,
    },
    { name: "brackets in brackets", yaml: "[".repeat(20_000), problem: /nested more than 32 deep/ },
    { name: "lists in lists", yaml: "- ".repeat(20_000), problem: /nested more than 32 deep/ },
    { name: "maps in maps", yaml: "{a: ".repeat(20_000), problem: /nested more than 32 deep/ },
    { name: "keys in keys", yaml: "? ".repeat(20_000), problem: /nested more than 32 deep/ },
    {
      name: "a long chain of deep aliases",
      yaml: [
        "k0: &k0 x",
        ...Array.from(
          { length: 500 },
          (_, i) => `k${i + 1}: &k${i + 1} ${"[".repeat(30)}*k${i}${"]".repeat(30)}`,
        ),
      ].join("\n"),
      problem: /an alias of an alias too many times over/,
    },
  ])("is refused: $name", ({ yaml, problem }) => {
    expect(problemsOf(yaml).join("\n")).toMatch(problem);
  });
});

describe("any text at all", () => {
  const words = [
    "routes",
    "name",
    "upstreams",
    "url",
    "http://a/w",
    "tasks",
    "count",
    "128",
    "by",
    "placement",
    "key",
    "task",
    "router_rules",
    "upstream_urls",
    "hash_labels",
    "mode",
    "labels",
    "global",
    "relabel_configs",
    "metric_relabel_configs",
    "write_relabel_configs",
    "target_label",
    "regex",
    "tenant",
    "header",
    "<<",
    "*a",
    "&a",
    "!x",
    "null",
    "~",
    '"',
    "'",
    "|",
    ">",
    "{",
    "}",
    "[",
    "]",
    ":",
    ": ",
    ",",
    "- ",
    "? ",
    "#",
    "%",
    "@",
    "\n",
    "\n  ",
    "\n    ",
    "\t",
    "---\n",
    "...",
    "\u0000",
    "é",
    "🙂",
  ];
  const scribble = fc.array(fc.constantFrom(...words), { maxLength: 60 }).map((parts) => parts.join(""));
  const tree = fc
    .object({ key: fc.constantFrom(...words.slice(0, 25)), maxDepth: 5 })
    .map((value) => JSON.stringify(value));

  it("gives a config or an error, and never throws", () => {
    fc.assert(
      fc.property(fc.oneof(scribble, tree, fc.string(), fc.string({ unit: "binary" })), (yaml) => {
        for (const legacyHash of ["jump", "hashmod"] as const) {
          const { config, problems } = parseConfig(yaml, "f.yaml", {
            legacyHash,
            checkRule: faultOf,
            checkPlacement: placementFault,
          });
          expect(config === null).toBe(problems.some(({ severity }) => severity === "error"));
          for (const { line, column } of problems) expect(Math.min(line, column)).toBeGreaterThanOrEqual(1);
        }
      }),
      { numRuns: 1000, seed: 7 },
    );
  });
});
