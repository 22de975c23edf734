/** `npm run bench`: results to standard output as Markdown, progress to standard error. */
import { spawnSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { compare, type Comparison } from "./compare.ts";
import { runCommand } from "./command.ts";
import { ensureCorpus } from "./corpus/corpus.ts";
import { hashTable } from "./hashes.ts";
import { BENCH_USAGE, type BenchOptions, readBenchOptions } from "./options.ts";
import { waitForQuiet } from "./quiet.ts";
import { comparisonTables } from "./report.ts";
import { SCENARIOS } from "./scenarios.ts";
import { stageTable } from "./stages.ts";
import { isVmagentInstalled, type Subject, subjectsOf } from "./subjects.ts";
import { BENCH_FOLDER, buildTools, type Tools } from "./tools.ts";
import { secondsOfWindow, type Timing } from "./window.ts";

/** Every comparison, with all its windows, is added to it. */
const RESULTS_FILE = join(BENCH_FOLDER, "results.jsonl");
const CALIBRATION_SECONDS = "1";

async function main(): Promise<void> {
  const options = readBenchOptions(process.argv.slice(2));
  const tools = buildTools();
  process.stdout.write(`${machineLine(tools)}\n\n`);
  if (options.names.includes("hashes")) {
    await waitForQuiet(options.waitSeconds);
    process.stdout.write(`${hashTable(tools)}\n`);
  }
  if (options.names.includes("stages")) {
    await waitForQuiet(options.waitSeconds);
    process.stdout.write(`${stageTable(ensureCorpus(BENCH_FOLDER, 0))}\n`);
  }
  const comparisons = await compareAll(tools, options);
  process.stdout.write(comparisonTables(comparisons));
}

async function compareAll(tools: Tools, options: BenchOptions): Promise<Comparison[]> {
  const scenarios = SCENARIOS.filter(({ name }) => options.names.includes(name));
  if (scenarios.length > 0 && !options.alone && !isVmagentInstalled()) {
    process.stderr.write(
      "vmagent is not installed (bash test/peers/install.sh): the gateway is measured alone\n",
    );
  }
  const comparisons: Comparison[] = [];
  for (const scenario of scenarios) {
    const corpus = ensureCorpus(BENCH_FOLDER, scenario.newShare);
    const subjects = subjectsOf(scenario, options.alone);
    const rounds = options.rounds ?? scenario.rounds;
    process.stderr.write(`${planOf(scenario.name, rounds, subjects, options)}\n`);
    const comparison = await compare(tools, subjects, scenario, corpus, { ...options, rounds });
    comparisons.push(comparison);
    const measured = comparison.rounds.map(({ windows, isNoisy }) => ({
      isNoisy,
      ...Object.fromEntries(windows),
    }));
    appendFileSync(RESULTS_FILE, `${JSON.stringify({ scenario, rounds: measured })}\n`);
  }
  return comparisons;
}

/** What comes, and how long it takes on a quiet machine. */
function planOf(name: string, rounds: number, subjects: readonly Subject[], timing: Timing): string {
  const minutes = (rounds * subjects.length * secondsOfWindow(timing)) / 60;
  const names = subjects.map((subject) => subject.name).join(", ");
  return `${name}: ${rounds} rounds of ${names}: about ${minutes.toFixed(0)} minutes on a quiet machine`;
}

/** What the figures were taken on, and how fast it was. */
function machineLine({ calib }: Tools): string {
  const processors = cpus();
  const corpus = ensureCorpus(BENCH_FOLDER, 0);
  const { stdout } = spawnSync(calib, [corpus, CALIBRATION_SECONDS], { encoding: "utf8" });
  const calibrated = (parseInt(stdout, 10) / 1e6).toFixed(2);
  return (
    `${new Date().toISOString().slice(0, 10)}, ${processors.length} × ${processors[0]?.model ?? "?"}, ` +
    `Node ${process.versions.node}, calibration ${calibrated} M series per CPU-second`
  );
}

await runCommand(main, BENCH_USAGE);
