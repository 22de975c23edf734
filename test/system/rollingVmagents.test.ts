/** Three real vmagents restarted one after the other while a real Prometheus sends: nothing may be missing afterwards. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeWithPeers } from "../peers/peers.ts";
import { Rig } from "../peers/rig.ts";
import { rollingRestart, type RollingEnd } from "./rollingVmagents.ts";

const SCENE_TIMEOUT_MS = 150_000;

describeWithPeers("three vmagents restarted one after the other while Prometheus sends", (peers) => {
  let rig: Rig;
  let end: RollingEnd;

  beforeAll(async () => {
    rig = await Rig.create();
    end = await rig.prepare(() => rollingRestart(rig, peers, { rounds: 1, awayMs: 2_000 }));
  }, SCENE_TIMEOUT_MS);
  afterAll(() => rig.end(), SCENE_TIMEOUT_MS);

  it("misses no sample in the store behind them", () => {
    const { missing, unexpected, wrong } = end;
    expect({ missing, unexpected, wrong }).toEqual({ missing: [], unexpected: [], wrong: [] });
    expect(end.samples).toBeGreaterThan(0);
  });

  it("stores no more samples twice than were in flight when a vmagent went", () => {
    expect(end.repeated).toBeLessThanOrEqual(end.mostRepeated);
  });

  it("retries, counts that, and has a ledger that adds up", () => {
    expect(end.retries).toBeGreaterThan(0);
    expect(end.ledgerGaps).toEqual([]);
  });

  it("keeps the restarts from Prometheus, which sends nothing again", () => {
    expect(end.sentAgain).toBe(0);
  });
});
