/** `lint`: whether a file of stream aggregation is right behind the routes of a configuration. */
import { type AggregationRule, loadAggregation } from "../config/aggregationFile.ts";
import type { Config } from "../config/config.ts";
import { loadConfig, type LoadOptions } from "../config/load.ts";
import { formatProblem, type Problem } from "../config/problem.ts";
import { loadRelabelRules } from "../config/relabelSection.ts";
import type { Judgement, Verdict } from "../lint/judgement.ts";
import { Routing } from "../lint/routing.ts";
import { judge } from "../lint/verdict.ts";
import type { RelabelRuleList } from "../relabel/options.ts";
import { judgementLines, type RuleJudgement, shownJudgement } from "./lintText.ts";

type Print = (line: string) => void;

export interface LintOptions extends LoadOptions {
  /** The gateway's configuration. */
  readonly config: string;
  /** vmagent's file of stream aggregation. */
  readonly streamAggr: string;
  /** vmagent's relabel rules that come before it. */
  readonly relabel?: string;
  /** The one route to judge; all where there is none. */
  readonly route?: string;
  readonly json: boolean;
}

/** Of lint alone: what cannot be read has no verdict, and is told from one. */
export const CANNOT_JUDGE = 3;

const EXIT_CODES: Readonly<Record<Verdict, number>> = { safe: 0, unsafe: 1, unknown: 2 };

/**
 * Prints a verdict for each route and rule, with its proof.
 *
 * @param printError takes what is wrong or doubtful in the files
 * @returns the exit code: 0 when all are safe, 1 when one is unsafe, else 2, or 3 when something cannot be read
 */
export function lint(options: LintOptions, print: Print, printError: Print): number {
  const given = readFiles(options, printError);
  if (given === null) return CANNOT_JUDGE;
  const judgements = judgeAll(given, options.streamAggr);
  const verdict = worst(judgements.map(({ judgement }) => judgement));
  if (options.json) print(JSON.stringify({ verdict, judgements: judgements.map(shownJudgement) }));
  else {
    judgements.flatMap(judgementLines).forEach(print);
    print(summary(judgements));
  }
  return EXIT_CODES[verdict];
}

interface Given {
  readonly config: Config;
  /** Indexes of the routes to judge. */
  readonly routes: readonly number[];
  readonly rules: readonly AggregationRule[];
  readonly vmagentRules: RelabelRuleList;
}

/** null when one of the files cannot be read, or there is no such route; all that is wrong has been told then. */
function readFiles(options: LintOptions, printError: Print): Given | null {
  const { config, problems } = loadConfig(options.config, options);
  const aggregation = loadAggregation(options.streamAggr, options.checkRule);
  const relabeling = readRelabeling(options);
  // Warnings of the configuration are for check to tell.
  const errors = config === null ? problems : [];
  for (const problem of [...errors, ...aggregation.problems, ...relabeling.problems]) {
    printError(formatProblem(problem));
  }
  const routes = config === null ? [] : indexesOf(config, options.route ?? null);
  if (config !== null && routes.length === 0) {
    const names = config.routes.map(({ route }) => route.name).join(", ");
    printError(`${options.config}: no route ${options.route ?? ""}; want one of: ${names}`);
  }
  const { rules } = aggregation;
  if (config === null || rules === null || relabeling.rules === null || routes.length === 0) return null;
  return { config, routes, rules, vmagentRules: relabeling.rules };
}

function readRelabeling({ relabel, checkRule }: LintOptions): {
  readonly rules: RelabelRuleList | null;
  readonly problems: readonly Problem[];
} {
  const dialect = "victoriametrics";
  if (relabel === undefined) return { rules: { dialect, rules: [] }, problems: [] };
  return loadRelabelRules(relabel, dialect, checkRule);
}

function indexesOf({ routes }: Config, name: string | null): number[] {
  return [...routes.keys()].filter((index) => name === null || routes[index]?.route.name === name);
}

function judgeAll({ config, routes, rules, vmagentRules }: Given, file: string): RuleJudgement[] {
  const routing = new Routing(config);
  return routes.flatMap((route) =>
    rules.map((rule, index) => ({
      route: config.routes[route]?.route.name ?? "",
      file,
      number: index + 1,
      rule,
      judgement: judge({ routing, route, together: routes, vmagentRules, rule }),
    })),
  );
}

function worst(judgements: readonly Judgement[]): Verdict {
  const has = (wanted: Verdict): boolean => judgements.some(({ verdict }) => verdict === wanted);
  return has("unsafe") ? "unsafe" : has("unknown") ? "unknown" : "safe";
}

function summary(judgements: readonly RuleJudgement[]): string {
  const count = (wanted: Verdict): string =>
    `${judgements.filter(({ judgement }) => judgement.verdict === wanted).length} ${wanted}`;
  return [count("safe"), count("unsafe"), count("unknown")].join(", ");
}
