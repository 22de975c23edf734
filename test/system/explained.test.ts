/** What `explain` says of a series is what the gateway does with it, whatever the rules, the labels and the tenant. */
import { afterEach, describe, expect, it } from "vitest";
import { Explainer } from "../../src/explain/explainer.ts";
import type { Labels } from "../../src/cli/seriesLines.ts";
import { parseConfig } from "../../src/config/load.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";
import { Random } from "../fuzz/random.ts";
import { label, requestBody, sample, series } from "../reference/build.ts";
import { LABEL_NAMES, randomLabelSets, randomRule } from "../relabel/randomRules.ts";
import { randomVmList } from "../relabel/randomVmRules.ts";
import { randomText } from "../relabel/randomText.ts";
import { rulesYaml } from "../relabel/ruleYaml.ts";
import { GatewayRig } from "./gatewayRig.ts";

const TENANTS = ["team-a", "team-b", null] as const;
const STORED_SETS = 40;
const ODD_SETS = 40;

let rig: GatewayRig;

afterEach(async () => {
  await rig.stop();
});

/** In any order, with empty values, and now and then with names that are empty or occur twice. */
function oddLabelSet(random: Random): Labels {
  const names = [...LABEL_NAMES, "tenant", "task", "zone", ""] as const;
  const labels = Array.from({ length: random.below(8) }, () => {
    return [random.pick(names), random.once(3) ? "" : randomText(random, 10)] as const;
  });
  return random.once(4) ? labels : [...new Map(labels)];
}

function labelSetsOf(seed: number): Labels[] {
  const random = new Random(seed);
  const odd = Array.from({ length: ODD_SETS }, () => oddLabelSet(random));
  return [...randomLabelSets(random, STORED_SETS), ...odd];
}

/** Sends all label sets for every tenant; how often explain and the gateway differ, with the first few of them. */
async function differences(sets: readonly Labels[]): Promise<{ count: number; first: readonly string[] }> {
  const explainer = new Explainer(rig.config);
  const expected: string[] = [];
  for (const [tenantNumber, tenant] of TENANTS.entries()) {
    const numberOf = (set: number): number => tenantNumber * sets.length + set;
    const body = requestBody(
      ...sets.map((labels, set) =>
        series(...labels.map(([name, value]) => label(name, value)), sample(1, 1 + numberOf(set))),
      ),
    );
    const headers = tenant === null ? {} : { "X-Scope-OrgID": tenant };
    const isRefused = sets.map((labels) => "refused" in explainer.explain(labels, tenant));
    // Decided the first time, and found in the table the second time.
    for (const time of ["decided", "found"]) {
      const { status } = await rig.send(body, headers);
      expect(status, `${time} for ${String(tenant)}`).toBe(isRefused.includes(true) ? 400 : 204);
      for (const [set, labels] of sets.entries())
        expected.push(...explained(explainer, numberOf(set), labels, tenant));
    }
  }
  const arrived = rig.receivers.flatMap(({ series: got }, slot) =>
    got.map(({ labels, samples }) =>
      outcome(
        Number(samples[0]?.timestamp) - 1,
        `up-${slot}`,
        labels.map(([name, value]) => [textOf(name), textOf(value)]),
      ),
    ),
  );
  // Rules that leave nothing would agree too easily.
  expect(arrived.length).toBeGreaterThan(sets.length);
  return difference(expected, arrived);
}

function explained(explainer: Explainer, number: number, labels: Labels, tenant: string | null): string[] {
  const explanation = explainer.explain(labels, tenant);
  if ("refused" in explanation) return [];
  return explanation.routes.flatMap((route) => {
    const copies = route.copies ?? [{ upstream: route.upstreams?.join() ?? "", labels: route.labels }];
    return copies.flatMap(({ upstream, labels: left }) =>
      left === undefined ? [] : [outcome(number, upstream, left)],
    );
  });
}

/** One line for what becomes of a series at one upstream. */
function outcome(series: number, upstream: string, labels: Labels): string {
  return `series ${series} at ${upstream}: ${JSON.stringify(labels)}`;
}

function difference(
  expected: readonly string[],
  arrived: readonly string[],
): { count: number; first: string[] } {
  const balance = new Map<string, number>();
  for (const line of expected) balance.set(line, (balance.get(line) ?? 0) + 1);
  for (const line of arrived) balance.set(line, (balance.get(line) ?? 0) - 1);
  const uneven = [...balance].filter(([, left]) => left !== 0);
  const first = uneven
    .slice(0, 4)
    .map(([line, left]) => `${left > 0 ? "only explained" : "only arrived"}: ${line}`);
  return { count: uneven.length, first };
}

