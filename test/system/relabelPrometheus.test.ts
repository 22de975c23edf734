/** Random relabel rules, given to a real Prometheus and to the `relabel` command: they take the same, and make the same of series. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";

import { Random } from "../fuzz/random.ts";
import { describeWithPeers } from "../peers/peers.ts";
import { PrometheusLoader, relabelWithPrometheus } from "../peers/prometheusRelabeling.ts";
import { Rig } from "../peers/rig.ts";
import { OurRelabeling } from "../relabel/ourRelabeling.ts";
import { differencesText, tryFlawedOnBoth, tryOnBoth } from "../relabel/peerTrial.ts";
import { flawedList, randomLabelSets, randomList } from "../relabel/randomRules.ts";

/** Each makes lists and label sets of its own: 2,000 lists in all. */
const SEEDS = [20260401, 20260402, 20260403, 20260404];
const LISTS = 500;
const SETS = 40;
const FLAWED_SEED = 20260405;
const FLAWED_LISTS = 1000;
const TIMEOUT_MS = 150_000;

/**
 * Prometheus' reader of YAML takes the first two for something else than is written, 1 for a modulus of 1.5, and Go the last
 * since 1.25.
 */
const REFUSED_BY_US_ALONE = [
  { name: "a modulus that is no whole number below 2^64", problem: /\.modulus: .* want a whole number/ },
  { name: "nothing in the place of a source label", problem: /\.source_labels\[\d\]: .* got nothing/ },
  { name: "a class of characters by a loose name", problem: /invalid character class range: "\\\\[pP]\{/ },
];

describeWithPeers("random relabel rules, given to a real Prometheus and to us", (peers) => {
  let rig: Rig;
  let loader: PrometheusLoader;

  beforeAll(async () => {
    rig = await Rig.create();
    loader = await rig.prepare(() => PrometheusLoader.start(rig, peers, "loader"));
  });
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => {
      rig.showLogs();
    });
  });
  afterAll(() => rig.end());

  it.each(SEEDS)(
    `make the same of ${SETS} label sets, by each of ${LISTS} lists from the seed %i`,
    async (seed) => {
      const name = `prometheus-${seed}`;
      const { differences, compared, kept } = await tryOnBoth(
        {
          problemOf: (yaml) => loader.problemOf(yaml),
          relabel: (lists, sets) => relabelWithPrometheus(rig, peers, name, lists, sets),
        },
        {
          seed,
          lists: LISTS,
          makeSets: (random) => randomLabelSets(random, SETS),
          makeList: randomList,
          ours: async (sets) => OurRelabeling.of("prometheus", await rig.subfolder(`ours-${seed}`), sets),
        },
      );
      expect(differencesText(differences)).toBe("");
      expect(compared).toBe(LISTS * SETS);
      // Rules that drop everything would agree too easily.
      expect(kept / compared).toBeGreaterThan(0.5);
    },
    TIMEOUT_MS,
  );

  it(
    "are refused by both where something is wrong with them",
    async () => {
      const sets = randomLabelSets(new Random(FLAWED_SEED), 5);
      const { differences, refused } = await tryFlawedOnBoth(loader, {
        seed: FLAWED_SEED,
        lists: FLAWED_LISTS,
        makeList: (random) => flawedList(random, sets),
        ours: await OurRelabeling.of("prometheus", await rig.subfolder("ours-flawed"), sets),
        refusedByUsAlone: REFUSED_BY_US_ALONE,
      });
      expect(differencesText(differences)).toBe("");
      expect(refused / FLAWED_LISTS).toBeGreaterThan(0.3);
    },
    TIMEOUT_MS,
  );
});
