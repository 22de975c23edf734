/** The command line. */
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { loadConfig, type LoadOptions } from "../config/load.ts";
import { formatProblem } from "../config/problem.ts";
import type { LegacyHash } from "../config/legacy.ts";
import { parseMoment, WANT_MOMENT } from "../moment.ts";
import type { Config } from "../config/config.ts";
import { placementFault } from "../hash/placementFault.ts";
import { faultOf } from "../relabel/rules.ts";
import { VERSION } from "../version.ts";
import { benchPlacement, type PlacementBench } from "./bench/placement.ts";
import { check } from "./check.ts";
import { convert } from "./convert.ts";
import { explainFile, explainText } from "./explain.ts";
import { inspect } from "./inspect.ts";
import { CANNOT_JUDGE, lint, type LintOptions } from "./lint.ts";
import { plan, type PlanCommand } from "./plan.ts";
import { relabel, type RelabelOptions } from "./relabel.ts";
import { serve } from "./serve.ts";
import { sink } from "./sink.ts";

const print = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
const printError = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

/**
 * Runs a command line.
 *
 * @param argv arguments, without node and script
 * @returns the exit code: 0 done, 1 the command's own "no", 2 wrong usage; lint has codes of its own
 */
export async function run(argv: readonly string[]): Promise<number> {
  let code = 0;
  const program = new Command("stream-metrics-route")
    .description(
      "Routes Prometheus remote write to many vmagents, so that stream aggregation can be spread and stay right",
    )
    .version(VERSION)
    .exitOverride()
    .showHelpAfterError();
  const command = (name: string, description: string): Command =>
    program.command(name).description(description);

  configured(command("serve", "run the gateway"))
    .addOption(
      new Option("--log-level <level>", "lines to write")
        .choices(["error", "warn", "info", "debug"])
        .default("info"),
    )
    .action(
      async ({
        config,
        legacyHash,
        logLevel,
      }: {
        config: string;
        legacyHash: LegacyHash;
        logLevel: string;
      }) => {
        code = await serve(config, { ...loadOptions(legacyHash), logLevel });
      },
    );
  configured(command("check", "print every problem of a configuration, what it means and what it moves"))
    .option(
      "--against <file>",
      "the configuration that ran before, or the topology.json of a start, if not what the last start here kept",
    )
    .action(
      ({ config, legacyHash, against }: { config: string; legacyHash: LegacyHash; against?: string }) => {
        code = check(
          config,
          { ...loadOptions(legacyHash), against: against ?? null, nowMs: Date.now() },
          print,
        );
      },
    );
  configured(command("convert", "print a file of the old Go gateway as a native configuration")).action(
    ({ config, legacyHash }: { config: string; legacyHash: LegacyHash }) => {
      code = convert(config, loadOptions(legacyHash), print, printError);
    },
  );
  configured(command("explain", "print where a series goes, and why"))
    .argument("[series]", `a label set, e.g. '{__name__="up",job="node"}'`)
    .option("--input <file>", 'explain one {"labels":[["__name__","up"],...]} a line; prints JSON')
    .option("--tenant <name>", "what the request's header says, to routes that look at it")
    .option("--at <time>", "when the samples are from, as 2026-12-01T00:00:00Z; by default now", momentOption)
    .option("--json", "print one JSON line for each series", false)
    .action(async (series: string | undefined, options: ExplainCommand) => {
      code = await explain(series, options);
    });
  command("plan", "print what a change of the configuration would move")
    .option("--from <file>", "the configuration before; with --gateway, if not the one that it runs")
    .requiredOption("--to <file>", "the configuration after")
    .option("--gateway <url>", "ask a running gateway at its admin_listen, over the series that it gets")
    .option("--token-file <file>", "the token that the gateway asks for")
    .option("--requests <folder>", "over the series of recorded bodies of write requests")
    .option("--series <file>", 'over series, one {"labels":[["__name__","up"],...]} a line')
    .option("--tenant <name>", "what the requests' header says, to routes that look at it")
    .addOption(legacyHash("--from-legacy-hash", "--from"))
    .addOption(legacyHash("--to-legacy-hash", "--to"))
    .option("--json", "print the whole plan as JSON", false)
    .option("--effective <duration>", "print the change as a topology in force so much later, e.g. 10m")
    .option("--round <duration>", "round that moment up to the aggregation interval, e.g. 1m")
    .action(async (options: PlanCommand & { fromLegacyHash: LegacyHash; toLegacyHash: LegacyHash }) => {
      code = await plan(options, {
        fromOptions: loadOptions(options.fromLegacyHash),
        toOptions: loadOptions(options.toLegacyHash),
        nowMs: Date.now(),
        print,
        complain: printError,
      });
    });
  command("relabel", "print what relabel rules do to a series")
    .argument("[series]", `a label set, e.g. '{__name__="up",job="node"}'`)
    .requiredOption("--rules <file>", "a list of relabel_config in YAML, or a document with relabel_configs")
    .addOption(
      new Option("--dialect <dialect>", "whose reading the rules have")
        .choices(["prometheus", "victoriametrics"])
        .default("prometheus"),
    )
    .option("--input <file>", 'relabel one {"labels":[["__name__","up"],...]} a line')
    .option("--json", "print one JSON line for each series", false)
    .action(async (series: string | undefined, options: RelabelOptions) => {
      code = hasOneSource("relabel", series, options.input)
        ? await relabel(series, options, print, printError)
        : 2;
    });
  configured(command("lint", "say whether vmagents behind the routes aggregate as one would"))
    .requiredOption("--stream-aggr <file>", "the vmagents' file of stream aggregation")
    .option("--relabel <file>", "vmagent's relabel rules that are applied before it aggregates")
    .option("--route <name>", "judge this route alone")
    .option("--json", "print one JSON document", false)
    .action(
      ({ legacyHash, ...options }: Omit<LintOptions, keyof LoadOptions> & { legacyHash: LegacyHash }) => {
        code = lint({ ...options, ...loadOptions(legacyHash) }, print, printError);
      },
    );
  command("inspect", "print what a captured remote write body holds")
    .argument("<file>", "the raw body of a request")
    .option("--json", "print one JSON document", false)
    .option("--limit <series>", "series to print, 0 for all", "20")
    .action((file: string, options: { json: boolean; limit: string }) => {
      code = inspect(file, { json: options.json, limit: Number(options.limit) }, print);
    });
  command("sink", "receive remote write, count it and show what arrives")
    .requiredOption(
      "--listen <address...>",
      "ports, or host:port, to listen on; a port alone is on 127.0.0.1",
    )
    .option("--print", "print every series as it comes", false)
    .action(async (options: { listen: string[]; print: boolean }) => {
      code = await sink(options, print);
    });
  command("bench", "measure parts of the gateway")
    .command("placement")
    .description("print what the algorithms of placement take, how even they are and how much they move")
    .option(
      "--keys <count>",
      "keys to spread over the slots; fewer are quicker, and all is less exact",
      countFrom(1000),
      10_000_000,
    )
    .option("--turns <count>", "how often each lookup is timed", countFrom(1), 7)
    .action((options: PlacementBench) => {
      benchPlacement(options, print);
    });

  try {
    await program.parseAsync([...argv], { from: "user" });
  } catch (error) {
    // Lint's 1 and 2 are verdicts.
    const [usage, failure] = argv[0] === "lint" ? [CANNOT_JUDGE, CANNOT_JUDGE] : [2, 1];
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : usage;
    if (error instanceof SyntaxError || isSystemError(error)) {
      printError(error.message);
      return failure;
    }
    throw error;
  }
  return code;
}

