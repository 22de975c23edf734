/** What a lookup takes, and what is looked up in, beside the same in C and beside packages of npm. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { invariant } from "../../hash/invariant.ts";
import { markdownTable } from "./markdownTable.ts";
import { EVENER_RING, type MeasuredMethod, METHODS } from "./methods.ts";
import { installedVersion, PACKAGED_LOOKUPS, type PackagedLookup } from "./packages.ts";
import { spreadOf } from "./spread.ts";
import type { TimedLookups, TimedSubject } from "./timeLookups.ts";

const SLOTS = 100;
/** Packages are slow; but these are more than the 5000 answers that hashring remembers. */
const MOST_PACKAGED_KEYS = 6_000;
const TITLE = `### Lookups at ${SLOTS} slots`;

/** A process runs it, so it is there only when it is built. */
const TIMING_PROGRAM = fileURLToPath(new URL("timeLookups.js", import.meta.url));

/** A ring once more, beside C that searches all of it for every key. */
const SEARCHED_RING: MeasuredMethod = {
  name: "ring md5, 160 points; C as libketama",
  method: { algorithm: "ring", hash: "md5", points: 160 },
  native: ["ring_md5_search", 160],
};

/** How lookups are timed. */
export interface Timing {
  /** Looked up one after the other, over and over: 100,000 are more than a branch predictor learns by heart. */
  readonly keys: number;
  /** How often each lookup is timed, each time in a process of its own. */
  readonly turns: number;
  /** Until the compiler has done its work. */
  readonly warmUpMs: number;
  readonly measuredMs: number;
}

type Figure = (times: readonly TimedLookups[]) => string;
const lookupNs: Figure = (times) => short(medianOf(times, (timed) => timed.lookupNs));
const kibibytes: Figure = (times) => short(medianOf(times, ({ bytes }) => bytes / 1024));
const buildMs: Figure = (times) => short(medianOf(times, (timed) => timed.buildMs));

/** Times every algorithm. */
export function lookupTable(timing: Timing): string {
  const rows = [...METHODS, EVENER_RING].map(({ name, method }) => {
    const ours = Array.from({ length: timing.turns }, () => timeInNode({ kind: "ours", method }, timing));
    return [name, lookupNs(ours), kibibytes(ours), buildMs(ours)];
  });
  return `${TITLE}\n\n${markdownTable(["", "ns", "KiB", "build, ms"], rows)}`;
}

/**
 * Times every algorithm in turns with the same in C.
 *
 * @param program placement.c, compiled
 * @throws {Error} when ours gives other answers than C
 */
export function lookupTableBesideC(program: string, timing: Timing): string {
  const rows = [...METHODS, EVENER_RING, SEARCHED_RING].map(({ name, method, native }) => {
    const [ours, theirs] = timeInTurns(
      timing.turns,
      () => timeInNode({ kind: "ours", method }, timing),
      () => timeInC(program, native, timing),
    );
    invariant(sameAnswers(ours, theirs), `${name} gives other answers than in C`);
    const [memory, build] = [kibibytes, buildMs].map((figure) => [figure(ours), figure(theirs)]);
    return [name, lookupNs(ours), lookupNs(theirs), ratio(ours, theirs), ...(memory ?? []), ...(build ?? [])];
  });
  const columns = ["", "ns", "C, ns", "ours / C", "KiB", "C, KiB", "build, ms", "C, ms"];
  return `${TITLE}\n\n${markdownTable(columns, rows)}\nEvery algorithm gave the same answers in C.\n`;
}

/** Times the packages that are installed in turns with ours, and says which are not. */
export function packageTable(timing: Timing): string {
  const rows: string[][] = [];
  const missing = new Set<string>();
  for (const [index, packaged] of PACKAGED_LOOKUPS.entries()) {
    const version = installedVersion(packaged.packageName);
    if (version === null) missing.add(packaged.packageName);
    else
      rows.push([
        `${packaged.packageName} ${version}, ${packaged.name}`,
        ...packageCells(packaged, index, timing),
      ]);
  }
  const columns = ["", "same here", "ns", "ours, ns", "package / ours", "answers"];
  const compared = rows.length === 0 ? "" : markdownTable(columns, rows);
  const rest = [...missing].map((name) => `Not compared with ${name}: it is not installed.\n`);
  return `### npm packages at ${SLOTS} slots\n\n${[compared, ...rest].filter((text) => text !== "").join("\n")}`;
}

function packageCells(packaged: PackagedLookup, index: number, allTiming: Timing): string[] {
  const same = METHODS.find(({ name }) => name === packaged.method);
  invariant(same !== undefined, `${packaged.packageName} is compared with a method that is not measured`);
  const timing = { ...allTiming, keys: Math.min(allTiming.keys, MOST_PACKAGED_KEYS) };
  const [ours, theirs] = timeInTurns(
    timing.turns,
    () => timeInNode({ kind: "ours", method: same.method }, timing),
    () => timeInNode({ kind: "packaged", index }, timing),
  );
  return [
    same.name,
    lookupNs(theirs),
    lookupNs(ours),
    ratio(theirs, ours),
    packaged.hashesKeys ? "of other hashes" : sameAnswers(ours, theirs) ? "the same" : "others",
  ];
}

/** One after the other, again and again: what slows the machine for a while slows both. */
function timeInTurns(
  turns: number,
  timeOurs: () => TimedLookups,
  timeTheirs: () => TimedLookups,
): [TimedLookups[], TimedLookups[]] {
  const [ours, theirs]: [TimedLookups[], TimedLookups[]] = [[], []];
  for (let turn = 0; turn < turns; turn++) {
    ours.push(timeOurs());
    theirs.push(timeTheirs());
  }
  return [ours, theirs];
}

function timeInNode(subject: TimedSubject, timing: Timing): TimedLookups {
  return timeIn(process.execPath, ["--expose-gc", TIMING_PROGRAM, JSON.stringify(subject)], timing);
}

function timeInC(
  program: string,
  [algorithm, parameter]: MeasuredMethod["native"],
  timing: Timing,
): TimedLookups {
  return timeIn(program, [algorithm, String(parameter)], timing);
}

function timeIn(
  program: string,
  subject: readonly string[],
  { keys, warmUpMs, measuredMs }: Timing,
): TimedLookups {
  const args = [...subject, ...[SLOTS, keys, warmUpMs, measuredMs].map(String)];
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${subject.join(" ")} has failed:\n${stderr}`);
  return JSON.parse(stdout) as TimedLookups;
}

function sameAnswers(ours: readonly TimedLookups[], theirs: readonly TimedLookups[]): boolean {
  return new Set([...ours, ...theirs].map(({ checksum }) => checksum)).size === 1;
}

/** Turn by turn; one turn alone does not tell how far such ratios lie apart. */
function ratio(dividends: readonly TimedLookups[], divisors: readonly TimedLookups[]): string {
  const ratios = dividends.map((timed, turn) => timed.lookupNs / (divisors[turn]?.lookupNs ?? NaN));
  const { median, min, max } = spreadOf(ratios);
  return ratios.length === 1 ? short(median) : `**${short(median)}** [${short(min)}..${short(max)}]`;
}

function medianOf(times: readonly TimedLookups[], pick: (timed: TimedLookups) => number): number {
  return spreadOf(times.map(pick)).median;
}

/** As many digits as say something. */
function short(value: number): string {
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
}
