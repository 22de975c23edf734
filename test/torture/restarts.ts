/** `npm run torture -- restarts`: real vmagents restarted one after the other, see test/system/rollingVmagents.ts. */
import { MissingTools } from "../bench/tools.ts";
import { describeMissing, findPeers } from "../peers/installed.ts";
import { Rig } from "../peers/rig.ts";
import { rollingRestart } from "../system/rollingVmagents.ts";
import { noneOf, say, type Verdict } from "./verdict.ts";

export async function tortureByRestarts(rounds: number, awaySeconds: number): Promise<Verdict[]> {
  const { peers, missing } = findPeers();
  if (missing.length > 0) throw new MissingTools(describeMissing(missing));
  say(`each of three vmagents is restarted ${rounds} times, and away for ${awaySeconds} s`);
  const rig = await Rig.create();
  try {
    const end = await rig.prepare(() => rollingRestart(rig, peers, { rounds, awayMs: awaySeconds * 1000 }));
    say(
      `of ${end.samples} samples ${end.repeated} are stored twice; the gateway retried ${end.retries} times, ` +
        `Prometheus had to send ${end.sentAgain} samples again`,
    );
    return [
      noneOf("missing in the store", end.missing),
      noneOf("in the store that nobody sent", end.unexpected),
      noneOf("wrong or at several vmagents", end.wrong),
      noneOf("gaps in the ledger", end.ledgerGaps),
      {
        passed: end.repeated <= end.mostRepeated,
        text: `${end.repeated} samples stored twice, at most ${end.mostRepeated} were in flight at the restarts`,
      },
    ];
  } finally {
    await rig.end();
  }
}
