/** The command line of `npm run bench`. */
import { atLeast, parseOptions, UsageError } from "./command.ts";
import { SCENARIOS } from "./scenarios.ts";
import type { Timing } from "./window.ts";

export interface BenchOptions extends Timing {
  /** Measurements to make, by name: "hashes", "stages" and those of SCENARIOS. */
  readonly names: readonly string[];
  /** Windows of each program; null for as many as the scenario says. */
  readonly rounds: number | null;
  /** How long to wait for a quiet machine before a window. */
  readonly waitSeconds: number;
  /** Without vmagent, even where it is installed. */
  readonly alone: boolean;
}

export const BENCH_USAGE = `npm run bench -- [--only NAME,...] [--reps N] [--window 8] [--warm 4] [--wait 120] [--alone]

  --only    what to measure, all by default: hashes, stages, and the end-to-end scenarios
            ${SCENARIOS.map(({ name }) => name).join(", ")};
            a part of a name stands for all that have it: n3, new100, rules
  --reps    windows of each program, alternating: 3, with rules, a spool or periods 7
  --window  seconds of a window; --warm: seconds of load before it
  --wait    seconds to wait at most for a quiet machine, before each window
  --alone   without vmagent
`;

/** @throws {UsageError} */
export function readBenchOptions(args: readonly string[]): BenchOptions {
  const values = parseOptions(args, {
    only: { type: "string" },
    reps: { type: "string" },
    window: { type: "string", default: "8" },
    warm: { type: "string", default: "4" },
    wait: { type: "string", default: "120" },
    alone: { type: "boolean", default: false },
  });
  return {
    names: namesOf(values.only),
    rounds: values.reps === undefined ? null : atLeast(1, "--reps", values.reps),
    windowSeconds: atLeast(1, "--window", values.window),
    warmUpSeconds: atLeast(0, "--warm", values.warm),
    waitSeconds: atLeast(0, "--wait", values.wait),
    alone: values.alone,
  };
}

function namesOf(only: string | undefined): string[] {
  const all = ["hashes", "stages", ...SCENARIOS.map(({ name }) => name)];
  if (only === undefined) return all;
  const wanted = only.split(",");
  const named = (name: string, word: string): boolean => name === word || name.split("-").includes(word);
  for (const word of wanted) {
    if (!all.some((name) => named(name, word))) throw new UsageError(`--only: nothing is named ${word}`);
  }
  return all.filter((name) => wanted.some((word) => named(name, word)));
}
