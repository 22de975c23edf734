/** The gateway killed without warning under load: nothing that it acknowledged is lost, misplaced or out of order. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Random } from "../fuzz/random.ts";
import { Rig } from "../peers/rig.ts";
import { until } from "../peers/until.ts";
import { KILL_SCENES, killAgainAndAgain } from "./kills.ts";
import { NOTHING_WRONG, NumberedLoad } from "./numberedLoad.ts";

const TEST_TIMEOUT_MS = 120_000;
const FULL_WITHIN_MS = 30_000;
const SEED = 20261130;
const KILLS = 10;
/** With these, upstreams of either route go away, fail, break connections and are slow. */
const OTHER_SCENES = { seed: 29, kills: 5 };

let rig: Rig;

beforeEach(async () => {
  rig = await Rig.create();
});
afterEach(async ({ task }) => {
  if (task.result?.state === "fail") rig.showLogs();
  await rig.end();
});

describe("the gateway killed (SIGKILL) ten times under load, with upstreams up, down and slow by turns", () => {
  it(
    "brings every acknowledged sample to its upstream, each series in order, and its ledger adds up",
    async () => {
      const load = await NumberedLoad.start(rig, KILL_SCENES.one);
      await killAgainAndAgain(load, new Random(SEED), KILLS);
      const end = await load.end();
      expect(end).toMatchObject(NOTHING_WRONG);
      // Each kill met senders that had something to send.
      for (const { unanswered } of load.senders) expect(unanswered).toBeGreaterThanOrEqual(KILLS);
    },
    TEST_TIMEOUT_MS,
  );
});

describe.each([
  { name: "a copy of each series at two of three upstreams", scene: "replicas" },
  { name: "a route that spools, one that refuses, and series in either and in both", scene: "routes" },
] as const)("the gateway killed (SIGKILL) five times under load, with $name", ({ scene }) => {
  it(
    "brings every acknowledged sample to all of its upstreams and no other, each series in order, and its ledger adds up",
    async () => {
      const load = await NumberedLoad.start(rig, KILL_SCENES[scene]);
      await killAgainAndAgain(load, new Random(OTHER_SCENES.seed), OTHER_SCENES.kills);
      const end = await load.end();
      expect(end).toMatchObject(NOTHING_WRONG);
      for (const { unanswered, acknowledged } of load.senders) {
        expect(unanswered).toBeGreaterThanOrEqual(OTHER_SCENES.kills);
        expect(acknowledged).toBeGreaterThan(0);
      }
    },
    TEST_TIMEOUT_MS,
  );
});

describe("the gateway killed (SIGKILL) while its spool is full, and while that drains", () => {
  it(
    "brings every acknowledged sample to its upstream, each series in order, and its ledger adds up",
    async () => {
      const spool = ", max_bytes: 48MiB, max_bytes_per_upstream: 16MiB";
      const load = await NumberedLoad.start(rig, { ...KILL_SCENES.one, spool, textBytes: 8_000 });
      const [away] = load.receivers;
      const pushedBackAgain = async (): Promise<void> => {
        const before = load.senders.map(({ pushedBack }) => pushedBack);
        await until("senders to be told that the spool is full", FULL_WITHIN_MS, () =>
          load.senders.every(({ pushedBack }, index) => pushedBack > (before[index] ?? 0)),
        );
      };
      await away?.become("away");
      await pushedBackAgain();
      await load.gateway.kill();
      await load.gateway.start();
      await pushedBackAgain();
      await away?.become("well");
      await load.acknowledgedAgain(1, FULL_WITHIN_MS);
      await load.gateway.kill();
      await load.gateway.start();
      expect(await load.end()).toMatchObject(NOTHING_WRONG);
    },
    TEST_TIMEOUT_MS,
  );
});
