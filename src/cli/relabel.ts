/** `relabel`: what a file of relabel rules does to series, by the code that relabels real traffic. */
import { formatProblem } from "../config/problem.ts";
import { loadRelabelRules } from "../config/relabelSection.ts";
import type { RelabelDialect, RelabelRuleList } from "../relabel/options.ts";
import { faultOf, RelabelRules } from "../relabel/rules.ts";
import { labelText } from "../route/labelText.ts";
import { recorder, type RuleStep, stepLines } from "../explain/ruleSteps.ts";
import { readSeriesLines, type Labels } from "./seriesLines.ts";
import { parseSeriesText } from "../explain/seriesText.ts";

type Print = (line: string) => void;

export interface RelabelOptions {
  /** The file of rules. */
  readonly rules: string;
  /** Whose reading the rules have. */
  readonly dialect: RelabelDialect;
  /** A file of series, one a line, in place of one given as text. */
  readonly input?: string;
  readonly json: boolean;
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Prints the label set after every rule, or with `json` one line a series: `{"labels":[...]}` or `{"dropped":true,"rule":3}`.
 * Rules are counted from 1.
 *
 * @param series as text; undefined when there is an input
 * @returns the exit code: 1 when the rules are invalid
 * @throws {SyntaxError} for series that cannot be read, or are no label set
 */
export async function relabel(
  series: string | undefined,
  { rules: file, dialect, input, json }: RelabelOptions,
  print: Print,
  printError: Print,
): Promise<number> {
  const { rules, problems } = loadRelabelRules(file, dialect, faultOf);
  for (const problem of problems) printError(formatProblem(problem));
  if (rules === null) return 1;
  const relabeler = new Relabeler(rules);
  const show = (labels: Labels, place: string): void => {
    checkLabelSet(labels, place);
    if (json) print(JSON.stringify(relabeler.outcome(labels)));
    else relabeler.describe(labels).forEach(print);
  };
  if (series !== undefined) show(parseSeriesText(series), series);
  if (input !== undefined) for await (const { labels, place } of readSeriesLines(input)) show(labels, place);
  return 0;
}

/**
 * Refuses what the door of the gateway refuses before rules see it.
 *
 * @param place what errors begin with
 */
function checkLabelSet(labels: Labels, place: string): void {
  const names = new Set<string>();
  const refuse = (got: string): never => {
    throw new SyntaxError(`${place}: want a label set; got ${got}`);
  };
  for (const [name, value] of labels) {
    if (name === "") refuse("a label without a name");
    if (names.has(name)) refuse(`the label ${name} twice`);
    if (LONE_SURROGATE.test(name + value)) refuse(`a label ${name} that is no Unicode text`);
    names.add(name);
  }
}

class Relabeler {
  readonly #list: RelabelRuleList;
  readonly #rules: RelabelRules;

  constructor(list: RelabelRuleList) {
    this.#list = list;
    this.#rules = new RelabelRules(list);
  }

  outcome(labels: Labels): { readonly labels: Labels } | { readonly dropped: true; readonly rule: number } {
    const outcome = this.#rules.apply(labels);
    if (outcome.kind === "kept") return { labels: outcome.labels };
    return { dropped: true, rule: outcome.rule + 1 };
  }

  describe(labels: Labels): string[] {
    const steps: RuleStep[] = [];
    const tell = recorder(this.#list, steps);
    const outcome = this.#rules.apply(labels, tell);
    if (outcome.kind !== "kept") tell(outcome.rule, null);
    return [labelText(labels), ...stepLines(steps, "rule", labels).map((line) => `  ${line}`)];
  }
}
