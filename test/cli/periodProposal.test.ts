/** Periods that are proposed for a change of lists are ones that `check` accepts, whatever the files hold. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { yamlLines } from "../../src/cli/nodeYaml.ts";
import { type PeriodProposal, proposePeriods, type ValidFile } from "../../src/cli/periodProposal.ts";
import type { Config } from "../../src/config/config.ts";
import { readDocument } from "../../src/config/document.ts";
import { parseConfig } from "../../src/config/load.ts";
import { formatProblem, ProblemList } from "../../src/config/problem.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { formatMoment } from "../../src/moment.ts";
import { faultOf } from "../../src/relabel/rules.ts";
import type { NamedSlot } from "../../src/hash/slots.ts";

const OPTIONS = { legacyHash: "jump", checkRule: faultOf, checkPlacement: placementFault } as const;
const FROM = Date.parse("2026-06-01T12:10:00Z");
const HOUR = 3_600_000;

function read(name: string, text: string): Config {
  const { config, problems } = parseConfig(text, name, OPTIONS);
  if (config === null) throw new Error(`${problems.map(formatProblem).join("\n")}\n${text}`);
  return config;
}

function fileOf(name: string, text: string): ValidFile {
  const document = readDocument(text, new ProblemList(name));
  if (document === null) throw new Error("not read");
  return { name, config: read(name, text), document };
}

function propose(before: string, after: string): PeriodProposal {
  return proposePeriods(fileOf("a.yaml", before), fileOf("b.yaml", after), FROM, OPTIONS);
}

/** An upstream of a list, each value as it is written. */
interface WrittenUpstream {
  readonly name: string;
  readonly weight: string | null;
  readonly removed: string | null;
  /** What describes it besides its url. */
  readonly more: string;
}

interface WrittenPeriod {
  /** Of the proposal's moment. */
  readonly hoursBehind: number;
  readonly list: readonly WrittenUpstream[];
}

const HEAD = "routes:\n  - name: r\n    placement: {key: series, algorithm: rendezvous}\n";

/** @param port of all upstreams */
function listText(list: readonly WrittenUpstream[], port: number, described: Set<string>): string {
  const items = list.map(({ name, weight, removed, more }) => {
    const isNew = removed === null && !described.has(name);
    if (isNew) described.add(name);
    const values = [
      `name: ${name}`,
      ...(weight === null ? [] : [`weight: ${weight}`]),
      ...(removed === null ? [] : [`removed: ${removed}`]),
      ...(isNew ? [`url: "http://${name}:${port}/w"`, ...(more === "" ? [] : [more])] : []),
    ];
    return `{${values.join(", ")}}`;
  });
  return `[${items.join(", ")}]`;
}

function fileText(periods: readonly WrittenPeriod[], port: number): string {
  const described = new Set<string>();
  if (periods.length === 1) {
    return `${HEAD}    upstreams: ${listText(periods[0]?.list ?? [], port, described)}\n`;
  }
  const items = periods.map(({ hoursBehind, list }, index) => {
    const from = index === 0 ? "" : `from: ${formatMoment(FROM + hoursBehind * HOUR)}, `;
    return `      - {${from}upstreams: ${listText(list, port, described)}}\n`;
  });
  return `${HEAD}    topology:\n${items.join("")}`;
}

/** The new file with what is printed for its only route. */
function withProposal({ topologies }: Extract<PeriodProposal, { kind: "proposed" }>): string {
  const lines = [...topologies.values()].flatMap((topology) => yamlLines(topology, "r, as proposed"));
  return HEAD + lines.map((line) => `    ${line}\n`).join("");
}

function slotsOf({ routes }: Config): readonly (readonly NamedSlot[])[] {
  return routes[0]?.route.topology.map(({ slots }) => slots) ?? [];
}

const upstream = (name: string): fc.Arbitrary<WrittenUpstream> =>
  fc.record({
    name: fc.constant(name),
    weight: fc.constantFrom(null, "2", "+3", "1.0", ".5", "1.5e-1", "2E+1"),
    removed: fc.constantFrom(null, null, null, "true", "True", "TRUE"),
    more: fc.constantFrom(
      "",
      'headers: {X-A: "1", X-B: 0x10, X-C: "true"}',
      "basic_auth: {username: 0123, password: ~}",
      'basic_auth: {username: "null", password: ": #"}',
      "tls_config: {insecure_skip_verify: TRUE}",
      "write_relabel_configs: [{action: labeldrop, regex: 1.50}]",
    ),
  });
