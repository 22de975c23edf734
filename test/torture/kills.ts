/** `npm run torture -- kills`: the gateway killed again and again under load, see test/system/kills.ts. */
import { Random } from "../fuzz/random.ts";
import { Rig } from "../peers/rig.ts";
import { KILL_SCENES, type KillScene, killAgainAndAgain } from "../system/kills.ts";
import { NumberedLoad } from "../system/numberedLoad.ts";
import { noneOf, say, type Verdict } from "./verdict.ts";

export async function tortureByKills(scene: KillScene, kills: number, seed: number): Promise<Verdict[]> {
  say(`${kills} kills, --scene ${scene} --seed ${seed}; each with what happened before it`);
  const rig = await Rig.create();
  try {
    const load = await NumberedLoad.start(rig, KILL_SCENES[scene]);
    await killAgainAndAgain(load, new Random(seed), kills, say);
    const end = await load.end();
    say(`${end.acknowledged} samples were acknowledged, ${end.repeated} arrived once more than they should`);
    const verdicts = [
      noneOf("samples lost, misplaced or out of order", end.wrong),
      noneOf("requests refused for good", end.refused),
      noneOf("gaps in the ledger", end.ledgerGaps),
      noneOf("segments left in the spool", end.segments),
      { passed: end.held === 0, text: `samples held in the end: ${end.held}` },
    ];
    if (!verdicts.every(({ passed }) => passed)) rig.showLogs();
    return verdicts;
  } finally {
    await rig.end();
  }
}