function configured(command: Command): Command {
  return command
    .requiredOption("--config <file>", "configuration: native YAML, or a file of the old Go gateway")
    .addOption(legacyHash("--legacy-hash", ""));
}

/** @param file the option that names the file, where there are several */
function legacyHash(name: string, file: string): Option {
  const description = `how a file of the old Go gateway${file === "" ? "" : ` (${file})`} places series`;
  return new Option(`${name} <algorithm>`, `${description}: hashmod does what its code did`)
    .choices(["jump", "hashmod"])
    .default("jump");
}

/** Reads an option that is a whole number, `least` or more. */
function countFrom(least: number): (text: string) => number {
  return (text) => {
    const count = Number(text);
    if (Number.isSafeInteger(count) && count >= least) return count;
    throw new InvalidArgumentError(`want a whole number from ${least}`);
  };
}

interface ExplainCommand {
  readonly config: string;
  readonly legacyHash: LegacyHash;
  readonly input?: string;
  readonly tenant?: string;
  readonly at?: number;
  readonly json: boolean;
}

async function explain(
  series: string | undefined,
  { config: file, legacyHash, input, tenant: named, json, at: atMs = Date.now() }: ExplainCommand,
): Promise<number> {
  if (!hasOneSource("explain", series, input)) return 2;
  const tenant = named ?? null;
  const config = loadOrPrint(file, legacyHash);
  if (config === null) return 1;
  if (input !== undefined) return explainFile(config, input, { tenant, atMs }, print);
  return explainText(config, series ?? "", { tenant, atMs, json }, print);
}

function momentOption(written: string): number {
  const milliseconds = parseMoment(written);
  if (milliseconds === null) throw new InvalidArgumentError(`want ${WANT_MOMENT}.`);
  return milliseconds;
}

/** Whether there is one of the two; says so when not. */
function hasOneSource(command: string, series: string | undefined, input: string | undefined): boolean {
  const one = (series === undefined) !== (input === undefined);
  if (!one) printError(`${command} wants a series or --input FILE, and not both`);
  return one;
}

function loadOptions(legacyHash: LegacyHash): LoadOptions {
  return { legacyHash, checkRule: faultOf, checkPlacement: placementFault };
}

function loadOrPrint(file: string, legacyHash: LegacyHash): Config | null {
  const { config, problems } = loadConfig(file, loadOptions(legacyHash));
  if (config === null)
    problems.forEach((problem) => {
      printError(formatProblem(problem));
    });
  return config;
}

/** What the system says of files and sockets: told to the user, not shown as a bug. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error;
}