const list = fc
  .uniqueArray(fc.constantFrom("a", "b", "c", "d", "e"), { minLength: 1, maxLength: 5 })
  .chain((names) => fc.tuple(...names.map(upstream)))
  .filter((upstreams) => upstreams.some(({ removed }) => removed === null));
const periods = (behind: fc.Arbitrary<number>): fc.Arbitrary<WrittenPeriod[]> =>
  fc
    .uniqueArray(fc.record({ hoursBehind: behind, list }), {
      selector: ({ hoursBehind }) => hoursBehind,
      minLength: 1,
      maxLength: 4,
    })
    .map((unsorted) => unsorted.sort((one, other) => one.hoursBehind - other.hoursBehind));

describe("any change of a list, of whatever periods", () => {
  it("is proposed as periods that are valid in the new file: the old ones, and the new list from the moment on", () => {
    const behind = fc.integer({ min: -1000, max: -1 });
    let proposals = 0;
    fc.assert(
      fc.property(periods(behind), periods(fc.integer({ min: -1000, max: 1000 })), (old, now) => {
        const [before, after] = [fileText(old, 8429), fileText(now, 8430)];
        const proposal = propose(before, after);
        if (proposal.kind === "refused") throw new Error(proposal.lines.join("\n"));
        const [lists, newest] = [slotsOf(read("a.yaml", before)), slotsOf(read("b.yaml", after)).at(-1)];
        const changes = JSON.stringify(lists.at(-1)) !== JSON.stringify(newest);
        if (proposal.topologies.size === 0) return;
        expect(changes).toBe(true);
        const config = read("printed.yaml", withProposal(proposal));
        expect(slotsOf(config)).toEqual([...lists, newest]);
        expect(config.routes[0]?.route.topology.at(-1)?.fromMs).toBe(FROM);
        proposals += 1;
      }),
    );
    // The others change rules as well, or nothing.
    expect(proposals).toBeGreaterThan(10);
  });

  it("is refused if a period begins at the moment or behind it", () => {
    const behind = fc.integer({ min: 0, max: 1000 });
    fc.assert(
      fc.property(periods(behind), list, (old, now) => {
        fc.pre(old.length > 1);
        const proposal = propose(fileText(old, 8429), fileText([{ hoursBehind: 0, list: now }], 8429));
        if (proposal.kind === "proposed") expect(proposal.topologies.size).toBe(0);
        else expect(proposal.lines).toHaveLength(1);
      }),
    );
  });
});

describe("a change that no valid period can hold", () => {
  it("is refused with the place of the period that is in its way, and what is wanted", () => {
    const later = "from: 2026-07-01T00:00:00Z";
    const text = (names: string): string => `routes:
  - name: r
    topology:
      - upstreams: [{name: a, url: "http://a/w"}]
      - ${later}
        upstreams: [{name: a}, {name: b, url: "http://b/w"}${names}]
`;
    expect(propose(text(""), text(', {name: c, url: "http://c/w"}'))).toEqual({
      kind: "refused",
      lines: [
        "a.yaml:5:15: routes[0].topology[1].from: want a period that begins before 2026-06-01T12:10:00Z, where --effective " +
          "puts the change, since periods ascend; got 2026-07-01T00:00:00Z: choose a longer --effective, or write the change " +
          "into this period's list",
      ],
    });
  });

  it("is refused if it would be a period too many", () => {
    const text = (last: string): string => {
      const more = Array.from({ length: 31 }, (_, number) => {
        const from = `2026-01-${String(number + 1).padStart(2, "0")}T00:00:00Z`;
        return `{from: ${from}, upstreams: [{name: ${number === 30 ? last : "a"}, url: "http://a/w"}]}`;
      });
      return `routes: [{name: r, topology: [{upstreams: [{name: a, url: "http://a/w"}]}, ${more.join(", ")}]}]`;
    };
    const proposal = propose(text("a"), text("b"));
    expect(proposal).toMatchObject({
      kind: "refused",
      lines: [expect.stringMatching(/^b\.yaml: routes.*want at most 32 periods.*got 33$/)],
    });
  });

  it("is refused if an upstream that is gone has another url elsewhere in the new file", () => {
    const text = (names: string, other: string): string =>
      `routes: [{name: r, upstreams: [${names}{name: b, url: "http://b/w"}]}, {name: s, upstreams: [{name: a, url: "${other}"}]}]`;
    const before = text('{name: a, url: "http://a/w"}, ', "http://a/w");
    expect(propose(before, text("", "http://a/w"))).toMatchObject({ kind: "proposed" });
    expect(propose(before, text("", "http://a:1/w"))).toMatchObject({
      kind: "refused",
      lines: [expect.stringContaining("want one url for a in the whole file")],
    });
  });
});
