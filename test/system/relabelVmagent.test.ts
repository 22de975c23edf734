/** Random rules in vmagent's dialect, given to a real vmagent and to the `relabel` command: they take the same, and make the same of series. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";

import { Random } from "../fuzz/random.ts";
import { describeWithPeers } from "../peers/peers.ts";
import { Rig } from "../peers/rig.ts";
import { relabelWithVmagent, VmagentLoader } from "../peers/vmagentRelabeling.ts";
import { OurRelabeling } from "../relabel/ourRelabeling.ts";
import { differencesText, tryFlawedOnBoth, tryOnBoth } from "../relabel/peerTrial.ts";
import { flawedVmList, randomVmLabelSets, randomVmList } from "../relabel/randomVmRules.ts";

/** Each makes lists and label sets of its own: 500 lists in all. */
const SEEDS = [20260401, 20260402];
const LISTS = 250;
const SETS = 40;
const FLAWED_SEED = 20260403;
const FLAWED_LISTS = 400;
/** vmagent's reader of YAML takes the first as another number than is written, and its Go the second since 1.25. */
const REFUSED_BY_US_ALONE = [
  { name: "a modulus that is no whole number below 2^64", problem: /\.modulus: .* want a whole number/ },
  { name: "a class of characters by a loose name", problem: /invalid character class range: "\\\\[pP]\{/ },
];
const TIMEOUT_MS = 150_000;

describeWithPeers("random relabel rules in vmagent's dialect, given to a real vmagent and to us", (peers) => {
  let rig: Rig;
  let loader: VmagentLoader;

  beforeAll(async () => {
    rig = await Rig.create();
    loader = await rig.prepare(() => VmagentLoader.start(rig, peers, "loader"));
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
      const { differences, compared, kept } = await tryOnBoth(
        {
          problemOf: (yaml) => loader.problemOf(yaml),
          relabel: (lists, sets) => relabelWithVmagent(rig, peers, `vmagent-${seed}`, lists, sets),
        },
        {
          seed,
          lists: LISTS,
          makeSets: (random) => randomVmLabelSets(random, SETS),
          makeList: randomVmList,
          ours: async (sets) =>
            OurRelabeling.of("victoriametrics", await rig.subfolder(`ours-${seed}`), sets),
        },
      );
      expect(differencesText(differences)).toBe("");
      expect(compared).toBe(LISTS * SETS);
      expect(kept / compared).toBeGreaterThan(0.4);
    },
    TIMEOUT_MS,
  );

  it(
    "are refused by both where something is wrong with them",
    async () => {
      const sets = randomVmLabelSets(new Random(FLAWED_SEED), 5);
      const { differences, refused } = await tryFlawedOnBoth(loader, {
        seed: FLAWED_SEED,
        lists: FLAWED_LISTS,
        makeList: (random) => flawedVmList(random, sets),
        ours: await OurRelabeling.of("victoriametrics", await rig.subfolder("ours-flawed"), sets),
        refusedByUsAlone: REFUSED_BY_US_ALONE,
      });
      expect(differencesText(differences)).toBe("");
      expect(refused / FLAWED_LISTS).toBeGreaterThan(0.3);
    },
    TIMEOUT_MS,
  );
});
