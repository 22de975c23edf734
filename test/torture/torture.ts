/** `npm run torture`: the long forms of the tests of test/system that kill, take away and restart; says PASS or FAIL. */
import { atLeast, parseOptions, runCommand, UsageError } from "../bench/command.ts";
import { KILL_SCENES, type KillScene } from "../system/kills.ts";
import { tortureByKills } from "./kills.ts";
import { tortureByOutages } from "./outage.ts";
import { tortureByRestarts } from "./restarts.ts";
import { TROUBLES } from "./troubledFront.ts";
import { say, type Verdict } from "./verdict.ts";

const SCENES = Object.keys(KILL_SCENES) as KillScene[];

const USAGE = `npm run torture -- kills    [--kills 100] [--seed 1] [--scene ${SCENES.join("|")}]
npm run torture -- outage   [--minutes 10] [--trouble ${TROUBLES.join(",")}] [--rate 100000]
                            [--pairs 7] [--window 20] [--wait 120]
npm run torture -- restarts [--rounds 3] [--away 30]

  kills      the gateway is killed again and again under load, upstreams come and go meanwhile
  --kills    how often
  --seed     decides what happens when: a whole number of at least 1
  --scene    one route of three upstreams; two replicas in it; or two routes, one that spools and one that refuses

  outage     one of three upstreams is in trouble
  --minutes  how long, for each trouble
  --trouble  which ones, separated by commas
  --rate     samples a second
  --pairs    windows without and with the trouble that are compared before that
  --window   seconds of such a window
  --wait     seconds to wait at most for a quiet machine before each trouble

  restarts   three real vmagents are restarted one after the other
  --rounds   how often each
  --away     seconds that each is away
`;

async function main(): Promise<void> {
  const [which = "", ...args] = process.argv.slice(2);
  const verdicts = await torture(which, args);
  for (const { passed, text } of verdicts) say(`${passed ? "PASS" : "FAIL"} ${text}`);
  if (!verdicts.every(({ passed }) => passed)) process.exitCode = 1;
}

function torture(which: string, args: readonly string[]): Promise<Verdict[]> {
  switch (which) {
    case "kills":
      return kills(args);
    case "outage":
      return outage(args);
    case "restarts":
      return restarts(args);
    default:
      throw new UsageError(`want one of kills, outage, restarts; got ${which === "" ? "nothing" : which}`);
  }
}

function kills(args: readonly string[]): Promise<Verdict[]> {
  const values = parseOptions(args, {
    kills: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    scene: { type: "string", default: "one" },
  });
  const scene = SCENES.find((name) => name === values.scene);
  if (scene === undefined)
    throw new UsageError(`--scene: want one of ${SCENES.join(", ")}; got ${values.scene}`);
  return tortureByKills(scene, atLeast(1, "--kills", values.kills), atLeast(1, "--seed", values.seed));
}

function outage(args: readonly string[]): Promise<Verdict[]> {
  const values = parseOptions(args, {
    minutes: { type: "string", default: "10" },
    trouble: { type: "string", default: TROUBLES.join(",") },
    rate: { type: "string", default: "100000" },
    pairs: { type: "string", default: "7" },
    window: { type: "string", default: "20" },
    wait: { type: "string", default: "120" },
  });
  const troubles = values.trouble.split(",").map((name) => {
    const known = TROUBLES.find((trouble) => trouble === name);
    if (known === undefined)
      throw new UsageError(`--trouble: want some of ${TROUBLES.join(",")}; got ${name}`);
    return known;
  });
  return tortureByOutages({
    troubles,
    minutes: atLeast(0, "--minutes", values.minutes),
    samplesPerSecond: atLeast(1, "--rate", values.rate),
    pairs: atLeast(1, "--pairs", values.pairs),
    windowSeconds: atLeast(1, "--window", values.window),
    waitSeconds: atLeast(0, "--wait", values.wait),
  });
}

function restarts(args: readonly string[]): Promise<Verdict[]> {
  const values = parseOptions(args, {
    rounds: { type: "string", default: "3" },
    away: { type: "string", default: "30" },
  });
  return tortureByRestarts(atLeast(1, "--rounds", values.rounds), atLeast(0, "--away", values.away));
}

await runCommand(main, USAGE);
