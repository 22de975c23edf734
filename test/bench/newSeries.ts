/**
 * What a new series costs: nanoseconds of each part of its decision, in this process.
 *
 * The parts are called as src/route/decide.ts calls them, each over all series of a body before the next, so that no clock
 * runs for single calls. The whole decision is timed beside them, with rules and without.
 */
import { markdownTable } from "../../src/cli/bench/markdownTable.ts";
import { spreadOf } from "../../src/cli/bench/spread.ts";
import { type Label, RelabelRules } from "../../src/relabel/rules.ts";
import type { RelabelRuleList } from "../../src/relabel/options.ts";
import { Decider } from "../../src/route/decide.ts";
import { checkAtDoor } from "../../src/route/door.ts";
import { LabelReader } from "../../src/route/labelReader.ts";
import { compilePlacer } from "../../src/route/place.ts";
import { replaceLabels, RewrittenLabels } from "../../src/route/rewrite.ts";
import { TaskLabel } from "../../src/route/taskLabel.ts";
import { Cursor } from "../../src/wire/cursor.ts";
import { scanRequest, scanSeries, SeriesScan } from "../../src/wire/scan.ts";
import { uncompressBlock } from "../../src/wire/snappy.ts";
import { NO_SPLICE } from "../../src/wire/splice.ts";
import { benchRoute, LABEL_LIMITS, NO_RULES } from "./benchRoute.ts";
import { type Stages, StopWatch } from "./stopWatch.ts";

/** Bodies that are timed, after as many that only let the code be compiled well. */
const BODIES = 20;
const MAX_PLAIN_BYTES = 32 * 1024 * 1024;
/** More than a series of the corpus has: one scan is kept for each series of a body. */
const MAX_LABELS = 64;
const TASK_LABEL = "stream_task_id";

/** @param bodies of a corpus, at least twice BODIES */
export function newSeriesTable(bodies: readonly Uint8Array[], rules: RelabelRuleList): string {
  const parts = new Parts(rules);
  const timed = bodies.slice(0, 2 * BODIES).map((body) => parts.time(uncompressBlock(body, MAX_PLAIN_BYTES)));
  const counted = timed.slice(BODIES);
  const rows = Object.keys(counted[0] ?? {}).map((name) => {
    const { median, min, max } = spreadOf(counted.map((stages) => stages[name] ?? NaN));
    return [name, `${median.toFixed(0)} [${min.toFixed(0)}..${max.toFixed(0)}]`];
  });
  return `### A new series with ten rules, ns\n\n${markdownTable(["part", "median [min..max]"], rows)}`;
}

/** The stages of a decision, one by one. */
class Parts {
  readonly #withRules: Decider;
  readonly #withoutRules: Decider;
  readonly #rules: RelabelRules;
  readonly #place = compilePlacer(benchRoute(NO_RULES));
  readonly #taskLabel = new TaskLabel(TASK_LABEL);
  readonly #reader = new LabelReader();

  constructor(rules: RelabelRuleList) {
    this.#withRules = new Decider(NO_RULES, [benchRoute(rules)], LABEL_LIMITS);
    this.#withoutRules = new Decider(NO_RULES, [benchRoute(NO_RULES)], LABEL_LIMITS);
    this.#rules = new RelabelRules(rules);
  }

  /** @param plain a request, decompressed */
  time(plain: Uint8Array): Stages {
    const watch = new StopWatch();
    const ranges = rangesOf(plain);
    const scans = ranges.map(() => new SeriesScan(plain, MAX_LABELS));
    const cursor = new Cursor(plain);
    watch.time("scan", () => {
      scans.forEach((scan, index) => {
        cursor.pos = ranges[index]?.start ?? 0;
        scanSeries(cursor, ranges[index]?.end ?? 0, scan);
      });
    });
    const each = <T>(name: string, work: (scan: SeriesScan, index: number) => T): T[] =>
      watch.time(name, () => scans.map(work));
    each("checks at the door", (scan) => checkAtDoor(scan, LABEL_LIMITS));
    const came = each("labels as text", (scan) => this.#reader.read(scan));
    const now = each("ten rules", (_, index) => this.#labelsAfterRules(came[index] ?? []));
    const rewritten = each(
      "labels as bytes again",
      (scan, index) => new RewrittenLabels(scan, came[index] ?? [], now[index] ?? []),
    );
    const eachRewritten = <T>(name: string, work: (labels: RewrittenLabels, index: number) => T): T[] =>
      watch.time(name, () => rewritten.map(work));
    eachRewritten("checks after rules", (labels) => checkAtDoor(labels, LABEL_LIMITS));
    const placed = eachRewritten("key, task and slot", (labels) => this.#place(labels));
    const taskSplices = eachRewritten("place of the task label", (labels, index) =>
      this.#taskLabel.splice(labels, placed[index]?.task ?? 0),
    );
    eachRewritten("what differs from what came", (labels, index) => {
      const scan = scans[index];
      return scan === undefined ? null : replaceLabels(scan, labels, taskSplices[index] ?? NO_SPLICE);
    });
    each("all of it", (scan) => this.#withRules.decide(scan, [null]));
    each("all of it without rules", (scan) => this.#withoutRules.decide(scan, [null]));
    return watch.perSeries(scans.length);
  }

  #labelsAfterRules(labels: readonly Label[]): readonly Label[] {
    const outcome = this.#rules.apply(labels);
    if (outcome.kind !== "kept") throw new Error("a rule of the bench drops a series of the corpus");
    return outcome.labels;
  }
}

/** Where the messages of the series are. */
function rangesOf(plain: Uint8Array): { readonly start: number; readonly end: number }[] {
  const ranges: { start: number; end: number }[] = [];
  scanRequest(plain, MAX_LABELS, {
    series: ({ start, end }) => ranges.push({ start, end }),
    metadata: () => undefined,
  });
  return ranges;
}
