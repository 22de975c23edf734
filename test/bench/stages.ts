/**
 * Where the time of the hot path goes: nanoseconds per series by stage, in this process, without HTTP.
 *
 * The engine is driven as the router does it, with made-up decisions of the usual size: three destinations and a task
 * label. What it does in one call is told apart by timing the parts alone, so those figures are differences.
 */
import { uncompress } from "snappyjs";
import { markdownTable } from "../../src/cli/bench/markdownTable.ts";
import { spreadOf } from "../../src/cli/bench/spread.ts";
import { MAX_STEP_SERIES, type Effect, Engine, type Piece } from "../../src/engine/engine.ts";
import type { RelabelRuleList } from "../../src/relabel/options.ts";
import { Router } from "../../src/route/router.ts";
import { joinParcels } from "../../src/wire/parcel.ts";
import { readPlainLength } from "../../src/wire/snappy.ts";
import { benchRoute, DESTINATIONS, LABEL_LIMITS, NO_RULES } from "./benchRoute.ts";
import { readBodies, SERIES_PER_REQUEST } from "./corpus/corpus.ts";
import { newSeriesTable } from "./newSeries.ts";
import { readRules, RULES_FILE } from "./rules.ts";
import { type Stages, StopWatch } from "./stopWatch.ts";

const ROUNDS = 5;
const PARCEL_LIMITS = { maxItems: 10_000, maxPlainBytes: 8 * 1024 * 1024 };
const MAX_PLAIN_BYTES = 32 * 1024 * 1024;
const TABLE = { maxSeries: 1_000_000, maxBytes: 256 * 1024 * 1024 };
const HASH_KEY = Uint8Array.from({ length: 32 }, (_, index) => index);
const CONTEXT = 0;
/** The field of a label `stream_task_id="57"`. */
const TASK_LABEL = Buffer.from("\x0a\x14\x0a\x0estream_task_id\x12\x0257", "latin1");
/** Bodies whose pieces are compressed once more, to time that alone. */
const BODIES_COMPRESSED_AGAIN = 40;

/** @param corpus folder of bodies */
export function stageTable(corpus: string): string {
  const bodies = readBodies(corpus);
  const rounds = [...stageRounds(bodies)];
  const names = Object.keys(rounds[0] ?? {});
  const rows = names.map((name) => {
    const { median, min, max } = spreadOf(rounds.map((round) => round[name] ?? NaN));
    return [name, `${median.toFixed(0)} [${min.toFixed(0)}..${max.toFixed(0)}]`];
  });
  const rules = readRules(RULES_FILE);
  rows.push(...routerRows(bodies, NO_RULES, ""), ...routerRows(bodies, rules, " with ten rules"));
  const stages = markdownTable(["stage", "median [min..max]"], rows);
  return `### Stages, ns per series\n\n${stages}\n${newSeriesTable(bodies, rules)}`;
}

function routerRows(bodies: readonly Uint8Array[], rules: RelabelRuleList, which: string): string[][] {
  const { missNs, hitNs } = timeRouter(bodies, rules);
  return [
    [`the router${which}, all series known`, hitNs.toFixed(0)],
    [`what a new series adds${which}: a decision in TypeScript`, (missNs - hitNs).toFixed(0)],
  ];
}

function* stageRounds(bodies: readonly Uint8Array[]): Generator<Stages> {
  const engine = new Engine({
    destinations: Array.from({ length: DESTINATIONS }, () => PARCEL_LIMITS),
    tallies: 1,
    bounds: [],
    tableSeries: TABLE.maxSeries,
    tableBytes: TABLE.maxBytes,
    hashKey: HASH_KEY,
  });
  // The first round decides, and tunes the compiler.
  timeStages(engine, bodies);
  for (let round = 0; round < ROUNDS; round++) yield timeStages(engine, bodies);
}

function timeStages(engine: Engine, bodies: readonly Uint8Array[]): Stages {
  const watch = new StopWatch();
  const pieces: Piece[] = [];
  for (const [number, body] of bodies.entries()) {
    const { plainBytes, elementsAt } = readPlainLength(body, MAX_PLAIN_BYTES);
    watch.time("decompress", () => engine.uncompress([body], elementsAt, plainBytes));
    const step = watch.time("scan, hash, look up", () =>
      engine.scan(MAX_STEP_SERIES, plainBytes, plainBytes, CONTEXT),
    );
    if (step?.consumed !== plainBytes) throw new Error("a body of the corpus is more than a step");
    if (step.undecided > 0) decideAll(engine);
    const emitted = watch.time("emit", () => engine.emit());
    const outputBytes = emitted.reduce((sum, { elements }) => sum + elements.length, 0);
    watch.time("copy out", () => engine.bytes.slice(0, outputBytes));
    if (number < BODIES_COMPRESSED_AGAIN) pieces.push(...emitted);
  }
  const stages = watch.perSeries(bodies.length * SERIES_PER_REQUEST);
  const copyOut = stages["copy out"] ?? 0;
  const compress = timeCompression(engine, pieces) - copyOut;
  // One call does these three.
  return { ...stages, emit: (stages["emit"] ?? 0) - compress - copyOut, compress, "copy out": copyOut };
}

/** Compression of what was emitted, and copying it out. */
function timeCompression(engine: Engine, pieces: readonly Piece[]): number {
  const watch = new StopWatch();
  for (const piece of pieces) {
    const plain = uncompress(joinParcels([piece]));
    watch.time("copy in", () => {
      engine.setWindow(plain);
    });
    watch.time("compress", () => engine.compress(plain));
  }
  const stages = watch.perSeries(pieces.reduce((sum, { series }) => sum + series, 0));
  return (stages["compress"] ?? 0) - (stages["copy in"] ?? 0);
}

/** A task label behind the labels, and destinations in turn. */
function decideAll(engine: Engine): void {
  for (let row = engine.nextUndecided(0); row >= 0; row = engine.nextUndecided(row + 1)) {
    const { start, labelsEnd } = engine.row(row);
    const at = labelsEnd - start;
    const effect: Effect = {
      kind: "send",
      destination: row % DESTINATIONS,
      splices: [{ keep: at, resume: at, inserted: TASK_LABEL }],
    };
    engine.decide(row, CONTEXT, [{ firstEpoch: 0, effects: [effect] }], true);
  }
}

/** The whole router over bodies that it never saw, and over them again. */
function timeRouter(
  bodies: readonly Uint8Array[],
  rules: RelabelRuleList,
): { readonly missNs: number; readonly hitNs: number } {
  const router = new Router(
    NO_RULES,
    [{ route: benchRoute(rules), limits: PARCEL_LIMITS, lanes: 1 }],
    { labels: LABEL_LIMITS, maxPlainBytes: MAX_PLAIN_BYTES, metadata: PARCEL_LIMITS, table: TABLE },
    { hashKey: HASH_KEY, isDue: () => false },
  );
  const pass = (some: readonly Uint8Array[]): number => {
    const watch = new StopWatch();
    for (const body of some) {
      const steps = router.route([body], { context: CONTEXT, byRoute: [] });
      watch.time("route", () => {
        while (steps.next().done !== true);
      });
    }
    return watch.perSeries(some.length * SERIES_PER_REQUEST)["route"] ?? NaN;
  };
  // Code is compiled well once it has run for a while: the second half of the bodies is what counts.
  const half = bodies.length / 2;
  pass(bodies.slice(0, half));
  const missNs = pass(bodies.slice(half));
  pass(bodies);
  return { missNs, hitNs: pass(bodies) };
}