function textOf(latin1: string): string {
  return Buffer.from(latin1, "latin1").toString();
}

const NONE = { count: 0, first: [] };

describe("series under a configuration with rules everywhere", () => {
  it.each([20260501, 20260502])("arrive where explain says and as it says (seed %i)", async (seed) => {
    rig = await GatewayRig.start(
      7,
      ([a, b, c, d, e, f, g]) => `
limits: {max_labels: 12, max_label_value_bytes: 2000}
relabel_configs:
  - {source_labels: [a], regex: "1", action: drop}
  - {source_labels: [job, instance], separator: "/", regex: (.+)/(.+), target_label: place, replacement: $2@$1}
routes:
  - name: rules
    tenant: {label: tenant}
    relabel_configs:
      - {regex: "__meta_(.+)|__tmp", action: labeldrop}
      - {regex: a(.), replacement: copy_$1, action: labelmap}
      - {source_labels: [b], target_label: b, action: uppercase}
      - {source_labels: [c], regex: "|0+", target_label: __name__, replacement: $c}
      - {source_labels: [place], modulus: 7, target_label: place, action: hashmod}
    tasks: {count: 16, label: task, without: [c]}
    upstreams:
      - name: up-0
        url: "${a}"
        write_relabel_configs:
          - {source_labels: [tenant], regex: team-(.*), target_label: "a.first"}
          - {source_labels: [task], regex: "1.", action: drop}
      - {name: up-1, url: "${b}"}
  - name: twice
    tenant: {label: tenant}
    tasks: {count: 16, label: task}
    placement: {replicas: 2}
    upstreams:
      - name: up-4
        url: "${e}"
        write_relabel_configs: [{source_labels: [task], regex: "1.", action: drop}]
      - {name: up-5, url: "${f}", write_relabel_configs: [{source_labels: [tenant], target_label: "a.first"}]}
      - {name: up-6, url: "${g}"}
  - name: final
    final: true
    relabel_dialect: victoriametrics
    relabel_configs:
      - {if: '{job=~".+"}', action: keep}
      - {target_label: both, replacement: "{{job}}-{{instance}}"}
    placement: {key: {by: [job]}}
    upstreams: [{name: up-2, url: "${c}"}]
  - name: rest
    upstreams: [{name: up-3, url: "${d}"}]
`,
    );
    expect(await differences(labelSetsOf(seed))).toEqual(NONE);
    for (const receiver of rig.receivers) expect(receiver.series.length).toBeGreaterThan(0);
  });
});

describe("series under random rules", () => {
  const SEEDS = [20260521, 20260522, 20260523, 20260524];

  /** By place: before all routes, in two of them, and at an upstream. */
  interface Rules {
    readonly global: string;
    readonly one: string;
    readonly two: string;
    readonly written: string;
  }

  const indented = (yaml: string): string => yaml.replaceAll(/^(?=.)/gm, "  ");

  /** Rules for four places that are all valid, as the patterns of random ones need not be. */
  function validRules(seed: number, sets: readonly Labels[], configText: (rules: Rules) => string): string {
    const random = new Random(seed);
    for (;;) {
      const [global = "", one = "", written = ""] = Array.from({ length: 3 }, () =>
        rulesYaml(
          Array.from({ length: 1 + random.below(2) }, () => randomRule(random, sets)),
          "  ",
        ),
      );
      const text = configText({ global, one, two: indented(randomVmList(random, sets)), written });
      const options = { legacyHash: "jump", checkRule: faultOf, checkPlacement: placementFault } as const;
      if (parseConfig(`listen: :0\n${text}`, "random.yaml", options).config !== null) return text;
    }
  }

  it.each(SEEDS)("arrive where explain says and as it says (seed %i)", async (seed) => {
    const sets = labelSetsOf(seed);
    rig = await GatewayRig.start(4, ([a = "", b = "", c = "", d = ""]) =>
      validRules(seed, sets, ({ global, one, two, written }) =>
        [
          `relabel_configs:\n${global}routes:`,
          `- name: one\n  tenant: {label: tenant}\n  tasks: {count: 8, label: task}\n  relabel_configs:\n${one}`,
          `  upstreams:\n  - name: up-0\n    url: "${a}"\n    write_relabel_configs:\n${indented(written)}`,
          `  - {name: up-1, url: "${b}"}`,
          `- name: two\n  relabel_dialect: victoriametrics\n  tenant: {pass: true}\n  relabel_configs:\n${two}  upstreams: [{name: up-2, url: "${c}"}]`,
          `- {name: raw, upstreams: [{name: up-3, url: "${d}"}]}`,
        ].join("\n"),
      ),
    );
    expect(await differences(sets)).toEqual(NONE);
  });
});
